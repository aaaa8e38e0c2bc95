printf 'target: x\nhorizon: many\n' >c.yaml
stretto train a.csv --config c.yaml -o m
