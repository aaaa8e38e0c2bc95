[ -f "$SHARED/data/univariate/shampoo.csv" ] || { echo "the shared file shampoo.csv is not here"; exit 77; }
cp "$SHARED/data/univariate/shampoo.csv" .
stretto check shampoo.csv --target Sales || echo "exit $?"
stretto check shampoo.csv --target Sales --time-format row --freq 1month --ignore Month
