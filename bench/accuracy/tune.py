#!/usr/bin/env python3
"""tune.py - the test errors of the defaults and of what `stretto tune` finds, on the protocols of bench/protocols/.

    bench/accuracy/tune.py [NAME..] [--time-limit 10m] [--threads 2] [--seed 1] [--out FILE] [--folder DIR]

For each protocol: a search (which never sees the test part), then one training with the defaults and one with the config that was
found, both with all threads; where the search keeps the defaults the second one is the first.  A protocol whose data are too few
to search counts with the ratio 1.  --folder keeps the runs of the searches, and goes on with them.  Writes
bench/results/tune.md.  Exit: 0 both targets met (mean ratio <= 0.97, none above 1.01), 1 not.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import results
from run import PROTOCOLS, Protocol, digits, table


def run(program, verb, protocol, *more, status=(0,)):
    command = [str(program), verb, str(protocol.data), *map(str, more), "--json", "--progress", "none", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in status:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done


def error(program, protocol, config, args, folder):
    done = run(program, "train", protocol, "-c", config, "--threads", args.threads, "--seed", args.seed, "-o", folder / "m.model",
               "--run-dir", folder / "m.run")
    subprocess.run(["rm", "-rf", str(folder / "m.run")], check=True)
    return next(row for row in json.loads(done.stdout)["rows"] if row["name"].startswith("model"))[protocol.score]


def changed(trial):
    return ", ".join(f"{name} {value}" for name, value in trial["options"].items()) or "the defaults"


def measure(program, protocol, args, folder):
    best = folder / f"{protocol.name}.yaml"
    start = time.monotonic()
    done = run(program, "tune", protocol, "-c", protocol.path, "--time-limit", args.time_limit, "--threads", args.threads, "--seed",
               args.seed, "-o", best, status=(0, 4))
    seconds = time.monotonic() - start
    plain = error(program, protocol, protocol.path, args, folder)
    if done.returncode == 4:
        return {"name": protocol.name, "score": protocol.score, "plain": plain, "tuned": plain, "trials": 0, "full": 0, "gain": 0,
                "found": "too few records to search", "seconds": seconds}
    found = json.loads(done.stdout)
    kept = found["chosen"] == 0
    trials = found["trials"]
    tuned = plain if kept else error(program, protocol, best, args, folder)
    fits = max(t["fits"] for t in trials)
    return {"name": protocol.name, "score": protocol.score, "plain": plain, "tuned": tuned, "trials": len(trials),
            "full": sum(t["fits"] == fits for t in trials), "gain": 0 if kept else found["gain"],
            "found": "the defaults" if kept else changed(trials[found["chosen"]]), "seconds": seconds}


def page(rows, args, program, load):
    ratio = [row["tuned"] / row["plain"] for row in rows]
    mean = math.exp(statistics.mean(map(math.log, ratio)))
    lines = [[row["name"], row["score"], digits(row["plain"]), digits(row["tuned"]), f"{r:.3f}", f"{100 * row['gain']:.1f} %",
              str(row["trials"]), str(row["full"]), row["found"]] for row, r in zip(rows, ratio)]
    head = ["protocol", "score", "defaults", "tuned", "ratio", "gain on validation", "trials", "with all fits", "options found"]
    text = (f"# Defaults and tuned options\n\n{results.machine(args.threads, load)}\n\n`bench/accuracy/tune.py {' '.join(args.name)}"
            f"{' ' if args.name else ''}--time-limit {args.time_limit} --seed {args.seed}`: test error of `stretto train` with the "
            f"protocol alone, and with what `stretto tune` of {args.time_limit} found; every row.\n\n"
            f"Geometric mean of the ratios **{mean:.3f}** (target: at most 0.97), the largest **{max(ratio):.3f}** (at most 1.01); "
            f"the defaults were left in {sum(row['found'] not in ('the defaults', 'too few records to search') for row in rows)} of "
            f"{len(rows)}.\n\n{table(head, lines)}")
    args.out.write_text(text)
    return mean <= 0.97 and max(ratio) <= 1.01


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="protocols; all if omitted")
    parser.add_argument("--time-limit", default="10m")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=results.FOLDER / "tune.md")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=results.program())
    args = parser.parse_args()
    names = args.name or [path.stem for path in sorted(PROTOCOLS.glob("*.yaml"))]
    folder = args.folder or pathlib.Path(tempfile.mkdtemp(prefix="stretto-tune-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows, loads = [], []
    for name in names:
        protocol = Protocol(PROTOCOLS / f"{name}.yaml")
        if not protocol.data.exists():
            print(f"{name}: no shared data")
            continue
        loads.append(float(pathlib.Path("/proc/loadavg").read_text().split()[0]))
        rows.append(measure(args.program, protocol, args, folder))
        row = rows[-1]
        print(f"{name:>14} {row['score']:>5} {digits(row['plain']):>8} {digits(row['tuned']):>8} {row['tuned'] / row['plain']:.3f}  "
              f"{row['trials']} trials, {row['seconds']:.0f} s: {row['found']}", flush=True)
        met = page(rows, args, args.program, statistics.mean(loads))
    return 0 if rows and met else 1


if __name__ == "__main__":
    sys.exit(main())
