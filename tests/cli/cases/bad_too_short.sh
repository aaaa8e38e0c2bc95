. "$DATA/rows.sh"
rows 30 >a.csv
stretto train a.csv --target y --horizon 8 --context 24 --quiet -o m
