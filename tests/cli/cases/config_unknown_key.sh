printf 'target: x\nhorzion: 24\n' >c.yaml
stretto train a.csv --config c.yaml -o m
