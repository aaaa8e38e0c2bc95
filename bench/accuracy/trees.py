#!/usr/bin/env python3
"""trees.py - Stretto beside LightGBM, trained directly for every step, on the sets whose targets other columns drive.

    bench/accuracy/trees.py [SET..] [--rounds 3] [--threads 2] [--write]     run by a Python with lightgbm, mlforecast and pandas

Both see the same columns, train on the rows before the test part and forecast the same origins of it. LightGBM runs in two forms:
    lgb direct      one model a step, written here: lags 1..24, seasons counted back from the target row, rolling means and deviation,
                    past-only columns, calendar and known columns of the target row; 100 trees, other settings default
    mlforecast      MLForecast(max_horizon=H) with the same lags, means and calendar, as its guide writes it
Rounds are interleaved; scores are of the first round, seconds are medians of wall time and CPU time of training and forecasts together.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import lightgbm
import numpy as np
import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import results

DATA = results.ROOT.parent / "shared" / "data"
if os.environ.get("STRETTO_SHARED"):
    DATA = pathlib.Path(os.environ["STRETTO_SHARED"]) / "data"


class Set:
    """A wide table: times, targets, columns known ahead, past-only columns; rows [0, test) train, origins test, test + stride, .."""

    def __init__(self, frame, targets, known, past, season, horizon, test, valid, stride, score, flags):
        self.frame, self.targets, self.known, self.past = frame, targets, known, past
        self.season, self.horizon, self.test, self.valid, self.stride, self.score, self.flags = season, horizon, test, valid, stride, score, flags

    def origins(self):
        return range(self.test, len(self.frame) - self.horizon + 1, self.stride)


def hourly(frame):
    return frame.set_index("ds").asfreq("h").reset_index()


def bike():
    d = pd.read_csv(DATA / "bike_sharing/hour.csv")
    d["ds"] = pd.to_datetime(d.dteday) + pd.to_timedelta(d.hr, unit="h")
    known = "holiday,workingday,weathersit,temp,atemp,hum,windspeed".split(",")
    d = hourly(d[["ds", "cnt", *known]])
    return Set(d, ["cnt"], known, [], [24, 168], 24, 16872, 16200, 24, "ND", ["--gaps", "mask"])


def pollution():
    d = pd.read_csv(DATA / "beijing_pm25/pollution.csv")
    d["ds"] = pd.to_datetime(d[["year", "month", "day", "hour"]])
    past = "DEWP,TEMP,PRES,Iws,Is,Ir".split(",")
    return Set(d[["ds", "pm2.5", *past]], ["pm2.5"], [], past, [24, 168], 24, 35064, 26304, 24, "ND", ["--gaps", "mask"])


def pollution_weather():
    s = pollution()
    s.known, s.past = s.past, []
    return s


def ercot():
    d = pd.read_csv(DATA / "ercot/ercot_multiple_ts.csv").pivot(index="timestamp", columns="unique_id", values="value").reset_index()
    names = [c for c in d.columns if c != "timestamp"]
    d = d.rename(columns={"timestamp": "ds"})
    d["ds"] = pd.to_datetime(d.ds)
    return Set(d, names, [], [], [24, 168], 24, len(d) - 168, len(d) - 336, 24, "ND", [])


def etth1(horizon=96):
    d = pd.read_csv(DATA / "ett/ETTh1.csv", nrows=14400).rename(columns={"date": "ds"})
    d["ds"] = pd.to_datetime(d.ds)
    names = [c for c in d.columns if c != "ds"]
    return Set(d, names, [], [], [24, 168], horizon, 11520, 8640, 24, "z-MSE", ["--score-scale", "z", "--preset", "long"])


def ili():
    d = pd.read_csv(DATA / "ili/ILINet.csv")
    d["ds"] = pd.to_datetime(d.DATE)
    d = d[["ds", "% WEIGHTED ILI"]].set_index("ds").asfreq("7D").reset_index()
    test = int((d.ds < "2017-10-08").sum())
    return Set(d, ["% WEIGHTED ILI"], [], [], [52], 4, test, test - 208, 1, "MAE", ["--gaps", "mask", "--preset", "short"])


SETS = {"bike": bike, "pollution": pollution, "pollution-weather": pollution_weather, "ercot": ercot, "etth1-24": lambda: etth1(24),
        "etth1-96": etth1, "ili-4": ili}


# --------------------------------------------------------------------------------------------------------------- LightGBM
def calendar(ds):
    return np.stack([ds.dt.hour, ds.dt.dayofweek, ds.dt.month, ds.dt.dayofyear], 1).astype(float)


def origin_inputs(s, col):
    """Lags, means and past-only columns as of every origin o: row o of the result reads rows < o."""
    y = s.frame[s.targets[col]]
    before = y.shift(1)
    parts = [y.shift(k) for k in range(1, 25)]
    parts += [before.rolling(n, min_periods=1).mean() for n in (3, s.season[0], s.season[-1])]
    parts += [before.rolling(s.season[0], min_periods=2).std()]
    parts += [s.frame[c].shift(1) for c in s.past]
    return np.stack([p.to_numpy(float) for p in parts], 1)


def step_inputs(s, col, h):
    """What belongs to the target row o + h, for every origin o."""
    y = s.frame[s.targets[col]].to_numpy(float)
    n = len(y)
    rows = np.arange(n) + h
    def at(v, r):
        return np.where((r >= 0) & (r < n), v[np.clip(r, 0, n - 1)], np.nan)
    parts = []
    for m in s.season:
        parts += [at(y, rows - (h // m + 1 + k) * m) for k in range(3)]
    parts += [at(s.frame[c].to_numpy(float), rows) for c in s.known]
    dates = calendar(s.frame.ds)
    parts += [at(dates[:, k], rows) for k in range(dates.shape[1])]
    return np.stack(parts, 1)


def lgb_direct(s, threads):
    """One model for each step, all columns together; returns forecasts [origin][column][step]."""
    scale = [(s.frame[c][:s.test].mean(), s.frame[c][:s.test].std(ddof=0)) for c in s.targets]
    z = Set(s.frame.copy(), s.targets, s.known, s.past, s.season, s.horizon, s.test, s.valid, s.stride, s.score, s.flags)
    for c, (mean, dev) in zip(s.targets, scale):
        z.frame[c] = (z.frame[c] - mean) / dev
    origins = np.array(list(s.origins()))
    out = np.zeros((len(origins), len(s.targets), s.horizon))
    fixed = [np.column_stack([origin_inputs(z, c), np.full(len(z.frame), c)]) for c in range(len(s.targets))]
    for h in range(s.horizon):
        xs = [np.column_stack([fixed[c], step_inputs(z, c, h)]) for c in range(len(s.targets))]
        train = np.arange(s.season[-1], s.test - h)
        y = [z.frame[name].to_numpy(float)[train + h] for name in s.targets]
        ok = [~np.isnan(v) for v in y]
        model = lightgbm.train({"objective": "regression", "num_threads": threads, "verbosity": -1, "deterministic": True, "force_row_wise": True},
                               lightgbm.Dataset(np.concatenate([x[train][k] for x, k in zip(xs, ok)]),
                                                np.concatenate([v[k] for v, k in zip(y, ok)])), 100)
        for c, (mean, dev) in enumerate(scale):
            out[:, c, h] = model.predict(xs[c][origins], num_threads=threads) * dev + mean
    return out


def mlforecast_direct(s, threads):
    from mlforecast import MLForecast
    from mlforecast.lag_transforms import RollingMean
    long = pd.concat([pd.DataFrame({"unique_id": c, "ds": s.frame.ds, "y": s.frame[c], **{k: s.frame[k] for k in s.known}}) for c in s.targets])
    long["y"] = long.groupby("unique_id").y.ffill().bfill()
    for k in s.known:
        long[k] = long[k].ffill().bfill()
    step = s.frame.ds.iloc[1] - s.frame.ds.iloc[0]
    lags = [*range(1, 25), *(m * k for m in s.season for k in (1, 2))]
    model = MLForecast(models=[lightgbm.LGBMRegressor(n_jobs=threads, verbosity=-1)], freq=pd.tseries.frequencies.to_offset(step), lags=sorted(set(lags)),
                       lag_transforms={1: [RollingMean(s.season[0]), RollingMean(s.season[-1])]}, date_features=["hour", "dayofweek", "month", "dayofyear"])
    border = s.frame.ds[s.test]
    model.fit(long[long.ds < border], static_features=[], max_horizon=s.horizon)
    out = []
    for o in s.origins():
        past = long[long.ds < s.frame.ds[o]]
        ahead = long[(long.ds >= s.frame.ds[o]) & (long.ds < s.frame.ds[o] + s.horizon * step)].drop(columns="y") if s.known else None
        f = model.predict(s.horizon, new_df=past, X_df=ahead)
        out.append(np.stack([f[f.unique_id == c].iloc[:, -1].to_numpy() for c in s.targets]))
    return np.stack(out)


# --------------------------------------------------------------------------------------------------------------- Stretto
def stretto_run(s, name, threads, folder, extra):
    path = f"{folder}/{name}.csv"
    s.frame[["ds", *s.targets, *s.known, *s.past]].to_csv(path, index=False)
    command = [str(results.program()), "train", path, "--time", "ds", "--target", ",".join(s.targets), "--horizon", str(s.horizon), "--validation",
               str(s.test - s.valid), "--test", str(len(s.frame) - s.test), "--stride", str(s.stride), "--threads", str(threads), "--json",
               "--progress", "none", "-o", f"{folder}/{name}.model", "--run-dir", f"{folder}/{name}.run", *s.flags, *extra]
    command += ["--known", ",".join(s.known)] if s.known else []
    command += ["--past", ",".join(s.past)] if s.past else []
    subprocess.run(["rm", "-rf", f"{folder}/{name}.run"], check=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    table = json.loads(done.stdout)
    score = "MSE" if s.score == "z-MSE" else s.score
    row = {r["name"].split(" ")[0]: r[score] for r in table["rows"] if score in r}
    base = re.search(r"^base (.*) \(", done.stderr, re.M)
    note = re.search(r"^boosted trees.*$", done.stderr, re.M)
    return row, (base.group(1) if base else "none") + ("; " + note.group(0) if note else "")


def score_of(s, forecast):
    error = size = count = 0
    for c, name in enumerate(s.targets):
        y = s.frame[name].to_numpy(float)
        dev = np.nanstd(y[:s.valid])
        for i, o in enumerate(s.origins()):
            d = y[o:o + s.horizon] - forecast[i, c]
            ok = ~np.isnan(d)
            error += (np.square(d[ok] / dev) if s.score == "z-MSE" else np.abs(d[ok])).sum()
            size += np.abs(y[o:o + s.horizon][ok]).sum()
            count += ok.sum()
    return error / (size if s.score == "ND" else count)


def timed(call):
    before, start = os.times(), time.monotonic()
    value = call()
    wall, after = time.monotonic() - start, os.times()
    return value, wall, sum(after[:4]) - sum(before[:4])


def main():
    p = argparse.ArgumentParser(description="Stretto beside LightGBM")
    p.add_argument("sets", nargs="*", default=list(SETS))
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--write", action="store_true", help="write bench/results/accuracy.md")
    p.add_argument("--only", default="", help="names of the forms to run, such as stretto,lgb")
    p.add_argument("--extra", default="", help="further options of stretto train")
    a = p.parse_args()
    if not DATA.is_dir():
        print("skipped: the data sets are not here")
        return 0
    lines = []
    for name in a.sets:
        s = SETS[name]()
        with tempfile.TemporaryDirectory(prefix="stretto-trees-") as folder:
            forms = {"stretto": lambda: stretto_run(s, name, a.threads, folder, a.extra.split()),
                     "base alone": lambda: stretto_run(s, name, a.threads, folder, ["--no-correction", *a.extra.split()]),
                     "lgb direct": lambda: lgb_direct(s, a.threads), "mlforecast": lambda: mlforecast_direct(s, a.threads)}
            forms = {k: v for k, v in forms.items() if not a.only or k.split()[0] in a.only.split(",")}
            wall, cpu, score, detail = {k: [] for k in forms}, {k: [] for k in forms}, {}, ""
            for _ in range(a.rounds):
                for form, call in forms.items():
                    value, seconds, spent = timed(call)
                    wall[form].append(seconds)
                    cpu[form].append(spent)
                    if form in score:
                        continue
                    score[form] = value[0]["model"] if isinstance(value, tuple) else score_of(s, value)
                    if isinstance(value, tuple):
                        detail = f"{value[1]} (ridge {value[0].get('ridge', float('nan')):.4g})"
            for form in forms:
                line = [name, s.score, form, f"{score[form]:.4g}", f"{statistics.median(wall[form]):.1f}", f"{statistics.median(cpu[form]):.1f}"]
                lines.append(line)
                print("  ".join(f"{x:>10}" for x in line), flush=True)
            print(f"{'':>10}  {detail}", flush=True)
            if a.write:
                write(lines, a)
    return 0


HEAD = ["set", "score", "program", "value", "wall s", "CPU s"]


def write(lines, a):
    table = "\n".join("| " + " | ".join(row) + " |" for row in [HEAD, ["---"] * len(HEAD), *lines])
    doc = __doc__.split("\n\n", 2)[2]
    (results.ROOT / "bench/results/accuracy.md").write_text(
        f"# Boosted trees beside LightGBM\n\n`bench/accuracy/trees.py --rounds {a.rounds} --threads {a.threads} --write`. {results.machine(a.threads)} "
        f"LightGBM {lightgbm.__version__}.\n\n```text\n{doc}```\n\n{table}\n")


if __name__ == "__main__":
    sys.exit(main())
