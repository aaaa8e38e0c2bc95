#!/usr/bin/env python3
"""forest.py - `stretto train --task forest` beside scikit-learn's RandomForest and ranger: seconds of the fit, accuracy.

    python forest.py --stretto BINARY --shared SHARED [--rscript Rscript] [--rounds 5] [--threads 1,2] [--rows 1000000]

The Python that runs it needs numpy and scikit-learn.  All three grow the same number of trees with the same mtry, to pure leaves,
and score out of bag.  Seconds are those of the fit in memory, with the out-of-bag score: `train_seconds` of `stretto info` (with the
bins), fit() and ranger().  Rounds are interleaved, medians count.  --rows adds a generated table of 20 columns, with the largest
memory of each process."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np

SKLEARN = r"""
import json, sys, time, resource, numpy as np
from sklearn.ensemble import RandomForestClassifier
path, trees, mtry, threads, test, seed = sys.argv[1], *map(int, sys.argv[2:7])
z = np.load(path)
X, y = z["X"], z["y"]
n = len(y) - test
f = RandomForestClassifier(trees, max_features=mtry, n_jobs=threads, oob_score=True, random_state=seed)
begin = time.perf_counter()
f.fit(X[:n], y[:n])
seconds = time.perf_counter() - begin
score = f.score(X[n:], y[n:]) if test else 0
print(json.dumps(dict(seconds=seconds, oob=f.oob_score_, test=score, mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
"""

RANGER = r"""
a <- commandArgs(TRUE)
suppressMessages(library(ranger))
d <- read.csv(a[1]); d$y <- factor(d$y)
test <- as.integer(a[5]); n <- nrow(d) - test
begin <- proc.time()[["elapsed"]]
f <- ranger(y ~ ., d[seq_len(n), ], num.trees = as.integer(a[2]), mtry = as.integer(a[3]), num.threads = as.integer(a[4]),
            min.node.size = 1, seed = as.integer(a[6]))
seconds <- proc.time()[["elapsed"]] - begin
score <- if (test > 0) mean(predict(f, d[(n + 1):nrow(d), ], num.threads = as.integer(a[4]))$predictions == d$y[(n + 1):nrow(d)]) else 0
status <- readLines("/proc/self/status")
peak <- as.numeric(gsub("[^0-9]", "", status[grep("VmHWM", status)])) / 1024
cat(sprintf('{"seconds": %g, "oob": %g, "test": %g, "mib": %g}\n', seconds, 1 - f$prediction.error, score, peak))
"""


def letters(shared):
    rows = [line.strip().split(",") for line in open(os.path.join(shared, "data/tabular/letter-recognition.data"))][1:]
    return np.array([r[1:] for r in rows], float), np.array([r[0] for r in rows]), 4000


def phoneme(shared):
    v = np.loadtxt(os.path.join(shared, "data/tabular/phoneme.csv"), delimiter=",")
    return v[:, :-1], np.where(v[:, -1] > 0, "yes", "no"), 0


def generated(rows):
    """20 columns of 6 digits, of which 10 tell the class; a tenth of the rows has a class at random."""
    r = np.random.default_rng(1)
    X = r.random((rows, 20)).round(6)
    s = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] * 3 + (X[:, 3] > 0.5) * X[:, 4] + X[:, 5:10].sum(1) / 2
    y = s > np.median(s)
    y = np.where(r.random(rows) < 0.1, r.random(rows) < 0.5, y)
    return X, np.where(y, "yes", "no"), 0


class Case:
    def __init__(self, name, X, y, test, folder):
        self.name, self.test, self.mtry = name, test, int(X.shape[1] ** 0.5)
        self.npz, self.csv = os.path.join(folder, name + ".npz"), os.path.join(folder, name + ".csv")
        np.savez(self.npz, X=X.astype(np.float32), y=np.unique(y, return_inverse=True)[1])
        with open(self.csv, "w") as f:
            f.write(",".join(f"x{i}" for i in range(X.shape[1])) + ",y\n")
            for row, label in zip(X.tolist(), y.tolist()):
                f.write(",".join(f"{v:g}" for v in row) + f",{label}\n")


def stretto(a, c, trees, threads, seed):
    model = c.csv + ".model"
    command = [a.stretto, "train", c.csv, "--task", "forest", "--target", "y", "--trees", str(trees), "--mtry", str(c.mtry),
               "--threads", str(threads), "--seed", str(seed), "--test", str(c.test), "-o", model, "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    assert status == 0, command
    info = subprocess.run([a.stretto, "info", model], capture_output=True, text=True, check=True).stdout
    test = 0
    if c.test:
        tail = c.csv + ".test.csv"
        lines = open(c.csv).readlines()
        open(tail, "w").writelines(lines[:1] + lines[-c.test:])
        table = subprocess.run([a.stretto, "eval", model, tail, "--json"], capture_output=True, text=True, check=True).stdout
        test = json.loads(table)["rows"][0]["accuracy"]
    return dict(seconds=float(re.search(r"train_seconds: (\S+)", info)[1]), oob=float(re.search(r"accuracy: (\S+)", info)[1]),
                test=test, mib=usage.ru_maxrss / 1024)


def peer(command):
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def sklearn(a, c, trees, threads, seed):
    return peer([sys.executable, "-c", SKLEARN, c.npz, *map(str, (trees, c.mtry, threads, c.test, seed))])


def ranger(a, c, trees, threads, seed):
    return peer([a.rscript, "-e", RANGER, c.csv, *map(str, (trees, c.mtry, threads, c.test, seed))])


def same_model(a, c):
    """The model does not depend on the threads."""
    info = []
    for threads in (1, 2):
        stretto(a, c, 20, threads, 1)
        data = open(c.csv + ".model", "rb").read()
        info.append(data[8 + int.from_bytes(data[:8], "little"):])
    assert info[0] == info[1], "the trees of 1 and 2 threads differ"


def measure(a, c, rounds, threads):
    methods = [("stretto", stretto), ("scikit-learn", sklearn)] + ([("ranger", ranger)] if a.rscript else [])
    got = {name: [] for name, _ in methods}
    for r in range(rounds):
        for name, method in methods[r % len(methods):] + methods[:r % len(methods)]:
            got[name].append(method(a, c, a.trees, threads, r + 1))
    mine = statistics.median(v["seconds"] for v in got["stretto"])
    for name, v in got.items():
        seconds = statistics.median(x["seconds"] for x in v)
        print(f"| {c.name} | {threads} | {name} | {seconds:.3f} | {seconds / mine:.2f} | {100 * np.mean([x['oob'] for x in v]):.2f} | "
              + (f"{100 * np.mean([x['test'] for x in v]):.2f}" if c.test else "") + f" | {max(x['mib'] for x in v):.0f} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stretto", required=True)
    p.add_argument("--shared", required=True)
    p.add_argument("--rscript")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--trees", type=int, default=100)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rows", type=int, default=0)
    a = p.parse_args()
    print("| data | threads | method | fit, s | ratio | out of bag % | test % | MiB |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        cases = [Case("letter", *letters(a.shared), folder), Case("phoneme", *phoneme(a.shared), folder)]
        if a.rows:
            cases = [Case("generated", *generated(a.rows), folder)]
        for c in cases:
            if not a.rows:
                same_model(a, c)
            for threads in map(int, a.threads.split(",")):
                measure(a, c, a.rounds, threads)


if __name__ == "__main__":
    main()
