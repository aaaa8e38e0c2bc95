printf 'a,b\n"x,1\n2,3\n' >a.csv
stretto check a.csv
