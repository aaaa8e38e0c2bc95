. "$DATA/rows.sh"
rows 60 >a.csv
stretto backtest a.csv $small --folds 50
