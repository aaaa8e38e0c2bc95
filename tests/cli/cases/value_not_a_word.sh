stretto train a.csv --target x --gaps maks -o m
