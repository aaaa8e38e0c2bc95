# A model of every column keeps its columns: in another order, beside a new one, and where one does not change any more.
. "$DATA/rows.sh"
all="--target all --horizon 6 --members 1 --steps 5 --quiet"
rows 200 >a.csv
rows 240 | awk -F, -v OFS=, 'NR==1 {print "new", $3, $1, $2; next} {print "", $3, $1, $2}' >swapped.csv
rows 240 | cut -d, -f1,2 >less.csv
rows 240 | awk -F, -v OFS=, 'NR>1 {$2 = 12} {print}' >flat.csv
rows 240 >same.csv
stretto train a.csv $all -o m >table
stretto eval m same.csv -q >same && stretto eval m swapped.csv -q >swapped && cmp same swapped && echo same scores
stretto predict m same.csv -q >same && stretto predict m swapped.csv -q >swapped && cmp same swapped && echo same forecasts
stretto predict m flat.csv -q | awk 'END {print NR - 1, "forecasts of a column that stands still"}'
stretto eval m flat.csv -q | grep -c model
stretto predict m less.csv
