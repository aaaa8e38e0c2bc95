stretto train a.csv --target --horizon 24
