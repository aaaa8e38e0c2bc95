# every value with its origin, as a config that gives the same values again
air=$EXAMPLES/airline-passengers.csv
printf 'target: Passengers\nhorizon: 12\nquantiles: [0.1, 0.5]\n' >air.yaml
stretto train "$air" --config air.yaml --hidden 64 --print-config -q >one.yaml || exit
stretto train "$air" --config one.yaml --print-config -q >two.yaml || exit
sed 's/ *#.*//' one.yaml | sort >one
sed 's/ *#.*//' two.yaml | sort >two
diff one two
head -4 one.yaml
grep '^task' one.yaml
