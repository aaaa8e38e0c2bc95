# A test part of two rows: how little the scores rest on is said; of twelve it is not.
awk 'BEGIN { print "month,y"; for (i = 0; i < 40; i++) printf "%d-%02d-01,%d\n", 2020 + int(i / 12), 1 + i % 12, 50 + i + 9 * (i % 12 < 6) }' >m.csv
for h in 2 12; do stretto train m.csv --horizon $h --test $h --steps 5 --members 1 -o $h.model 2>&1 | grep 'scores rest'; done
