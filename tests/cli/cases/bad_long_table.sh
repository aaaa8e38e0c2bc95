# a long table sorted by time: several series under the same times
printf 'time,shop,y\n2024-01-01,a,1\n2024-01-01,b,2\n2024-01-02,a,3\n2024-01-02,b,4\n' >a.csv
stretto train a.csv --target y
