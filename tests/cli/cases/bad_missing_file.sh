stretto train nothing.csv --target y -o m
