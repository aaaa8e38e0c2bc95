#!/usr/bin/env python3
"""run.py BUILD [--every N] [--draws N] [--jobs N] [--out FILE]: placement methods on a grid of LSTM graphs and machines, in the
simulator of src/place; against random placement, lower bounds and branch and bound.  Writes bench/results/placement.md.

Every cell is one run of bench_placement; nothing is measured but the seconds of planning, so that the page is the same on any machine
up to those.  --every N takes each N-th cell."""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results  # noqa: E402

METHODS = ("single", "blocks", "cyclic", "hybrid", "greedy", "heft", "affinity", "anneal", "best")
HEURISTICS = METHODS[:-2]
NAMES = ("random", "random-layer", *METHODS, "bound")
EXACT_STEPS = 4000000
SEARCHES = (("host*16(cpu*8)", 4096, "auto"), ("host*1250(cpu*8)", 4096, "auto"), ("host*1250(cpu*8)", 16384, "64"))
LARGE = ((10000, 8, 4096), (10000, 100, 1000), (10000, 64, 16), (1000, 24, 64))
Cell = collections.namedtuple("Cell", "layers columns devices ratio copy slow times bound seconds method")


def geometric(values):
    values = list(values)
    return math.exp(statistics.fmean(math.log(v) for v in values))


def cells(args, columns, every):
    """All cells of a grid, by args.jobs processes."""
    words = [[str(args.program), "grid", str(k * every), str(args.jobs * every), str(args.draws), columns] for k in range(args.jobs)]
    found = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        texts = list(pool.map(lambda w: subprocess.run(w, capture_output=True, text=True, check=True).stdout, words))
    for text in texts:
        for line in text.splitlines():
            w = line.split("\t")
            times = dict(zip(NAMES, map(float, w[6:6 + len(NAMES)])))
            rest = w[6 + len(NAMES):]
            found.append(Cell(int(w[0]), int(w[1]), int(w[2]), float(w[3]), float(w[4]), w[5] == "1", times, rest[0], float(rest[1]), rest[2]))
    return found


def ratio(some, name):
    return geometric(c.times[name] / c.times["best"] for c in some)


def row(label, some):
    heuristic = geometric(min(c.times[m] for m in HEURISTICS) / c.times["best"] for c in some)
    texts = ["%.2f" % ratio(some, m) for m in ("random", "random-layer", *METHODS[:-1])]
    return "| %s | %d | %s | %.3f | %.3f | %.0f %% | %.0f %% |" % (
        label, len(some), " | ".join(texts), heuristic, 1 / ratio(some, "bound"), 100 * saving(some, "random"), 100 * saving(some, "random-layer"))


def saving(some, name):
    return 1 - 1 / ratio(some, name)


def table(grid):
    yield "| transfer / task | cells | random | random-layer | %s | best heuristic | best / bound | saving vs random | vs random-layer |" % " | ".join(
        METHODS[:-1])
    yield "|" + " --- |" * (8 + len(METHODS))
    for value in sorted({c.ratio for c in grid}):
        yield row("%g" % value, [c for c in grid if c.ratio == value])
    yield row("all", grid)
    yield row("all, 2 layers and more", [c for c in grid if c.layers > 1])
    yield row("equal devices", [c for c in grid if not c.slow])
    yield row("one of half the speed", [c for c in grid if c.slow])
    for value in sorted({c.layers for c in grid}):
        yield row("%d layer%s" % (value, "s" if value > 1 else ""), [c for c in grid if c.layers == value])


def worst(grid):
    yield "| | %s |" % " | ".join(("random", "random-layer", *METHODS[:-1]))
    yield "|" + " --- |" * (len(METHODS) + 2)
    yield "| worst cell | %s |" % " | ".join("%.2f" % max(c.times[m] / c.times["best"] for c in grid) for m in ("random", "random-layer", *METHODS[:-1]))
    counts = [sum(c.times[m] <= c.times["best"] * (1 + 1e-9) for c in grid) for m in METHODS[:-1]]
    yield "| as good as best, %% of cells | - | - | %s |" % " | ".join("%.0f" % (100 * n / len(grid)) for n in counts)


def exact(args):
    done = subprocess.run([str(args.program), "exact", str(EXACT_STEPS)], capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    solved = [r for r in rows if r[8] == "1"]
    ratios = [float(r[6]) / float(r[7]) for r in solved]
    optimal, near = sum(r <= 1 + 1e-9 for r in ratios), sum(r <= 1.05 for r in ratios)
    better = [float(r[6]) / float(r[7]) for r in rows if r[8] == "0" and float(r[7]) < float(r[6]) * (1 - 1e-9)]
    yield ("%d graphs of %s to %s tasks on two devices (1x4, 1x6, 2x4, 4x2, 3x3, 2x5 layers x chunks, the transfers, copies and speeds of the grid), "
           "up to %d million steps: %d solved. `best` is optimal in %d (%.0f %%) and within 5 %% in %d (%.0f %%), at worst %.1f %% above. In the %d "
           "unsolved ones the search found a better placement in %d%s." % (
               len(rows), min(int(r[5]) for r in rows), max(int(r[5]) for r in rows), EXACT_STEPS // 1000000, len(solved), optimal,
               100 * optimal / len(solved), near, 100 * near / len(solved), 100 * (max(ratios) - 1), len(rows) - len(solved), len(better),
               " (by %.1f %% at most)" % (100 * (max(better) - 1)) if better else ""))


def planning(grid):
    yield "| layers x chunks | tasks | median s | largest s |"
    yield "| --- | --- | --- | --- |"
    for shape in ((2, 4), (4, 8), (6, 8), (8, 16)):
        seconds = [c.seconds for c in grid if (c.layers, c.columns) == shape]
        if seconds:
            yield "| %d x %d | %d | %.2f | %.2f |" % (*shape, 2 * shape[0] * shape[1] + shape[1], statistics.median(seconds), max(seconds))


def large(args):
    yield "| devices | layers x micro-batches | tasks | placement | makespan s | bound s | seconds of planning | MiB of the process | simulations |"
    yield "|" + " --- |" * 9
    for shape in LARGE:
        done = subprocess.run([str(args.program), "large", *map(str, shape)], capture_output=True, text=True, check=True)
        w = done.stdout.rstrip("\n").split("\t")
        yield "| %s | %s x %s | %s | %s | %.4f | %.4f (%s) | %.2f | %.0f | %s |" % (
            w[0], w[1], w[2], w[3], w[4], float(w[5]), float(w[6]), w[7], float(w[8]), float(w[9]), w[10])


def searches(args):
    """The search of `plan --parallel auto` on machines that are imaginary: one process each, its processor time and memory."""
    yield "| machine | batch | grains | strategy | plans compared | processor seconds | MiB of the process |"
    yield "|" + " --- |" * 7
    for machine, batch, grains in SEARCHES:
        command = [str(args.cli), "plan", "--machine", machine, "--layers", "8", "--hidden", "2048", "--batch", str(batch), "--grains", grains, "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            summary = json.loads(child.stdout.read())
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        yield "| `%s` | %d | %s | `%s` | %d | %.1f | %.0f |" % (
            machine, batch, grains, summary["strategy"], summary["plans_compared"], used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def page(args, chunks, micro, proof, big, auto):
    whole = [c for c in chunks if c.layers > 1]
    worse = sum(c.times[m] < c.times["best"] * (1 - 1e-9) for c in chunks + micro for m in METHODS)
    text = ["# Placement on devices, simulated", "",
            "Made by `make bench-placement`%s: %s" % (" (`BENCH=\"--every %d\"`)" % args.every if args.every > 1 else "", results.machine(1)), "",
            "Graphs of L x C (L layers, C chunks of time): L = 1, 2, 3, 4, 6, 8; C = 4, 8, 16; P = 2, 3, 4, 8 devices; a transfer takes 0, 0.1, 1 or 4 times "
            "a forward task; equal devices, and one of half the speed; a copy of a layer's weights costs 0.1 or 1. Forward and head take 1, backward 2, on "
            "the device of its forward. Transfers do not wait for each other. Random placements are means of %d draws, ordered by upward rank. Columns "
            "are geometric means of makespan / makespan of `best`; the savings are 1 - the geometric mean of `best` / random." % args.draws, "",
            *table(chunks), "",
            "Saving of `best` over the grid: %.1f %% against random-layer (bar: 35 %%), %.1f %% against random (bar: 28 %%). With 2 layers and more: %.1f %% and "
            "%.1f %%. With one layer, random-layer can misplace nothing but the head. Means of the savings of single cells: %.1f %% and %.1f %% over the grid." % (
                100 * saving(chunks, "random-layer"), 100 * saving(chunks, "random"), 100 * saving(whole, "random-layer"), 100 * saving(whole, "random"),
                100 * statistics.fmean(1 - c.times["best"] / c.times["random-layer"] for c in chunks),
                100 * statistics.fmean(1 - c.times["best"] / c.times["random"] for c in chunks)), "",
            "Cells in which any method beats `best`: %d of %d." % (worse, len(chunks) + len(micro)), "",
            "## Worst cells", "", "Makespan / makespan of `best`:", "", *worst(chunks), "",
            "## Branch and bound", "", *proof, "",
            "## Micro-batches", "", "The same for micro-batches, which do not wait for each other (every %dth cell):" % (7 * args.every), "", *table(micro), "",
            "## Seconds of planning", "", "`best` of one core, all cells of a shape:", "", *planning(chunks), "",
            "## Many devices", "",
            "Micro-batches; ranks of 16 devices with 8 GiB each, every tenth rank of half the speed; forward 1 ms, backward 2 ms, head 0.2 ms; 256 KiB of "
            "activations, 1 MiB saved, 64 MiB a layer, sums of 16 MiB by a ring; 50 GB/s inside a rank, 10 GB/s and 5 us between ranks, with contention. "
            "Graphs of more than 1,500 tasks are not annealed, and list schedulers stop at 2 million tasks x devices; `hybrid RxS` is R replicas of S stages.",
            "", *big, "",
            "## Search over products of cuts", "", "`stretto plan` with 8 layers of 2048 units, one core:", "", *auto]
    pathlib.Path(args.out).write_text("\n".join(text) + "\n")
    print("\n".join(text))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--draws", type=int, default=200)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--out", default=str(ROOT / "bench" / "results" / "placement.md"))
    args = p.parse_args()
    args.program = pathlib.Path(args.build).resolve() / "bench" / "placement" / "bench_placement"
    args.cli = pathlib.Path(args.build).resolve() / "cli" / "stretto"
    page(args, cells(args, "chunks", args.every), cells(args, "micro", 7 * args.every), list(exact(args)), list(large(args)), list(searches(args)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
