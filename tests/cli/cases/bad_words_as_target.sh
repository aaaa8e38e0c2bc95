printf 'time,y\n2020-01-01,a\n2020-01-02,b\n2020-01-03,a\n' >a.csv
stretto train a.csv --target y -o m
