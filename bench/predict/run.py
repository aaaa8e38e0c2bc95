#!/usr/bin/env python3
"""run.py BUILD [--turns N] [--limit S] [--realtime] [--out FILE] - predicted and measured seconds of a training step, and what auto chose.

40 configurations of cell, width, layers, batch, steps, threads and ranks.  `stretto bench` measures every cut that applies on one
rank, `stretto train` on two ranks of a thread; the configurations take turns, and a cell is the median over the turns.  The wisdom
file is empty at the start: costs are measured in the first turn and read in the others.  auto is good where the choice that it
made is within 5 % of the fastest measured one.  Turns stop after --limit seconds.  Writes bench/results/predict.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CELLS = ("lstm", "gru", "rnn")
SHAPES = (  # hidden, layers, batch
    (16, 1, 8), (16, 2, 64), (16, 4, 256), (32, 1, 32), (32, 2, 256), (32, 4, 8), (64, 1, 64), (64, 2, 8), (64, 4, 32), (64, 1, 256),
    (128, 1, 32), (128, 2, 64), (128, 4, 8), (128, 1, 256), (256, 1, 8), (256, 2, 32), (256, 1, 64), (256, 4, 8), (512, 1, 8),
    (512, 1, 32))
CONTEXT, SEGMENTS = 96, (4, 24)  # 24 and 4 steps
ON_RANKS = ("auto", "serial", "data:2", "pipeline:2", "wave:2")
TRAIN_S = 2  # a time limit ends a run with E807
TOOK = re.compile(r"plan (\S+): a step of \d+ samples was predicted to take ([\d.]+) ms and took ([\d.]+) ms")
NEAR = 1.05


def configurations():
    """(cell, hidden, layers, batch, steps, threads, ranks): every shape with two threads, every second one with one, the others on
    two ranks; cells and lengths in turn."""
    for k, shape in enumerate(SHAPES):
        net = (CELLS[k % len(CELLS)], *shape, CONTEXT // SEGMENTS[k // 2 % 2])
        yield (*net, 2, 1)
        yield (*net, 1, 1 + k % 2)


def net_words(config):
    cell, hidden, layers, batch, steps, threads, _ = config
    return ["--cell", cell, "--hidden", hidden, "--layers", layers, "--batch", batch, "--threads", threads, "--context", CONTEXT,
            "--segment", CONTEXT // steps, "--horizon", 4]


def call(program, words, wisdom):
    done = subprocess.run([str(w) for w in (*program, *words)], capture_output=True, text=True,
                          env=dict(os.environ, STRETTO_WISDOM=str(wisdom)))
    if "E401" in done.stderr:
        return None
    return done if done.returncode == 0 or "E807" in done.stderr else sys.exit("%s\n%s" % (words, done.stderr))


def bench(program, config, folder):
    """(strategy, measured ms, predicted ms, whether auto takes it) of one rank."""
    done = call(program, ["bench", "--json", "--quiet", *net_words(config), "--repeat", 3], folder / "wisdom")
    return [(r["strategy"], r["step_ms"], r["predicted_ms"], r["auto"]) for r in json.loads(done.stdout)]


def train(program, config, folder):
    """The same on two ranks: the time limit ends a run that is planned as a long one, which therefore measures costs."""
    data = folder / "data.csv"
    data.write_text("y\n" + "".join("%g\n" % (t % 24 + t * 7919 % 31) for t in range(4000)))
    rows, chosen = [], None
    for parallel in ON_RANKS:
        done = call(program, ["train", data, "--target", "y", *net_words(config), "--ranks", config[-1], "--parallel", parallel,
                              "--steps", 1000000, "--patience", 0, "--time-limit", TRAIN_S, "--no-guard", "--verbose",
                              "-o", folder / "model"], folder / "wisdom")
        found = TOOK.search(done.stderr) if done else None
        if parallel == "auto":
            chosen = found.group(1)
        elif found:
            rows.append((found.group(1), float(found.group(3)), float(found.group(2)), found.group(1) == chosen))
    return rows


def measure(args, folder):
    """Of each configuration and strategy: lists of (measured, predicted, chosen); turns that were completed."""
    got, began, turns = {}, time.monotonic(), 0
    while turns < args.turns:
        for config in configurations():
            if turns and time.monotonic() - began > args.limit:
                return got, turns
            for way, ms, said, chosen in (train if config[-1] > 1 else bench)(args.program, config, folder):
                got.setdefault(config, {}).setdefault(way, []).append((ms, said, chosen))
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
            table.append("| %s | %d | %d | %d | %d | %d | %d | %s | %.3f | %.3f | %.2f | %s |" % (*config, way, ms, said, said / ms, mark))
    within = sum(e <= 0.25 for e in errors)
    return "\n".join([
        "# Predicted and measured training steps", "",
        "%s, %s, %d cores, load %.2f before and %.2f after; %d whole turns%s; fp32, context %d." % (
            datetime.date.today(), cpu, os.cpu_count(), load, os.getloadavg()[0], turns,
            ", before other programs (SCHED_RR)" if args.realtime else "", CONTEXT),
        "Made by `make bench-predict`: on one rank a step is what `stretto bench` says, on two what `stretto train` says, batches and",
        "messages included; medians over the turns.  Costs are measured in the first turn.", "",
        "%d configurations, %d plans: |predicted - measured| / measured has the median %.1f %% and the worst %.0f %%; it is at most" % (
            len(got), len(errors), 100 * statistics.median(errors), 100 * max(errors)),
        "25 %% for %d of the plans." % within,
        "%d configurations have two plans or more; auto is within 5 %% of the fastest measured plan in %d of these." % (choices, near),
        "In %d of all, auto chose a plan that was not measured." % unknown, "",
        "| cell | hidden | layers | batch | steps | threads | ranks | plan | measured ms | predicted ms | ratio | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", *table, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--realtime", action="store_true", help="run before other programs (SCHED_RR)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results/predict.md")
    args = parser.parse_args()
    args.program = [*(["chrt", "-r", "20"] if args.realtime else []), args.build.resolve() / "cli/stretto"]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        got, turns = measure(args, pathlib.Path(folder))
    args.out.write_text(page(args, got, turns, load))
    print("\n".join(args.out.read_text().splitlines()[:12]))


if __name__ == "__main__":
    main()
