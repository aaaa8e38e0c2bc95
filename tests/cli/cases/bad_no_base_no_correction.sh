. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --base none --no-correction -o m
