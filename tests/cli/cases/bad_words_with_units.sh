# numbers as people write them: the fix shows how to write the first one
printf 't;a;b;c\n2024-01-01;1.260,63;8,39 kWh;1.465.210\n2024-01-02;1.261,63;8,40 kWh;1.465.211\n' >a.csv
for c in a b c; do stretto train a.csv --target $c; done
