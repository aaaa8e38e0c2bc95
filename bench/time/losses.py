#!/usr/bin/env python3
"""losses.py STRETTO [--seeds N] [--steps N] [--write PAGE]

Compares training in time slices with training over whole windows: final validation losses of every mode over seeds, as distances from
those of the serial run in standard deviations over seeds.  The distance must be at most 1 for exact slices, and for stored initial
states if slices have at least half of the length of the memory; other modes are only recorded.  Exit status 1: a distance is too large.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

CONTEXT = 4096
MODES = {"exact": [], "2 rounds": ["--slice-rounds", "2"], "1 round": ["--slice-rounds", "1"]}
SERIES = {"tides": "height", "long-memory": "y"}


def train(o, folder, series, target, seed, more):
    """Last validation loss of a training without base, and the memory w that its slices showed (0 = none)."""
    model = os.path.join(folder, "m.model")
    command = [o.stretto, "train", os.path.join(folder, series + ".csv"), "--target", target, "--horizon", "1", "--context",
               str(CONTEXT), "--loss-steps", "all", "--batch", "1", "--hidden", "32", "--base", "none", "--no-guard",
               "--steps", str(o.steps), "--seed", str(seed), "--threads", "1", "--progress", "none", "-q", *more, "-o", model]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"losses: {' '.join(command)}\n{done.stderr}")
    loss = w = 0
    with open(model + ".run/metrics.jsonl", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            loss = line["valid"] if line.get("valid") is not None else loss
            w = max(w, line.get("forgets") or 0)
    subprocess.run(["rm", "-r", model, model + ".run"], check=True)
    return loss, w


def rows(o, folder):
    for series, target in SERIES.items():
        subprocess.run([o.stretto, "sample", series, "--rows", "20000", "-o", os.path.join(folder, series + ".csv"), "-q"], check=True)
        whole = [train(o, folder, series, target, s, ["--parallel", "serial"])[0] for s in range(1, o.seeds + 1)]
        sigma = statistics.stdev(whole)
        for P in (4, 16, 64):
            for mode, more in MODES.items():
                found = [train(o, folder, series, target, s, ["--parallel", f"time:{P}", *more]) for s in range(1, o.seeds + 1)]
                away = [(loss - base) / sigma for (loss, _), base in zip(found, whole)]
                w = max(x for _, x in found)
                long_enough = CONTEXT // P >= w / 2
                judged = mode == "exact" or (mode == "2 rounds" and long_enough)
                yield {"series": series, "P": P, "L": CONTEXT // P, "w": w, "mode": mode, "mean": statistics.mean(whole),
                       "sigma": sigma, "away": statistics.mean(away), "worst": max(away, key=abs), "judged": judged,
                       "good": abs(statistics.mean(away)) <= 1}


def table(o, found):
    out = [f"{o.seeds} seeds, {o.steps} steps, one lstm of 32, windows of {CONTEXT} rows, loss at every row. Serial: " + "; ".join(
        f"{s} {m:.5f} (deviation over seeds {d:.5f})" for s, m, d in sorted({(r["series"], r["mean"], r["sigma"]) for r in found})) + ".",
        "", "| series | P | L | w | mode | mean distance, in deviations | worst seed | has to be within 1 |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |"]
    for r in found:
        has = ("yes" if r["good"] else "**no**") if r["judged"] else "recorded"
        out.append(f"| {r['series']} | {r['P']} | {r['L']} | {r['w']:.0f} | {r['mode']} | {r['away']:+.3f} | {r['worst']:+.3f} | {has} |")
    return "\n".join(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("stretto")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--write", metavar="PAGE", help="put the table between the marks of this page")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for r in rows(o, folder):
            print(json.dumps(r), flush=True)
            found.append(r)
    text = table(o, found)
    print(text)
    if o.write:
        with open(o.write, encoding="utf-8") as f:
            page = f.read()
        page = re.sub(r"(<!-- begin losses -->\n).*?(<!-- end losses -->)", lambda m: m.group(1) + text + "\n" + m.group(2), page, flags=re.S)
        with open(o.write + ".new", "w", encoding="utf-8") as f:
            f.write(page)
        os.replace(o.write + ".new", o.write)
    return 0 if all(r["good"] for r in found if r["judged"]) else 1


if __name__ == "__main__":
    sys.exit(main())
