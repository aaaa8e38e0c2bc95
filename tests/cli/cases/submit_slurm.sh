. "$DATA/rows.sh"
rows 60 >a.csv
for v in $(env | sed -n 's|^\(STRETTO_[A-Z_]*\)=.*|\1|p'); do unset $v; done
export STRETTO_WISDOM=off
stretto submit --on slurm --nodes 2 --ranks-per-node 4 --time 2:00:00 --queue long --mem 8G --gpus-per-node 1 --mpi pmix --dry-run \
    -- train a.csv $small --threads 2 -o "a b.model" --run-dir "it's a run" 2>/dev/null | grep . && exit 1
stretto submit --on slurm --nodes 2 --ranks-per-node 4 --time 2:00:00 --queue long --mem 8G --gpus-per-node 1 --mpi pmix --dry-run \
    -- train a.csv $small --threads 2 -o m.model --run-dir "it's a run" | sed 's| /[^ ]*/stretto "| stretto "|'
