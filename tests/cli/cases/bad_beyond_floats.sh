. "$DATA/rows.sh"
rows 60 | sed '2,$s/,\([^,]*\),/,\1e302,/' >a.csv
stretto train a.csv $small -o m
