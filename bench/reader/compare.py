"""Interleaved rounds of ours and the peers on generated files; called by run.sh."""
import os
import statistics
import subprocess
import sys

bench, python, here, rows, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
folder = os.environ.get("TMPDIR", "/tmp")


def run(*command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(out[0]), float(out[1]), int(out[2]), float(out[3])


for kind in ("floats", "full", "time"):
    path = os.path.join(folder, f"stretto_bench_{kind}_{rows}.csv")
    if not os.path.exists(path):
        subprocess.run([bench, "gen", kind, str(rows), path], check=True)
    peer = [python, os.path.join(here, "peer.py")]
    what = {"ours 1": [bench, "read", "1", path], "pandas": peer + ["pandas", "1", path],
            "ours 2": [bench, "read", "2", path], "pyarrow 2": peer + ["pyarrow", "2", path]}
    got = {name: [] for name in what}
    for _ in range(rounds):
        for name, command in what.items():
            got[name].append(run(*command))
    sums = {round(r[3], 3) for rs in got.values() for r in rs}
    print(f"{kind}: {rows} rows x 3, {os.path.getsize(path) / 1e6:.0f} MB, checksums {'agree' if len(sums) == 1 else sums}")
    for name, rs in got.items():
        print(f"  {name:10} {min(r[0] for r in rs):7.2f} s best, cpu {min(r[1] for r in rs):6.2f} s, peak {rs[0][2] / 1e6:6.0f} MB")
    parsed = rows * 3 * 8
    for a, b, bar in (("pandas", "ours 1", 2.0), ("pyarrow 2", "ours 2", 1.0)):
        ratio = [x[0] / y[0] for x, y in zip(got[a], got[b])]
        used = min(x[1] for x in got[a]) / min(y[1] for y in got[b])
        print(f"  {a} / {b}: {statistics.median(ratio):.2f}x wall (median of {rounds} rounds), {used:.2f}x cpu; bar {bar:.0f}x")
    over = max(r[2] for r in got["ours 1"] + got["ours 2"]) - parsed
    print(f"  memory above the parsed {parsed / 1e6:.0f} MB: {over / 1e6:.1f} MB; bar 67.1 MB")
