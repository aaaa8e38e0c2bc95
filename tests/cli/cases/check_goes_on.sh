# check lists what it can, kind by kind, and ends with the code of the first
printf 'date,a,b,c\n2024-01-01,3,7,1\n2024-01-02,x,6,2\n2024-01-04,5,oops,3\n2024-01-03,4,8,\n2024-01-05,4,8,1e30\n2024-01-06,4,8,5\n2024-01-07,4,8,6\n2024-01-08,4,8,7\n' >a.csv
stretto check a.csv --target c || echo "exit $?"
# a cell that cannot be read is not missing besides; a target that is not there hides nothing
stretto check a.csv --target a | grep ^error
stretto check a.csv --target d | grep ^error
# rows of another length: what their cells are is not known
printf 'date,a,b\n2024-01-01,3,7\n2024-01-02,x\n2024-01-04,5,oops\n2024-01-03,4,8\n2024-01-03,4,8\n2024-01-03,4,8\n2024-01-03,4,8\n' >r.csv
stretto check r.csv || echo "exit $?"
