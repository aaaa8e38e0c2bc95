printf 'target: x\n\thorizon: 2\n' >c.yaml
stretto train a.csv --config c.yaml -o m
