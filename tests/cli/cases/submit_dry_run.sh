stretto submit --dry-run --ranks 2 --max-restarts 5 -- train "two words.csv" --target a,b --horizon 3 --steps 9 -q -o m
