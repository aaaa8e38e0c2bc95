# Two shares, three ranks; and a share of nothing.
stretto train "$EXAMPLES/airline-passengers.csv" --target Passengers --ranks 3 --rank-shares 1,0.4 -o m && exit
stretto train "$EXAMPLES/airline-passengers.csv" --target Passengers --ranks 2 --rank-shares 1,0 -o m
