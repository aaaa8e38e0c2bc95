. "$DATA/rows.sh"
rows 400 >a.csv
for flag in "--pipeline delay2" "--pipeline delay1 --accumulate 4" "--pipeline delay1 --slice-rounds 1" \
    "--pipeline delay1 --loss-steps all --context 48 --parallel time:2 --slice-rounds 1"; do
    stretto train a.csv $small $flag -o m || echo "exit $?"
done
# what is asked for twice is fine: a fixed order of sums is what delay1 has
stretto train a.csv --target y --horizon 6 --members 1 --pipeline delay1 --deterministic --steps 4 --progress none -o m 2>&1 >/dev/null | grep pipeline
