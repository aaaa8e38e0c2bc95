# a column that never changes is no target to propose, and is said to be one
printf 'date,load,site\n2024-01-01,3,7\n2024-01-02,,7\n2024-01-03,5,7\n2024-01-04,4,7\n' >c.csv
stretto check c.csv
