# numbers as people write them: the fix shows how to write the first one
# (0.5 says that the point is a decimal point, so that nothing may stand between thousands)
printf 't;a;b;c;d\n2024-01-01;1.260,63;8,39 kWh;1.465.210;0.5\n2024-01-02;1.261,63;8,40 kWh;1.465.211;0.7\n' >a.csv
for c in a b c; do stretto train a.csv --target $c; done
