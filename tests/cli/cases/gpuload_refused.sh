# Slurm says no: its words are in the error, and the next call tries again.
mkdir here && printf '#!/bin/sh\necho "slurm_update error: Invalid node name specified" >&2\nexit 1\n' >here/scontrol && chmod +x here/scontrol
export PATH="$PWD/here:$PATH" SLURMD_NODENAME=node9
stretto gpuload --recorded "$DATA/gpu-day.csv" --state %n.state
status=$?
printf '#!/bin/sh\n' >here/scontrol
stretto gpuload --recorded "$DATA/gpu-day.csv" --state %n.state && exit $status
