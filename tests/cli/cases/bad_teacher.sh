. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --decoder direct --teacher-forcing 0.5 -o m
