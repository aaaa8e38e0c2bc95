#!/usr/bin/env python3
"""kmeans.py STRETTO [--threads N] [--rounds N] [--quick]: the learner kmeans beside scikit-learn's lloyd and elkan.

All begin from the same centers (k-means++ of stretto, --lloyd-iterations 0) and run the same number of iterations on f64
data; the table shows processor seconds of the iterations alone (stretto: lloyd_cpu_seconds of `stretto info --json`), which
other work on the machine disturbs least.  The results are compared: inertia to 1e-9 and centers to 1e-6.  Rounds are interleaved; medians and their
ratio are printed.  Needs numpy and scikit-learn.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import warnings

CASES = [  # rows, columns, clusters, blobs (0 = uniform)
    (60000, 3, 10, 10), (60000, 3, 100, 100), (60000, 3, 1000, 1000),
    (30000, 20, 10, 10), (30000, 20, 100, 100), (30000, 20, 1000, 300),
    (10000, 128, 10, 10), (10000, 128, 100, 100), (10000, 128, 1000, 300),
    (30000, 20, 100, 0),
]


def centers(path):
    """The tensor kmeans.center of a model file (safetensors)."""
    import numpy
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    one = head["kmeans.center"]
    return numpy.frombuffer(data[slice(*one["data_offsets"])], dtype="<f8").reshape(one["shape"]).copy()


def fit(stretto, csv, model, k, iterations, threads):
    """Seconds of the iterations, and the facts of the model."""
    subprocess.run([stretto, "train", csv, "--task", "kmeans", "--clusters", str(k), "--lloyd-iterations", str(iterations),
                    "--threads", str(threads), "--quiet", "-o", model],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    text = subprocess.run([stretto, "info", model, "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def peer(x, start, k, iterations, algorithm):
    """Seconds and the fitted object."""
    from sklearn.cluster import KMeans
    m = KMeans(n_clusters=k, init=start, n_init=1, max_iter=iterations, tol=0, algorithm=algorithm)
    begin = time.process_time()
    m.fit(x)
    return time.process_time() - begin, m


def make(rows, columns, blobs, rng):
    import numpy
    if not blobs:
        return numpy.round(rng.random((rows, columns)), 6)
    middle = rng.normal(size=(blobs, columns)) * 3
    return numpy.round(middle[rng.integers(blobs, size=rows)] + rng.normal(size=(rows, columns)), 6)


def compare(a, case, work, rng):
    import numpy
    rows, columns, k, blobs = case
    x = make(rows, columns, blobs, rng)
    csv, model = os.path.join(work, "x.csv"), os.path.join(work, "x.model")
    numpy.savetxt(csv, x, fmt="%.6f", delimiter=",", header=",".join(f"c{j}" for j in range(columns)), comments="")
    fit(a.stretto, csv, model, k, 0, a.threads)
    start = centers(model)
    seconds = {"stretto": [], "lloyd": [], "elkan": []}
    for _ in range(a.rounds):
        facts = fit(a.stretto, csv, model, k, a.iterations, a.threads)
        seconds["stretto"].append(facts["lloyd_cpu_seconds"])
        for name in "lloyd", "elkan":
            s, m = peer(x, start, k, facts["iterations"], name)
            seconds[name].append(s)
            if abs(m.inertia_ - facts["inertia"]) > 1e-9 * m.inertia_ or abs(m.cluster_centers_ - centers(model)).max() > 1e-6:
                sys.exit(f"{case}: {name} has inertia {m.inertia_!r}, stretto {facts['inertia']!r}")
    own, lloyd, elkan = (statistics.median(seconds[n]) for n in ("stretto", "lloyd", "elkan"))
    print(f"| {rows} x {columns} | {k} | {'blobs' if blobs else 'uniform'} | {facts['iterations']} | {own:.3f} | {lloyd:.3f} | "
          f"{elkan:.3f} | {lloyd / own:.1f} | {elkan / own:.1f} | {100 * facts['distances_saved']:.0f} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("stretto")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--iterations", type=int, default=20)
    p.add_argument("--quick", action="store_true", help="the first case of each dimension")
    a = p.parse_args()
    a.stretto = os.path.abspath(a.stretto)
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(a.threads)
    import numpy
    import sklearn
    warnings.simplefilter("ignore")
    print(f"scikit-learn {sklearn.__version__}, {a.threads} threads, median of {a.rounds}\n")
    print("| rows x columns | k | data | iterations | stretto s | lloyd s | elkan s | lloyd / stretto | elkan / stretto | saved % |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    rng = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as work:
        for case in CASES[:9:3] if a.quick else CASES:
            compare(a, case, work, rng)


if __name__ == "__main__":
    main()
