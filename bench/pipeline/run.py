#!/usr/bin/env python3
"""run.py BUILD [--turns N] [--realtime] [--quick] [--out FILE] - linear, overlap and delay1 over a grid of shares of input and messages.

Two ranks that are threads, one worker each, on two cores.  Tc, the step with messages at once and batches at hand, is measured first;
then each cell has batches that take Ti = a Tc (a reader that sleeps) and a line between the ranks on which the messages of a step
take Tm = b Tc (bytes per second; the faulty transport of tests/comm).  Modes take turns.  limit.py says beside each cell what overlap
could reach, and fewer and more layers follow.  Writes bench/results/pipeline.md.
--quick: one small cell, in a second or two, no page: fails unless linear and overlap have the same bits and both others are faster.
"""
import argparse
import datetime
import os
import pathlib
import platform
import statistics
import subprocess
import sys

import limit

ROOT = pathlib.Path(__file__).resolve().parents[2]
NET = {"layers": 4, "hidden": 128, "T": 96, "rows": 32}
INPUT = (0.1, 0.25, 0.5, 1.0)
MESSAGES = (0.1, 0.25, 0.5, 1.0)
MODES = ("linear", "overlap", "delay1")
DEPTHS, DEPTH_INPUT, DEPTH_MESSAGES = (2, 4, 8), 0.25, (0.25, 0.5, 1.0)
LAG_MS = 0.2


def steps(args, mode, net, count, input_ms, rate, lag):
    """Parameters, hash of the weights at the end, median milliseconds of a step, what its tasks took (for limit.py)."""
    words = [*args.front, str(args.program), mode, 2, net["layers"], net["hidden"], net["T"], net["rows"], count, input_ms, rate, lag]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s:\n%s" % (" ".join(map(str, words)), done.stderr))
    first, *tasks = done.stdout.splitlines()
    got = first.split()
    return int(got[0]), got[1], statistics.median(map(float, got[2:])), tasks


def cell(args, net, count, a, b, modes=MODES):
    """Medians over the turns: Tc, and the step of each mode, and of overlap at "best"."""
    got = {}
    for turn in range(args.turns):
        parameters, _, compute, tasks = steps(args, "linear", net, count, 0, 0, 0)
        got.setdefault("compute", []).append(compute)
        # each of two ranks sends half of its gradient, then half of the weights
        rate = 4 * parameters / (1e-3 * b * compute)
        got.setdefault("best", []).append(limit.best(tasks, compute, a * compute, 1e-3 * rate, LAG_MS) / compute)
        hashes = {}
        for mode in modes:
            _, hashes[mode], ms, _ = steps(args, mode, net, count, a * compute, rate, LAG_MS)
            got.setdefault(mode, []).append(ms / compute)
        if hashes["linear"] != hashes["overlap"]:
            sys.exit("linear and overlap end with different weights")
    tc = statistics.median(got["compute"])
    return tc, {mode: tc * statistics.median(got[mode]) for mode in (*modes, "best")}


def judge(a, tc, ms):
    """Of a cell: Ti, Tm, and (utilisation, gain over linear, eta) of each mode.  Tm is what linear took beyond input and compute."""
    ti = a * tc
    tm = ms["linear"] - tc - ti
    best = max(ti, tc, tm)
    return ti, tm, {m: (tc / ms[m], ms["linear"] / ms[m] - 1, (ms["linear"] - ms[m]) / (ms["linear"] - best)) for m in ms}


def depths(args, rows):
    """Lines of a table of fewer and more layers; those that are in the grid are not measured again."""
    have = {(a, b): (got, of, tm) for a, b, got, of, tm in rows}
    text = ["| layers | Tm / Tc set, measured | Tc ms | linear ms | overlap ms | eta | at best |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for layers in DEPTHS:
        for b in DEPTH_MESSAGES:
            got, of, tm = have.get((DEPTH_INPUT, b), (None, None, None))
            if layers != NET["layers"] or not got:
                got = cell(args, dict(NET, layers=layers), 16, DEPTH_INPUT, b, MODES[:2])
                _, tm, of = judge(DEPTH_INPUT, *got)
            tc, ms = got
            text.append("| %d | %.2f, %.2f | %.1f | %.1f | %.1f | %.2f | %.2f |" % (
                layers, b, tm / tc, tc, ms["linear"], ms["overlap"], of["overlap"][2], of["best"][2]))
            print(text[-1], file=sys.stderr, flush=True)
    return text


def page(args, rows, deep):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    mean = {m: statistics.mean(r[3][m][1] for r in rows) for m in MODES}
    low = {m: [r[3][m][2] for r in rows if r[1] <= 1] for m in (*MODES, "best")}
    text = ["# Input, computing and messages: one after the other, or at once", "",
            "Made by `make bench-pipeline` on %s, %d cores, Linux %s, %s, revision %s: medians of %d turns%s, load %.1f at the end. Two ranks that "
            "are threads, one worker each; LSTM of %d layers of %d units, %d steps, %d rows, a loss at every step, clipping, Adam. "
            "Computing is real; **input and network are emulated**: a reader that sleeps, a line of so many bytes a second with %.1f ms of "
            "lag. Who waits for them sleeps." % (cpu, os.cpu_count(), platform.release(), datetime.date.today().isoformat(), head, args.turns,
                                       ", before other programs (SCHED_RR)" if args.realtime else "", os.getloadavg()[0],
                                       net_of(args)["layers"], net_of(args)["hidden"], net_of(args)["T"], net_of(args)["rows"], LAG_MS), "",
            "`linear`: batch, then step, then messages. `overlap`: batches are read ahead, gradients leave layer by layer in backward, weights "
            "come layer by layer in the next forward; the bits of linear, compared in every turn. `delay1`: weights move by the gradient of the "
            "step before, so all messages have a whole step to travel; other bits, a declared choice (`--pipeline delay1`).", "",
            "U = Tc / T, gain = U / U(linear) - 1, eta = (T(linear) - T) / (T(linear) - max(Ti, Tc, Tm)); Tm is what linear took beyond Tc + Ti.", "",
            "| Ti / Tc | Tm / Tc set, measured | Tc ms | linear ms, U | overlap ms, U | gain | eta | at best | delay1 ms, U | gain | eta |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for a, b, (tc, ms), of, tm in rows:
        cells = {m: "%.1f, %.2f | %+.0f %% | %.2f" % (ms[m], of[m][0], 100 * of[m][1], of[m][2]) for m in ("overlap", "delay1")}
        text.append("| %.2f | %.2f, %.2f | %.1f | %.1f, %.2f | %s | %.2f | %s |" % (
            a, b, tm / tc, tc, ms["linear"], of["linear"][0], cells["overlap"], of["best"][2], cells["delay1"]))
    text += ["", "Mean gain of utilisation over the grid: overlap %+.0f %%, delay1 %+.0f %% (the original design claims +28 %%)." %
             (100 * mean["overlap"], 100 * mean["delay1"]),
             "eta where Tm <= Tc as set: overlap mean %.2f, least %.2f (at best mean %.2f, least %.2f); delay1 mean %.2f, least %.2f (bar: 0.9)."
             % tuple(f(low[m]) for m in ("overlap", "best", "delay1") for f in (statistics.mean, min)), "",
             "`at best` is the eta of a step that is played, not run (bench/pipeline/limit.py): the tasks of the plan take what was measured "
             "for each, messages leave when the plan lets them, the line has its rate and lag, and nothing else costs or waits. "
             "What lies between eta and it is the program's, what lies between it and 1 the structure's.", "",
             "## Layers", "", "The same at Ti = %.2f Tc with fewer and more layers: the ends of a step are those of the bottom layer, a smaller "
             "share of a deeper net." % DEPTH_INPUT, "", *deep, "", "## What is left", "",
             "What overlap cannot hide, whatever the program does: the last part of the bottom layer's gradient (it is made in up to four, which "
             "leave one by one) is ready when backward ends, the norm needs all gradients, and the weights of the bottom layer are wanted when "
             "forward begins; and half of the messages, the weights, have only the forward pass, a third of the step, to hide behind. delay1 has "
             "none of these ends. Tc has the real cost of messages in it, of copying "
             "them and of waiting for the slower rank, which delay1 hides too: hence an eta above 1."]
    pathlib.Path(args.out).write_text("\n".join(text) + "\n")
    print("\n".join(text[8:]))


def net_of(args):
    return {"layers": 2, "hidden": 64, "T": 48, "rows": 16} if args.quick else NET


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--realtime", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--out", default=str(ROOT / "bench" / "results" / "pipeline.md"))
    args = p.parse_args()
    args.front = ["chrt", "-r", "20"] if args.realtime else []
    args.program = pathlib.Path(args.build).resolve() / "bench" / "pipeline" / "bench_pipeline"
    if args.quick:
        args.turns = min(args.turns, 3)
        tc, ms = cell(args, net_of(args), 12, 10, 10)  # what is computed hardly counts
        print("linear %.1f ms, overlap %.1f ms, delay1 %.1f ms, of which computed %.1f" % (ms["linear"], ms["overlap"], ms["delay1"], tc))
        return 0 if ms["overlap"] < ms["linear"] and ms["delay1"] < ms["linear"] else 1
    rows = []
    for a in INPUT:
        for b in MESSAGES:
            got = cell(args, net_of(args), 16, a, b)
            _, tm, of = judge(a, *got)
            rows.append((a, b, got, of, tm))
            print("Ti %.2f Tm %.2f: Tc %.1f, %s" % (a, b, got[0], ", ".join("%s %.1f (eta %.2f)" % (m, got[1][m], of[m][2])
                                                                             for m in MODES)), file=sys.stderr, flush=True)
    page(args, rows, depths(args, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
