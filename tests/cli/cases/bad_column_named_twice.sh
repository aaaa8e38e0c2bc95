. "$DATA/rows.sh"
rows 60 >a.csv
stretto train a.csv --target y,y --horizon 6 -o m || echo "exit $?"
stretto train a.csv --target y,2 --horizon 6 -o m || echo "exit $?"
stretto check a.csv --target y --past z,z --horizon 6 || echo "exit $?"
