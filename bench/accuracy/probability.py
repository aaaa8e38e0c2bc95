#!/usr/bin/env python3
"""probability.py BINARY DATA [SET...]: bands of every head (--head) on the shared sets and on a synthetic panel of counts, with the
presets untouched: wQL of the quantiles .1 .5 .9, and the share of the targets of the test part within .1 and .9.

Prints the table of bench/results/probability.md.  A set trains with 2 threads; the table has means over SEEDS.
"""
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

HEADS = ("point", "quantile", "normal", "student-t", "negative-binomial", "poisson")
SEEDS = (1,)
# Per set: file, options, whether the target is a count.
SETS = {
    "ercot": ("ercot/ercot_multiple_ts.csv", "--time timestamp --id unique_id --target value --horizon 24", False),
    "beijing": ("beijing_pm25/pollution.csv", "--time year,month,day,hour --target pm2.5 --horizon 24 --gaps mask", True),
    "bike": ("bike_sharing/hour.csv", "--time dteday,hr --target cnt --horizon 24 --gaps zero", True),
    "ili": ("ili/ILINet.csv", "--target ILITOTAL --horizon 4 --gaps mask", True),
    "counts": (None, "--time ds --id unique_id --target y --horizon 7", True),
}


def poisson(rng, mean):
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, k, p = math.exp(-mean), 0, rng.random()
    while p > limit:
        k, p = k + 1, p * rng.random()
    return k


def counts(path):
    """60 shops of 730 days: means from 0.1 to 50 a day, a week and a slow wave, gamma-Poisson noise."""
    rng = random.Random(11)
    with open(path, "w") as f:
        f.write("ds,unique_id,y\n")
        for shop in range(60):
            level, spread = math.exp(rng.uniform(-2.3, 3.9)), rng.choice((0.05, 0.2, 0.5))
            for day in range(730):
                wave = 1 + 0.5 * math.sin(2 * math.pi * day / 7) + 0.3 * math.sin(2 * math.pi * day / 180 + shop)
                mean = level * wave * rng.gammavariate(1 / spread, spread)
                f.write(f"{time.strftime('%Y-%m-%d', time.gmtime(1640995200 + 86400 * day))},s{shop},{poisson(rng, mean)}\n")


def run(binary, path, options, head, seed, model):
    begun = time.time()
    said = subprocess.run([binary, "train", path, *options.split(), "--head", head, "--seed", str(seed), "--threads", "2", "-o", model],
                          capture_output=True, text=True)
    seconds = time.time() - begun
    if said.returncode not in (0, 1):
        raise SystemExit(f"{head} {path}: {said.stderr}")
    lines = (said.stdout + said.stderr).splitlines()
    names = next(line for line in lines if " wQL" in line).split("  MAE")[-1].split()
    row = next(line for line in lines if line.startswith("  model ")).split()
    band = next(line for line in lines if line.startswith("bands: "))
    steps = [int(x) for x in re.findall(r" (\d+)%", band.split("; steps")[1])] if "; steps" in band else []
    weight = [float(m) for line in lines for m in re.findall(r"its weight is ([\d.]+)", line)]
    wql = float(row[1 + [*("MAE",), *names].index("wQL")])
    return wql, int(re.match(r"bands: (\d+)%", band)[1]), steps, weight[-1] if weight else float("nan"), seconds


def main():
    binary, data = sys.argv[1], pathlib.Path(sys.argv[2])
    print("| set | head | wQL | 80 % bands cover | by step, first to last | guard's weight | seconds |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[3:] or SETS:
            file, options, whole = SETS[name]
            path = str(data / file) if file else f"{folder}/counts.csv"
            if not file:
                counts(path)
            for head in HEADS if whole else HEADS[:4]:
                got = [run(binary, path, options, head, seed, f"{folder}/m") for seed in SEEDS]
                mean = [sum(g[i] for g in got) / len(got) for i in (0, 1, 3, 4)]
                steps = [round(sum(s) / len(s)) for s in zip(*(g[2] for g in got))]
                print(f"| {name} | {head} | {mean[0]:.3f} | {mean[1]:.0f} % | {' '.join(map(str, steps))} | {mean[2]:.2f} | {mean[3]:.1f} |", flush=True)


main()
