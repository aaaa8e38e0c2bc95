#!/bin/sh
# run.sh - the text reader against pandas and pyarrow, interleaved: bench/reader/run.sh [BUILD_DIR [ROWS [ROUNDS]]]
# Needs .peers/ (bench/peers.sh) and about 1.3 GB in $TMPDIR; the generated files stay there for the next run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${1:-$root/build}
[ -x "$root/.peers/bin/python" ] || { echo "run bench/peers.sh first"; exit 1; }
[ -f "$build/build.ninja" ] || [ -f "$build/Makefile" ] || cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release > /dev/null
cmake --build "$build" --target bench_reader > /dev/null
exec "$root/.peers/bin/python" "$here/compare.py" "$build/bench/reader/bench_reader" "$root/.peers/bin/python" "$here" "${2:-10000000}" "${3:-5}"
