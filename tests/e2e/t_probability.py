"""t_probability.py - heads of distributions: quantiles, coverage, sample paths; the same bits on ranks, after a stop, from a file."""
import csv
import io
import json
import math
import random
import signal
import subprocess

import e2e
from e2e import Case

HORIZON, DAYS, SHOPS = 6, 260, 6
HEADS = ("normal", "student-t", "negative-binomial", "poisson")
PANEL = ("--id", "shop", "--target", "sold", "--horizon", HORIZON, "--quiet", "--threads", 1)
FEW = (*PANEL, "--steps", 40, "--max-steps", 40)


def poisson(rng, mean):
    limit, k, p = math.exp(-mean), 0, rng.random()
    while p > limit:
        k, p = k + 1, p * rng.random()
    return k


def panel():
    """Counts of shops, small and large, with a week."""
    rng, lines = random.Random(4), ["shop,day,sold"]
    for shop in range(SHOPS):
        for day in range(DAYS):
            mean = (0.5 + 3 * shop) * (1 + 0.6 * math.sin(2 * math.pi * day / 7))
            lines.append(f"s{shop},{1 + day},{poisson(rng, mean)}")
    return "\n".join(lines) + "\n"


class Probability(Case):
    def setUp(self):
        super().setUp()
        self.write("panel.csv", panel())

    def table(self, *args):
        return list(csv.DictReader(io.StringIO(self.stretto("predict", *args).out)))

    def levels(self, row):
        return [float(row[k]) for k in row if k.startswith("q")]

    def test_quantiles_of_every_head_rise_and_counts_are_counts(self):
        for head in ("quantile", *HEADS):
            self.stretto("train", "panel.csv", *FEW, "--head", head, "--quantiles", "0.01,0.1,0.3,0.5,0.7,0.9,0.99", "-o", "m")
            rows = self.table("m", "panel.csv")
            self.assertEqual(len(rows), HORIZON * SHOPS)
            for row in rows:
                q = self.levels(row)
                self.assertEqual(q, sorted(q), head)
                if head in HEADS[2:]:
                    self.assertTrue(all(v >= 0 and v == int(v) for v in q), q)
                    self.assertGreater(float(row["mean"]), 0)
                elif head in HEADS[:2]:
                    self.assertAlmostEqual(float(row["mean"]), q[3], 5)

    def test_bands_cover_what_they_say(self):
        """Of large counts, as whole numbers hold more than the share of a level."""
        rng = random.Random(9)
        self.write("big.csv", "y\n" + "".join(f"{round(400 + 80 * math.sin(i / 3) + rng.gauss(0, 20))}\n" for i in range(1500)))
        for head in HEADS:
            self.stretto("train", "big.csv", "--target", "y", "--horizon", 5, "--head", head, "--steps", 60, "--max-steps", 60, "--threads", 1,
                         "--quiet", "-o", "m")
            band = json.loads(self.stretto("eval", "m", "big.csv", "--json").out)["band"]
            self.assertTrue(0.74 <= band["coverage"] <= 0.87, (head, band))
            self.assertEqual(len(band["steps"]), 5)
            self.assertTrue(all(0.68 <= c <= 0.92 for c in band["steps"]), (head, band))

    def test_ranks_and_members_give_the_same_bits(self):
        for head in ("student-t", "negative-binomial"):
            for ranks in (1, 2):
                self.stretto("train", "panel.csv", *FEW, "--head", head, "--members", 2, "--ranks", ranks, "-o", f"m{ranks}")
            one, two = (self.stretto("predict", f"m{r}", "panel.csv", "--samples", 50).out for r in (1, 2))
            self.assertEqual(one, two)

    def test_a_run_that_is_stopped_goes_on_to_the_same_model(self):
        args = (*PANEL, "--head", "student-t", "--steps", 3000, "--max-steps", 3000, "--batch", 8, "--refit-all")
        self.stretto("train", "panel.csv", *args, "-o", "whole", timeout=200)
        child = self.start("train", "panel.csv", *args, "-o", "part", "--checkpoint-every", "1s")
        try:
            child.wait(timeout=0.8)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            child.wait(timeout=60)
            self.stretto("resume", "part.run", timeout=200)
        whole, part = (self.stretto("predict", m, "panel.csv", "--samples", 20).out for m in ("whole", "part"))
        self.assertEqual(whole, part)

    def test_samples_have_the_quantiles_as_marginals(self):
        self.stretto("train", "panel.csv", *FEW, "--head", "student-t", "-o", "m")
        forecast, paths = self.table("m", "panel.csv"), self.table("m", "panel.csv", "--samples", 200)
        for row, path in zip(forecast, paths):
            self.assertEqual((row["id"], row["step"]), (path["id"], path["step"]))
            values = [float(path[f"sample.{k + 1}"]) for k in range(200)]
            for level, q in zip((0.1, 0.5, 0.9), self.levels(row)):
                self.assertLessEqual(abs(sum(v <= q for v in values) - 200 * level), 1)
        again = self.stretto("predict", "m", "panel.csv", "--samples", 200, "--threads", 2).out
        self.assertEqual(again, self.stretto("predict", "m", "panel.csv", "--samples", 200, "--threads", 1).out)
        self.assertNotEqual(again, self.stretto("predict", "m", "panel.csv", "--samples", 200, "--seed", 2).out)

    def test_a_model_without_paths_says_so(self):
        """As files of older programs: the tensor is renamed."""
        self.stretto("train", "panel.csv", *FEW, "-o", "m")
        with open(self.path("m"), "rb") as f:
            data = f.read()
        self.assertEqual(data.count(b'"paths"'), 1)
        with open(self.path("old"), "wb") as f:
            f.write(data.replace(b'"paths"', b'"pathz"').replace(b'"stretto.sum"', b'"stretto.sux"'))
        self.assertEqual(self.table("m", "panel.csv"), self.table("old", "panel.csv"))
        self.assertIn("--samples needs errors of whole windows", self.stretto("predict", "old", "panel.csv", "--samples", 5, status=2).err)


e2e.main()
