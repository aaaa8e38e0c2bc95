"""t_recipe.py - docs/model-file.md as other programs follow it: examples/predict_numpy.py and predict_torch.py give the means of predict.

Skipped without NumPy, the second one without PyTorch; .peers/bin/python comes before python3.
"""
import csv
import io
import math
import os
import random
import subprocess
import unittest

import e2e
from e2e import AIR, ROOT, Case

PYTHONS = [os.path.join(ROOT, ".peers", "bin", "python"), "python3", "/usr/bin/python3"]
SHORT = ["--horizon", "12", "--members", "2", "--steps", "30", "--no-guard"]


def python_with(module):
    for python in PYTHONS:
        try:
            if subprocess.run([python, "-c", "import numpy, " + module], stderr=subprocess.DEVNULL).returncode == 0:
                return python
        except OSError:
            pass
    raise unittest.SkipTest("skipped: %s is not installed" % {"numpy": "NumPy", "torch": "PyTorch"}[module])


class Recipe(Case):
    def compare(self, script, data, *flags):
        """The script's forecasts of the first target against those of predict: at most 1e-5 of the values apart."""
        self.stretto("train", data, *SHORT, *flags, "-o", "m.model", timeout=120)
        rows = list(csv.DictReader(io.StringIO(self.stretto("predict", "m.model", data).out)))
        want = [float(row["mean"]) for row in rows if row["id"] == rows[0]["id"]]
        done = subprocess.run([python_with(script), os.path.join(ROOT, "examples", "predict_%s.py" % script), self.path("m.model"), data],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        got = [float(line) for line in done.stdout.split()]
        self.assertEqual(len(want), len(got))
        for a, b in zip(want, got):
            self.assertLess(abs(a - b), 1e-5 * max(1, abs(a)), flags)

    def hours(self, rows=400):
        """Hourly data: a past-only column, one that is known ahead, twelve rows ahead without targets."""
        draw = random.Random(1)
        lines = ["time,load,wind,holiday"]
        for i in range(rows + 12):
            day, hour = divmod(i, 24)
            load = 50 + 9 * math.sin(hour / 3.82) + 12 * (day % 5 == 0) + draw.gauss(0, 1)
            past = "%.6f,%.6f" % (load, draw.random()) if i < rows else ","
            lines.append("2021-03-%02d %02d:00:00,%s,%d" % (day + 1, hour, past, day % 5 == 0))
        return self.write("hours.csv", "\n".join(lines) + "\n")

    def test_numpy_scales_and_bases(self):
        python_with("numpy")
        for scale, base, network in (("series", "none", ["--layers", "2"]), ("window", "season", ["--segment", "5"]), ("last", "ridge", []),
                                     ("mean", "last", ["--head", "quantile"]), ("mean", "none", []), ("series", "last", ["--loss-steps", "all"])):
            self.compare("numpy", AIR, "--scale", scale, "--base", base, *network)

    def test_numpy_rules_of_the_mix(self):
        python_with("numpy")
        for k, shape in enumerate((lambda i, e: e, lambda i, e: 0.3 * i + e, lambda i, e: 9 * math.sin(i / 2) + 0.2 * i + 2 * e, lambda i, e: 40 * 1.01 ** i,
                                   lambda i, e: (5 + 0.05 * i) * (3 + math.sin(i * math.pi / 6)), lambda i, e: 100 * (i > 200) + 9 * e)):
            draw = random.Random(k)
            path = self.write("%d.csv" % k, "t,y\n" + "".join("%d,%.6f\n" % (i, shape(i, draw.gauss(0, 1))) for i in range(300)))
            self.compare("numpy", path, "--target", "y", "--base", "mix", "--scale", "window", "--steps", "10")

    def test_numpy_covariates_and_calendar(self):
        python_with("numpy")
        columns = ["--target", "load", "--past", "wind", "--known", "holiday", "--calendar", "yes"]
        average = ["--segment", "5", "--base", "ridge", "--combine", "average", "--decoder", "direct"]
        for network in (["--segment", "5", "--base", "ridge"], average, ["--segment", "1", "--preset", "long", "--decoder", "direct"]):
            self.compare("numpy", self.hours(), *columns, *network)
            self.assertIn(",calendar,ahead:1:", self.stretto("info", "m.model").out)

    def test_numpy_parallel_decoder(self):
        """The decoder of long horizons, and so of most defaults: one step of the cell for each segment of the horizon."""
        python_with("numpy")
        for network in (["--segment", "12"], ["--segment", "4", "--layers", "2", "--base", "last"], ["--segment", "3", "--scale", "last", "--head", "quantile"],
                        ["--segment", "6", "--calendar", "yes", "--past", "wind"], ["--segment", "4", "--known", "holiday", "--calendar", "yes"]):
            path = self.hours()
            if "--known" not in network:
                path = self.write("past.csv", "".join(line + "\n" for line in self.read("hours.csv").decode().splitlines() if ",,," not in line))
            self.compare("numpy", path, "--target", "load", "--decoder", "parallel", *network)

    def test_torch(self):
        python_with("torch")
        for network in (["--bidirectional", "--layers", "2", "--projection", "6"], ["--cell", "gru", "--segment", "3"]):
            self.compare("torch", AIR, "--scale", "window", *network)


if __name__ == "__main__":
    e2e.main()
