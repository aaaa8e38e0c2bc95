#!/usr/bin/env python3
"""crf_trainers.py - L-BFGS, SGD and averaged SGD of the learner crf on one task: objective, F1 and seconds after N passes.

    bench/learners/crf_trainers.py STRETTO --train train.txt --test test.txt --template chunk.tpl [--cutoff 3] [--threads 1]
                                   [--rounds 3] [--runs lbfgs:20,lbfgs,asgd:3,asgd:10,sgd:10,sgd:50]

A run is TRAINER:PASSES; without passes it goes to its own end.  All run in turn in each round.  Seconds are those of the training
alone: the model's own clock, and processor seconds of the program, both less those of `--steps 0` (reading, attributes, one pass).  The table shows medians.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile


def call(*command):
    """Standard output, and processor seconds."""
    before = os.times()
    out = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    after = os.times()
    if out.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {out.stderr[-600:]}")
    return out.stdout, after.children_user + after.children_system - before.children_user - before.children_system


def train(a, folder, trainer, passes):
    model = os.path.join(folder, "m")
    steps = [] if passes is None else ["--steps", passes]
    if trainer != "lbfgs":
        steps += ["--epsilon", 0]
    _, cpu = call(a.stretto, "train", a.train, "--task", "crf", "--template", a.template, "--cutoff", a.cutoff, "--threads", a.threads,
                  "--trainer", trainer, *steps, "-o", model, "--quiet")
    info, _ = call(a.stretto, "info", model)
    fact = dict(re.findall(r"^ *(\w+): +(.*)$", info, re.M))
    text, _ = call(a.stretto, "eval", model, a.test, "--json")
    return {"wall": float(fact["train_seconds"]), "cpu": cpu, "objective": float(fact["objective"]),
            "passes": int(fact["passes"]), "F1": json.loads(text)["rows"][0]["F1"]}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stretto")
    for name in ("--train", "--test", "--template"):
        p.add_argument(name, required=True)
    p.add_argument("--cutoff", default=3)
    p.add_argument("--threads", default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--runs", default="lbfgs:20,lbfgs,asgd:3,asgd:10,sgd:10,sgd:50")
    a = p.parse_args()
    runs = [(t, int(n) if n else None) for t, _, n in (r.partition(":") for r in a.runs.split(","))]
    seen = {r: [] for r in runs}
    none = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(a.rounds):
            none.append(train(a, folder, "lbfgs", 0))
            for r in runs:
                seen[r].append(train(a, folder, *r))
    base = {k: statistics.median(x[k] for x in none) for k in ("wall", "cpu")}
    print("| trainer | passes | objective | F1 | wall s | processor s |\n|---|---|---|---|---|---|")
    for (trainer, _), all_of in seen.items():
        of = {k: statistics.median(x[k] for x in all_of) for k in all_of[0]}
        print(f"| {trainer} | {of['passes']} | {of['objective']:.1f} | {of['F1']:.2f} | {of['wall'] - base['wall']:.2f} | "
              f"{of['cpu'] - base['cpu']:.2f} |")


if __name__ == "__main__":
    main()
