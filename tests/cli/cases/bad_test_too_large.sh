. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --test 70 -o m
