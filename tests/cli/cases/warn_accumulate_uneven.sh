# fewer windows than --batch: parts of one size have other steps than the batch in one piece, and that is said
fit="$EXAMPLES/airline-passengers.csv --target Passengers --base none --steps 2 --members 1 -q"
said() { stretto train $fit "$@" -o m.model 2>err >/dev/null; grep accumulate err || echo "nothing"; }
said --accumulate 2
said --accumulate 2 --batch 58
said --batch 59 --accumulate 59
said --accumulate 64
