. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --quantiles 0.9,0.1 -o m
