# rows.sh - makes small data files for the cases: rows N prints N hours of a day-shaped load, from line 2 on.
#     time,y,z
#     2020-01-01 00:00,10,0
rows() {
    awk -v n="$1" 'BEGIN {
        print "time,y,z"
        for (i = 0; i < n; i++) printf "2020-01-%02d %02d:00,%d,%d\n", 1 + int(i / 24), i % 24, 10 + (i * 7) % 24 + int(i / 24) % 3, i
    }'
}
small="--target y --horizon 6 --members 1 --steps 5 --quiet"
# bytes TEXT: as printf, without a variable format
bytes() { printf "$1"; }
