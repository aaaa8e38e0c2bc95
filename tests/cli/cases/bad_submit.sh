# One clear sentence for each: what is wrong with the demand, with the command behind --, or with the cluster that is not there.
. "$DATA/rows.sh"
rows 60 >a.csv
mkdir -p m.run/checkpoints && : >m.run/checkpoints/000000000003.ckpt
try() { echo "== $*" >&2; stretto submit -q --on slurm "$@"; echo "exit $?" >&2; }
try --dry-run
try --dry-run train a.csv
try --dry-run -- predict m a.csv
try --dry-run -- train a.csv --hiden 3
try --dry-run -- train absent.csv $small
try --dry-run -- resume m.run
try --dry-run -- train a.csv $small -o m
try --dry-run --time 5 -- train a.csv $small
try --dry-run --time 30s -- train a.csv $small
try --dry-run --nodes 0 -- train a.csv $small
try --dry-run --mem lots -- train a.csv $small
try --dry-run --queue 'a b' -- train a.csv $small
try --dry-run --on moon -- train a.csv $small
try --dry-run --mpi pmix --nodes 2 -- train a.csv $small --ranks 3
PATH=${PATH%%:*}
try --max-restarts 1 -- train a.csv $small
