. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --kernel auto:sideways -o m
