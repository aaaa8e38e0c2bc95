. "$DATA/rows.sh"
bytes '\377\376t\000,\000y\000\n\000' >a.csv
stretto check a.csv
