#!/usr/bin/env python3
"""run.py BUILD [--turns N] [--realtime] [--part steps|allreduce|watch|balance|embedding]... [--out FILE] - a training step on
several ranks, beside PyTorch's DDP over Gloo; the ordered sum of a vector beside MPI's; the cost of monitoring; throughput where one rank is slow;
and steps with a large embedding, whose gradients go by the rows that were touched or whole.

Implementations are interleaved; a value is the median of the rounds.  Ours is the time of a whole step as `train` measures it (mean over the
run): forward, backward, exchange, Adam, batches being filled beside it.  Writes bench/results/ranks.md; with --part the other parts of
the page stay as they are.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = [(64, 96, 64), (64, 96, 256), (256, 48, 256), (32, 96, 512)]  # B, T, H; one input, horizon 24
HORIZON = 24
UNLIKE = [((256, 48, 128), 60), ((256, 48, 256), 40)]  # and steps between validations: grains are settled in the second interval
SLOW = "1:0:slow(2)"
WATCHED = [((64, 96, 64), 400), ((64, 96, 256), 40)]
ENTRIES = 64
SUM_BUDGET = "0.01"  # seconds of a batch of sums
BALANCE = "## Ranks of unlike speed"
EMBEDDING = "## A large embedding"
SHOPS = [(3000, 40000), (30000, 60000), (200000, 400000)]  # values of the category, rows of the file
EMBEDDING_SHAPE = (64, 24, 32)
WATCH = "## What watching costs"
ALLREDUCE = "## The ordered sum beside MPI_Allreduce"
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "STRETTO_WISDOM": "off"}


LAUNCH = {"open mpi": ["mpirun.openmpi", "-n", "2"], "mpich": ["mpiexec.mpich", "-n", "2"]}


def options(data, shape, steps, every):
    b, t, h = shape
    return ["train", data, "--target", "height", "--preset", "short", "--horizon", str(HORIZON), "--context", str(t), "--segment", "1",
            "--decoder", "direct", "--hidden", str(h), "--batch", str(b), "--steps", str(steps), "--calendar", "no", "--base", "last",
            "--no-guard", "--members", "1", "--dropout", "0", "--validate-every", str(every), "--progress", "none"]


def ours(args, data, shape, steps, how):
    launch = LAUNCH.get(how, [])
    if launch and not shutil.which(launch[0]):
        return None
    ways = {"1 thread": ["--threads", "1"], "2 threads": ["--threads", "2"], "2 ranks": ["--threads", "1", "--ranks", "2"]}
    command = [*args.front, *launch, str(args.program), *options(data, shape, steps, steps),
               "--parallel", "serial" if how == "1 thread" else "data_sync", *ways.get(how, ["--threads", "1"])]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "-o", folder + "/m.model"], capture_output=True, text=True, env=dict(os.environ, **MPI))
    found = re.search(r"and took ([0-9.]+) ms", done.stderr)
    if done.returncode or not found:
        sys.exit("%s:\n%s" % (" ".join(command), done.stderr))
    return float(found.group(1))


def unlike(args, data, shape, every, how, slow, more):
    """Windows a second, after the first interval between validations."""
    launch = LAUNCH.get(how, [])
    if launch and not shutil.which(launch[0]):
        return None
    command = [*args.front, *launch, str(args.program), *options(data, shape, 2 * every, every), "--threads", "1", "--parallel", "data_sync",
               *([] if launch else ["--ranks", "2"]), *more]
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, **MPI, **({"STRETTO_FAULT": SLOW} if slow else {}))
        done = subprocess.run([*command, "-o", folder + "/m.model"], capture_output=True, text=True, env=env)
        if done.returncode:
            sys.exit("%s:\n%s" % (" ".join(command), done.stderr))
        with open(folder + "/m.model.run/metrics.jsonl") as f:
            lines = [json.loads(line) for line in f]
    return [line["windows_per_s"] for line in lines if line.get("step") == 2 * every and line.get("windows_per_s")][-1]


def peer(args, shape, steps, processes):
    python = ROOT / ".peers" / "bin" / "python3"
    if not python.exists():
        return None
    b, t, h = shape
    with socket.socket() as s:  # a free port
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    done = subprocess.run([*args.front, str(python), str(ROOT / "bench" / "ranks" / "ddp.py"),
                           *map(str, (processes, steps, b, t, 1, h, HORIZON))], capture_output=True, text=True,
                          env=dict(os.environ, MASTER_PORT=str(port)))
    return float(done.stdout.split()[-1]) if done.returncode == 0 and done.stdout.split() else None


def cell(ms, over=None):
    if ms is None:
        return "-"
    return "%.2f" % ms if over is None else "%.2f (%.2fx)" % (ms, over / ms)


def machine(args, what):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return "%s on %s, %d cores, Linux %s, revision %s: medians of %d turns%s, load %.1f at the end." % (
        what, cpu, os.cpu_count(), platform.release(), head, args.turns, ", before other programs (SCHED_RR)" if args.realtime else "",
        os.getloadavg()[0])


def steps_part(args, data):
    rows = []
    for shape in SHAPES:
        steps = max(40, min(400, int(4e9 / (shape[0] * shape[1] * shape[2] * shape[2]))))
        got = {}
        for turn in range(args.turns):
            for how in ("1 thread", "2 threads", "2 ranks", "open mpi", "mpich"):
                got.setdefault(how, []).append(ours(args, data, shape, steps, how))
            for name, n in (("torch", 1), ("ddp", 2)):
                got.setdefault(name, []).append(peer(args, shape, steps, n))
            print("shape %s, turn %d of %d" % (shape, turn + 1, args.turns), file=sys.stderr)
        rows.append((shape, {k: statistics.median(v) if all(v) else None for k, v in got.items()}))
    text = ["# Steps on several ranks", "",
            machine(args, "Made by `make bench-ranks`") + " Milliseconds of a training step, LSTM of one layer with a head of %d values at its "
            "end, MSE, clipping, Adam; a rank or process has one thread. In brackets: how many times as fast as one thread of the same "
            "program." % HORIZON, "",
            "Our ranks give the bits of one process; DDP's sums depend on the number of processes.", "",
            "| B, T, H | 1 thread | 2 threads | 2 ranks, threads | 2 ranks, Open MPI | 2 ranks, MPICH | PyTorch, 1 | PyTorch DDP + Gloo, 2 | ours (best ranks) over DDP |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for shape, r in rows:
        ranks = [r[k] for k in ("2 ranks", "open mpi", "mpich") if r[k]]
        best = "%.2fx" % (r["ddp"] / min(ranks)) if ranks and r["ddp"] else "-"
        text.append("| %d, %d, %d | %s |" % (*shape, " | ".join(
            [cell(r["1 thread"]), *(cell(r[k], r["1 thread"]) for k in ("2 threads", "2 ranks", "open mpi", "mpich")), cell(r["torch"]),
             cell(r["ddp"], r["torch"]) if r["torch"] else "-", best])))
    return "\n".join(text) + "\n"


def balance_part(args, data):
    ways = (("even", False, []), ("off", True, ["--balance", "off"]), ("auto", True, []), ("auto8", True, ["--grains", "8"]))
    text = [BALANCE, "",
            machine(args, "Made by `make bench-ranks` (`--part balance`)") + " Two ranks of one thread, of which one takes twice as long for all it "
            "computes (`STRETTO_FAULT=%s`: it sleeps after each task as long as the task took). Windows a second of the second half of a run of "
            "%s steps, when grains have moved. In brackets the share of the ideal, taken in two ways: three quarters of what the two do when "
            "neither is slow, and one and a half times what they do when the slow one has half of the rows. (The two differ where a core that "
            "sleeps leaves more to the other.) With 8 grains, 5 and 3 or 6 and 2 can reach 89%% of it, with 16, as batches of 256 rows have, 11 and 5 can reach 97%%." %
            (SLOW, " and ".join(str(2 * every) for _, every in UNLIKE)), "",
            "| B, T, H | ranks | neither slow | one slow, --balance off | one slow | one slow, --grains 8 |",
            "| --- | --- | --- | --- | --- | --- |"]
    for shape, every in UNLIKE:
        for how in ("threads", "open mpi"):
            got = {}
            for turn in range(args.turns):
                for name, slow, more in ways:
                    got.setdefault(name, []).append(unlike(args, data, shape, every, how, slow, more))
                print("shape %s, %s, turn %d of %d: %s" % (shape, how, turn + 1, args.turns, {k: v[-1] for k, v in got.items()}), file=sys.stderr)
            if not all(got["even"]):
                continue
            r = {k: statistics.median(v) for k, v in got.items()}
            text.append("| %d, %d, %d | %s | %.0f | %s |" % (*shape, how, r["even"], " | ".join("%.0f (%.0f%%, %.0f%%)" % (
                r[k], 100 * r[k] / (0.75 * r["even"]), 100 * r[k] / (1.5 * r["off"])) for k in ("off", "auto", "auto8"))))
    return "\n".join(text) + "\n"


def shops(folder, values, rows):
    """A row a minute, each of another shop."""
    path, r, begin = "%s/shops-%d.csv" % (folder, values), random.Random(7), datetime.datetime(2020, 1, 1)
    with open(path, "w") as f:
        f.write("time,shop,height\n")
        for k in range(rows):
            f.write("%s,s%d,%.3f\n" % (begin + datetime.timedelta(minutes=k), r.randrange(values), r.random()))
    return path


def embedded(args, data, how, whole):
    """Milliseconds of a step, and bytes that rank 0 sends in it."""
    launch = LAUNCH.get(how, [])
    if launch and not shutil.which(launch[0]):
        return None, None
    b, t, h = EMBEDDING_SHAPE
    ways = {"1 thread": ["--parallel", "serial"], "2 ranks": ["--ranks", "2", "--parallel", "data_sync"]}
    command = [*args.front, *launch, str(args.program), *options(data, (b, t, h), 150, 150), "--cat", "shop", "--threads", "1",
               *ways.get(how, ["--parallel", "data_sync"])]
    env = dict(os.environ, **MPI, STRETTO_EMBEDDINGS="whole" if whole else "")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "-o", folder + "/m.model"], capture_output=True, text=True, env=env)
    took, sent = re.search(r"and took ([0-9.]+) ms", done.stderr), re.search(r"rank 0 sends (\S+) a step", done.stderr)
    if done.returncode or not took:
        sys.exit("%s:\n%s" % (" ".join(command), done.stderr))
    return float(took.group(1)), sent.group(1) if sent else "-"


def embedding_part(args, folder):
    text = [EMBEDDING, "",
            machine(args, "Made by `make bench-ranks` (`--part embedding`)") + " A category of so many values, another one at every row: an "
            "embedding of 16 floats a value. B, T, H = %d, %d, %d. Milliseconds of a step and bytes that rank 0 sends in it, where gradients "
            "of the embedding are zeroed, summed and sent by the rows that were touched, and whole (`STRETTO_EMBEDDINGS=whole`); the bits are "
            "the same. Weights go whole in both, as Adam moves those of untouched rows too." % EMBEDDING_SHAPE, "",
            "| values | ranks | whole, ms | touched rows, ms | | whole, sent | touched rows, sent |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for values, rows in SHOPS:
        data = shops(folder, values, rows)
        for how in ("1 thread", "2 ranks", "open mpi"):
            got = {True: [], False: []}
            for turn in range(args.turns):
                for whole in (True, False):
                    got[whole].append(embedded(args, data, how, whole))
            if got[True][0][0] is None:
                continue
            print("%d values, %s: %s" % (values, how, got), file=sys.stderr)
            ms = {k: statistics.median(x[0] for x in v) for k, v in got.items()}
            text.append("| %d | %s | %.2f | %.2f | %.2fx | %s | %s |" % (values, how, ms[True], ms[False], ms[True] / ms[False],
                                                                      got[True][0][1], got[False][0][1]))
    return "\n".join(text) + "\n"


def allreduce(args, how, program):
    """Microseconds by bytes, and of a copy; None where that MPI is not there."""
    launch = LAUNCH.get(how, [])
    if not program or (launch and not shutil.which(launch[0])):
        return None
    env = {k: v for k, v in dict(os.environ, **MPI).items() if k != "OMPI_MCA_mpi_yield_when_idle"}  # MPI at its best: it spins
    done = subprocess.run([*args.front, *launch, *program], capture_output=True, text=True, env=env)
    lines = [line.split() for line in done.stdout.splitlines()]
    if done.returncode or not lines or any(line[-1] == "wrong" for line in lines):
        sys.exit("%s:\n%s%s" % (" ".join(map(str, program)), done.stdout, done.stderr))
    return {"sum": {int(w[0]): 1e6 * float(w[1]) for w in lines if w[0] not in ("copy", "exchange")},
            "copy": {int(w[1]): 1e6 * float(w[2]) for w in lines if w[0] == "copy"},
            "exchange": {int(w[1]): 1e6 * float(w[2]) for w in lines if w[0] == "exchange"}}


def mpi_program(flavour, folder):
    compiler = shutil.which("mpicc." + flavour)
    if not compiler:
        print("no mpicc.%s: its MPI_Allreduce is left out" % flavour, file=sys.stderr)
        return None
    path = "%s/mpi_allreduce.%s" % (folder, flavour)
    subprocess.run([compiler, "-std=c17", "-O2", "-o", path, str(ROOT / "bench" / "ranks" / "mpi_allreduce.c")], check=True)
    return [path, SUM_BUDGET]


def allreduce_part(args, folder):
    ours = str(pathlib.Path(args.build).resolve() / "bench" / "ranks" / "bench_allreduce")
    ways = [("threads", "threads", [ours, "2", SUM_BUDGET]), ("ours, Open MPI", "open mpi", [ours, "0", SUM_BUDGET]),
            ("ours, MPICH", "mpich", [ours, "0", SUM_BUDGET]), ("Open MPI", "open mpi", mpi_program("openmpi", folder)),
            ("MPICH", "mpich", mpi_program("mpich", folder))]
    got = {name: [] for name, _, _ in ways}
    for turn in range(args.turns):
        for name, how, program in ways:
            got[name].append(allreduce(args, how, program))
        print("load %.1f; allreduce, turn %d of %d" % (os.getloadavg()[0], turn + 1, args.turns), file=sys.stderr)
    have = {name: v for name, v in got.items() if all(v)}

    def middle(name, what, size):
        return statistics.median(v[what][size] for v in have[name]) if name in have else None

    def us(name, size):
        t = middle(name, "sum", size)
        return "-" if t is None else "%.2f" % t if size < 1 << 16 else "%.0f (%.2f)" % (t, size / t / 1e3)

    names = [name for name, _, _ in ways]
    text = [ALLREDUCE, "",
            machine(args, "Made by `make bench-ranks` (`--part allreduce`)") + " Microseconds for the sum of a vector of floats over 2 ranks; in "
            "brackets GB/s of the vector, which with 2 ranks is the bus bandwidth of nccl-tests. Ours: ranges go to their owner, who adds in order of "
            "rank and sends the sum back (up to 4 KB: all to all), over what training uses, ranks as threads and as processes under either MPI, whose "
            "messages go through memory of the host. MPI_Allreduce: in place, spinning, as each launcher places its ranks. Every sum was compared with the right one. "
            "Exchange: GB/s where two threads do nothing but write a vector that the other has read, wait for each other, and read the other's; a sum that stays where it "
            "is does both with every byte, one after the other, so this is about its limit here; it depends on where the two cores are, and those of a virtual machine share a cache at one time and not at another: then large messages are read where they are, and sums overlap reading with writing. In brackets half of what memcpy reaches "
            "while both ranks copy memory of their own, the limit of two copies between cores that have nothing to tell each other: below the size of a cache no sum "
            "comes near it. In the last column the best and the worst of ours as a share of exchange, in brackets of copy / 2.", "",
            "| bytes | ours, threads | ours, Open MPI | ours, MPICH | MPI_Allreduce, Open MPI | MPI_Allreduce, MPICH | exchange (copy / 2), GB/s | ours over exchange (over copy / 2) |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for size in sorted(have["threads"][0]["sum"]):
        mine = [size / middle(name, "sum", size) / 1e3 for name in names[:3] if name in have]
        text.append("| %d | %s |" % (size, " | ".join(us(name, size) for name in names)))
        if size not in have["threads"][0]["exchange"]:
            text[-1] += " - | - |"
            continue
        limit, copy = size / middle("threads", "exchange", size) / 1e3, size / middle("threads", "copy", size) / 1e3 / 2
        text[-1] += " %.2f (%.2f) | %.2f, %.2f (%.2f, %.2f) |" % (limit, copy, max(mine) / limit, min(mine) / limit, max(mine) / copy, min(mine) / copy)
    return "\n".join(text) + "\n"


def cpu_seconds(args, data, shape, how, watch, steps):
    """CPU seconds of all processes of a run, and milliseconds per step."""
    launch = LAUNCH.get(how, [])
    if launch and not shutil.which(launch[0]):
        return None
    command = [*args.front, *launch, str(args.program), *options(data, shape, steps, steps // 4), "--threads", "1", "--parallel", "data_sync",
               *([] if launch else ["--ranks", "2"])]
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, **MPI, STRETTO_WATCH="on" if watch else "off")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, "-o", folder + "/m.model"], capture_output=True, text=True, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        watched = os.path.exists(folder + "/m.model.run/status/rank-1.json")
    found = re.search(r"and took ([0-9.]+) ms", done.stderr)
    if done.returncode or not found or watched != watch:
        sys.exit("%s:\n%s" % (" ".join(command), done.stderr))
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, float(found.group(1))


def watch_part(args, data):
    pairs = 2 * args.turns
    ours = str(pathlib.Path(args.build).resolve() / "bench" / "ranks" / "bench_allreduce")
    done = subprocess.run([*args.front, ours, "parts"], capture_output=True, text=True, check=True)
    entry, kb = (float(line.split()[1]) for line in done.stdout.splitlines())
    text = [WATCH, "",
            machine(args, "Made by `make bench-ranks` (`--part watch`)") + " Training on two ranks of one thread with flight recorder, watchdog, "
            "hash of the weights (at each of four validations) and status records, against the same with `STRETTO_WATCH=off`: %d pairs, taken in turns, the "
            "first one of a pair changing. Per cent that watching adds: median of the pairs, in brackets the quartiles. The target is below 1. Last column: what "
            "the parts come to when they are timed alone: %.0f ns for an entry of the flight record, %d entries a step at most (two for each message, two for the step), "
            "%.0f ns to hash a kilobyte of weights once in the steps of a validation, as a share of the step." % (pairs, entry, ENTRIES, kb), "",
            "| B, T, H | steps | ranks | time of a step | CPU seconds of the run | parts alone |", "| --- | --- | --- | --- | --- | --- |"]
    for shape, steps in WATCHED:
        for how in ("threads", "open mpi"):
            got, took = ([], []), []
            for turn in range(pairs):
                run = {watch: cpu_seconds(args, data, shape, how, watch, steps) for watch in ((True, False) if turn % 2 else (False, True))}
                if not all(run.values()):
                    break
                took.append(run[True][1])
                for k, what in enumerate((1, 0)):
                    got[k].append(100 * (run[True][what] / run[False][what] - 1))
            if not got[0]:
                continue
            print("watch, shape %s, %s: %s" % (shape, how, got), file=sys.stderr)
            cells = ["%+.2f (%+.2f, %+.2f)" % tuple(statistics.quantiles(v, n=4)[i] for i in (1, 0, 2)) for v in got]
            bytes_ = 16 * shape[2] * (shape[2] + 2) + 4 * HORIZON * (shape[2] + 1)  # of weights
            parts = 1e-6 * (ENTRIES * entry + kb * bytes_ / 1024 / (steps // 4))
            text.append("| %d, %d, %d | %d | %s | %s | %.3f |" % (*shape, steps, how, " | ".join(cells), 100 * parts / statistics.median(took)))
    return "\n".join(text) + "\n"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--realtime", action="store_true")
    p.add_argument("--out", default=str(ROOT / "bench" / "results" / "ranks.md"))
    p.add_argument("--part", action="append", choices=("steps", "allreduce", "watch", "balance", "embedding"),
                   help="only this one; may be given more than once")
    args = p.parse_args()
    args.front = ["chrt", "-r", "20"] if args.realtime else []
    args.program = pathlib.Path(args.build).resolve() / "cli" / "stretto"
    out = pathlib.Path(args.out)
    parts = dict.fromkeys(("steps", "allreduce", "watch", "balance", "embedding"), "")
    heads = {ALLREDUCE: "allreduce", WATCH: "watch", BALANCE: "balance", EMBEDDING: "embedding"}
    for section in re.split(r"(?m)^(?=## )", out.read_text() if out.exists() else ""):
        parts[heads.get(section.partition("\n")[0], "steps")] += section
    with tempfile.TemporaryDirectory() as folder:
        data = folder + "/t.csv"
        subprocess.run([str(args.program), "sample", "tides", "--rows", "4000", "-o", data], check=True, capture_output=True)
        for name, make in (("steps", lambda: steps_part(args, data)), ("allreduce", lambda: allreduce_part(args, folder)),
                           ("watch", lambda: watch_part(args, data)), ("balance", lambda: balance_part(args, data)),
                           ("embedding", lambda: embedding_part(args, folder))):
            if not args.part or name in args.part:
                parts[name] = make()
                out.write_text("\n".join(part.strip("\n") + "\n" for part in parts.values() if part))  # what is measured is kept
    print(out.read_text())


if __name__ == "__main__":
    main()
