[ -f "$SHARED/data/univariate/daily-min-temperatures.csv" ] || { echo "the shared file daily-min-temperatures.csv is not here"; exit 77; }
cp "$SHARED/data/univariate/daily-min-temperatures.csv" .
stretto check daily-min-temperatures.csv
