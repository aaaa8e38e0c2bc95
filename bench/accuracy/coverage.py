#!/usr/bin/env python3
"""coverage.py - do the 80 % bands hold?  Every protocol of bench/protocols/, and the newest 10 % of each file trained without it.

    bench/accuracy/coverage.py [NAME..] [--seeds 1] [--threads 2] [--label now] [--no-write]

Columns of the table: main, before bands followed their coverage; bands, after that; wide, with the preset of
that name and before ADR 047; now, the last one.
Prints the coverage between the quantiles 0.1 and 0.9, wQL and ND on the scored windows, and the mean over all cases; writes them as column --label of
bench/results/coverage.tsv.  The case NAME is the protocol, NAME+new the same options with the newest rows as test part, NAME+scale another --scale.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import results
from run import DATA, PROTOCOLS, Protocol, natural

TABLE = results.FOLDER / "coverage.tsv"
LOW, HIGH = 0.74, 0.86
OT = ["--time", "date", "--target", "OT", "--horizon", "24"]
OLD = ["--until", "2018-02-20", "--validation", "2880", "--test", "2880"]
FURTHER = {f"etth1-ot-{scale}": ("ett/ETTh1.csv", [*OT, "--scale", scale]) for scale in ("mean", "last", "window")}


def newest(flags, horizon):
    """The flags of a protocol with the newest rows as test part: 10 %, a horizon at least."""
    keep = {k: v for k, v in flags.items() if k not in ("until", "validation", "test")}
    return keep | {"test": f"{'10%' if not horizon else horizon}"}


def flags_of(protocol):
    lines = [line.split(":", 1) for line in protocol.path.read_text().splitlines() if line and not line.startswith("#")]
    return {k.strip(): v.strip().strip('"') for k, v in lines} | {"score-scale": "raw", "score-steps": "all"}


def rows_of(path):
    import gzip
    return sum(1 for _ in (gzip.open if path.suffix == ".gz" else open)(path, "rb"))


def cases():
    """name -> (data file, flags)"""
    out = {}
    for path in sorted(PROTOCOLS.glob("*.yaml"), key=lambda p: natural(p.stem)):
        p = Protocol(path)
        flags = flags_of(p)
        short = rows_of(p.data) // 10 < int(flags["horizon"])
        for name, all_flags in ((p.name, flags), (p.name + "+new", newest(flags, flags["horizon"] if short else None))):
            out[name] = p.data, [word for k, v in all_flags.items() for word in (f"--{k}", v)]
    for name, (data, flags) in FURTHER.items():
        out[name] = DATA / data, [*flags, *OLD]
        out[name + "+new"] = DATA / data, [*flags, "--test", "10%"]
    return out


def run(data, flags, seed, threads, folder):
    """(coverage, wQL, ND); None where no window could be scored."""
    command = [str(results.program()), "train", str(data), *flags, "--seed", str(seed), "--threads", str(threads), "--json", "--progress", "none",
               "-o", f"{folder}/m.model", "--run-dir", f"{folder}/m.run"]
    subprocess.run(["rm", "-rf", f"{folder}/m.run"], check=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    table = json.loads(done.stdout)
    row = next(row for row in table["rows"] if row["name"] == "model")
    return table.get("band", {}).get("coverage"), row.get("wQL"), row["ND"]


def write(label, value):
    """Puts column `label` into the table beside the columns that are there."""
    old = {row["case"]: row for row in csv.DictReader(TABLE.open(), delimiter="\t")} if TABLE.exists() else {}
    head = ["case"] + [k for row in list(old.values())[:1] for k in row if k != "case" and not k.startswith(label + " ")]
    head += [f"{label} {k}" for k in ("coverage", "wQL", "ND")]
    with TABLE.open("w") as f:
        print("\t".join(head), file=f)
        for name in list(value) + [n for n in old if n not in value]:
            cells = value.get(name, (None, None, None))
            now = {f"{label} {k}": "" if v is None else f"{v:.4g}" for k, v in zip(("coverage", "wQL", "ND"), cells)}
            row = old.get(name, {}) | {"case": name} | now
            print("\t".join(row.get(k) or "" for k in head), file=f)


def main():
    p = argparse.ArgumentParser(description="coverage of the 80 % bands over the shared data")
    p.add_argument("names", nargs="*")
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--label", default="now", help="column of bench/results/coverage.tsv")
    p.add_argument("--no-write", action="store_true")
    a = p.parse_args()
    if not results.ready("coverage", DATA):
        return 0
    known, value = cases(), {}
    with tempfile.TemporaryDirectory(prefix="stretto-coverage-") as folder:
        for name in a.names or known:
            runs = [run(*known[name], seed, a.threads, folder) for seed in range(1, a.seeds + 1)]
            value[name] = tuple(statistics.mean(v) if None not in v else None for v in zip(*runs))
            cover, wql, nd = value[name]
            print(f"{name:24} " + ("no bands" if cover is None else f"{100 * cover:5.1f} %  wQL {wql:.4f}  ND {nd:.4f}"
                                   f"{'' if LOW <= cover <= HIGH else '  outside'}"), flush=True)
    cover = [v[0] for v in value.values() if v[0] is not None]
    inside = sum(LOW <= c <= HIGH for c in cover)
    print(f"mean {100 * statistics.mean(cover):.1f} %; {inside} of {len(value)} cases within {100 * LOW:.0f}-{100 * HIGH:.0f} %")
    if not a.names and not a.no_write:
        write(a.label, value)
    return 0 if inside == len(value) else 1


if __name__ == "__main__":
    sys.exit(main())
