# what ends before the others is what somebody would forecast; a switch is it least
printf 'date,units,promo,open\n2024-01-01,3,0,7\n2024-01-02,4,1,8\n2024-01-03,6,1,9\n2024-01-04,,0,7\n' >ahead.csv
stretto check ahead.csv | grep fix
printf 'date,units,promo\n2024-01-01,3,0\n2024-01-02,4,1\n2024-01-03,6,1\n' >switch.csv
stretto check switch.csv | grep fix
# which column is meant is asked, and what is wrong with the rows is said all the same
printf 'date,a,b\n2024-01-01,3,7\n2024-01-02,4,6\n2024-01-02,5,9\n2024-01-05,4,8\n' >c.csv
stretto check c.csv
