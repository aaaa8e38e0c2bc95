# A record with --dry-run: all of it, what would be told to Slurm and when; nothing is written.
stretto gpuload --recorded "$DATA/gpu-day.csv" --node node1 --smooth 2m --dry-run && ls
