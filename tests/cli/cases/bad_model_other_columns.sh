. "$DATA/rows.sh"
rows 200 >a.csv
rows 200 | sed '1s/y/load/' >b.csv
stretto train a.csv $small -o m >table && stretto predict m b.csv
