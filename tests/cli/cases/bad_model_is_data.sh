. "$DATA/rows.sh"
rows 60 >a.csv
stretto predict a.csv a.csv
