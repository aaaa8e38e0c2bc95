stretto submit --ranks 2 -- train d.csv --ranks 3
