stretto train a.csv --norm yes
