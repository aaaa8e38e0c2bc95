# Lines of totals: the fix takes out all of them, and names no layout where that of the other cells is known.
. "$DATA/rows.sh"
days() { awk 'BEGIN { print "day;y"; for (i = 0; i < 300; i++) printf "%02d.%02d.2024;%d\n", 1 + i % 25, 1 + int(i / 25), i % 7 }'; }
days | awk -v every=40 '{ print } NR > 1 && NR % every == 0 { print "total;99" }' >a.csv
stretto check a.csv 2>&1
stretto check a.csv 2>&1 | sed -n 's/^  fix: //p' | sed 's/   (.*//' >fix.sh && sh fix.sh && wc -l <a-clean.csv && grep total a-clean.csv
days | awk '{ print } NR > 1 && NR % 15 == 0 { print "total;99" }' >b.csv
stretto check b.csv 2>&1
stretto check a.csv --time day --time-format %d.%m.%Y 2>&1 | grep fix
