# a model knows where each of its values came from when it was trained
. "$DATA/rows.sh"
rows 60 >a.csv
printf 'horizon: 4\nmembers: 1\n' >c.yaml
stretto train a.csv -c c.yaml --target y --steps 3 -q -o m 2>/dev/null >/dev/null
stretto info m | grep -E '^  (horizon|members|target|steps|context|layers|seed): .* # '
