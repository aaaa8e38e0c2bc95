. "$DATA/rows.sh"
rows 0 >a.csv
stretto train a.csv --target y -o m
