# days FORMAT..: a month of sales, as that format of awk has them
days() { awk -v f="$1" -v sep="${2:-;}" 'BEGIN {
    print "day" sep "units"
    for (i = 0; i < 120; i++) {
        v = 850 + 37 * (i % 7) + 11 * (i % 13)
        s = v >= 1000 ? sprintf("%d%s%03d", v / 1000, f, v % 1000) : v
        printf "2024-%02d-%02d%s%s\n", 1 + int(i / 28), 1 + i % 28, sep, sep == "," && f == "," ? "\"" s "\"" : s
    }
}'; }
options="--time-format row --target units --horizon 7 --no-correction --base last"
# 998 beside 1.021: the file tells; and so it is read when the model sees another one, in which nothing tells
days . >german.csv
stretto train german.csv $options -o german.model 2>&1 >/dev/null | grep '^read'
sed -n '1p;/;1[.]/p' german.csv | sed 2,4d >new.csv
stretto predict german.model new.csv 2>/dev/null | cut -d, -f2-3,5 | tail -1
days ' ' >french.csv
stretto train french.csv $options -o m 2>&1 >/dev/null | grep '^read'
days "'" , >swiss.csv
stretto train swiss.csv $options -o m 2>&1 >/dev/null | grep '^read'
days , , >english.csv
stretto train english.csv $options -o m 2>&1 >/dev/null | grep '^read'
# nobody tells
grep '[a.]' german.csv | sed -n '1p;/;1[.]/p' >unknown.csv
stretto check unknown.csv --time-format row --target units | sed -n '/warning/,/fix/p'
stretto train unknown.csv $options -o m --quiet 2>&1 >/dev/null
stretto train unknown.csv $options -o m --quiet --decimal point 2>&1 >/dev/null
stretto train unknown.csv $options -o m --decimal comma 2>&1 >/dev/null | grep '^read'
# known too late: a cell that can be read in one way only, behind the part of the file that is looked at
{ echo "n;v"; awk 'BEGIN { for (i = 0; i < 1200; i++) printf "%d;%d.%03d\n", i, 1 + i % 9, 100 + i % 800; print "1200;1.021.300" }'; } >late.csv
stretto train late.csv --target v --horizon 7 -o m 2>&1 >/dev/null || echo "exit $?"
# a number that means missing means so with marks between its thousands too
awk 'BEGIN { print "day;units"; for (i = 0; i < 30; i++) print "2024-01-" (i < 9 ? "0" : "") i + 1 ";" (i % 10 == 3 ? "-9\x27999" : i % 10 == 6 ? "-9999" : i % 5 ? "1\x27" 200 + i : 950 + i) }' >gone.csv
stretto check gone.csv --target units --na -9999 | sed -n 1,8p
sed 's/;/,/; s/-9.\{0,1\}999/"-9,999"/; s/1\x27\(2..\)/"1,\1"/' gone.csv >gone2.csv
stretto check gone2.csv --target units --na -9999 | sed -n 1,8p
