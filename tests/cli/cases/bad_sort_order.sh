# The sort that is advised follows the layout that was recognised, and the rows it gives are in order.
mended() {
    stretto check "$@" | sed -n 's/^error.*E209.*: time/time/p; s/^  fix: //p'
    stretto check "$@" | sed -n 's/^  fix: //p' >fix.sh
    sh fix.sh
    shift
    for f in *-sorted.csv; do stretto check $f "$@" | sed -n '/^error/p; /^series/p'; done
    rm -f *-sorted.csv
}
# 40 days around a new year, and every three hours, in an order that is none
rows() { awk -v f="$1" -v sep="${2:-;}" 'BEGIN {
    print "t" sep "y"
    for (i = 0; i < 320; i++) {
        k = (i * 37) % 320; day = int(k / 8); h = k % 8 * 3
        y = day < 20 ? 2023 : 2024; m = day < 20 ? 12 : 1; d = day < 20 ? 12 + day : day - 19
        if (f == "dmy") printf "%02d.%02d.%d %02d:00", d, m, y, h
        if (f == "mdy") printf "%d/%d/%d %d:00", m, d, y, h
        if (f == "ymd") printf "%d-%d-%d %d:00", y, m, d, h
        if (f == "iso") printf "%d-%02d-%02dT%02d:00Z", y, m, d, h
        if (f == "two") printf "%02d:00%s%02d.%02d.%d", h, sep, d, m, y
        if (f == "unix") printf "%d", 1700000000 + k * 10800
        if (f == "half") printf "%d/%d/%d %d:00 %s", m, d, y, h % 12 ? h % 12 : 12, h < 12 ? "AM" : "PM"
        print sep k % 8
    }
}' | if [ "$1" = two ]; then sed '1s/t/clock;t/'; else cat; fi; }
for f in dmy mdy ymd iso; do rows $f >$f.csv && mended $f.csv; done
rows two >two.csv && mended two.csv --time t,clock
rows unix , >unix.csv && mended unix.csv --time t
rows dmy , | tail -n +2 >bare.csv && mended bare.csv
rows dmy | stretto check /dev/stdin | sed -n 's/^  fix: //p'
rows half >half.csv && stretto check half.csv | sed -n 's/^  fix: //p'
# a column of words in a shuffled file names no series; two that do together, neither alone
rows iso , | awk -F, 'NR == 1 { print $0 ",state" } NR > 1 { print $0 "," (NR % 3 ? "ok" : "late") }' >state.csv
stretto check state.csv | sed -n '/^error/p; s/^  fix: //p'
awk 'BEGIN { print "region,item,t,y"
    for (r = 0; r < 2; r++) for (k = 0; k < 2; k++) for (i = 1; i < 20; i++)
        printf "%s,%s,2024-01-%02d,%d\n", r ? "north" : "south", k ? "tea" : "oil", i, i + 5 * r }' >panel.csv
stretto check panel.csv --target y | sed -n '/^error/p; s/^  fix: //p'
stretto check panel.csv --target y | sed -n 's/^  fix: //p' | sed 's/   (.*//' >fix.sh && sh fix.sh && stretto check panel-one.csv --target y | grep '^series'
