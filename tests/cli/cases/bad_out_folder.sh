. "$DATA/rows.sh"
rows 200 >a.csv
stretto train a.csv $small -o nowhere/m --run-dir r
