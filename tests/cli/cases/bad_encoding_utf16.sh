. "$DATA/rows.sh"
# with the mark of UTF-16 in front it is read, as a spreadsheet writes it
rows 24 | tr , '\t' | awk 'BEGIN { printf "\377\376" } { for (i = 1; i <= length; i++) printf "%s%c", substr($0, i, 1), 0; printf "\r%c\n%c", 0, 0 }' >u.txt
stretto check u.txt --target y
# without it nobody tells, and a half is none
bytes 't\000,\000y\000\n\000' >a.csv
stretto check a.csv
bytes '\377\376t\000,\000y\000\n\0001' >b.csv
stretto check b.csv
