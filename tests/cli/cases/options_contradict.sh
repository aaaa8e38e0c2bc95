printf 't,x\n2020-01-01,1\n2020-01-02,2\n' >a.csv
stretto train a.csv --target x --steps 10 --epochs 2 -o m
