. "$DATA/rows.sh"
rows 40 >a.csv
stretto train a.csv --target y --time tiem --horizon 6 -o m
