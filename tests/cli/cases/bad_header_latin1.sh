# a name of a column that is not UTF-8
printf 'date,Umsatz S\374d\n2024-01-01,3\n2024-01-02,4\n2024-01-03,5\n' >l.csv
stretto check l.csv
