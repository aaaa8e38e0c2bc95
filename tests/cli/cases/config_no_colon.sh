printf 'target: x\nhorizon 2\nhidden: 3\n' >c.yaml
stretto train a.csv --config c.yaml -o m
