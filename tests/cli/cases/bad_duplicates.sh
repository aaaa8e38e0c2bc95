. "$DATA/rows.sh"
rows 60 | sed '12p;30p' >a.csv
stretto train a.csv $small -o m
