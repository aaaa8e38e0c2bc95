#!/usr/bin/env python3
"""ranks.py BUILD [--mib N] [--ranks N] [--turns N] [--before PROGRAM] [--out FILE]: the memory of ranks that share one reading of the data.

The same training on one rank, on several that map what the first one has read, and on several that read for themselves
(STRETTO_NEAR=off), which is measured with the program of an earlier revision, too.  Memory is the sum of PSS over the ranks, looked
at ten times a second.  The weights must be equal.  Writes bench/results/memory-ranks.md.
"""
import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e"))
import run  # noqa: E402
from e2e import below  # noqa: E402
from run import COLUMNS, MIB, OPTIONS, ROOT, SHAPE, results, weights


def proportional(pid):
    """PSS of a process in MiB, if it is a rank."""
    try:
        if os.path.basename(os.readlink("/proc/%d/exe" % pid)) != "stretto":
            return 0
        with open("/proc/%d/smaps_rollup" % pid) as f:
            return sum(int(line.split()[1]) for line in f if line.startswith("Pss:")) / 1024
    except OSError:
        return 0


def train(program, folder, data, launch, more, environment):
    """One run: the peak and the median of the memory, seconds, processor seconds, weights."""
    model, seen = folder / "m.model", []
    shutil.rmtree(folder / "run", True)
    command = [*launch, str(program), "train", str(data), *OPTIONS, *SHAPE, "--threads", "1", *more, "-o", str(model), "--run-dir", str(folder / "run")]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(folder / "said", "w+") as said:
        child = subprocess.Popen(command, stdout=said, stderr=said, env=dict(os.environ, **run.MPI, **environment), cwd=folder)
        while child.poll() is None:
            seen.append(sum(map(proportional, below(child.pid))))
            time.sleep(0.1)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begun
    if child.returncode:
        sys.exit("%s: status %d\n%s" % (" ".join(command), child.returncode, (folder / "said").read_text()))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"peak": max(seen), "middle": statistics.median(seen), "wall": wall, "cpu": cpu, "weights": weights(model)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--mib", type=int, default=320)
    p.add_argument("--ranks", type=int, default=4)
    p.add_argument("--before", type=pathlib.Path, help="the program of an earlier revision")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "results" / "memory-ranks.md")
    a = p.parse_args()
    program, n = (a.build / "cli" / "stretto").resolve(), str(a.ranks)
    launchers = {"Open MPI": ("mpirun.openmpi", "--oversubscribe", "-n", n), "MPICH": ("mpiexec.mpich", "-n", n)}
    launchers = {name: command for name, command in launchers.items() if shutil.which(command[0])}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        folder = pathlib.Path(name)
        data = folder / "table.csv"
        rows = run.table(data, a.mib)
        limit = "%dM" % (rows * COLUMNS * run.CELL // 5 // MIB)
        ways = {"1 rank": (program, (), (), {})}
        for launcher, command in launchers.items():
            ways["%s ranks of %s" % (n, launcher)] = (program, command, (), {})
            ways["%s ranks of %s, `STRETTO_NEAR=off`" % (n, launcher)] = (program, command, (), {"STRETTO_NEAR": "off"})
            if a.before:
                ways["%s ranks of %s, revision before" % (n, launcher)] = (a.before.resolve(), command, (), {})
            ways["%s ranks of %s, `--memory %s`" % (n, launcher, limit)] = (program, command, ("--memory", limit), {})
        seen = {name: [] for name in ways}
        for _ in range(a.turns):
            for name, way in ways.items():
                seen[name].append(train(way[0], folder, data, *way[1:]))
                print(name, {k: round(v, 1) for k, v in seen[name][-1].items() if k != "weights"}, flush=True)
    base = seen["1 rank"]
    lines = []
    for name, runs in seen.items():
        if any(r["weights"] != base[0]["weights"] for r in runs):
            sys.exit(name + ": other weights than one rank")
        middle = {k: statistics.median(r[k] for r in runs) for k in ("peak", "middle", "wall", "cpu")}
        lines.append("| %s | %.0f | %.0f | %.1f | %.1f | yes |" % (name, middle["peak"], middle["middle"], middle["wall"], middle["cpu"]))
    a.out.write_text("""# Ranks that share one reading of the data

Made by `make bench-memory-ranks` on %s: medians of %d interleaved turns. A table of %d rows and %d columns, %d MiB as text; an LSTM of 64 units, 600 steps, 1 thread a rank. Memory: the sum of PSS
over all ranks, in which a page that n ranks map counts 1/n in each, looked at ten times a second: its peak, and its median over the run. The baseline is ranks that read for themselves.

| ranks | peak MiB | median MiB | s, whole run | processor s | weights of one rank |
| --- | --- | --- | --- | --- | --- |
%s
""" % (results.machine(1), a.turns, rows, COLUMNS, a.mib, "\n".join(lines)))


if __name__ == "__main__":
    main()
