. "$DATA/rows.sh"
rows 60 | sed '12s/,[^,]*,/,abc,/' >a.csv
stretto train a.csv $small -o m
