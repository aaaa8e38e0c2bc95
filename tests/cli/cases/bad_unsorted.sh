. "$DATA/rows.sh"
rows 60 | sed '12{h;d};15G' >a.csv
stretto train a.csv $small -o m
