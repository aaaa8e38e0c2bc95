. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --kernel "" -o m
