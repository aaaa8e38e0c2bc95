stretto sample long-memory --rows 12000 -o long.csv
stretto train long.csv --target y --horizon 1 --context 65536 --quiet -o m || echo "exit $?"
# the number it names works
stretto train long.csv --target y --horizon 1 --context 7679 --steps 2 --quiet --no-guard -o m >table && echo trained
