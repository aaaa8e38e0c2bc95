# what a config file says of outputs holds as a flag would: places count from its folder, and flags win
. "$DATA/rows.sh"
rows 60 >a.csv
mkdir sub
printf 'target: y\nhorizon: 6\nsteps: 5\nmembers: 1\nquiet: yes\nout: a.model\nrun-dir: a.run\nplot: a.svg\n' >sub/a.yaml
stretto train a.csv --config sub/a.yaml >/dev/null || exit
ls *.model *.run *.svg 2>/dev/null
ls sub
stretto train a.csv --config sub/a.yaml --out b.model --run-dir b.run >/dev/null || exit
ls -d b.model b.run
# the options of a run, for another one: not its places
stretto train a.csv --config sub/a.run/config.json >/dev/null || exit
ls -d a.model a.model.run
# a column with a comma in its name
printf '"y,z"\n' >c.csv
awk 'BEGIN { for (i = 0; i < 60; i++) print i % 7 }' >>c.csv
stretto check c.csv --write-config c.yaml >/dev/null && cat c.yaml && stretto train c.csv --config c.yaml --steps 5 -q >/dev/null && echo trained
