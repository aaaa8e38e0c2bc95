"""common.py - what the tests of the Python package start with: the package of this tree, the program, series.

    tests/python/run.sh t_train.py build/release/cli/stretto [Class.test]
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.abspath(os.path.join(HERE, "..", "..", "bindings", "python"))
for folder in (os.path.join(HERE, "..", "e2e"), PACKAGE):
    sys.path.insert(0, os.path.abspath(folder))
os.environ["PYTHONPATH"] = PACKAGE

if len(sys.argv) > 1 and "STRETTO_LIBRARY" not in os.environ:
    os.environ["STRETTO_LIBRARY"] = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1])))
os.environ["STRETTO_WISDOM"] = "off"

import e2e  # noqa: E402
import pandas as pd  # noqa: E402, F401
from e2e import AIR, Case  # noqa: E402, F401

import stretto  # noqa: E402

QUICK = {"target": "Passengers", "horizon": 12, "members": 1, "steps": 40}
FLAGS = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "40"]
LONG = {"target": "Passengers", "horizon": 12, "members": 1, "steps": 60000, "max_steps": 0, "validate_every": 500}  # stopped long before


def air():
    """The airline passengers: a DataFrame with the columns Month (datetime64) and Passengers (int64)."""
    frame = pd.read_csv(AIR)
    frame["Month"] = pd.to_datetime(frame["Month"])
    return frame


def panel(series=3, rows=120):
    """A long table: unique_id, ds, y, price, kind."""
    import numpy as np
    rng = np.random.default_rng(5)
    parts = []
    for k in range(series):
        t = np.arange(rows)
        parts.append(pd.DataFrame({"unique_id": "s%d" % k, "ds": pd.date_range("2024-01-01", periods=rows, freq="D"),
                                   "y": 10 + k + 3 * np.sin(2 * np.pi * t / 7) + 0.3 * rng.standard_normal(rows),
                                   "price": rng.random(rows), "kind": np.where(t % 2, "a", "b")}))
    return pd.concat(parts, ignore_index=True)


def python(code, **more):
    """Runs a program of Python; returns its status, output and errors."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **more)
    return done.returncode, done.stdout, done.stderr

