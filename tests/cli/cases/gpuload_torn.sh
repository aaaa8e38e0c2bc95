# A torn state costs a note; one of somebody else is refused, and stays as it was.
mkdir here && printf '#!/bin/sh\n' >here/scontrol && chmod +x here/scontrol
export PATH="$PWD/here:$PATH" SLURMD_NODENAME=node1
cp "$DATA/gpu-day.csv" .
printf '{"stretto_gpuload": 1, "node": "no' >node1.state
stretto gpuload --recorded gpu-day.csv --state %n.state || exit
stretto gpuload --recorded gpu-day.csv --state gpu-day.csv
status=$?
cmp gpu-day.csv "$DATA/gpu-day.csv" && exit $status
