. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --kernel sse9 -o m
