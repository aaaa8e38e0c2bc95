# a series a row, times as names of columns: the advice swaps them
{
    printf 'store'
    for y in 2021 2022 2023 2024 2025; do for m in Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec; do printf ',%s %s' $m $y; done; done
    echo
    for s in A B; do printf $s; awk 'BEGIN { for (i = 0; i < 60; i++) printf ",%d", 10 + i % 12 }'; echo; done
} >a.csv
stretto train a.csv -o m || echo "exit $?"
stretto train a.csv -o m 2>&1 | sed -n 's/^  fix: //p' >fix.sh && sh fix.sh
stretto check a-swapped.csv --target A | head -6
# money and shares
printf 't,price,change\n1,"$1,200.50",1.5%%\n2,"$1,201.50",2.5%%\n3,"$998.25",-0.5%%\n' >m.csv
stretto train m.csv --ignore t -o m || echo "exit $?"
stretto train m.csv --target change -o m || echo "exit $?"
stretto train m.csv --ignore t -o m 2>&1 | sed -n 's/^  fix: //p' >fix.sh && sh fix.sh
stretto check m-numbers.csv --target price | head -5
# milliseconds since 1970, under a name that says so
awk 'BEGIN { print "unix_ms,v"; for (i = 0; i < 60; i++) printf "17000%05d000,%d\n", i * 60, i % 7 }' >e.csv
stretto check e.csv | grep series
# who names all of them means them
sed '3s/,/,9/g' a.csv >all.csv
stretto check all.csv --target all | sed -n '/^error/p; /^series/p'
