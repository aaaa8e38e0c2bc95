. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --deterministic --precision auto -o m
