. "$DATA/rows.sh"
(rows 30 | head -1; rows 30 | tail -n +2 | sort -r) >a.csv
stretto train a.csv $small -o m
