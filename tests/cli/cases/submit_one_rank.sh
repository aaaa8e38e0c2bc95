. "$DATA/rows.sh"
rows 60 >a.csv
stretto submit --on slurm --dry-run --max-restarts 0 -- train a.csv $small | sed 's| /[^ ]*/stretto "| stretto "|' | sed -n '/^#SBATCH/p; /^srun/p; /-ge/p'
