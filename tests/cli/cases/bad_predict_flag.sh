. "$DATA/rows.sh"
rows 60 >a.csv
stretto predict m a.csv --target y
