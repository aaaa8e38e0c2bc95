[ -f "$SHARED/data/ercot/ercot_multiple_ts.csv" ] || { echo "the shared file ercot/ercot_multiple_ts.csv is not here"; exit 77; }
sed "4127s/,22991.*/,22991,67/" "$SHARED/data/ercot/ercot_multiple_ts.csv" >load.csv
sed -n 4127p load.csv
stretto train load.csv --target y --horizon 24 -o m
