"""t_panel.py - one model of many series: what a forecast of a series depends on, and what it does not.

Series of unlike starts and ends, with a price known ahead, a size that does not change and a category, in long form.
"""
import csv
import datetime
import io
import math

import e2e
from e2e import Case

DAYS, HORIZON, SERIES = 150, 7, 9
TRAIN = ("--id", "shop", "--target", "y", "--known", "price", "--static", "size,kind", "--horizon", HORIZON, "--steps", 60, "--members",
         1, "--base", "season", "--no-guard", "--quiet")


def days(number):
    return str(datetime.date(2023, 1, 1) + datetime.timedelta(number))


def rows(shop, price=lambda day: 1.0, last=None):
    """Rows of a series up to its last target, and the horizon with prices only."""
    begin = 40 if shop % 4 == 1 else 0
    end = last or (DAYS - 5 if shop % 3 == 2 else DAYS)
    out = []
    for day in range(begin, end + HORIZON):
        p = 0.8 if (day * 7 + shop) % 5 == 0 else 1.0
        noise = math.sin(day * day * 0.7 + shop)
        y = (shop + 1) * 10 * (1 + 0.3 * math.sin(2 * math.pi * (day + shop) / 7)) * (1.5 if p < 1 else 1) * (1 + 0.03 * noise)
        if day >= end:
            p *= price(day)
        out.append((f"s{shop}", days(day), f"{y:.3f}" if day < end else "", f"{p:g}", str((shop + 1) * 10), "ab"[shop % 2]))
    return out


def text(series):
    return "shop,ds,y,price,size,kind\n" + "".join(",".join(r) + "\n" for r in series)


class Panel(Case):
    def setUp(self):
        super().setUp()
        self.all = [r for s in range(SERIES) for r in rows(s)]
        self.write("all.csv", text(self.all))

    def tensors(self, model):
        return e2e.model(self.path(model))[1]

    def forecasts(self, model, series):
        self.write("new.csv", text(series))
        table = {}
        for row in csv.DictReader(io.StringIO(self.stretto("predict", model, "new.csv").out)):
            table.setdefault(row["id"], []).append((row["time"], row["mean"]))
        return table

    def test_the_order_of_rows_does_not_matter(self):
        self.stretto("train", "all.csv", *TRAIN, "-o", "a.model")
        by_day = sorted(self.all, key=lambda r: (r[1], int(r[0][1:])))
        first = [next(r for r in self.all if r[0] == f"s{s}") for s in range(SERIES)]  # series are numbered by their first row
        self.write("mixed.csv", text(first + [r for r in by_day if r not in first]))
        self.stretto("train", "mixed.csv", *TRAIN, "-o", "b.model")
        self.assertEqual(self.tensors("a.model"), self.tensors("b.model"))

    def test_threads_and_ranks_give_the_same_bits(self):
        self.stretto("train", "all.csv", *TRAIN, "--threads", 1, "-o", "a.model")
        self.stretto("train", "all.csv", *TRAIN, "--threads", 3, "-o", "b.model")
        self.stretto("train", "all.csv", *TRAIN, "--ranks", 2, "-o", "c.model")
        self.assertEqual(self.tensors("a.model"), self.tensors("b.model"))
        self.assertEqual(self.tensors("a.model"), self.tensors("c.model"))

    def test_a_forecast_depends_on_its_own_series(self):
        self.stretto("train", "all.csv", *TRAIN, "-o", "a.model")
        whole = self.forecasts("a.model", self.all)
        self.assertEqual(len(whole), SERIES)
        self.assertEqual(whole["s2"][0][0], days(DAYS - 5))  # it begins after the last row of the series
        self.assertEqual(whole["s0"][0][0], days(DAYS))
        some = self.forecasts("a.model", rows(2) + rows(1))  # fewer series, in another order
        self.assertEqual(some, {"s1": whole["s1"], "s2": whole["s2"]})
        cheap = self.forecasts("a.model", [r for s in range(SERIES) for r in rows(s, price=lambda d: 0.5 if s == 3 else 1.0)])
        changed = {name for name in whole if whole[name] != cheap[name]}
        self.assertEqual(changed, {"s3"})

    def test_trees_depend_on_the_series_too(self):
        self.stretto("train", "all.csv", *TRAIN, "--base", "trees", "--no-correction", "-o", "t.model")
        whole = self.forecasts("t.model", self.all)
        some = self.forecasts("t.model", rows(2) + rows(1) + rows(20))
        self.assertEqual({name: some[name] for name in ("s1", "s2")}, {name: whole[name] for name in ("s1", "s2")})
        self.assertEqual(len(some["s20"]), HORIZON)
        cheap = self.forecasts("t.model", [r for s in range(SERIES) for r in rows(s, price=lambda d: 0.5 if s == 3 else 1.0)])
        self.assertEqual({name for name in whole if whole[name] != cheap[name]}, {"s3"})

    def test_a_loss_at_every_row_has_the_origin_of_each_series(self):
        self.stretto("train", "all.csv", *TRAIN, "--loss-steps", "all", "--context", 14, "-o", "s.model")
        whole = self.forecasts("s.model", self.all)
        self.assertEqual((whole["s2"][0][0], whole["s0"][0][0]), (days(DAYS - 5), days(DAYS)))
        self.assertEqual(self.forecasts("s.model", rows(2))["s2"], whole["s2"])

    def test_words_of_the_test_part_change_nothing(self):
        """The file is in order of series: words of the test rows of one come before those of the training rows of the next."""
        table = [r[:5] + ("ab"[int(r[1][-1]) % 2],) for r in self.all]
        later = [r[:5] + ("later",) if r[0] == "s0" and r[1] >= days(DAYS - HORIZON) else r for r in table]
        self.write("a.csv", text(table))
        self.write("b.csv", text(later))
        options = [*TRAIN[:TRAIN.index("--static")], *TRAIN[TRAIN.index("--static") + 2:], "--cat", "kind"]
        self.stretto("train", "a.csv", *options, "-o", "a.model")
        self.stretto("train", "b.csv", *options, "-o", "b.model")
        self.assertEqual(self.tensors("a.model"), self.tensors("b.model"))

    def test_static_columns_are_constant(self):
        self.write("moving.csv", text([r[:4] + (r[1][-1],) + r[5:] for r in self.all]))
        said = self.stretto("train", "moving.csv", *TRAIN, "-o", "m.model", status=3)
        self.assertIn("error[E214] moving.csv:3:5: column \"size\" given by --static changes in series \"s0\": 2 here, 1 in line 2", said.err)

    def test_a_pause_of_all_series_is_no_gap(self):
        apart = rows(0, last=60) + [("s1", days(i), str(i % 7 + 10), "1", "20", "b") for i in range(90, DAYS)]
        self.write("pause.csv", text([r for r in apart if r[2]]))
        self.stretto("check", "pause.csv", "--id", "shop", "--target", "y")

    def test_a_series_that_is_new_to_the_model(self):
        self.stretto("train", "all.csv", *TRAIN, "-o", "a.model")
        self.write("more.csv", text(self.all + rows(20)))
        said = self.stretto("predict", "a.model", "more.csv", "-o", "next.csv")
        self.assertIn("1 of 10 series are new to the model (\"s20\"): scaled by their own rows", said.err)
        with open(self.path("next.csv")) as f:
            new = [r for r in csv.DictReader(f) if r["id"] == "s20"]
        self.assertEqual(len(new), HORIZON)
        for r in new:
            low, mean, high = float(r["q0.1"]), float(r["mean"]), float(r["q0.9"])
            self.assertTrue(50 < mean < 500 and low <= mean <= high, r)

    def test_backtest_and_eval(self):
        self.stretto("train", "all.csv", *TRAIN, "-o", "a.model")
        longer = [r for s in range(SERIES) for r in rows(s, last=DAYS + 14)]
        self.write("longer.csv", text(longer))
        self.assertIn("eval 2023-05-24..2023-06-13", self.stretto("eval", "a.model", "longer.csv").out)
        self.assertIn("fold 2 of 2", self.stretto("backtest", "all.csv", *TRAIN[:-1], "--folds", 2, "--test", 14).out)

    def test_resume_has_the_bits_of_one_run(self):
        self.stretto("train", "all.csv", *TRAIN, "-o", "a.model")
        self.stretto("train", "all.csv", *TRAIN, "--time-limit", "0.001", "-o", "b.model", status=None)
        self.stretto("resume", "b.model.run", "--time-limit", 0, "--quiet")
        self.assertEqual(self.tensors("a.model"), self.tensors("b.model"))


    def test_resume_has_the_base_of_one_run(self):
        """Dates and trees are tried, and a base with trees is fitted again, where nobody said otherwise."""
        for base in ("ridge", "trees"):
            options = [*TRAIN, "--base", base]
            self.stretto("train", "all.csv", *options, "-o", "a.model")
            self.stretto("train", "all.csv", *options, "--time-limit", "0.001", "-o", "b.model", status=None)
            self.stretto("resume", "b.model.run", "--time-limit", 0, "--quiet")
            self.assertEqual(self.tensors("a.model"), self.tensors("b.model"), base)


class Short(Case):
    def test_training_rows_too_few_for_the_ridge_of_the_mix(self):
        """The mix of all rows has a ridge; bands are measured with a mix of the training rows, which are too few for one."""
        for seed in range(4):
            cells = "".join("a,%.4f\n" % (3 + math.sin((k + 1) * (k + 3) * (seed + 1.7))) for k in range(38))
            self.write("short.csv", "id,y\n" + cells)
            self.stretto("train", "short.csv", "--id", "id", "--target", "y", "--horizon", 1, "--test", 0, "--steps", 5, "--time-format", "row",
                         "-o", "short.model", "--quiet")
            self.assertIn("q0.9", self.stretto("predict", "short.model", "short.csv").out.splitlines()[0])


if __name__ == "__main__":
    e2e.main()
