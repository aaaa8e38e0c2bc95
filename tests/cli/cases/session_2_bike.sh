[ -f "$SHARED/data/bike_sharing/hour.csv" ] || { echo "the shared file bike_sharing/hour.csv is not here"; exit 77; }
cp "$SHARED/data/bike_sharing/hour.csv" .
stretto check hour.csv --time dteday,hr --target cnt | tail -n +20
stretto check hour.csv --time dteday,hr --target cnt >/dev/null
