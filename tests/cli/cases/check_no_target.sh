# which column is meant is asked, and what is wrong with the rows is said all the same
printf 'date,a,b\n2024-01-01,3,7\n2024-01-02,4,6\n2024-01-02,5,9\n2024-01-05,4,8\n' >c.csv
stretto check c.csv
