. "$DATA/rows.sh"
rows 400 >a.csv
for flag in "--parallel time:4" "--loss-steps all --context 48 --parallel time:49" "--parallel time:0" "--parallel time:x" \
    "--bidirectional --parallel time:4" "--projection 4 --parallel time" "--decoder parallel --parallel time:2" \
    "--decoder autoregressive --parallel time:2"; do
    stretto train a.csv $small $flag -o m || echo "exit $?"
done
# slices shorter than a useful length are run, with a warning
stretto train a.csv $small --loss-steps all --context 48 --parallel time:16 --progress none -o m 2>&1 >/dev/null | grep warning
