. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv $small --cell gru --kernel auto:newton -o m
