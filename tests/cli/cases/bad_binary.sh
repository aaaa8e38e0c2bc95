. "$DATA/rows.sh"
bytes '\177ELF\002\001\001\000\000\000\000' >a.csv
stretto check a.csv
