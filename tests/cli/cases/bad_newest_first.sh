. "$DATA/rows.sh"
(rows 30 | head -1; rows 30 | tail -n +2 | sort -r) >a.csv
stretto train a.csv $small -o m
# its last line without an end, and blank lines above the header
(echo; head -n 15 a.csv; printf '2020-01-01 15:00,1,2') >b.csv
stretto check b.csv --target y | sed -n 's/^  fix: //p' >fix.sh && cat fix.sh && sh fix.sh && stretto check b-sorted.csv --target y | sed -n '/^b/p; /^error/p; /^series/p'

