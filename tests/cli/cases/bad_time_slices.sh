. "$DATA/rows.sh"
rows 400 >a.csv
for flag in "--context 48 --segment 1 --parallel time:49" "--loss-steps all --context 48 --parallel time:49" "--parallel time:0" \
    "--parallel time:x" \
    "--decoder parallel --context 48 --segment 12 --parallel time:5" "--context 48 --segment 48 --parallel time" \
    "--context 48 --parallel time:2 --slice-rounds 1" "--context 48 --parallel time:2 --deterministic"; do
    stretto train a.csv $small $flag -o m || echo "exit $?"
done
# slices shorter than a useful length are run, with a warning
stretto train a.csv $small --loss-steps all --context 48 --parallel time:16 --progress none -o m 2>&1 >/dev/null | grep warning
