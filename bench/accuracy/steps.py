#!/usr/bin/env python3
"""steps.py - does the default budget of steps stop training short?  Every protocol of bench/protocols/ with every preset that fits it.

    bench/accuracy/steps.py [PROTOCOL..] [--preset NAME] [--threads 1] [--seed 1] [--no-write]

Three runs of the first member: with the defaults; with ten times the default budget (--max-steps), where the same rule goes on while validation
falls; and with ten times the steps that the defaults took, whatever validation says (--steps N --max-steps 0).  The bar compares the best
validation losses: the defaults lie within 1 % of each of the others.  Writes bench/results/steps.md; `make bench-steps`.

A preset fits a protocol that its line in src/opt/presets.def names, whether or not `auto` prefers another preset there.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import results
from run import DATA, PROTOCOLS, Protocol, digits, natural

TABLE = results.FOLDER / "steps.md"
TIMES, BAR = 10, 1.01
HEAD = ["protocol", "preset", "steps", "best at", "loss", "ended by", "loss, 10 x budget", "ratio", "loss, 10 x steps", "best at", "ratio",
        "seconds", "seconds, 10 x steps", "score", "score, 10 x steps"]


def fitting(flags, rows):
    """The presets whose line in presets.def is true of the protocol."""
    horizon, columns = int(flags["horizon"]), len(flags["target"].split(","))
    fits = {"short": rows < 500 or (columns == 1 and rows < 5000),
            "long": columns > 1 or (rows >= 5000 and horizon >= 48),
            "wide": rows >= max(10000, 40 * horizon) and horizon >= (24 if columns > 1 else 48),
            "day": rows >= 5000 and horizon < 48}
    return [name for name, fit in fits.items() if fit]


class Run:
    def __init__(self, protocol, preset, a, folder, *flags):
        command = [str(results.program()), "train", str(protocol.data), "--config", str(protocol.path), "--preset", preset, "--members", "1",
                   "--seed", str(a.seed), "--threads", str(a.threads), "--json", "--progress", "none", "-o", f"{folder}/m.model",
                   "--run-dir", f"{folder}/m.run", *flags]
        subprocess.run(["rm", "-rf", f"{folder}/m.run"], check=True)
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True)
        self.seconds = time.monotonic() - start
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        events = [json.loads(line) for line in (pathlib.Path(folder) / "m.run" / "metrics.jsonl").open()]
        valid = [e for e in events if e["split"] == "valid" and e["valid"] is not None]
        best = min(valid, key=lambda e: e["valid"], default=None)
        self.loss, self.at = (best["valid"], best["step"]) if best else (None, None)
        self.steps = max((e["step"] for e in valid), default=0)
        self.score = next(row for row in json.loads(done.stdout)["rows"] if row["name"] == "model")[protocol.score]
        found = re.search(r"^steps (\d+), then .*budget (\d+)", done.stderr, re.M)
        self.first, self.budget = (int(found.group(1)), int(found.group(2))) if found else (self.steps, self.steps)


def row_of(protocol, preset, a, folder):
    """Cells of the row, and whether both ratios are within the bar; None without validation losses."""
    base = Run(protocol, preset, a, folder)
    if base.loss is None or base.steps == 0:
        return None
    more = Run(protocol, preset, a, folder, "--max-steps", str(TIMES * base.budget))
    far = Run(protocol, preset, a, folder, "--steps", str(TIMES * base.steps), "--max-steps", "0")
    ended = "the budget" if base.steps >= base.budget and more.steps > base.steps else "validation" if base.budget > base.first else "the steps"
    ratio = [base.loss / run.loss for run in (more, far)]
    mark = [f"{r:.3f}" if r <= BAR else f"**{r:.3f}**" for r in ratio]
    cells = [protocol.name, preset, str(base.steps), str(base.at), f"{base.loss:.4g}", ended, f"{more.loss:.4g}", mark[0], f"{far.loss:.4g}",
             str(far.at), mark[1], f"{base.seconds:.1f}", f"{far.seconds:.1f}", digits(base.score), digits(far.score)]
    return cells, [r <= BAR for r in ratio]


def page(lines, ok, a, load, words):
    text = f"# Default steps\n\n{results.machine(a.threads, load)} Made by `make bench-steps`: {' '.join(words.split())}\n\n"
    text += "\n".join("| " + " | ".join(row) + " |" for row in [HEAD, ["---"] * len(HEAD), *lines]) + "\n\n"
    n = len(ok)
    return text + (f"Within 1 %: {sum(o[0] for o in ok)} of {n} rows against ten times the budget, {sum(o[1] for o in ok)} of {n} against ten times the steps.\n")


WORDS = """`bench/accuracy/steps.py`, seed 1, first member. `loss` is the best validation loss of a run with defaults, at step `best at` of `steps`.
`10 x budget` has ten times `--max-steps`: the same rule goes on while validation falls. `10 x steps` takes ten times as many steps whatever
validation says, with the learning rate's schedule over all of them. Bar: a ratio of 1.01 at most; larger ones are bold. The best of ten times
as many validations is lower by chance alone, most where validation holds few horizons. `score` is that of the test part, for information: no choice depends on it.
Seconds are single runs beside other programs."""


def main():
    import os
    p = argparse.ArgumentParser(description="best validation loss after the default steps and after ten times as many")
    p.add_argument("names", nargs="*")
    p.add_argument("--preset")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--no-write", action="store_true")
    a = p.parse_args()
    if not results.ready("steps", DATA):
        return 0
    from coverage import flags_of, rows_of
    lines, ok, load = [], [], os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="stretto-steps-") as folder:
        for path in sorted(PROTOCOLS.glob("*.yaml"), key=lambda p: natural(p.stem)):
            protocol = Protocol(path)
            for preset in fitting(flags_of(protocol), rows_of(protocol.data)) if not a.names or protocol.name in a.names else []:
                made = row_of(protocol, preset, a, folder) if not a.preset or preset == a.preset else None
                if made:
                    print("  ".join(f"{cell:>8}" for cell in made[0]), flush=True)
                    lines.append(made[0])
                    ok.append(made[1])
    if not a.names and not a.preset and not a.no_write:
        TABLE.write_text(page(lines, ok, a, load, WORDS))
    return 0 if all(all(o) for o in ok) else 1


if __name__ == "__main__":
    sys.exit(main())
