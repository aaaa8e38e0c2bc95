#!/usr/bin/env python3
"""run.py - compares one long series in time slices with the sequential series, ours and PyTorch's.  `make bench-time` calls it.

    run.py BUILD [--quick] [--rounds N] [--only MEMORIES] [--realtime] [--isa avx2] [--slices P,P] [--out DIR] [--no-nets] [--only-nets]

    memory            weights that forget after about T/256, T/64, T/16 steps
      number of P     a process with the series whole and in P slices, 1 and 2 threads, fp32 and bf16 (all at once would need 9 GB)
        check         the serial gradient against PyTorch in float64; every other row's against the serial one
        round 1..N    each implementation one step, in turns; PyTorch one step in one of its settings, in turns too; task times on one
                      thread, of all slices and of as many as a member of a team has
        simulate      from these task times: the step on 1 to 16 devices

What counts is the median.  Afterwards the rounds that trained nets take (rounds.py).  A row whose gradient is off is kept, and not counted.

--realtime: all implementations alike before the other programs of the machine.  --isa avx2: all implementations, PyTorch too, stay with AVX2.  --quick: only the checks, tiny shapes, seconds: the test
`time_peer`.  Exit status 77 where .peers/ is missing (bench/peers.sh)."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
from peers import NARROW, ROOT, enter  # noqa: E402

if __name__ == "__main__":
    enter()

import cases  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
import workers  # noqa: E402

FP32, BF16 = 1e-5, 2e-2   # relative L2 distance of a tensor's gradient
DEVICES = (1, 2, 4, 8, 16)  # of the simulated steps
SPIN = 0.025              # seconds for which libgomp's threads spin after they were used


def limit(row):
    return BF16 if row.prec == "bf16" else FP32


def chain(words):
    """What `chain` says, of each layer: forward and backward."""
    n = [float(w) for w in words]
    keys = ("rounds", "serial", "again", "w")
    ways = [dict(zip(keys, n[i:i + 4])) for i in range(0, len(n), 4)]
    return [{"forward": f, "backward": b} for f, b in zip(ways[::2], ways[1::2])]


def bind(worker, rows, size, why):
    """[(row, number of its case)]; why has the reason of those that there are not."""
    T, I, H = size
    ready = []
    for row in rows:
        try:
            tol = "tol=1e-6" if row.prec == "fp32" else ""
            ready.append((row, worker.ask(f"case T={T} B=1 I={I} H={H} P={row.P} threads={row.threads} prec={row.prec} {tol}")[0]))
        except workers.Failed as e:
            why[row.key] = str(e)
    return ready


def check(worker, judge, ready, folder, size, got):
    """One step of each; gradients: of the serial run against float64 (once), of the others against it."""
    T, I, H = size
    first = ready[0][1]
    for row, n in ready:
        worker.ask(f"load {n} {folder}")
        worker.ask(f"step {n} 1")
        if row.key in got:
            continue
        mine = got[row.key] = {"P": row.P, "threads": row.threads, "prec": row.prec, "ms": []}
        if n == first:
            worker.ask(f"grad {n} {folder / 'ours'}")
            mine["grads"] = float(judge.ask(f"grads {folder} {folder / 'ours'} {T} {I} {H} 1", 600)[0])
        else:
            mine["grads"] = float(worker.ask(f"grads {n} {first}")[0])
        mine["good"] = mine["grads"] <= limit(row)
        mine["chain"] = chain(worker.ask(f"chain {n}"))
        mine["plan"] = worker.ask(f"plan {n}")[0]


def opponents(peers, rows, folder, size, got):
    """PyTorch's cases for these weights, and a step of each for warming; [(row, number)]."""
    T, I, H = size
    for worker in peers.values():
        worker.ask("drop")
    ready = []
    for row in rows:
        n = peers[row.threads].ask(f"case {folder} {T} {I} {H} 1 {row.prec}")[0]
        peers[row.threads].ask(f"step {n} 1")
        got[row.key] = {"P": 0, "threads": row.threads, "prec": row.prec, "ms": [], "good": True, "chain": [], "grads": None}
        ready.append((row, n))
    return ready


def turns(args, worker, ready, peers, against, got):
    """Each of ours a step a round; of PyTorch's settings (against: a list that goes round) two a process of ours."""
    for k in range(args.rounds):
        for row, n in ready:
            got[row.key]["ms"].append(float(worker.ask(f"step {n} 1")[0]))
        for _, n, whole in one_thread(ready):
            worker.ask(f"sample {n} {whole}")
        if k % max(1, args.rounds // 2) == 0 and against:
            row, n = against.pop(0)
            against.append((row, n))
            got[row.key]["ms"].append(float(peers[row.threads].ask(f"step {n} 1")[0]))
            time.sleep(SPIN)


def one_thread(ready):
    """[(row in slices, its number, number of the whole series in the same precision)] of one thread."""
    whole = {row.prec: n for row, n in ready if row.P == 1 and row.threads == 1}
    return [(row, n, whole[row.prec]) for row, n in ready if row.P > 1 and row.threads == 1 and row.prec in whole]


def simulate(worker, ready, got):
    """The step on so many devices, from the task times that were sampled."""
    for row, n, _ in one_thread(ready):
        words = worker.ask(f"simulate {n} {' '.join(map(str, DEVICES))}")
        got[row.key]["simulated"] = {d: {"ms": float(words[3 * i]), "busy": int(words[3 * i + 1]), "guessed": int(words[3 * i + 2])}
                                     for i, d in enumerate(map(str, DEVICES))}


def remember(args, memory, size, slices, peers, folder):
    """Everything about the weights of one memory."""
    cores, got, why, against = os.cpu_count() or 1, {}, {}, []
    cases.weights(folder, size[1], size[2], spread=memory.spread, forget=memory.forget)
    if not args.quick:
        against = opponents(peers, cases.peers(cores, args.isa), folder, size, got)
    for P in slices:
        worker = workers.ours(args.build, args.realtime, args.isa)
        ready = bind(worker, cases.rows(cores, (P,), args.isa), size, why)
        check(worker, peers[1], ready, folder, size, got)
        if not args.quick:
            turns(args, worker, ready, peers, against, got)
            simulate(worker, ready, got)
        worker.close()
        time.sleep(0 if args.quick else 2)  # the machine belongs to others too
    return {"w": report.forgets(got, size[0]), "share": memory.share, "spread": memory.spread, "forget": memory.forget, "rows": got, "why": why}


def measure(args, size, memories, slices):
    """Everything about the long series.  {memory: {...}}, PyTorch's version."""
    out, peers = {}, {t: workers.peer(t, args.realtime, args.isa) for t in sorted({1, min(2, os.cpu_count() or 1)})}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        folder = pathlib.Path(scratch)
        (folder / "ours").mkdir()
        version = peers[1].ask("info")[0]
        cases.series(folder, size[0], size[1])
        for memory in memories:
            part = out[memory.name] = remember(args, memory, size, slices, peers, folder)
            say(memory, part["w"], part["rows"], part["why"])
    for worker in peers.values():
        worker.close()
    return out, version


def say(memory, w, got, why):
    print(f"memory {memory.name}: w {w}, recurrent weights x {memory.spread:g}, forget bias + {memory.forget:g}")
    for key, r in got.items():
        r["median"] = statistics.median(r["ms"]) if r["ms"] else None
        times = f"{r['median']:8.1f} ms ({min(r['ms']):.1f} to {max(r['ms']):.1f})" if r["ms"] else ""
        ways = " ".join(f"{c[way]['rounds']:.0f}+{c[way]['serial']:.0f}s" for c in r["chain"] for way in ("forward", "backward"))
        grads = f"grads {r['grads']:.1e}" if r["grads"] is not None else ""
        print(f"  {key:18} {times} {grads} {ways}{'' if r['good'] else '  NOT COUNTED: its gradient is off'}", flush=True)
    for key, reason in why.items():
        print(f"  {key:18} not here: {reason}")


def build_folder(given):
    folder = pathlib.Path(given)
    for path in (folder, folder / "bench" / "time"):
        if (path / "bench_slices").exists():
            return path
    sys.exit(f"run.py: no bench_slices in {given}: cmake --build {given} --target bench_slices")


def revision():
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return commit + (" with changes" if subprocess.run([*git, "status", "--porcelain", "-uno", "src"], capture_output=True, text=True).stdout.strip() else "")


def quick(args):
    """Slices against the serial run, that against PyTorch in float64; a tiny net is trained and its rounds are counted."""
    out, _ = measure(args, (600, 3, 20), cases.QUICK, (2, 7, 16))
    wrong = [f"{m} {k}" for m, part in out.items() for k, r in part["rows"].items() if not r["good"]]
    with tempfile.TemporaryDirectory() as scratch:
        nets = rounds.quick(args.build, pathlib.Path(scratch))
    count = sum(len(part["rows"]) for part in out.values())
    print(f"{count - len(wrong)} of {count} gradients agree; {len(nets)} nets trained and cut")
    for name in wrong:
        print("wrong:", name)
    return 1 if wrong or not nets else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=build_folder)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--realtime", action="store_true")
    p.add_argument("--isa", default="", choices=sorted(NARROW))
    p.add_argument("--slices", default=",".join(map(str, cases.SLICES)), help="numbers of slices, as 8,16")
    p.add_argument("--only", default="", help="memories, as T/256; the others stay as they were measured")
    p.add_argument("--no-nets", action="store_true")
    p.add_argument("--only-nets", action="store_true")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "time")
    args = p.parse_args()
    if args.quick:
        return quick(args)
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.only_nets:
        begin, load, built = time.monotonic(), os.getloadavg()[0], revision()
        chosen = [m for m in cases.MEMORIES if not args.only or m.name in args.only.split(",")]
        out, version = measure(args, (cases.T, cases.I, cases.H), chosen, tuple(map(int, args.slices.split(","))))
        if args.only:
            file = args.out / "series.json"
            out = (json.loads(file.read_text())["memories"] if file.exists() else {}) | out
            out = {m.name: out[m.name] for m in cases.MEMORIES if m.name in out}
        page = {"T": cases.T, "I": cases.I, "H": cases.H, "revision": built, "torch": version, "load": load, "realtime": args.realtime, "isa": args.isa, "rounds": args.rounds,
                "seconds": time.monotonic() - begin, "memories": out}
        (args.out / "series.json").write_text(json.dumps(page, indent=1))
    if not args.no_nets:
        rounds.run(args.build, args.out)
    print(f"results: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
