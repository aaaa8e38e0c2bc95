. "$DATA/rows.sh"
rows 200 >a.csv
stretto train a.csv $small --known z -o m >table && stretto predict m a.csv
