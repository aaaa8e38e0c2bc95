. "$DATA/rows.sh"
rows 200 >a.csv
stretto check a.csv --target y
