#!/usr/bin/env python3
"""measured.py BUILD [--ranks N] [--turns N] [--seconds S] [--equal] [--threads] [--realtime] [--out FILE] - placements of real nets on
ranks, predicted and measured.

Ranks are processes under Open MPI, each bound to a core, or with --threads threads of one process.  In half of the cells rank 1 takes
twice as long for its computations (STRETTO_FAULT=1:0:slow(2)), and --rank-shares says so.  Each cell trains by `--place best`, and by
placements of whole layers at random, for a few seconds each, in turns.  The saving is 1 - step of best / mean step of the random
ones.  Writes bench/results/placement_measured.md.
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CELLS = [(layers, hidden, slow) for slow in (False, True) for layers in (2, 4, 6, 8) for hidden in (128, 256)]
RANDOM = ("random-layer:1", "random-layer:2", "random-layer:3")
TOOK = re.compile(r"a step of \d+ samples was predicted to take ([\d.]+) ms and took ([\d.]+) ms")


def launcher(args):
    """(words before the program, words after `train`)."""
    if args.threads:
        return [], ["--ranks", args.ranks]
    words = ["mpirun", "-n", args.ranks, "--bind-to", "core"]
    return words + (["--allow-run-as-root"] if os.geteuid() == 0 else []), []


def front(args):
    return ["chrt", "-r", "20"] if args.realtime else []


def step(args, cell, method, folder):
    """(predicted ms, measured ms) of a training by a method."""
    layers, hidden, slow = cell
    before, after = launcher(args)
    words = [*before, *front(args), args.program, "train", *after, folder / "data.csv", "--target", "y", "--layers", layers, "--hidden", hidden, "--batch", 64,
             "--context", 96, "--segment", 4, "--horizon", 4, "--threads", 1, "--parallel", "pipeline:%d" % args.ranks, "--place", method, "--steps", 1000000,
             "--patience", 0, "--validate-every", 1000000, "--time-limit", args.seconds, "--no-guard", "--members", 1, "--verbose",
             "--balance", "off", "-o", folder / "model"]
    if slow:
        words += ["--rank-shares", ",".join("0.5" if k == 1 else "1" for k in range(args.ranks))]
    env = dict(os.environ, STRETTO_WISDOM=str(folder / "wisdom"), **({"STRETTO_FAULT": "1:0:slow(2)"} if slow else {}))
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=env)
    found = TOOK.search(done.stderr)
    if not found:
        sys.exit("%s\n%s" % (" ".join(map(str, words)), done.stderr))
    return float(found.group(1)), float(found.group(2))


def measure(args, folder):
    """Of each cell and method: the medians of predicted and measured ms over the turns."""
    got = {}
    for turn in range(args.turns):
        for cell in args.cells:
            for method in ("best", *RANDOM):
                got.setdefault((cell, method), []).append(step(args, cell, method, folder))
            print("turn %d: %s %s" % (turn + 1, cell, got[cell, "best"][-1]), file=sys.stderr)
    return {k: tuple(statistics.median(v[i] for v in values) for i in (0, 1)) for k, values in got.items()}


def page(args, got):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    table, savings, near, plans = [], {False: [], True: []}, {False: 0, True: 0}, 0
    for cell in args.cells:
        layers, hidden, slow = cell
        best, random = got[cell, "best"], [got[cell, m] for m in RANDOM]
        mean = statistics.mean(m for _, m in random)
        savings[slow].append(1 - best[1] / mean)
        ratios = [said / took for said, took in (best, *random)]
        near[slow] += sum(0.9 <= r <= 1.1 for r in ratios)
        plans += len(ratios)
        table.append("| %d | %d | %s | %.2f | %.2f | %s | %.0f %% | %s |" % (
            layers, hidden, "half its speed" if slow else "its core", *best, ", ".join("%.2f" % m for _, m in random),
            100 * savings[slow][-1], ", ".join("%.2f" % r for r in ratios)))
    every = savings[False] + savings[True]
    return "\n".join([
        "# Placement on %d ranks, measured" % args.ranks, "",
        "Made by `make bench-placement-measured`: %s, %s, %d cores, load %.1f; LSTM of 24 steps, batch 64, %s, a "
        "thread each, bound to a core; medians of %d turns of %d s%s." % (
            datetime.date.today(), cpu, os.cpu_count(), os.getloadavg()[0],
            "%d ranks as threads" % args.ranks if args.threads else "%d processes under Open MPI" % args.ranks, args.turns, args.seconds,
            ", before other programs (SCHED_RR)" if args.realtime else ""), "",
        "Random placements put each layer on a rank at random (`random-layer:1` to `:3`); the saving is against their mean step. Predicted / "
        "measured: of best, then of the random ones. A slowed rank 1 takes twice as long for its computations.", "",
        "| layers | hidden | rank 1 has | best, predicted ms | best, measured ms | random-layer, measured ms | saving | predicted / measured |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |", *table, "",
        "Mean saving %.1f %% over %d cells (bar: 34 %% over 12): %s with equal ranks, %s with one slowed. Predictions within 10 %% "
        "of the measured step: %d of %d plans (bar: 90 %%), %d with equal ranks." % (
            100 * statistics.mean(every), len(every), *("%.1f %%" % (100 * statistics.mean(savings[s])) if savings[s] else "not measured" for s in (False, True)),
            sum(near.values()), plans, near[False]), ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", action="store_true", help="ranks are threads of one process")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--equal", action="store_true", help="only cells in which both ranks have a core")
    parser.add_argument("--realtime", action="store_true", help="run before other programs (SCHED_RR)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results/placement_measured.md")
    args = parser.parse_args()
    if not args.threads and not shutil.which("mpirun"):
        sys.exit("skipped: mpirun is needed, or --threads")
    args.cells = [c for c in CELLS if not (args.equal and c[2])]
    args.program = args.build.resolve() / "cli/stretto"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = ("%g" % (t % 24 + t * 7919 % 31) for t in range(3000))
        (folder / "data.csv").write_text("y\n" + "\n".join(rows) + "\n")
        args.out.write_text(page(args, measure(args, folder)))
    print(args.out.read_text())


if __name__ == "__main__":
    main()
