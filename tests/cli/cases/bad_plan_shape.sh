# a plan of other options: which ones, and both ways out
. "$DATA/rows.sh"
rows 200 >a.csv
stretto plan a.csv --target y --horizon 3 --context 24 --save p.plan >/dev/null
stretto train a.csv $small --context 30 --plan p.plan -o m
