# slices of time with boundaries one step old: told how far the loss is from that of whole windows; a plan says how it ran
stretto sample long-memory --rows 12000 -o long.csv
stretto train long.csv --target y --past u --horizon 1 --context 2048 --parallel time:4 --slice-rounds 1 --steps 40 --validate-every 20 --progress none -o long.model
stretto train long.csv --target y --past u --horizon 1 --context 2048 --parallel time:4 --slice-rounds 1 --deterministic --steps 4 -o no.model
stretto train long.csv --target y --past u --horizon 1 --context 2048 --parallel time:4 --slice-rank 2 --recompute --slice-tol 1e-5 --steps 4 --quiet -o short.model | head -1
