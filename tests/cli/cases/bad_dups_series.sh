# --dups merges rows that were written twice, never series side by side.
shops() { awk -v twice="$1" 'BEGIN {
    print "time,shop,y"
    for (i = 1; i < 29; i++) for (s = 0; s < 2; s++) for (k = 0; k <= (i == twice && s); k++) printf "2024-01-%02d,%s,%d\n", i, s ? "b" : "a", i + 10 * s
}'; }
shops >a.csv
for d in error first last mean; do stretto check a.csv --dups $d --target y | grep '^error'; done
# one of the two is there for the last days only
shops | awk -F, 'NR == 1 || $2 == "a" || NR > 50' >late.csv
stretto check late.csv --dups first --target y | sed -n '/^error/p; /^  fix/p'
stretto check late.csv --dups first --target y --ignore shop | grep -e '^error' -e '^merged' -e '^series'
# one shop, rows that are equal in the words too
shops 5 | grep -v ,a, >b.csv
sed '7p;8p' b.csv >c.csv
stretto check c.csv --dups mean --target y | grep -e '^error' -e '^merged' -e '^series'
# a few rows of many that differ in a word
awk 'BEGIN { print "time,sky,y"; for (i = 0; i < 400; i++) for (k = 0; k <= (i == 77); k++) printf "2024-%02d-%02d %02d:00,%s,%d\n", 1, 1 + int(i / 24), i % 24, k || i % 5 ? "sun" : "rain", i % 24 }' |
    sed '/2024-01-04 05:00/s/sun/rain/' | awk '{ if ($0 ~ /01-04 05:00/ && !seen++) sub("rain", "sun"); print }' >d.csv
stretto check d.csv --dups last --target y | grep -e '^error' -e '^merged' -e '^series'
stretto check d.csv --dups last --target y --json | grep '"merged"'
