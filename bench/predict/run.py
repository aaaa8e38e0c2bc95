#!/usr/bin/env python3
"""run.py BUILD [--turns N] [--limit S] [--realtime] [--kept] [--out FILE] - predicted and measured seconds of a training step, and
what auto chose.

40 configurations of cell, width, layers, batch, steps, threads and ranks.  `stretto bench` measures every cut that applies on one
rank, `stretto train` on two ranks of a thread; the configurations take turns.  The wisdom file is empty before each of them, as on
the first run of a person: costs are measured, then steps.  With --kept it is empty at the start alone, and the other turns read what
the first has measured, minutes before.  A plan counts with the turn of its median ratio; auto is good where its choice is within 5 %
of the fastest measured one in most turns.  Turns stop after --limit seconds.  Writes bench/results/predict.md.
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
            if not args.kept:
                (folder / "wisdom").unlink(missing_ok=True)
            for way, ms, said, chosen in (train if config[-1] > 1 else bench)(args.program, config, folder):
                got.setdefault(config, {}).setdefault(way, []).append((ms, said, chosen))
        turns += 1
    return got, turns


def typical(times):
    """(measured, predicted) of the turn with the median ratio."""
    return sorted(((ms, said) for ms, said, _ in times), key=lambda t: t[1] / t[0])[(len(times) - 1) // 2]


def judge(ways):
    """Lines of (strategy, measured, predicted) of a configuration; its choice and its fastest plan in each turn (None: the choice
    was not measured); in how many turns the choice was as fast as the fastest."""
    lines, turns = [(w, *typical(times)) for w, times in ways.items()], []
    for k in range(min(map(len, ways.values()))):
        took = {w: times[k][0] for w, times in ways.items()}
        chosen = next((w for w, times in ways.items() if times[k][2]), None)
        fastest = min(took, key=took.get)
        turns.append((chosen, fastest, chosen is not None and took[chosen] <= NEAR * took[fastest]))
    return lines, turns


def by_ranks(got):
    """Median of predicted / measured for each number of ranks, as a sentence."""
    ratios = {}
    for config, ways in got.items():
        ratios.setdefault(config[-1], []).extend(said / ms for _, ms, said in judge(ways)[0])
    return "Predicted / measured in the median: " + ", ".join(
        "%.2f on %d rank%s" % (statistics.median(r), ranks, "s" * (ranks > 1)) for ranks, r in sorted(ratios.items())) + "."


def page(args, got, turns, load):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    table, errors, near, choices, unknown = [], [], 0, 0, 0
    for config, ways in got.items():
        lines, each = judge(ways)
        good = sum(ok for _, _, ok in each)
        choices += len(ways) > 1
        unknown += any(chosen is None for chosen, _, _ in each)
        near += len(ways) > 1 and 2 * good > len(each)
        for way, ms, said in lines:
            errors.append(abs(said - ms) / ms)
            counts = ("auto", sum(c == way for c, _, _ in each)), ("fastest", sum(f == way for _, f, _ in each))
            mark = " ".join("%s %d" % (word, n) for word, n in counts if n)
            table.append("| %s | %d | %d | %d | %d | %d | %d | %s | %.3f | %.3f | %.2f | %s |" % (*config, way, ms, said, said / ms, mark))
    within = sum(e <= 0.25 for e in errors)
    return "\n".join([
        "# Predicted and measured training steps", "",
        "%s, %s, %d cores, load %.2f before and %.2f after; %d whole turns%s; fp32, context %d." % (
            datetime.date.today(), cpu, os.cpu_count(), load, os.getloadavg()[0], turns,
            ", before other programs (SCHED_RR)" if args.realtime else "", CONTEXT),
        "Made by `make bench-predict`: on one rank a step is what `stretto bench` says, on two what `stretto train` says, batches and",
        "messages included; of each plan the turn with the median ratio.  Costs are measured %s." % (
            "in the first turn" if args.kept else "before the steps of each configuration in each turn"),
        "*auto*, *fastest*: in how many turns auto chose the plan, and in how many it was the fastest.", "",
        "%d configurations, %d plans: |predicted - measured| / measured has the median %.1f %% and the worst %.0f %%; it is at most" % (
            len(got), len(errors), 100 * statistics.median(errors), 100 * max(errors)),
        "25 %% for %d of the plans.  %s" % (within, by_ranks(got)),
        "%d configurations have two plans or more; auto is within 5 %% of the fastest measured plan in most turns in %d of these." % (choices, near),
        "In %d of all, auto chose a plan that was not measured in a turn." % unknown, "",
        "| cell | hidden | layers | batch | steps | threads | ranks | plan | measured ms | predicted ms | ratio | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", *table, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--kept", action="store_true", help="measure costs in the first turn alone")
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
