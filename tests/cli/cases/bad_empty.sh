: >a.csv
stretto train a.csv --target y -o m
