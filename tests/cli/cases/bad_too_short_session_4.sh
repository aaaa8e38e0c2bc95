stretto sample tides --rows 1000 -o load.csv
stretto train load.csv --target height --horizon 336 --context 336 --validation 336 --test 336 --quiet -o m || echo "exit $?"
# what it advises is taken
stretto train load.csv --target height --horizon 200 --context 200 --validation 200 --test 200 --steps 2 --no-correction --quiet -o m >table && echo trained
# one of the two is too long
stretto train load.csv --target height --horizon 336 --context 336 --validation 336 --test 0 --quiet -o m || echo "exit $?"
