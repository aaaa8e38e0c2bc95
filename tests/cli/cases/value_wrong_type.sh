stretto train a.csv --target x --hidden many -o m
