# An option of submit that the launcher does not take is refused, never ignored.
for option in --nodes=2 --ranks-per-node=2 --gpus-per-node=1 --mem=1G --queue=q --time=1h; do
    stretto submit --dry-run $option -- train d.csv
    echo "exit $?" >&2
done
stretto submit --dry-run --on slurm --ranks 2 -- train d.csv
