. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --hidden 8 --projection 8 -o m
