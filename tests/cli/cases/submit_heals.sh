# Ranks may go on without one that dies: by a flag, by the config file, by that of the run; a flag outranks the file.
mkdir bin m.run && printf '#!/bin/sh\n' >bin/mpirun.openmpi && chmod +x bin/mpirun.openmpi
PATH=$PWD/bin:$PATH
printf 'heal: yes\n' >heals.yaml
printf '{"heal": true}\n' >m.run/config.json
try() { echo "== $*"; stretto submit --dry-run --ranks 2 --mpi openmpi -- "$@" | sed -n 's/-n 2 .*/-n 2/; 2p'; }
try train a.csv -o m
try train a.csv -o m --heal
try train a.csv -o m --config heals.yaml
try train a.csv -o m --config heals.yaml --no-heal
try resume m.run
