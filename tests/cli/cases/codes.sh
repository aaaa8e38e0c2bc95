# groups of digits: codes where they are no thousands, and a question where nobody tells
awk 'BEGIN { print "phone,zip,units"; for (i = 0; i < 30; i++) printf "%d %d,%d %d,%d\n", 555, 123 + i, 100 + i, 1200 + i, i % 7 }' >a.csv
stretto check a.csv --target units
stretto check a.csv --target units --cat phone | grep -c W035
stretto train a.csv --target units --no-correction --base last --horizon 2 -o m 2>&1 >/dev/null | grep '^warning\|^columns'
