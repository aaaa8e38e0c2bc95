# A time of the record a call, scontrol standing in: told where the level left the band; what is free, from the same file.
mkdir here && printf '#!/bin/sh\necho "scontrol is called: $*" >&2\n' >here/scontrol && chmod +x here/scontrol
export PATH="$PWD/here:$PATH" SLURMD_NODENAME=node1
cp "$DATA/gpu-day.csv" .
for call in 1 2 3 4 5 6 7 8; do
    echo "call $call"
    stretto gpuload --recorded gpu-day.csv --state %n.state --band 20 || exit
done
stretto gpuload --shares --state %n.state
stretto gpuload --shares --state %n.state --json | sed "s/\(0[.][0-9]\{4\}\)[0-9]*/\1/g"; echo
sed "s/\(0[.][0-9]\{4\}\)[0-9]*/\1/g" node1.state
