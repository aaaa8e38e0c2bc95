stretto train a.csv --target x --dropout 1 -o m
