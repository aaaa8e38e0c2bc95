[ -f "$SHARED/data/ett/ETTh1.csv" ] || { echo "the shared file ett/ETTh1.csv is not here"; exit 77; }
cp "$SHARED/data/ett/ETTh1.csv" .
stretto train ETTh1.csv --target ot --horizon 96 -o m
