. "$DATA/rows.sh"
rows 200 >a.csv
mkdir m
stretto train a.csv $small -o m --run-dir r
