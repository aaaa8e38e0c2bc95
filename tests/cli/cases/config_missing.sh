stretto train a.csv --config c.yaml -o m
