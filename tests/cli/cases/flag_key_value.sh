stretto train a.csv hidden=64 -o m
