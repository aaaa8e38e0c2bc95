. "$DATA/rows.sh"
rows 200 >a.csv
stretto train a.csv $small --parallel ring:3 -o m
