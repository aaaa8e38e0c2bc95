"""t_series.py - a panel as its series: scores of each and of groups of them, forecasts series by series.

Series of two shops and three items, whose noise grows with the item.
"""
import csv
import datetime
import io
import json
import math
import os
import random

import e2e
from e2e import Case

TRAIN = ("--id", "shop,item", "--target", "y", "--static", "region,size", "--horizon", 7, "--members", 1, "--steps", 10, "--quiet")
SHOPS, ITEMS, DAYS = 4, 3, 90


def panel():
    draw = random.Random(7)
    lines = ["shop,item,ds,y,region,size"]
    for shop in range(SHOPS):
        for item in range(ITEMS):
            for day in range(DAYS):
                y = 10 * (shop + 1) * (1 + 0.3 * math.sin(2 * math.pi * day / 7)) + draw.gauss(0, 1 + item)
                lines.append(f"s{shop},i{item},{datetime.date(2024, 1, 1) + datetime.timedelta(day)},{y:.2f},"
                             f"{'ab'[shop % 2]},{10 * (shop // 2)}")
    return "\n".join(lines) + "\n"


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def read(path):
    with open(path, encoding="utf-8") as f:
        return table(f.read())


class Scores(Case):
    def setUp(self):
        super().setUp()
        self.write("p.csv", panel())

    def train(self, *more):
        return self.stretto("train", "p.csv", *TRAIN, "-o", "p.model", *more)

    def test_each_series_has_a_line_that_agrees_with_the_whole(self):
        self.train("--scores", "s.csv")
        whole = json.loads(self.stretto("eval", "p.model", "p.csv", "--json", "--scores", "e.csv").out)
        lines = read(self.path("s.csv"))
        self.assertEqual(lines, read(self.path("e.csv")))
        self.assertEqual([row["series"] for row in lines], [f"s{s}/i{i}" for s in range(SHOPS) for i in range(ITEMS)])
        self.assertEqual([row["name"] for row in whole["series"]], [row["series"] for row in lines])
        n = sum(int(row["n"]) for row in lines)
        for metric in ("MAE", "MASE", "coverage"):
            mean = sum(float(row[metric]) * int(row["n"]) for row in lines) / n
            want = whole["band"]["coverage"] if metric == "coverage" else whole["rows"][0][metric]
            self.assertAlmostEqual(mean, want, places=9)
        for row in lines:
            self.assertAlmostEqual(1 - float(row["MAE"]) / float(row["naive_MAE"]), float(row["skill"]), places=9)

    def test_scores_of_a_series_are_those_of_its_forecasts(self):
        """Against the forecasts of the rows before the test part, scored here."""
        self.train("--scores", "s.csv", "--test", 7)
        rows = table(panel())
        last = sorted({row["ds"] for row in rows})[-7:]
        self.write("past.csv", "".join(line + "\n" for line in panel().splitlines() if line.split(",")[2] not in last))
        truth = {(f"{row['shop']}/{row['item']}", row["ds"]): float(row["y"]) for row in rows}
        error, inside = {}, {}
        for row in table(self.stretto("predict", "p.model", "past.csv").out):
            y = truth[row["id"], row["time"]]
            error.setdefault(row["id"], []).append(abs(y - float(row["mean"])))
            inside.setdefault(row["id"], []).append(float(row["q0.1"]) <= y <= float(row["q0.9"]))
        for row in read(self.path("s.csv")):
            self.assertEqual(row["n"], "7")
            self.assertAlmostEqual(float(row["MAE"]), sum(error[row["series"]]) / 7, delta=1e-4 * float(row["MAE"]) + 1e-5)
            self.assertAlmostEqual(float(row["coverage"]), sum(inside[row["series"]]) / 7)

    def test_groups_sum_their_series(self):
        self.train("--scores", "s.csv")
        series = read(self.path("s.csv"))
        group_of = {"item": lambda s, i: i, "region": lambda s, i: "ab"[int(s[1]) % 2], "size": lambda s, i: str(int(s[1]) // 2 * 10),
                    "shop,region": lambda s, i: s + "/" + "ab"[int(s[1]) % 2]}
        for by, name in group_of.items():
            self.stretto("eval", "p.model", "p.csv", "--by", by, "--scores", "g.csv")
            groups = read(self.path("g.csv"))
            want = {}
            for row in series:
                want.setdefault(name(*row["series"].split("/")), []).append(row)
            self.assertEqual([row[by.replace(",", "/")] for row in groups], list(want))
            for row, members in zip(groups, want.values()):
                n = sum(int(m["n"]) for m in members)
                self.assertEqual(int(row["n"]), n)
                for metric in ("MAE", "coverage"):
                    mean = sum(float(m[metric]) * int(m["n"]) for m in members) / n
                    self.assertAlmostEqual(float(row[metric]), mean, places=9)

    def test_the_console_shows_the_worst_the_median_and_the_best(self):
        out = self.train().out
        shown = [line.split()[:2] for line in out.splitlines() if line.startswith(("  worst", "  median", "  best"))]
        self.assertEqual([rank for rank, _ in shown], ["worst"] * 3 + ["median", "best"])
        self.assertIn("12 series", out)
        with open(self.path("p.model.run/report.html"), encoding="utf-8") as f:
            page = f.read()
        for rank, name in shown:
            self.assertIn(f"{rank} {name}", page)

    def test_a_backtest_sums_its_folds(self):
        out = self.stretto("backtest", "p.csv", *TRAIN, "--folds", 2, "--scores", "b.csv", "--by", "item").out
        self.assertIn("3 groups by item", out)
        folds = json.loads(self.stretto("backtest", "p.csv", *TRAIN, "--folds", 2, "--json", "--by", "item").out)
        for k, row in enumerate(read(self.path("b.csv"))):
            parts = [fold["groups"][k] for fold in folds]
            self.assertEqual(int(row["n"]), sum(p["n"] for p in parts))
            self.assertAlmostEqual(float(row["MAE"]), sum(p["MAE"] * p["n"] for p in parts) / int(row["n"]), places=9)

    def test_columns_of_a_table_are_series(self):
        self.write("wide.csv", "a,b\n" + "".join(f"{math.sin(k):.4f},{math.cos(k) * 5:.4f}\n" for k in range(200)))
        self.stretto("train", "wide.csv", "--target", "a,b", "--horizon", 4, "--steps", 5, "--quiet", "-o", "w.model", "--scores", "w.csv")
        self.assertEqual([row["series"] for row in read(self.path("w.csv"))], ["a", "b"])
        self.refused("E106", "train", "wide.csv", "--target", "a,b", "--horizon", 4, "--by", "a", "-o", "x.model")

    def test_by_names_columns_that_describe_series(self):
        self.write("promo.csv", "".join(line + ("," + ("promo" if k == 0 else "xy"[k % 2])) + "\n"
                                        for k, line in enumerate(panel().splitlines())))
        self.refused("E102", "train", "p.csv", *TRAIN, "--by", "y", "-o", "x.model")
        self.refused("E214", "train", "promo.csv", *TRAIN, "--cat", "promo", "--by", "promo", "-o", "x.model")

    def refused(self, code, *words):
        self.assertIn(code, self.stretto(*words, status=None).err)


class Predict(Case):
    """Forecasts go to the file series after series: the table of them is never whole in memory."""
    HORIZON, MANY = 400, 4000

    def rows(self, series, days):
        first = datetime.date(2023, 1, 1)
        return [f"s{s},{first + datetime.timedelta(d)},{10 + s % 9 + d % 7 * 3}" for s in range(series) for d in range(days)]

    def setUp(self):
        super().setUp()
        self.write("few.csv", "\n".join(["id,ds,y"] + self.rows(12, self.HORIZON * 3)) + "\n")
        self.write("many.csv", "\n".join(["id,ds,y"] + self.rows(self.MANY, 30)) + "\n")
        self.stretto("train", "few.csv", "--id", "id", "--target", "y", "--horizon", self.HORIZON, "--context", 14, "--base", "season",
                     "--no-correction", "--test", 0, "--quiet", "-o", "h.model")

    def peak(self, *words):
        child = os.posix_spawn(e2e.PROGRAM, [e2e.PROGRAM, *words], {**self.environment(), "LC_ALL": "C"}, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, 1, 2)])
        _, status, usage = os.wait4(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        return usage.ru_maxrss * 1024

    def test_memory_is_smaller_than_the_table_of_forecasts(self):
        out = self.path("long.csv")
        peak = self.peak("predict", self.path("h.model"), self.path("many.csv"), "-o", out)
        size = os.path.getsize(out)
        self.assertGreater(size, 20 << 20)
        self.assertLess(peak, size)
        with open(out, encoding="utf-8") as f:
            ids = [line.split(",", 1)[0] for line in f][1:]
        self.assertEqual(ids, [f"s{s}" for s in range(self.MANY) for _ in range(self.HORIZON)])

    def test_the_file_holds_what_the_console_shows(self):
        shown = self.stretto("predict", "h.model", "few.csv").out
        self.stretto("predict", "h.model", "few.csv", "-o", "f.csv")
        with open(self.path("f.csv"), encoding="utf-8") as f:
            self.assertEqual(f.read(), shown)

    def test_a_prediction_that_fails_keeps_the_old_file(self):
        self.write("f.csv", "old\n")
        self.write("empty.csv", "id,ds,y\n" + "s0,2023-01-01,\ns0,2023-01-02,\n")
        self.assertNotEqual(self.stretto("predict", "h.model", "empty.csv", "-o", "f.csv", status=None).status, 0)
        with open(self.path("f.csv"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "old\n")
        self.assertEqual([n for n in os.listdir(self.dir) if n.endswith(".tmp")], [])


class Resample(Case):
    """--resample gives the model of the file whose rows were merged beforehand."""
    FEW = ("--target", "y", "--horizon", 4, "--steps", 5, "--members", 1, "--test", 12, "--quiet")

    def same(self, raw, merged, *words, given=()):
        """Trains on raw records with --resample and on merged rows without; forecasts are the same, of both from their own file."""
        self.write("raw.csv", raw)
        self.write("merged.csv", merged)
        self.stretto("train", "raw.csv", *self.FEW, *words, *given, "-o", "raw.model")
        self.stretto("train", "merged.csv", *self.FEW, *given, "-o", "merged.model")
        want = self.stretto("predict", "merged.model", "merged.csv").out
        self.assertEqual(self.stretto("predict", "raw.model", "raw.csv").out, want)
        return table(want)

    def events(self, hours, most=4):
        """Records at irregular times: per hour a list of (second, value)."""
        draw = random.Random(11)
        return [sorted((draw.randrange(3600), draw.randrange(1, 20) + 5 * (h % 6)) for _ in range(draw.randrange(1, most)))
                for h in range(hours)]

    def test_events_become_rows_by_each_rule(self):
        hours = self.events(150)
        start = datetime.datetime(2024, 1, 1)
        raw = "t,y\n" + "".join(f"{start + datetime.timedelta(hours=h, seconds=s)},{y}\n" for h, of in enumerate(hours) for s, y in of)
        for rule, merge in ("sum", sum), ("mean", lambda v: sum(v) / len(v)), ("last", lambda v: v[-1]):
            rows = "t,y\n" + "".join(f"{start + datetime.timedelta(hours=h)},{merge([y for _, y in of])!r}\n" for h, of in enumerate(hours))
            self.same(raw, rows, "--resample", "1h:" + rule)

    def test_hourly_and_daily_series_of_a_panel_become_daily(self):
        first = datetime.datetime(2024, 1, 3)
        raw, merged = ["id,t,y"], ["id,t,y"]
        for day in range(90):
            hourly = [10 + day % 7 + h for h in range(24)]
            raw += [f"a,{first + datetime.timedelta(days=day, hours=h)},{y}" for h, y in enumerate(hourly)]
            raw.append(f"b,{first + datetime.timedelta(days=day)},{5 + day % 7 * 2}")
            merged.append(f"a,{first + datetime.timedelta(days=day)},{sum(hourly) / 24!r}")
            merged.append(f"b,{first + datetime.timedelta(days=day)},{5 + day % 7 * 2}")
        self.write("mixed.csv", "\n".join(raw) + "\n")
        refused = self.stretto("train", "mixed.csv", "--id", "id", *self.FEW, "-o", "x.model", status=None).err
        self.assertIn("E210", refused)
        self.assertIn("--resample 1d:mean", refused)
        rows = self.same("\n".join(raw) + "\n", "\n".join(merged) + "\n", "--resample", "1d", given=("--id", "id"))
        self.assertEqual({row["time"] for row in rows if row["step"] == "1"}, {str((first + datetime.timedelta(days=90)).date())})

    def test_days_become_weeks_from_monday_and_months(self):
        first = datetime.date(2019, 1, 1)
        days = [(first + datetime.timedelta(d), 20 + d % 7 + d // 30 % 12) for d in range(365 * 5 + 1)]
        raw = "t,y\n" + "".join(f"{day},{y}\n" for day, y in days)
        for step, begin in ("1w", lambda d: d - datetime.timedelta(d.weekday())), ("1month", lambda d: d.replace(day=1)), \
                ("3month", lambda d: d.replace(day=1, month=(d.month - 1) // 3 * 3 + 1)):
            total = {}
            for day, y in days:
                total[begin(day)] = total.get(begin(day), 0) + y
            self.same(raw, "t,y\n" + "".join(f"{t},{y}\n" for t, y in total.items()), "--resample", step + ":sum")

    def test_wrong_values_are_refused(self):
        self.write("d.csv", "t,y\n" + "".join(f"2024-01-{d:02d},{d}\n" for d in range(1, 31)))
        self.write("n.csv", "y,z\n1,2\n2,3\n3,4\n")
        for code, words in ("E103", ("d.csv", "--resample", "1lightyear")), ("E103", ("d.csv", "--resample", "1d:most")), \
                ("E106", ("d.csv", "--resample", "7d", "--freq", "1d")), ("E106", ("n.csv", "--resample", "7d")):
            said = self.stretto("train", *words, "--target", "y", "-o", "x.model", status=None).err
            self.assertIn(code, said)
            self.assertIn("--resample", said)


class TimeDelta(Case):
    """--time-delta gives the model of the file that has the interval as a column of its own."""
    FEW = ("--target", "y", "--horizon", 4, "--steps", 30, "--members", 1, "--base", "none", "--no-guard", "--test", 60, "--quiet")

    def records(self, n=500):
        """A value that returns to 2 as time goes by: how far depends on the interval. [(time, interval, value)]"""
        draw = random.Random(5)
        time, y, out = datetime.datetime(2024, 1, 1), 0.0, []
        for _ in range(n):
            gap = draw.randrange(60, 9000)
            time += datetime.timedelta(seconds=gap)
            y = 2 + (y - 2) * math.exp(-gap / 3600) + draw.gauss(0, 0.3)
            out.append((time, gap, round(y, 3)))
        return out

    def same(self, records, role, future=0):
        """Trains on times with --time-delta, and on row numbers with the logarithm of the interval as a column."""
        gaps = [gap for _, gap, _ in records]
        gaps[0] = gaps[1]
        values = [f"{y}" for _, _, y in records]
        values[len(values) - future:] = [""] * future
        self.write("times.csv", "t,y\n" + "".join(f"{t},{y}\n" for (t, _, _), y in zip(records, values)))
        self.write("rows.csv", "time_delta,y\n" + "".join(f"{math.log(gap)!r},{y}\n" for gap, y in zip(gaps, values)))
        self.stretto("train", "times.csv", *self.FEW, "--time-delta", *(("--known", "time_delta") if role == "--known" else ()),
                     "-o", "times.model")
        self.stretto("train", "rows.csv", *self.FEW, role, "time_delta", "-o", "rows.model")
        want = self.stretto("predict", "rows.model", "rows.csv").out
        self.assertEqual(self.stretto("predict", "times.model", "times.csv").out, want)
        return table(want)

    def test_the_interval_is_an_input_known_in_the_past(self):
        rows = self.same(self.records(), "--past")
        self.assertEqual([row["time"] for row in rows if row["step"] == "1"], ["row 500"])

    def test_with_known_times_ahead_the_forecast_follows_them(self):
        records = self.records()
        rows = self.same(records, "--known", future=4)
        other = [(t + datetime.timedelta(hours=200) if i >= 497 else t, gap + (720000 if i == 497 else 0), y)
                 for i, (t, gap, y) in enumerate(records)]
        self.write("later.csv", "t,y\n" + "".join(f"{t},{y if i < 496 else ''}\n" for i, (t, _, y) in enumerate(other)))
        later = table(self.stretto("predict", "times.model", "later.csv").out)
        self.assertNotEqual([row["mean"] for row in later], [row["mean"] for row in rows])

    def test_records_of_one_time_are_merged_first(self):
        records = self.records(300)
        twice = "t,y\n" + "".join(f"{t},{y - 1}\n{t},{y + 1}\n" for t, _, y in records)
        self.write("twice.csv", twice)
        self.same(records, "--past")
        want = self.stretto("predict", "times.model", "times.csv").out
        self.assertEqual(self.stretto("predict", "times.model", "twice.csv", "--dups", "mean").out, want)

    def test_what_has_no_intervals_is_refused(self):
        self.write("d.csv", "t,y\n" + "".join(f"2024-01-{d:02d},{d % 5}\n" for d in range(1, 31)))
        self.write("n.csv", "y,z\n" + "1,2\n2,3\n3,4\n" * 20)
        self.write("own.csv", "t,y,time_delta\n" + "".join(f"2024-01-{d:02d},{d % 5},1\n" for d in range(1, 31)))
        self.write("p.csv", panel())
        for words in ("d.csv", "--freq", "1d"), ("d.csv", "--resample", "7d"), ("n.csv",), ("own.csv",), ("p.csv", "--id", "shop,item"):
            said = self.stretto("train", *words, "--target", "y", "--time-delta", "-o", "x.model", status=None).err
            self.assertIn("E106", said, words)
            self.assertIn("--time-delta", said)

    def test_check_offers_it_where_times_are_irregular(self):
        self.write("t.csv", "t,y\n" + "".join(f"{t},{y}\n" for t, _, y in self.records(100)))
        self.assertIn("--time-delta", self.stretto("check", "t.csv", status=None).out)


if __name__ == "__main__":
    e2e.main()
