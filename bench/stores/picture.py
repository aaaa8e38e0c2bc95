#!/usr/bin/env python3
"""picture.py [PROGRAM] [--rounds N] [--steps N] [--quick] - loss against wall time and against rounds, of every store policy on one series.

Trains the sample series mackey-glass on two ranks of one process (hogwild: two threads) with each policy of --store, N times in turns,
and keeps the fastest run of each.  Then the two readings of "parallel in time" on the same series: exact time slices and
--shards time.  Writes docs/img/stores.svg and bench/results/stores.md.  --quick: few steps, prints the table and writes nothing."""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
POLICIES = ["sync", "delay1", "ssp:3", "asp", "dcasgd", "local:16", "easgd:8", "bmuf:16", "diloco:16", "hogwild", "auto"]
SERIES = ["--target", "x", "--horizon", "24", "--preset", "none", "--base", "none", "--no-guard", "--members", "1", "--context", "48",
          "--hidden", "32", "--batch", "32", "--lr", "0.003", "--loss", "mse", "--progress", "none"]
TWO_RANKS, TWO_THREADS = ["--ranks", "2", "--threads", "1"], ["--threads", "2"]
LONG = ["--target", "x", "--horizon", "1", "--preset", "none", "--base", "none", "--no-guard", "--members", "1", "--hidden", "32",
        "--batch", "8", "--lr", "0.003", "--loss", "mse", "--loss-steps", "all", "--context", "256", "--progress", "none"]
IN_TIME = [("time slices", ["--parallel", "time:4", "--threads", "2"]),
           ("shards time, local:1", ["--store", "local:1", "--shards", "time", *TWO_RANKS]),
           ("shards time, local:8", ["--store", "local:8", "--shards", "time", *TWO_RANKS]),
           ("shards time, local:32", ["--store", "local:32", "--shards", "time", *TWO_RANKS])]
# light, dark
COLOURS = [("#17181a", "#f1f2f3"), ("#9aa0a8", "#7c828b"), ("#2a6fd6", "#5b9bf5"), ("#e0661f", "#f08a4b"), ("#128a62", "#35b88a"),
           ("#8d6fd1", "#ac93ea"), ("#d19a00", "#dfb136"), ("#c2478a", "#e07fb2"), ("#3b8f9e", "#5fb4c4"), ("#b3261e", "#ff8a80"),
           ("#7a6a55", "#b3a289")]


def train(program, data, options, work):
    """Points (seconds, step, validation loss) of a run, rounds at each step, and the note on what was sent; None if it is refused."""
    model = os.path.join(work, "m")
    done = subprocess.run([program, "train", data, *options, "-o", model], capture_output=True, text=True, check=False)
    if done.returncode:
        print(" ".join(options), "\n", done.stderr, file=sys.stderr)
        return None
    points = []
    with open(os.path.join(model + ".run", "metrics.jsonl"), encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["split"] == "valid" and line["valid"] is not None:
                points.append((line["seconds"], line["step"], line["valid"]))
    return {"points": points, "log": done.stderr, "seconds": points[-1][0]}


def rounds_at(policy, log):
    """Rounds after a number of steps: those of auto change at the steps that its notes name."""
    local = {"local": 1, "bmuf": 1, "diloco": 1, "easgd": 1}
    name, _, number = policy.partition(":")
    changes = [(0, int(number) if name in local else 1)]
    changes += [(int(m.group(2)), int(m.group(1))) for m in re.finditer(r"local:(\d+) from step (\d+) on", log)]

    def rounds(step):
        total = 0
        for (begin, length), (end, _) in zip(changes, [*changes[1:], (step, 0)]):
            total += max(0, min(end, step) - begin) / length
        return total
    return rounds


def measured(args, data, work):
    """{policy: its fastest run}, policies in turns."""
    runs = {}
    for turn in range(args.rounds):
        for policy in POLICIES:
            ranks = TWO_THREADS if policy == "hogwild" else TWO_RANKS
            every = ["--steps", str(args.steps), "--validate-every", str(max(1, args.steps // 25))]
            run = train(args.program, data, [*SERIES, *every, *ranks, "--store", policy], work)
            if run:
                runs.setdefault(policy, []).append(run)
                print("%d %-10s %6.2f s  loss %.5f" % (turn, policy, run["seconds"], run["points"][-1][2]), file=sys.stderr, flush=True)
    return {p: {**min(r, key=lambda x: x["seconds"]), "slowest": max(x["seconds"] for x in r)} for p, r in runs.items()}


def in_time(args, data, work):
    rows = []
    for name, options in IN_TIME:
        every = ["--steps", str(args.steps), "--validate-every", str(max(1, args.steps // 10))]
        run = train(args.program, data, [*LONG, *every, *options], work)
        if run:
            rows.append((name, run))
            print("%-22s %6.2f s  loss %.3g" % (name, run["seconds"], run["points"][-1][2]), file=sys.stderr, flush=True)
    return rows


# ------------------------------------------------------------------ the picture ----------------------------------------------------

WIDE, HIGH, LEFT, TOP, BOTTOM, GAP = 960, 420, 62, 74, 46, 56


def ticks(low, high):
    """1, 2, 5 times powers of ten within a range."""
    steps = [m * 10.0 ** e for e in range(-9, 10) for m in (1, 2, 5)]
    found = [t for t in steps if low <= t <= high]
    return found if len(found) <= 6 else [t for t in found if math.log10(t) % 1 < 1e-9 or math.log10(t) % 1 > 1 - 1e-9] or found[::2]


def style():
    css = ["svg{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}",
           ".bg{fill:#fff}.t{font-size:11px;fill:#5b5f66}.tt{font-size:14px;font-weight:600;fill:#17181a}.g{stroke:#e6e7e9}.ax{stroke:#b4b8bf}",
           ".l{fill:none;stroke-width:1.8;stroke-linejoin:round}"]
    css += [f".c{i}{{stroke:{light}}}" for i, (light, _) in enumerate(COLOURS)]
    css += ["@media (prefers-color-scheme:dark){.bg{fill:#1b1d20}.t{fill:#a3a8b0}.tt{fill:#f1f2f3}.g{stroke:#2e3136}.ax{stroke:#575c64}"]
    css += [f".c{i}{{stroke:{dark}}}" for i, (_, dark) in enumerate(COLOURS)] + ["}"]
    return "".join(css)


def panel(svg, x0, width, lines, label, loss, log_x):
    """lines: [(colour, [(x, y)])]"""
    lows, highs = zip(*[(min(x for x, _ in line), max(x for x, _ in line)) for _, line in lines])
    low, high = (min(lows), max(highs)) if log_x else (0, max(highs))
    plot = HIGH - TOP - BOTTOM

    def x_of(x):
        return x0 + width * (math.log(x / low) / math.log(high / low) if log_x else x / high)

    def y_of(y):
        return TOP + plot * (1 - math.log(y / loss[0]) / math.log(loss[1] / loss[0]))
    for y in ticks(*loss):
        svg.append(f'<line class="g" x1="{x0:.1f}" x2="{x0 + width:.1f}" y1="{y_of(y):.1f}" y2="{y_of(y):.1f}"/>')
        svg.append(f'<text class="t" x="{x0 - 6:.1f}" y="{y_of(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    step = next(m * 10.0 ** e for e in range(-4, 7) for m in (1, 2, 2.5, 5) if high / (m * 10.0 ** e) <= 6)
    linear = [step * k for k in range(int(high / step) + 1)]
    for x in ticks(low, high) if log_x else linear:
        text = f"{x:g}" if log_x else f"{x:.3g}"
        svg.append(f'<text class="t" x="{x_of(x):.1f}" y="{TOP + plot + 17}" text-anchor="middle">{text}</text>')
        svg.append(f'<line class="ax" x1="{x_of(x):.1f}" x2="{x_of(x):.1f}" y1="{TOP + plot}" y2="{TOP + plot + 4}"/>')
    svg.append(f'<line class="ax" x1="{x0:.1f}" x2="{x0 + width:.1f}" y1="{TOP + plot}" y2="{TOP + plot}"/>')
    svg.append(f'<text class="t" x="{x0 + width / 2:.1f}" y="{HIGH - 8}" text-anchor="middle">{label}</text>')
    for colour, line in lines:
        points = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line)
        svg.append(f'<polyline class="l c{colour}" {dash(colour)}points="{points}"/>')


def dash(colour):
    """So that lines can be told apart without colours."""
    pattern = ["", "2 3", "", "7 3", "", "9 3 2 3", "", "7 3", "2 3", "", "9 3 2 3"][colour]
    return f'stroke-dasharray="{pattern}" ' if pattern else ""


def picture(runs):
    names = [p for p in POLICIES if p in runs]
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" role="img" '
           f'aria-label="validation loss of every store policy against seconds and rounds">',
           f"<style>{style()}</style>", '<rect class="bg" width="100%" height="100%"/>',
           '<text class="tt" x="14" y="22">Validation loss (MSE) of each --store policy, two workers, equal samples</text>']
    for k, name in enumerate(names):
        x, y = 14 + 78 * (k % 12) + (0 if k % 12 else 0), 44
        svg.append(f'<line class="l c{POLICIES.index(name)}" {dash(POLICIES.index(name))}x1="{x}" x2="{x + 20}" y1="{y - 4}" y2="{y - 4}"/>')
        svg.append(f'<text class="t" x="{x + 24}" y="{y}">{name}</text>')
    values = [y for run in runs.values() for _, step, y in run["points"] if step > 0]
    loss = (min(values) / 1.1, max(values) * 1.05)
    width = (WIDE - LEFT - 18 - GAP) / 2
    svg.append(f'<text class="t" x="14" y="{TOP - 10}">loss</text>')
    by_time, by_rounds = [], []
    for name in names:
        run, colour = runs[name], POLICIES.index(name)
        rounds = rounds_at(name, run["log"])
        points = [p for p in run["points"] if p[1] > 0]
        by_time.append((colour, [(s, y) for s, _, y in points]))
        by_rounds.append((colour, [(max(1, rounds(step)), y) for _, step, y in points]))
    panel(svg, LEFT, width, by_time, "seconds of training", loss, False)
    panel(svg, LEFT + width + GAP, width, by_rounds, "rounds (pushes of each worker)", loss, True)
    return "\n".join([*svg, "</svg>"]) + "\n"


# ------------------------------------------------------------------ the page -------------------------------------------------------

def sent(log):
    """Staleness, bytes and waits out of the note at the end."""
    found = re.search(r"(\d+) pushes, mean staleness ([\d.]+) updates, ([\d.]+) MB sent .* waited ([\d]+)% of the time", log)
    return "%s | %s | %s %%" % (found.group(2), found.group(3), found.group(4)) if found else "- | - | -"


def table(runs, base):
    text = ["| policy | loss | loss / sync | seconds | slowest run | rounds | staleness | MB sent | waited |", "|---|---|---|---|---|---|---|---|---|"]
    for name, run in runs.items():
        last = run["points"][-1]
        text.append("| %s | %.5f | %.2f | %.2f | %.2f | %.0f | %s |" % (
            name, last[2], last[2] / base["points"][-1][2], last[0], run["slowest"], rounds_at(name, run["log"])(last[1]), sent(run["log"])))
    return text


def page(args, runs, rows, load):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")),
               platform.machine())
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    loaded = "other programs ran on both cores" if max(load) > 1.5 else "the machine was otherwise idle"
    text = ["## Store policies on one series", "",
            "Made by `bench/stores/picture.py --rounds %d --steps %d` on %s, %d cores, Linux %s, %s, revision %s; load %.1f at the beginning, %.1f at the "
            "end: %s. Two ranks of one process with a thread each (hogwild: two threads); the fastest of %d runs in turns. "
            "Series: `stretto sample mackey-glass`; `%s`." % (
                args.rounds, args.steps, cpu, os.cpu_count(), platform.release(), datetime.date.today().isoformat(), head, load[0], load[1], loaded,
                args.rounds, " ".join(SERIES)), "",
            "![loss against seconds and rounds](../../docs/img/stores.svg)", "",
            "Loss: MSE on the validation split (standardised) after the last step. Staleness: updates that a push had not seen, mean. Waited: share of "
            "the workers' time. `sync`, `delay1` and `hogwild` use no servers. Where the slowest run is far from the fastest, other programs "
            "had the cores: compare seconds of such rows with care; the loss of synchronous "
            "policies with fixed rounds does not depend on it.", "", *table(runs, runs["sync"]), "",
            "### Groups of time, two readings", "",
            "The same series, `%s`: exact time slices on one rank with two threads, and spans of time for two workers (`--shards time`)." % " ".join(LONG),
            "", "| run | loss | seconds | steps |", "|---|---|---|---|"]
    text += ["| %s | %.3g | %.2f | %d |" % (name, run["points"][-1][2], run["seconds"], run["points"][-1][1]) for name, run in rows]
    return "\n".join(text) + "\n"


def write(text):
    """Puts the text between its marks in bench/results/stores.md; the rest of the page stays."""
    begin, end = "<!-- begin policies -->\n", "<!-- end policies -->\n"
    path = ROOT / "bench" / "results" / "stores.md"
    old = path.read_text(encoding="utf-8") if path.exists() else "# Parameter stores\n\n"
    if begin in old:
        before, after = old.split(begin)[0], old.split(end)[1]
    else:
        before, after = old.rstrip("\n") + "\n\n", ""
    path.write_text(before + begin + text + end + after, encoding="utf-8")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program", nargs="?", default=str(ROOT / "build" / "release" / "cli" / "stretto"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=1600)
    p.add_argument("--quick", action="store_true")
    args = p.parse_args()
    if args.quick:
        args.rounds, args.steps = 1, 80
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="stretto_stores_") as work:
        data = os.path.join(work, "mackey-glass.csv")
        subprocess.run([args.program, "sample", "mackey-glass", "-o", data], check=True, stderr=subprocess.DEVNULL)
        runs, rows = measured(args, data, work), in_time(args, data, work)
    load.append(os.getloadavg()[0])
    if args.quick:
        print("\n".join(table(runs, runs["sync"])))
        return
    (ROOT / "docs" / "img" / "stores.svg").write_text(picture(runs), encoding="utf-8")
    write(page(args, runs, rows, load))


if __name__ == "__main__":
    main()
