# a validation part that leaves nothing before the first fold
. "$DATA/rows.sh"
rows 30 >a.csv
stretto backtest a.csv --target y --horizon 3 --validation 20 --folds 5 --quiet
