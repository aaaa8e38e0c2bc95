# Units below the header: one finding, for the line; its fix leaves a file with gaps in most columns, told once.
awk 'BEGIN { printf "time"; for (k = 1; k <= 30; k++) printf ",f%d", k; printf "\n"; for (k = 1; k <= 30; k++) printf ",MW"; printf "\n"
     for (i = 0; i < 200; i++) { printf "2023-01-%02d %02d:00", 1 + int(i / 24), i % 24
                                 for (k = 1; k <= 30; k++) if ((i + k) % 97 == 5) printf ","; else printf ",%d", i % 24 + k; printf "\n" } }' >u.csv
stretto check u.csv --target all 2>&1
stretto train u.csv --target f1 --horizon 2 2>&1
stretto check u.csv --target all 2>&1 | sed -n 's/^  fix: //p' | sed 's/   (.*//' >fix.sh && sh fix.sh
stretto check u-clean.csv --target all 2>&1 | grep -v number
