#!/usr/bin/env python3
"""run.py - runs every protocol of bench/protocols/ with five seeds and writes scores, targets (bars) and naive baselines to bench/results/README.md.

    bench/accuracy/run.py [NAME..] [--seeds 5] [--threads 2] [--no-write]
    bench/accuracy/run.py --precision bf16                  the long-horizon protocols in bf16, a separate part of the results

A protocol is a config file; its comment lines name the data, the deciding score, the target (bar), and further runs to print:
    # data: ett/ETTh1.csv     # score: mse mae     # bar: mse <= 0.369     # also: recurrent part alone: --base none --no-guard
Exit: 0 all targets met (or no shared data, which is printed), 1 a target missed or a run failed.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import results

DATA = pathlib.Path(os.environ.get("STRETTO_SHARED") or results.ROOT.parent / "shared") / "data"
PROTOCOLS = results.ROOT / "bench" / "protocols"
ROWS = ["model", "base", "naive", "snaive", "ridge"]


class Protocol:
    """One file of bench/protocols/."""

    def __init__(self, path):
        text = path.read_text()
        self.name, self.path = path.stem, path
        self.title = text.splitlines()[0].lstrip("# ").rstrip()
        self.data = DATA / self.one(text, "data")
        self.score = self.one(text, "score").split()[0].upper()
        self.bar_score, self.relation, bar = self.one(text, "bar").split()
        self.bar = float(bar)
        self.also = [tuple(part.strip() for part in line.split(":", 1)) for line in re.findall(r"^# also: (.*)$", text, re.M)]
        self.last = "score-steps: last" in text

    @staticmethod
    def one(text, key):
        return re.search(rf"^# {key}: (.*)$", text, re.M).group(1).strip()

    def met(self, value):
        return value < self.bar if self.relation == "<" else value <= self.bar


class Run:
    """One training run: scores per row, chosen settings, time."""

    def __init__(self, protocol, seed, threads, flags, folder):
        command = [str(results.program()), "train", str(protocol.data), "--config", str(protocol.path), "--seed", str(seed), "--threads",
                   str(threads), "--json", "--progress", "none", "-o", f"{folder}/m.model", "--run-dir", f"{folder}/m.run", *flags]
        subprocess.run(["rm", "-rf", f"{folder}/m.run"], check=True)
        before, start = os.times(), time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True)
        after = os.times()
        self.wall = time.monotonic() - start
        self.cpu = after.children_user + after.children_system - before.children_user - before.children_system
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        table = json.loads(done.stdout)
        self.windows = table["windows"]
        self.row = {row["name"].split(" ")[0]: row for row in table["rows"]}
        self.season = next((row["name"] for row in table["rows"] if row["name"].startswith("snaive")), "")
        notes = done.stderr
        self.base = re.search(r"^base (.*) \(", notes, re.M).group(1) if "\nbase " in notes else "none"
        share = re.search(r"its weight is ([\d.]+)", notes)
        self.share = float(share.group(1)) if share else float("no network:" not in notes)
        self.split = next((line for line in notes.splitlines() if line.startswith("train ")), "")


def spread(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def digits(v):
    return f"{v:.{0 if abs(v) >= 1000 else 1 if abs(v) >= 100 else 2 if abs(v) >= 10 else 3 if abs(v) >= 1 else 4}f}"


def short_base(text):
    """0.3012*ses(0.05) -> 0.30 ses(0.05)"""
    return re.sub(r"(\d\.\d+)\*", lambda m: f"{float(m.group(1)):.2f} ", text)


def measure(protocol, seeds, threads, folder, precision):
    """Runs all seeds of a protocol and its further runs; returns the table lines and whether the target was met."""
    wish = ["--precision", precision] if precision else []
    runs = [Run(protocol, seed, threads, wish, folder) for seed in range(1, seeds + 1)]
    model = [run.row["model"][protocol.score] for run in runs]
    mean = statistics.mean(model)
    ok = protocol.met(mean)
    first = runs[0]
    naive = {name: digits(first.row[name][protocol.score]) if name in first.row else "" for name in ROWS[2:]}
    base = [run.row["base"][protocol.score] for run in runs if "base" in run.row]
    line = [protocol.name, protocol.score, f"{protocol.relation} {protocol.bar:g}", f"**{digits(mean)}**", digits(spread(model)), digits(max(model)),
            digits(statistics.mean(base)) if base else "", naive["naive"], naive["snaive"], naive["ridge"], "yes" if ok else "**no**",
            f"{statistics.mean(run.share for run in runs):.2f}", str(first.windows),
            f"{statistics.median(run.wall for run in runs):.1f}", f"{statistics.median(run.cpu for run in runs):.1f}"]
    print("  ".join(f"{cell:>8}" for cell in line), flush=True)
    others = []
    for name, flags in protocol.also:
        extra = [Run(protocol, seed, threads, flags.split() + wish, folder) for seed in range(1, seeds + 1)]
        value = [run.row["model"][protocol.score] for run in extra]
        others.append([protocol.name, name, f"`{flags}`", digits(statistics.mean(value)), digits(spread(value)),
                       f"{statistics.median(run.wall for run in extra):.1f}"])
        print(f"          {name} ({flags}): {digits(statistics.mean(value))} +- {digits(spread(value))}", flush=True)
    return {"line": line, "others": others, "ok": ok, "base": short_base(first.base), "split": first.split, "protocol": protocol,
            "season": first.season}


def table(head, lines):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *lines]) + "\n"


HEAD = ["protocol", "score", "bar", "mean", "deviation", "worst", "base alone", "naive", "snaive", "ridge", "met", "share", "windows", "wall s", "CPU s"]


def report(measured, seeds, threads, minutes, precision):
    text = [f"## Accuracy{f' in {precision}' if precision else ''}\n\n{results.machine(threads)} {seeds} seeds, {minutes:.0f} minutes. Presets untouched"
            f"{f' but for `--precision {precision}`' if precision else ''}; the protocols are the files of `bench/protocols/`.\n",
            "`mean`, `deviation`, `worst` are over seeds; `base alone`, `naive`, `snaive` (one season back) and `ridge` are scored on the same "
            "windows. `share` is the weight that the guard gives the network. Seconds are medians from the file to the evaluated, "
            "saved model; other programs may run beside, so CPU seconds (all threads) stand beside wall seconds.\n",
            table(HEAD, [m["line"] for m in measured])]
    others = [line for m in measured for line in m["others"]]
    if others:
        text.append("Parts switched off:\n\n" + table(["protocol", "what", "flags", "mean", "deviation", "wall s"], others))
    text.append("What was chosen (seed 1):\n\n" + table(["protocol", "base", "rows"], [[m["protocol"].name, m["base"], m["split"].replace("|", ";")] for m in measured]))
    return "\n".join(text)


def main():
    p = argparse.ArgumentParser(description="accuracy over the shared data")
    p.add_argument("names", nargs="*")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--no-write", action="store_true", help="print only; bench/results/README.md stays as it is")
    p.add_argument("--precision", choices=["fp32", "bf16"], help="train in this precision; NAMEs default to etth1-*")
    a = p.parse_args()
    if not DATA.is_dir():
        print(f"skipped: the data sets are not here ({DATA.relative_to(results.ROOT.parent)} beside the checkout)")
        return 0
    if not results.program():
        sys.exit("accuracy: build the program first (make), or set STRETTO_BUILD to the build folder")
    known = {path.stem: path for path in PROTOCOLS.glob("*.yaml")}
    for name in a.names:
        if name not in known:
            sys.exit(f"accuracy: no protocol {name}; there are: {' '.join(sorted(known))}")
    every = [name for name in sorted(known, key=natural) if not a.precision or name.startswith("etth1-")]
    chosen = [Protocol(known[name]) for name in a.names or every]
    print("  ".join(f"{cell:>8}" for cell in HEAD), flush=True)
    start, measured, failed = time.monotonic(), [], 0
    with tempfile.TemporaryDirectory(prefix="stretto-accuracy-") as folder:
        for protocol in chosen:
            try:
                measured.append(measure(protocol, a.seeds, a.threads, folder, a.precision))
            except (RuntimeError, KeyError, ValueError) as e:
                print(f"{protocol.name}: failed: {e}", file=sys.stderr)
                failed += 1
    missed = [m["protocol"].name for m in measured if not m["ok"]]
    if measured and not a.names and not a.no_write:
        results.write(f"accuracy-{a.precision}" if a.precision else "accuracy",
                      report(measured, a.seeds, a.threads, (time.monotonic() - start) / 60, a.precision))
    print(f"{len(measured) - len(missed)} of {len(chosen)} bars met" + (f"; missed: {', '.join(missed)}" if missed else "") + (f"; {failed} failed" if failed else ""))
    return 1 if missed or failed else 0


def natural(name):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


if __name__ == "__main__":
    sys.exit(main())
