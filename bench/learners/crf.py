#!/usr/bin/env python3
"""crf.py - the learner crf beside Wapiti (l-bfgs) and CRFsuite (lbfgs) on the CoNLL-2000 task: equal attributes, equal penalty.

    bench/learners/crf.py STRETTO --train train.txt --test test.txt --template chunk.tpl [--wapiti WAPITI] [--crfsuite PYTHON]
                          [--threads 1] [--iterations 30] [--rounds 3]

All run in turn in each round; the table shows medians of processor seconds (user + system), which other programs on the machine
disturb less than wall time.  Wapiti has no cut-off and is compared with --cutoff 1, CRFsuite with the attributes that --cutoff 3
keeps.  Each side runs the same number of iterations of L-BFGS; the objectives after them stand beside the times, and the objective
0.5 |w|^2 - log-likelihood is the same function on all sides.  PYTHON is an interpreter that has python-crfsuite.
"""
import argparse
import collections
import os
import re
import statistics
import subprocess
import sys
import tempfile

CRFSUITE = r"""
import sys, pickle, pycrfsuite
x, y = pickle.load(open(sys.argv[1], 'rb'))
t = pycrfsuite.Trainer(algorithm='lbfgs', verbose=True)
for a, b in zip(x, y): t.append(a, b)
t.set_params({'c1': 0, 'c2': 0.5, 'max_iterations': int(sys.argv[2]), 'feature.possible_states': 1,
              'feature.possible_transitions': 1, 'period': 10000, 'epsilon': 1e-9, 'delta': 1e-9})
t.train(sys.argv[3])
"""


def run(command):
    """Text that the command prints, and its processor seconds."""
    before = os.times()
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    after = os.times()
    if out.returncode:
        sys.exit(f"{command[0]}: {out.stdout[-600:]}")
    return out.stdout, after.children_user + after.children_system - before.children_user - before.children_system


def sentences(path):
    block = []
    for line in open(path, encoding="utf-8"):
        words = line.split()
        if words:
            block.append(words)
        elif block:
            yield block
            block = []
    if block:
        yield block


def attributes(template, path, cutoff):
    """Attributes and tags as the template gives them: a plain implementation, to feed CRFsuite the same ones."""
    lines = [l.strip() for l in open(template) if l.startswith("U")]
    macro = re.compile(r"%x\[(-?\d+),(\d+)\]")
    x, y, count = [], [], collections.Counter()
    for s in sentences(path):
        def word(t, m):
            at = t + int(m.group(1))
            return f"_B{at}" if at < 0 else f"_B+{at - len(s) + 1}" if at >= len(s) else s[at][int(m.group(2))]
        x.append([[macro.sub(lambda m, t=t: word(t, m), l) for l in lines] for t in range(len(s))])
        y.append([w[-1] for w in s])
        for token in x[-1]:
            count.update(token)
    kept = {a for a, n in count.items() if n >= cutoff}
    return [[[a for a in t if a in kept] for t in s] for s in x], y, len(count), len(kept)


def stretto(a, work, cutoff):
    text, seconds = run([a.stretto, "train", a.train, "--task", "crf", "--template", a.template, "--cutoff", str(cutoff),
                         "--threads", str(a.threads), "--steps", str(a.iterations), "--epsilon", "0", "-o", work + "/m.model"])
    found = re.search(r"objective ([\d.]+) after (\d+) iterations, (\d+) passes", text)
    return seconds, float(found.group(1)), int(found.group(3))


def wapiti(a, work):
    pattern = work + "/pattern"
    with open(pattern, "w") as f:
        f.write("".join("b\n" if l.strip() == "B" else l for l in open(a.template)))
    text, seconds = run([a.wapiti, "train", "-a", "l-bfgs", "-t", str(a.threads), "-1", "0", "-2", "1", "-w", "1000", "-i",
                         str(a.iterations), "-p", pattern, a.train, work + "/w.model"])
    return seconds, float(re.findall(r"obj=\s*([\d.]+)", text)[-1]), a.iterations


def crfsuite(a, work):
    text, seconds = run([a.crfsuite, "-c", CRFSUITE, work + "/data", str(a.iterations), work + "/c.model"])
    return seconds, float(re.findall(r"Loss: ([\d.]+)", text)[-1]), a.iterations


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stretto")
    for name in ("train", "test", "template"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--wapiti")
    p.add_argument("--crfsuite")
    for name, value in (("threads", 1), ("iterations", 30), ("rounds", 3)):
        p.add_argument("--" + name, type=int, default=value)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        import pickle
        x, y, seen, kept = attributes(a.template, a.train, 3)
        text, _ = run([a.stretto, "train", a.train, "--task", "crf", "--template", a.template, "--cutoff", "3", "--steps", "1", "-o",
                       work + "/first.model"])
        if f"{seen} attributes, {kept} of them" not in text:
            sys.exit(f"the attributes differ from a plain implementation's: {seen}, {kept}: {text}")
        pickle.dump((x, y), open(work + "/data", "wb"))
        sides = {"stretto --cutoff 3": lambda: stretto(a, work, 3), "stretto --cutoff 1": lambda: stretto(a, work, 1)}
        if a.crfsuite and a.threads == 1:
            sides["CRFsuite (cutoff 3)"] = lambda: crfsuite(a, work)
        if a.wapiti:
            sides["Wapiti (cutoff 1)"] = lambda: wapiti(a, work)
        got = {name: [] for name in sides}
        for _ in range(a.rounds):
            for name, side in sides.items():
                got[name].append(side())
        print(f"{a.iterations} iterations, {a.threads} threads, {a.rounds} rounds in turn")
        print("| side | processor seconds | objective | passes | ms a pass, all counted |\n|---|---|---|---|---|")
        for name, g in got.items():
            seconds = statistics.median(s for s, _, _ in g)
            print(f"| {name} | {seconds:.2f} | {g[0][1]:.1f} | {g[0][2]} | {1000 * seconds / g[0][2]:.0f} |")


if __name__ == "__main__":
    main()
