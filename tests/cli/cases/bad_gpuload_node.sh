# What cannot be the name of a node is not handed to scontrol.
stretto gpuload --recorded "$DATA/gpu-day.csv" --node 'node[1-9]' --dry-run
