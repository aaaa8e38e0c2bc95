[ -f "$SHARED/data/ercot/ercot_multiple_ts.csv" ] || { echo "the shared file ercot/ercot_multiple_ts.csv is not here"; exit 77; }
cp "$SHARED/data/ercot/ercot_multiple_ts.csv" load.csv
stretto train load.csv --target value --horizon 336 --context 336 -o m
