. "$DATA/rows.sh"
rows 400 >a.csv
# the plan of another model, and more devices than rows: known with the data, and said before a base is chosen
stretto plan a.csv --target y --horizon 6 --context 24 --hidden 16 --save p.plan >/dev/null
for flag in "--threads 1 --plan p.plan --batch 32" "--threads 16 --batch 12 --parallel data_sync:16"; do
    stretto train a.csv --target y --horizon 6 --context 24 --steps 5 $flag -o m --progress none 2>err || echo "exit $?"
    grep -c '^base' err
    sed -n '/^error/,$p' err >&2
done
