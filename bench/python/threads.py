#!/usr/bin/env python3
"""threads.py BUILD [--series N] [--turns N] - forecasts of one model by 1, 2 and 8 threads of Python.

A panel of N series of 400 rows is forecast as a whole at each request, with threads=1 inside the library; 48 requests a turn, the
numbers of threads take turns.  Prints requests a second (medians) and their ratio to one thread, the bar of which is 1.9 on two
cores; and, for one series, the milliseconds of a call.  Run it by the interpreter that tools/python_venv.sh names, before other
programs (chrt -r 20) where the machine is busy.
"""
import argparse
import concurrent.futures
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python"))
REQUESTS, ROWS = 48, 400


def panel(series):
    import numpy as np
    import pandas as pd
    rng, t = np.random.default_rng(5), np.arange(ROWS)
    return pd.concat([pd.DataFrame({"unique_id": "s%d" % k, "ds": pd.date_range("2024-01-01", periods=ROWS, freq="D"),
                                    "y": 10 + k + 3 * np.sin(2 * np.pi * t / 7) + 0.3 * rng.standard_normal(ROWS)})
                      for k in range(series)], ignore_index=True)


def rate(model, frame, threads):
    """Requests a second."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        begin = time.perf_counter()
        for _ in pool.map(lambda _: model.predict(frame, threads=1), range(REQUESTS)):
            pass
        return REQUESTS / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    os.environ.setdefault("STRETTO_LIBRARY", str(args.build.resolve()))
    import stretto
    frame, counts = panel(args.series), (1, 2, 8)
    model = stretto.train(frame, id="unique_id", time="ds", target="y", horizon=14, members=1, steps=60, hidden=64)
    got, calls = {n: [] for n in counts}, []
    model.predict(frame, threads=1)
    for _ in range(args.turns):
        for n in counts:
            got[n].append(rate(model, frame, n))
    one = frame[frame.unique_id == "s0"]
    for _ in range(200):
        begin = time.perf_counter()
        model.predict(one, threads=1)
        calls.append(time.perf_counter() - begin)
    print("%d series, %d cores, load %.1f, %d turns" % (args.series, os.cpu_count(), os.getloadavg()[0], args.turns))
    for n in counts:
        print("%d threads: %.1f requests a second, %.2f of one thread" % (
            n, statistics.median(got[n]), statistics.median(a / b for a, b in zip(got[n], got[1]))))
    print("one series: %.2f ms a call, median of %d" % (1e3 * statistics.median(calls), len(calls)))


if __name__ == "__main__":
    main()
