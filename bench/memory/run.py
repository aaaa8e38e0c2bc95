#!/usr/bin/env python3
"""run.py BUILD [--turns N] [--mib N] [--front COMMAND] [--out FILE]: training from disk beside training in memory.

A table of 8 columns as text, and the same training in memory and with --memory of a tenth of what the columns take.  Runs are
interleaved, a value is the median of the turns.  The weights must be equal.  Writes bench/results/memory.md.
"""
import argparse
import json
import math
import os
import pathlib
import random
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results  # noqa: E402

COLUMNS, CELL = 8, 8 + 4  # bytes of a cell: as read, and as the series keeps it
MIB = 1 << 20
OPTIONS = ["--target", "x0", "--past", ",".join("x%d" % i for i in range(1, COLUMNS)), "--horizon", "24", "--no-guard", "--base", "last",
           "--members", "1", "--steps", "600", "--max-steps", "0", "--validate-every", "300", "--threads", "2", "--progress", "none"]
SHAPE = ["--context", "168", "--layers", "1", "--hidden", "64", "--batch", "64"]
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "STRETTO_WISDOM": "off",
       "STRETTO_DEADLINE": "900"}


def table(path, mib):
    """Writes the table; returns its rows."""
    draw, season = random.Random(1), []
    for t in range(168):
        season.append(["%.2f" % (math.sin(2 * math.pi * t / 168 + i) + 0.5 * math.sin(2 * math.pi * t / 24 + 2 * i)) for i in range(COLUMNS)])
    noise = ["%03d" % draw.randrange(1000) for _ in range(100003)]
    size, rows = 0, 0
    with open(path, "w", buffering=MIB) as f:
        f.write(",".join("x%d" % i for i in range(COLUMNS)) + "\n")
        while size < mib * MIB:
            k = rows * 7919 % 99991
            f.write(",".join([v + noise[k + i] for i, v in enumerate(season[rows % 168])]) + "\n")
            size, rows = size + COLUMNS * 9, rows + 1
    return rows


def weights(path):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        f.seek(8 + n)
        return f.read()


def train(a, folder, data, more, launch):
    """One run: peak resident memory of a process in MiB, windows/s of the training, processor seconds, seconds from start to end."""
    peaks, model, run = folder / "peaks", folder / "m.model", folder / "run"
    shutil.rmtree(run, True)
    peaks.unlink(missing_ok=True)
    timer = ["/usr/bin/time", "-a", "-o", str(peaks), "-f", "%M %e"]
    command = [*a.front.split(), *launch, *timer, str(a.build / "cli" / "stretto"), "train", str(data), *OPTIONS, *SHAPE, *more, "-o", str(model),
               "--run-dir", str(run)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **MPI), cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print("%s: status %d\n%s%s" % (" ".join(command), done.returncode, peaks.read_text(), done.stderr), flush=True)
        return None
    seen = [line.split() for line in peaks.read_text().splitlines()]
    with open(run / "metrics.jsonl") as f:
        speeds = [line["windows_per_s"] for line in map(json.loads, f) if "windows_per_s" in line]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"peak": max(int(s[0]) for s in seen) / 1024, "speed": statistics.median(speeds), "cpu": cpu,
            "wall": max(float(s[1]) for s in seen), "weights": weights(model)}


def row(name, runs, base):
    if None in runs + base:
        return "| %s | %d of %d runs did not end with a model | | | | | |" % (name, runs.count(None), len(runs))
    median = {k: statistics.median(r[k] for r in runs) for k in ("speed", "cpu", "wall")}
    same = all(r["weights"] == base[0]["weights"] for r in runs)
    if not same:
        sys.exit(name + ": other weights than in memory")
    ratio = statistics.median(r["speed"] / b["speed"] for r, b in zip(runs, base))
    return "| %s | %.1f | %.0f | %.2f | %.1f | %.1f | yes |" % (name, max(r["peak"] for r in runs), median["speed"], ratio, median["cpu"], median["wall"])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--mib", type=int, default=640)
    p.add_argument("--front", default="", help="a command in front of every run, such as 'nice -n -10'")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "results" / "memory.md")
    a = p.parse_args()
    a.build = a.build.resolve()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        folder = pathlib.Path(name)
        data = folder / "table.csv"
        rows = table(data, a.mib)
        limit = rows * COLUMNS * CELL // 10 // MIB
        ways = {"in memory": ([], ()), "`--memory %dM`" % limit: (["--memory", "%dM" % limit], ())}
        if shutil.which("mpirun.openmpi"):
            ways["`--memory %dM`, 2 ranks of Open MPI, each" % limit] = (["--memory", "%dM" % limit, "--threads", "1"],
                                                                  ("mpirun.openmpi", "--oversubscribe", "-n", "2"))
        seen = {name: [] for name in ways}
        for _ in range(a.turns):
            for name, (more, launch) in ways.items():
                seen[name].append(train(a, folder, data, more, launch))
                if seen[name][-1]:
                    print(name, {k: round(v, 1) for k, v in seen[name][-1].items() if k != "weights"}, flush=True)
    lines = [row(name, seen[name], seen["in memory"]) for name in ways]
    head = """# Training from disk

Made by `make bench-memory` on %s: medians of %d interleaved turns%s. A table of %d rows and %d columns, %d MiB as text and %d MiB as columns in
memory; the limit is a tenth of that. An LSTM of 64 units reads windows of 168 rows and 8 columns, drawn at random from all training rows, 64 in a batch. Peak: the largest of all turns and ranks. The baseline is the same
program without `--memory`.

| data | peak MiB | windows/s of training | share of in memory | processor s, whole run | s, whole run | same weights |
| --- | --- | --- | --- | --- | --- | --- |
""" % (results.machine(2), a.turns, ", each run under `%s`" % a.front if a.front else "", rows, COLUMNS, a.mib, rows * COLUMNS * CELL // MIB)
    a.out.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
