. "$DATA/rows.sh"
rows 30 >a.csv
stretto train a.csv --target y --horizon 40 --quiet -o m || echo "exit $?"
# the number it names works
stretto train a.csv --target y --horizon 5 --quiet -o m >table && echo trained
