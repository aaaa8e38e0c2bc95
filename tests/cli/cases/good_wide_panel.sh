# many columns of few rows: the context that is chosen leaves windows to train on
awk 'BEGIN {
    for (k = 0; k < 30; k++) printf "%ss%d", k ? "," : "", k
    print ""
    for (i = 0; i < 500; i++) for (k = 0; k < 30; k++) printf "%d%s", 100 + k + 9 * ((i + k) % 7), k < 29 ? "," : "\n"
}' >a.csv
stretto train a.csv --target all --horizon 7 --no-correction --base last -o m --progress none 2>&1 >/dev/null | grep -E '^(preset|train|error)'
