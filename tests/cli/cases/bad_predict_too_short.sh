. "$DATA/rows.sh"
rows 200 >a.csv
rows 20 >b.csv
stretto train a.csv $small --context 24 -o m >table && stretto predict m b.csv
