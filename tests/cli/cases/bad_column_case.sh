. "$DATA/rows.sh"
rows 40 >a.csv
stretto train a.csv --target Y --horizon 6 -o m
