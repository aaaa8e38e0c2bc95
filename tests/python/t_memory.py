"""t_memory.py - tables of float64 are read where they lie: no second copy of them, by the peak of the resident memory.

Beside the table, memory holds the series of the engine: 4 bytes for each value of a column with a role, and what building them takes."""
import sys
import unittest

import numpy as np
from common import Case, e2e, pd
from stretto import config, frames, handles

ROWS, COLUMNS = 2_000_000, 10
MIB = ROWS * COLUMNS * 8 / 2**20


def status(name):
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(name))


def tables():
    values = {"c%d" % k: np.sin(np.arange(ROWS) / 50 + k) for k in range(COLUMNS)}
    yield "dict", values
    yield "pandas", pd.DataFrame(values)
    import polars
    yield "polars", polars.DataFrame(values)
    import pyarrow
    yield "pyarrow", pyarrow.table(values)


class Peak(Case):
    def grown(self, data, options):
        """MiB of the peak above the memory before, of the frame and of the opened data."""
        with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
            f.write("5")
        before = status("VmRSS")
        with frames.opened(data) as path:
            framed = status("VmHWM") - before
            with config.Config(options) as opts, handles.open_data(opts, path):
                return framed, status("VmHWM") - before

    @unittest.skipUnless(sys.platform == "linux", "the peak of the memory is read in /proc")
    def test_no_second_copy(self):
        names = ["c%d" % k for k in range(COLUMNS)]
        for what, data in tables():
            try:
                framed, one = self.grown(data, {"target": "c0", "ignore": names[1:], "threads": 1})
                _, whole = self.grown(data, {"target": names, "threads": 1})
            except PermissionError:
                self.skipTest("/proc/self/clear_refs cannot be written here")
            self.assertLess(framed, 0.1 * MIB, what)
            self.assertLess(one, 0.35 * MIB, what)
            self.assertLess(whole, 0.85 * MIB, what)


if __name__ == "__main__":
    e2e.main()
