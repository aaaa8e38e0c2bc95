printf 'horizon: 2\nhidden: 3\nhorizon: 4\n' >c.yaml
stretto train a.csv --config c.yaml -o m
