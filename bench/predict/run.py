#!/usr/bin/env python3
"""run.py BUILD [--turns N] [--limit S] [--out FILE] - predicted and measured seconds of a training step, and what auto chose.

40 configurations of cell, width, layers, batch and threads, on one rank.  `stretto bench` measures every strategy it offers for each;
the configurations take turns, and a cell is the median over the turns.  auto is good where the choice that it made is
within 5 % of the fastest measured one.  Turns stop after --limit seconds.  Writes bench/results/predict.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CELLS = ("lstm", "gru", "rnn")
SHAPES = (  # hidden, layers, batch
    (16, 1, 8), (16, 2, 64), (16, 4, 256), (32, 1, 32), (32, 2, 256), (32, 4, 8), (64, 1, 64), (64, 2, 8), (64, 4, 32), (64, 1, 256),
    (128, 1, 32), (128, 2, 64), (128, 4, 8), (128, 1, 256), (256, 1, 8), (256, 2, 32), (256, 1, 64), (256, 4, 8), (512, 1, 8),
    (512, 1, 32))
NEAR = 1.05


def configurations():
    """(cell, hidden, layers, batch, threads) of the 40: every shape with one thread and with two, the cells in turn."""
    for k, shape in enumerate(SHAPES):
        for threads in (1, 2):
            yield (CELLS[k % len(CELLS)], *shape, threads)


def bench(program, config):
    """Rows that `stretto bench` prints for a configuration."""
    cell, hidden, layers, batch, threads = config
    words = [program, "bench", "--json", "--quiet", "--cell", cell, "--hidden", hidden, "--layers", layers, "--batch", batch,
             "--threads", threads, "--context", 24, "--horizon", 4, "--repeat", 1]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s:\n%s" % (" ".join(map(str, words)), done.stderr))
    return json.loads(done.stdout)


def measure(args):
    """Of each configuration and strategy: lists of (measured, predicted, chosen); turns that were completed."""
    got, began, turns = {}, time.monotonic(), 0
    while turns < args.turns:
        for config in configurations():
            if turns and time.monotonic() - began > args.limit:
                return got, turns
            for row in bench(args.program, config):
                got.setdefault(config, {}).setdefault(row["strategy"], []).append((row["step_ms"], row["predicted_ms"], row["auto"]))
        turns += 1
    return got, turns


def judge(ways):
    """Lines of (strategy, measured, predicted) of a configuration, the choice of auto (None: it was not measured), the fastest."""
    lines = [(w, *(statistics.median(t[k] for t in times) for k in (0, 1))) for w, times in ways.items()]
    chosen = next((w for w in ways if any(t[2] for t in ways[w])), None)
    return lines, chosen, min(lines, key=lambda line: line[1])[0]


def page(args, got, turns, load):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    table, errors, near, choices, unknown = [], [], 0, 0, 0
    for config, ways in got.items():
        lines, chosen, fastest = judge(ways)
        took = {w: ms for w, ms, _ in lines}
        choices += len(ways) > 1
        unknown += chosen is None
        near += len(ways) > 1 and chosen is not None and took[chosen] <= NEAR * took[fastest]
        for way, ms, said in lines:
            errors.append(abs(said - ms) / ms)
            mark = " ".join(["auto"] * (way == chosen) + ["fastest"] * (way == fastest))
            table.append("| %s | %d | %d | %d | %d | %s | %.3f | %.3f | %.2f | %s |" % (*config, way, ms, said, said / ms, mark))
    return "\n".join([
        "# Predicted and measured training steps", "",
        "%s, %s, %d cores, load %.2f before and %.2f after; %d whole turns; one rank, fp32, context 24." % (
            datetime.date.today(), cpu, os.cpu_count(), load, os.getloadavg()[0], turns),
        "Made by `make bench-predict`; a step is what `stretto bench` says, medians over the turns.", "",
        "%d configurations, %d plans: |predicted - measured| / measured has the median %.1f %% and the worst %.0f %%." % (
            len(got), len(errors), 100 * statistics.median(errors), 100 * max(errors)),
        "%d configurations have two plans or more; auto is within 5 %% of the fastest measured plan in %d of these." % (choices, near),
        "In %d of all, auto chose a plan that was not measured.  Pipelines and several ranks are not measured here." % unknown, "",
        "| cell | hidden | layers | batch | threads | plan | measured ms | predicted ms | ratio | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", *table, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results/predict.md")
    args = parser.parse_args()
    args.program = args.build / "cli/stretto"
    load = os.getloadavg()[0]
    got, turns = measure(args)
    args.out.write_text(page(args, got, turns, load))
    print("\n".join(args.out.read_text().splitlines()[:8]))


if __name__ == "__main__":
    main()
