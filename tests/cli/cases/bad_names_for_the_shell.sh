# Names of columns in a fix are words of the shell.
printf 'day,a,it'"'"'s b\n' > x.csv
for i in $(seq 10 40); do printf '2020-01-%02d,%d,%d\n' $((i - 9)) $i $((i * i)); done > rows
head -31 rows >> x.csv
stretto train x.csv --horizon 2
