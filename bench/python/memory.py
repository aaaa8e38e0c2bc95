#!/usr/bin/env python3
"""memory.py [ROWS] - what training on a data frame adds to the memory of the process.

The frame has a column of times and seven of float64.  Prints its size, the rise of the resident memory from before train() to its
peak, and the bytes of the float32 series that the engine makes of it.  16,800,000 rows, the default, are a frame of 1 GB.  Run it by
the interpreter that tools/python_venv.sh names.
"""
import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python"))
COLUMNS, MIB = 7, 1 << 20


def frame(rows):
    import numpy as np
    import pandas as pd
    rng = np.random.default_rng(1)
    columns = {"ds": pd.date_range("1990-01-01", periods=rows, freq="min")}
    columns.update({"c%d" % k: rng.standard_normal(rows) for k in range(COLUMNS)})
    return pd.DataFrame(columns, copy=False)


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Peak(threading.Thread):
    """Samples the resident memory of the process every 10 ms until `over` is set."""

    def __init__(self):
        super().__init__()
        self.before = self.most = resident()
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.01):
            self.most = max(self.most, resident())


def main():
    import stretto
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 16_800_000
    df = frame(rows)
    size = sum(df[name].to_numpy().nbytes for name in df)
    peak, began = Peak(), time.monotonic()
    peak.start()
    try:
        stretto.train(df, time="ds", target="c0", horizon=24, steps=5, members=1, base="none", batch=32, context=48)
    finally:
        peak.over.set()
        peak.join()
    print("frame %.0f MiB; peak of train() %.0f MiB above that, float32 series %.0f MiB; %.0f s, load %.1f" % (
        size / MIB, (peak.most - peak.before) / MIB, rows * COLUMNS * 4 / MIB, time.monotonic() - began, os.getloadavg()[0]))


if __name__ == "__main__":
    main()
