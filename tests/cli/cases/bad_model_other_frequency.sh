. "$DATA/rows.sh"
rows 200 >a.csv
rows 200 | awk 'NR == 1 || NR % 2 == 0' >b.csv
stretto train a.csv $small -o m >table && stretto predict m b.csv
