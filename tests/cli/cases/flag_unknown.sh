stretto train a.csv --horzion 24 -o m
