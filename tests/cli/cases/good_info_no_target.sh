# to look at a file needs no target; names are as wide as a terminal shows them
printf 'date,köln,Δ load\n2024-01-01,3,7\n2024-01-02,4,6\n2024-01-03,5,9\n2024-01-04,4,8\n' >c.csv
stretto info c.csv
