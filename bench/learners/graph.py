#!/usr/bin/env python3
"""graph.py - `stretto graph` against SciPy: checks ranks against NetworkX on small graphs, then times a large one.

    python3 bench/learners/graph.py build/release/cli/stretto [--nodes 1000000] [--edges 10000000] [--runs 3] [--threads 2]

Needs numpy, scipy and networkx.  SciPy's side is the power iteration on a CSR matrix, as networkx.pagerank does it, without
NetworkX's conversion; components include SciPy's making of the matrix, as stretto takes a list of edges.  Both end at the same L1
change.  Times are those of the iteration alone; reading is shown apart.  Runs alternate; medians.
"""
import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

TOL = 1e-8


def table(program, method, path, *options):
    out = subprocess.run([program, "graph", method, path, "-q", *options], capture_output=True, text=True, check=True).stdout
    return {row[0]: float(row[1]) for row in list(csv.reader(out.splitlines()))[1:]}


def check(program, folder):
    """Largest L1 distance to NetworkX over small graphs with loops, repeated edges, dangling nodes and weights."""
    path, worst = os.path.join(folder, "small.txt"), 0.0
    rng = random.Random(3)
    for k in range(24):
        n, weighted, directed = rng.randint(2, 60), k % 2, k % 3 != 0
        with open(path, "w") as f:
            for _ in range(rng.randint(1, 200)):
                weight = f" {rng.randint(0, 5) * 0.5:g}" if weighted else ""
                f.write(f"n{rng.randrange(n)} n{rng.randrange(n)}{weight}\n")
        g = nx.read_edgelist(path, create_using=nx.DiGraph if directed else nx.Graph,
                             data=[("weight", float)] if weighted else False)
        want = nx.pagerank(g, tol=1e-15, max_iter=100000)
        got = table(program, "pagerank", path, "--tol", "1e-13", "--directed" if directed else "--no-directed")
        worst = max(worst, sum(abs(want[x] - got[x]) for x in want))
        groups = list(nx.connected_components(g.to_undirected()))
        got = table(program, "components", path)
        if len(set(got.values())) != len(groups) or any(len({got[x] for x in s}) > 1 for s in groups):
            sys.exit("graph.py: components differ from NetworkX")
    print(f"small graphs: largest L1 distance to NetworkX {worst:.2g}; components equal")
    if worst > 1e-10:
        sys.exit("graph.py: PageRank differs from NetworkX")


def make(path, n, m):
    """Distinct edges: sources at random, targets with a heavy tail."""
    rng = np.random.default_rng(1)
    more = int(m * 1.15)
    source = rng.integers(0, n, more)
    target = ((n * rng.random(more) ** 3).astype(np.int64) * 48271 + 11) % n
    key = np.unique((source * n + target)[source != target])
    rng.shuffle(key)
    key = key[:m]
    np.savetxt(path, np.column_stack([key // n, key % n]), fmt="%d")
    return key // n, key % n


def scipy_pagerank(source, target, n):
    a = sp.csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
    out = a.sum(axis=1)
    share = np.where(out > 0, 1 / np.maximum(out, 1), 0)
    p = sp.csr_array((sp.dia_array((share[None, :], [0]), shape=(n, n)) @ a).T)
    dangling = out == 0
    began, x, steps = time.perf_counter(), np.full(n, 1 / n), 0
    while True:
        y = 0.85 * (p @ x + x[dangling].sum() / n) + 0.15 / n
        change, x, steps = np.abs(y - x).sum(), y, steps + 1
        if change < TOL:
            return time.perf_counter() - began, steps, x


def stretto(program, method, path, out, threads):
    command = [program, "graph", method, path, "-q", "--json", "-o", out, "--threads", str(threads), "--tol", str(TOL)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--nodes", type=int, default=1000000)
    p.add_argument("--edges", type=int, default=10000000)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(a.program, folder)
        path, out = os.path.join(folder, "large.txt"), os.path.join(folder, "out.csv")
        source, target = make(path, a.nodes, a.edges)
        present = len(np.unique(np.concatenate([source, target])))
        _, numbers = np.unique(np.concatenate([source, target]), return_inverse=True)
        source, target = numbers[: len(source)], numbers[len(source):]
        times = {"scipy": [], **{t: [] for t in sorted({1, a.threads})}}
        read, groups = [], {"scipy": [], **{t: [] for t in sorted({1, a.threads})}}
        for _ in range(a.runs):
            seconds, steps, _ = scipy_pagerank(source, target, present)
            times["scipy"].append(seconds)
            began = time.perf_counter()
            connected_components(sp.csr_array((np.ones(len(source)), (source, target)), shape=(present, present)), directed=False)
            groups["scipy"].append(time.perf_counter() - began)
            for t in sorted({1, a.threads}):
                r = stretto(a.program, "pagerank", path, out, t)
                times[t].append(r["seconds"])
                groups[t].append(stretto(a.program, "components", path, out, t)["seconds"])
                if t == a.threads:
                    read.append(r["read_seconds"])
        print(f"{present} nodes, {len(source)} edges; tol {TOL}; medians of {a.runs} runs\n")
        print("| | pagerank s | iterations | ratio to SciPy | components s | ratio to SciPy |\n|---|---|---|---|---|---|")
        base, cbase = statistics.median(times["scipy"]), statistics.median(groups["scipy"])
        for name in times:
            s, c = statistics.median(times[name]), statistics.median(groups[name])
            label = "SciPy, 1 thread" if name == "scipy" else f"stretto, {name} thread{'s' if name > 1 else ''}"
            count = steps if name == "scipy" else r["iterations"]
            print(f"| {label} | {s:.2f} | {count} | {base / s:.2f} | {c:.2f} | {cbase / c:.2f} |")
        print(f"\nstretto reads and sorts the edges in {statistics.median(read):.2f} s ({a.threads} threads)")


if __name__ == "__main__":
    main()
