. "$DATA/rows.sh"
rows 40 >a.csv
stretto train a.csv -o m
