stretto train a.csv b.csv -o m
