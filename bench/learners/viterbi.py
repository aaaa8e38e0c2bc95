#!/usr/bin/env python3
"""viterbi.py BUILD [STEPS]: Viterbi decoding of `stretto` against hmmlearn, 22 labels, and in slices.

BUILD is a release build with the targets cli/stretto and bench_viterbi.  STEPS: of the long sequence (100000000).  hmmlearn (pip install
hmmlearn) is imported from this Python.  Checks first: equal log-likelihood of the path, equal path for every number of slices.  Times are
of the processor ("cpu") and of the wall clock; rounds of the implementations alternate; medians."""
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

LABELS, WORDS, LENGTH, ROUNDS = 22, 200, 25, 7


def sample(n, seed, transitions, emissions):
    """Labels and words of a chain of n steps."""
    random = np.random.default_rng(seed)
    by_label, by_word = transitions.cumsum(1), emissions.cumsum(1)
    u, v = random.random(n), random.random(n)
    labels, words = np.empty(n, np.uint8), np.empty(n, np.uint8)
    at = 0
    for t in range(n):
        at = min(int(np.searchsorted(by_label[at], u[t])), LABELS - 1)
        labels[t] = at
        words[t] = min(int(np.searchsorted(by_word[at], v[t])), WORDS - 1)
    return labels, words


def write_data(folder, steps):
    random = np.random.default_rng(1)
    chain = random.dirichlet(np.full(LABELS, .3), LABELS), random.dirichlet(np.full(WORDS, .1), LABELS)
    labels, words = sample(300000, 2, *chain)
    with open(f"{folder}/tagged.txt", "w", encoding="ascii") as out:
        for t, (label, word) in enumerate(zip(labels, words)):
            out.write(f"w{word} T{label}\n" + ("\n" if t % LENGTH == LENGTH - 1 else ""))
    _, words = sample(1000000, 3, *chain)
    names = [b"w%d\n" % w for w in range(WORDS)]
    pieces = [b"".join(names[w] for w in words[at:at + 500000]) for at in range(0, 500001, 100000)]
    for name, n in (("long.txt", steps), ("middle.txt", 10000000)):
        with open(f"{folder}/{name}", "wb") as out:
            for k in range(n // 500000):
                out.write(pieces[int(random.integers(len(pieces)))])


def read_model(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
        data = file.read()
    meta = json.loads(head["__metadata__"]["stretto.hmm"])
    kind = {"F64": np.float64, "I32": np.int32}
    return meta, {name: np.frombuffer(data[slice(*t["data_offsets"])], kind[t["dtype"]]).reshape(t["shape"])
                  for name, t in head.items() if name != "__metadata__"}


def ours(bench, model, *words):
    lines = subprocess.run([bench, model, *map(str, words)], check=True, capture_output=True, text=True).stdout.splitlines()
    keys = ("what", "threads", "slices", "steps", "wall", "cpu", "hash", "rounds", "again", "logp", "busiest")
    return [dict(zip(keys, line.split())) for line in lines]


def rate(rows, key):
    return statistics.median(float(r["steps"]) / float(r[key]) / 1e6 for r in rows)


def peer(folder, model):
    """hmmlearn with the same parameters, on the same words as one sequence each of LENGTH: a function that decodes."""
    from hmmlearn.hmm import CategoricalHMM
    meta, tensor = read_model(model)
    code = {word: i for i, word in enumerate(meta["word"])}
    hmm = CategoricalHMM(n_components=LABELS)
    hmm.startprob_, hmm.transmat_, hmm.emissionprob_ = tensor["start"], tensor["transitions"], tensor["emissions"].T
    hmm.n_features = tensor["emissions"].shape[0]
    words = [line.split()[0] for line in open(f"{folder}/tagged.txt", encoding="ascii") if line.strip()]
    x = np.array([[code[w]] for w in words])
    lengths = [LENGTH] * (len(words) // LENGTH)
    return lambda: hmm.decode(x[:sum(lengths)], lengths, algorithm="viterbi"), sum(lengths), hmm, code


def show(what, mine, theirs):
    print(f"\n| {what}, {LABELS} labels, one thread | million tokens/s (cpu) |\n|---|---|")
    print(f"| stretto | {mine:.1f} |\n| hmmlearn | {theirs:.2f} |\n| ratio | {mine / theirs:.1f} |")


def compare(folder, bench, model):
    decode, tokens, hmm, code = peer(folder, model)
    with open(f"{folder}/middle.txt", encoding="ascii") as file:
        short = [next(file) for _ in range(200000)]
    with open(f"{folder}/short.txt", "w", encoding="ascii") as out:
        out.writelines(short)
    x = np.array([[code[w.strip()]] for w in short])
    one, their = [], []
    for _ in range(ROUNDS):
        one += [r for r in ours(bench, model, "long", f"{folder}/short.txt", 3) if r["threads"] == "1"]
        before = time.process_time()
        theirs = hmm.decode(x, algorithm="viterbi")[0]
        their.append(len(x) / (time.process_time() - before) / 1e6)
    mine = float(one[0]["logp"])
    print(f"log-likelihood of the path of 200,000 steps: {mine:.3f}, hmmlearn {theirs:.3f}")
    if abs(mine - theirs) > 1e-6 * abs(theirs):
        sys.exit("the paths are not equally likely")
    show("one sequence of 200,000 steps", rate(one, "cpu"), statistics.median(their))
    rows, their = [], []
    for _ in range(ROUNDS):
        rows += ours(bench, model, "many", f"{folder}/tagged.txt", 3)[1:]
        before = time.process_time()
        decode()
        their.append(tokens / (time.process_time() - before) / 1e6)
    show(f"many sentences of {LENGTH} tokens", rate(rows, "cpu"), statistics.median(their))


def slices(folder, bench, model):
    rows = ours(bench, model, "slices", f"{folder}/middle.txt", 1)
    if len({r["hash"] for r in rows}) != 1:
        sys.exit("paths differ by the number of slices")
    print(f"\n10,000,000 steps in 1..{rows[-1]['slices']} slices: one path; at most {max(int(r['rounds']) for r in rows)} rounds, "
          f"{max(int(r['again']) for r in rows)} of 9,765 blocks repeated")
    rows = ours(bench, model, "slices", f"{folder}/long.txt", 0)
    if len({r["hash"] for r in rows}) != 1:
        sys.exit("paths differ by the number of slices")
    print(f"{int(rows[0]['steps']):,} steps in {', '.join(r['slices'] for r in rows)} slices: one path")
    rows = ours(bench, model, "long", f"{folder}/long.txt", ROUNDS)
    one, two = [r for r in rows if r["threads"] == "1"], [r for r in rows if r["threads"] == "2"]
    print("\n| one sequence, 22 labels | million steps/s (wall) | (cpu of all threads) | (cpu of the busiest thread) |\n|---|---|---|---|")
    for name, part in (("1 thread", one), ("2 threads", two)):
        print(f"| {name}, {part[0]['slices']} slices | {rate(part, 'wall'):.1f} | {rate(part, 'cpu'):.1f} | {rate(part, 'busiest'):.1f} |")
    print(f"| ratio | {rate(two, 'wall') / rate(one, 'wall'):.2f} | | {rate(two, 'busiest') / rate(one, 'busiest'):.2f} |")


def main():
    build = os.path.abspath(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100000000
    bench = f"{build}/bench/learners/viterbi/bench_viterbi"
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder, steps)
        model = f"{folder}/model"
        subprocess.run([f"{build}/cli/stretto", "train", f"{folder}/tagged.txt", "--task", "hmm", "-o", model, "--quiet"], check=True)
        compare(folder, bench, model)
        slices(folder, bench, model)


main()
