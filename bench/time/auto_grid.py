#!/usr/bin/env python3
"""auto_grid.py STRETTO [--repeat N] [--rows B,..] [--steps T,..] [--hidden H,..]

What --parallel auto takes for streams (a loss at every row), against the better of serial and data, over a grid of rows,
steps and widths.  Prints a table for people; exit 1 when auto is slower than 1.03 x the better of the two anywhere.  Cells that
need more than LIMIT values are left out and said so.
"""
import argparse
import json
import os
import subprocess
import sys

LIMIT = 1 << 26  # rows x steps x hidden
SLOWER = 1.03


def numbers(text):
    return [int(x) for x in text.split(",")]


def measure(program, rows, steps, hidden, repeat):
    """The rows of `stretto bench` for one cell of the grid; those of all repetitions, the fastest of each."""
    command = [program, "bench", "--json", "--horizon", "1", "--loss-steps", "all", "--context", str(steps),
               "--batch", str(rows), "--hidden", str(hidden), "--repeat", str(repeat)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, STRETTO_WISDOM="off"), check=False)
    if done.returncode != 0:
        raise SystemExit(f"auto_grid: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def cell(program, rows, steps, hidden, repeat):
    """Prints one line of the table; False where auto is too slow."""
    if rows * steps * hidden > LIMIT:
        print(f"{rows:5d} {steps:7d} {hidden:5d}  left out: too large")
        return True
    found = measure(program, rows, steps, hidden, repeat)
    by = {r["strategy"]: r for r in found}
    plain = [r["step_ms"] for n, r in by.items() if n == "serial" or n.startswith("data")]
    auto = [r for r in found if r["auto"]]
    if not auto:
        print(f"{rows:5d} {steps:7d} {hidden:5d}  auto takes what was not measured")
        return False
    ratio = auto[0]["step_ms"] / min(plain)
    ways = "  ".join(f"{n} {r['step_ms']:.2f} ({r['predicted_ms']:.2f})" for n, r in by.items())
    mark = "" if ratio <= SLOWER else "   SLOWER"
    print(f"{rows:5d} {steps:7d} {hidden:5d}  {auto[0]['strategy']:14s} {ratio:6.2f}{mark}   {ways}", flush=True)
    return ratio <= SLOWER


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("stretto")
    p.add_argument("--repeat", type=int, default=2)
    p.add_argument("--rows", type=numbers, default=[1, 2, 8, 64])
    p.add_argument("--steps", type=numbers, default=[1024, 8192, 65536])
    p.add_argument("--hidden", type=numbers, default=[32, 128])
    o = p.parse_args()
    print(" rows   steps hidden auto takes     ratio   each way: ms (predicted)")
    good = True
    for steps in o.steps:
        for rows in o.rows:
            for hidden in o.hidden:
                good = cell(o.stretto, rows, steps, hidden, o.repeat) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
