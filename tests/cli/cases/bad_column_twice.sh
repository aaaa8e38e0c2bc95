. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --past z --known z -o m
