#!/bin/bash
# run.sh - Stretto's LSTM layer against PyTorch's, interleaved in rounds of short processes, medians of the rounds' medians.
#
#     bench/kern/run.sh BUILD_DIR [ROUNDS] [SECONDS] [SHAPES] [CELL]     e.g. bench/kern/run.sh build 5 1 "1 2 3 4 5" lstm
#
# PyTorch runs twice: as it comes, and with a malloc that keeps its memory (no page faults each step), which is its best setting.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?build directory}; rounds=${2:-3}; seconds=${3:-1}; shapes=${4:-1 2 3 4 5}; cell=${5:-lstm}
bench=$(find "$build" -name bench_kern -type f -perm -u+x | head -1)
py=$root/.peers/bin/python
[ -x "$py" ] || { echo "run bench/peers.sh first"; exit 1; }
out=$(mktemp); trap 'rm -f "$out"' EXIT
keep="MALLOC_MMAP_THRESHOLD_=17179869184 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=268435456"
for ((r = 0; r < rounds; r++)); do
    for threads in 1 2; do
        for s in $shapes; do
            "$bench" --cell "$cell" --threads $threads --shape "$s" --seconds "$seconds" | sed "s/^/ours $threads /" >> "$out"
            env $keep "$py" "$root/bench/kern/torch_lstm.py" --cell "$cell" --threads $threads --shape "$s" --seconds "$seconds" \
                2>/dev/null | sed "s/^/kept $threads /" >> "$out"
            "$py" "$root/bench/kern/torch_lstm.py" --cell "$cell" --threads $threads --shape "$s" --seconds "$seconds" \
                2>/dev/null | sed "s/^/stock $threads /" >> "$out"
        done
    done
done
"$py" - "$out" <<'PY'
import re, statistics, sys
got = {}
for line in open(sys.argv[1]):
    m = re.match(r"(\w+) (\d) (S\d).*?quiet ([\d.]+) ms", line)
    if m:
        got.setdefault((m[3], int(m[2]), m[1]), []).append(float(m[4]))
print(f"{'shape':6}{'threads':>8}{'ours ms':>10}{'kept ms':>10}{'stock ms':>10}{'kept/ours':>11}{'stock/ours':>11}   from-to")
for shape, threads in sorted({(k[0], k[1]) for k in got}):
    o, k, s = (statistics.median(got[shape, threads, c]) for c in ("ours", "kept", "stock"))
    ours = got[shape, threads, "ours"]
    print(f"{shape:6}{threads:8}{o:10.3f}{k:10.3f}{s:10.3f}{k / o:11.2f}{s / o:11.2f}   {min(ours):.2f}-{max(ours):.2f}")
PY
