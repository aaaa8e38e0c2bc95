[ -f "$SHARED/data/ili/ILINet.csv" ] || { echo "the shared file ili/ILINet.csv is not here"; exit 77; }
cp "$SHARED/data/ili/ILINet.csv" .
stretto check ILINet.csv --target "% WEIGHTED ILI"
