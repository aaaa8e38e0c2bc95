. "$DATA/rows.sh"
rows 200 >a.csv
echo '(plan of mine' >p.plan
stretto train a.csv $small --plan p.plan -o m
