# one row ahead of a long context: the shape chooses the preset; what prints is honest about it
stretto sample long-memory --rows 12000 -o long.csv
stretto train long.csv --target y --past u --horizon 1 --context 2048 --steps 40 --validate-every 20 --progress none -o long.model
stretto predict long.model long.csv --quiet -o next.csv && wc -l <next.csv
