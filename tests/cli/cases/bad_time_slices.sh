. "$DATA/rows.sh"
rows 400 >a.csv
for flag in "--parallel time:4" "--loss-steps all --context 48 --parallel time:49" "--parallel time:0" "--parallel time:x"; do
    stretto train a.csv $small $flag -o m || echo "exit $?"
done
