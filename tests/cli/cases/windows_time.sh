# windows with their loss behind them, in slices of time: few segments, each decoder, both ways, projected; how plans compare, how
# fast steps are
. "$DATA/rows.sh"
rows 400 >a.csv
for decoder in direct parallel autoregressive; do
    stretto train a.csv --target y --horizon 6 --context 96 --segment 3 --decoder $decoder --parallel time:5 --steps 6 --no-guard \
        --base last --progress none -o $decoder.model 2>&1 >/dev/null | grep slices
    stretto predict $decoder.model a.csv | wc -l
done
for way in "--bidirectional" "--hidden 8 --projection 3"; do
    stretto train a.csv --target y --horizon 6 --context 96 --segment 3 $way --parallel time:5 --steps 6 --no-guard \
        --base last --progress none -o way.model 2>&1 >/dev/null | grep slices
    stretto predict way.model a.csv | wc -l
done
stretto plan --horizon 1 --context 4096 --segment 1 --loss-steps last --batch 1 --machine 'cpu*2' --compare
stretto bench --horizon 2 --context 300 --segment 2 --decoder parallel --loss-steps last --batch 2 --hidden 16 --parallel time:7 --repeat 1
