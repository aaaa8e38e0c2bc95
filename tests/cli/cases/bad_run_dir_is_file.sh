. "$DATA/rows.sh"
rows 200 >a.csv
: >r
stretto train a.csv $small -o m --run-dir r
