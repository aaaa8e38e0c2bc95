. "$DATA/rows.sh"
rows 200 >a.csv
stretto train a.csv --target y --horizon 6 --hidden 512 --quiet --memory 2M -o m
