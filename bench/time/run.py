#!/usr/bin/env python3
"""run.py - one long series in slices of time beside the same series step after step, ours and PyTorch's.  `make bench-time` calls it.

    run.py BUILD [--quick] [--rounds N] [--realtime] [--out DIR] [--no-nets] [--only-nets]

    memory          weights that forget after about T/256, T/64, T/16 steps
      check         the serial gradient against PyTorch in float64; every other row's against the serial one
      round 1..N    each contender one step, in turns; PyTorch in every second round

All contenders are alive at once: one process of ours, one of PyTorch for each number of threads.  What counts is the median.  Afterwards the
rounds that trained nets take (rounds.py).  A row whose gradient is off is kept, and not counted.

--realtime: all contenders alike before the other programs of the machine.  --quick: only the checks, tiny shapes, seconds: the test
`time_peer`.  Exit status 77 where .peers/ is missing (bench/peers.sh)."""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".peers" / "bin" / "python"
if __name__ == "__main__" and os.environ.get("STRETTO_IN_PEERS") != "1":
    if not PYTHON.exists():
        print("skipped: there is no PyTorch to measure against; bench/peers.sh gets it")
        sys.exit(77)
    os.execve(PYTHON, [str(PYTHON), *sys.argv], os.environ | {"STRETTO_IN_PEERS": "1"})

import cases  # noqa: E402
import rounds  # noqa: E402
import workers  # noqa: E402

FP32, BF16 = 1e-5, 2e-2   # relative L2 distance of a tensor's gradient
SPIN = 0.025              # seconds for which libgomp's threads spin after they were used


def limit(row):
    return BF16 if row.prec == "bf16" else FP32


def chain(words):
    """What `chain` says, of each layer: forward and backward."""
    n = [float(w) for w in words]
    keys = ("rounds", "serial", "again", "w")
    ways = [dict(zip(keys, n[i:i + 4])) for i in range(0, len(n), 4)]
    return [{"forward": f, "backward": b} for f, b in zip(ways[::2], ways[1::2])]


def bind(team, rows, size):
    """{key: number of the case}, or why there is none."""
    T, I, H = size
    number, why = {}, {}
    for row in rows:
        try:
            tol = "tol=1e-6" if row.prec == "fp32" else ""
            number[row.key] = int(team["ours"].ask(f"case T={T} B=1 I={I} H={H} P={row.P} threads={row.threads} prec={row.prec} {tol}")[0])
        except workers.Failed as e:
            why[row.key] = str(e)
    return number, why


def check(team, rows, number, folder, size):
    """One step of each; gradients: of the serial run against float64, of the others against it.  {key: {...}}."""
    T, I, H = size
    out, first = {}, rows[0]
    for row in rows:
        if row.key not in number:
            continue
        n = number[row.key]
        team["ours"].ask(f"load {n} {folder}")
        team["ours"].ask(f"step {n} 1")
        got = out[row.key] = {"P": row.P, "threads": row.threads, "prec": row.prec, "ms": []}
        if row is first:
            team["ours"].ask(f"grad {n} {folder / 'ours'}")
            got["grads"] = float(team[1].ask(f"grads {folder} {folder / 'ours'} {T} {I} {H} 1", 600)[0])
        else:
            got["grads"] = float(team["ours"].ask(f"grads {n} {number[first.key]}")[0])
        got["good"] = got["grads"] <= limit(row)
        got["chain"] = chain(team["ours"].ask(f"chain {n}"))
        got["plan"] = team["ours"].ask(f"plan {n}")[0]
    return out


def forgets(got):
    """w at the finest cut that still shows it: marks lie closer the shorter a slice is."""
    for r in sorted((r for r in got.values() if r["chain"] and r["prec"] == "fp32"), key=lambda r: -r["P"]):
        forward = r["chain"][0]["forward"]
        if forward["serial"] == 0 and forward["rounds"] == 2 and forward["w"] > 0:
            return int(forward["w"])
    return None


def turns(team, rows, number, peers, got, n):
    for k in range(n):
        for row in rows:
            if row.key in number:
                got[row.key]["ms"].append(float(team["ours"].ask(f"step {number[row.key]} 1")[0]))
        for i, row in enumerate(peers if k % 2 == 0 else []):
            got[row.key]["ms"].append(float(team[row.threads].ask(f"step {i // 2 if len(team) > 2 else i} 1")[0]))
            time.sleep(SPIN)


def opponents(team, peers, folder, size, got):
    """PyTorch's cases for these weights, and a step of each for warming."""
    T, I, H = size
    for threads in (t for t in team if t != "ours"):
        team[threads].ask("drop")
    for row in peers:
        n = team[row.threads].ask(f"case {folder} {T} {I} {H} 1 {row.prec}")[0]
        team[row.threads].ask(f"step {n} 1")
        got[row.key] = {"P": 0, "threads": row.threads, "prec": row.prec, "ms": [], "good": True, "chain": [], "grads": None}


def measure(args, size, memories, slices):
    """Everything about the long series.  {memory: {...}}, PyTorch's version."""
    cores, out = os.cpu_count() or 1, {}
    rows, peers = cases.rows(cores, slices), cases.peers(cores)
    team = {"ours": workers.ours(args.build, args.realtime)} | {t: workers.peer(t, args.realtime) for t in sorted({r.threads for r in peers})}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        folder = pathlib.Path(scratch)
        (folder / "ours").mkdir()
        version = team[1].ask("info")[0]
        number, why = bind(team, rows, size)
        cases.series(folder, size[0], size[1])
        for memory in memories:
            cases.weights(folder, size[1], size[2], spread=memory.spread, forget=memory.forget)
            got = check(team, rows, number, folder, size)
            if not args.quick:
                opponents(team, peers, folder, size, got)
                turns(team, rows, number, peers, got, args.rounds)
            w = forgets(got)
            out[memory.name] = {"w": w, "share": memory.share, "spread": memory.spread, "forget": memory.forget, "rows": got, "why": why}
            say(memory, w, got, why)
    for worker in team.values():
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
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--realtime", action="store_true")
    p.add_argument("--no-nets", action="store_true")
    p.add_argument("--only-nets", action="store_true")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "time")
    args = p.parse_args()
    if args.quick:
        return quick(args)
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.only_nets:
        begin, load = time.monotonic(), os.getloadavg()[0]
        out, version = measure(args, (cases.T, cases.I, cases.H), cases.MEMORIES, cases.SLICES)
        page = {"T": cases.T, "I": cases.I, "H": cases.H, "torch": version, "load": load, "realtime": args.realtime, "rounds": args.rounds,
                "seconds": time.monotonic() - begin, "memories": out}
        (args.out / "series.json").write_text(json.dumps(page, indent=1))
    if not args.no_nets:
        rounds.run(args.build, args.out)
    print(f"results: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
