. "$DATA/rows.sh"
rows 60 | sed '12d;13d;30d' >a.csv
stretto train a.csv $small -o m
