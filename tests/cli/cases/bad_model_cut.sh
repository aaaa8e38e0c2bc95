. "$DATA/rows.sh"
rows 200 >a.csv
stretto train a.csv $small -o m >table && head -c 900 m >cut.model
stretto predict cut.model a.csv
