"""t_classify.py - classes, numbers and labels of steps of sequences: accuracy with the defaults, the same model however it is
trained, the same predictions however the file comes."""
import csv
import gzip
import io
import os
import unittest

import e2e
from e2e import Case

MOTIONS = os.path.join(e2e.SHARED, "data", "seq_classification", "BasicMotions_%s.ts")


def numbers(seed):
    """Endless fractions, the same on every machine."""
    x = seed
    while True:
        x = (x * 1103515245 + 12345) % 2147483648
        yield x // 65536 % 1000 / 1000


def sequences(count, seed, label):
    """Two channels, 10 to 19 steps: a pulse up and one down.  label(first is up, distance, step, begin, end)."""
    n, lines = numbers(seed), ["id,t,a,b,y"]
    for k in range(count):
        steps, begin = 10 + int(10 * next(n)), 1 + int(4 * next(n))
        end, up = begin + 1 + int(4 * next(n)), k % 2
        for t in range(steps):
            pulse = (1 if up else -1) if t == begin else (-1 if up else 1) if t == end else 0
            lines.append("s%d,%d,%.3f,%.3f,%s" % (k, t, 2 * pulse + 0.2 * next(n), next(n), label(up, end - begin, t, begin, end)))
    return "\n".join(lines) + "\n"


def whole(up, distance, t, begin, end):
    return "up" if up else "down"


def of_steps(up, distance, t, begin, end):
    return "none" if t < begin else "up" if bool(up) == (t < end) else "down"


def number(up, distance, t, begin, end):
    return distance


TABLE = ("--id", "id", "--time", "t", "--target", "y", "--quiet")


class Classify(Case):
    def accuracy(self, text, name="model"):
        row = next(line for line in text.splitlines() if line.startswith("  " + name))
        return float(row[len(name) + 2:].split()[0])

    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(self.stretto("predict", *args).out)))

    @unittest.skipUnless(os.path.exists(MOTIONS % "TRAIN"), "the shared data lack seq_classification")
    def test_motions_with_the_defaults(self):
        got = []
        for seed in range(1, 6):
            self.stretto("train", MOTIONS % "TRAIN", "--task", "classify", "--seed", seed, "-o", "m.model", "--quiet")
            got.append(self.accuracy(self.stretto("eval", "m.model", MOTIONS % "TEST").out))
        print("BasicMotions, seeds 1 to 5:", got)
        self.assertGreaterEqual(sum(got) / len(got), 0.9, got)

    @unittest.skipUnless(os.path.exists(MOTIONS % "TRAIN"), "the shared data lack seq_classification")
    def test_ts_compressed_and_as_a_table(self):
        """The same sequences as .ts, as .ts.gz and as a table with the columns of the reader give the same bits."""
        with open(MOTIONS % "TRAIN", "rb") as f:
            text = f.read()
        with gzip.open(self.path("m.ts.gz"), "wb") as f:
            f.write(text)
        lines = text.decode().split("@data")[1].strip().splitlines()
        table = ["sequence," + ",".join("channel%d" % (c + 1) for c in range(6)) + ",class"]
        for k, line in enumerate(lines):
            *channels, label = line.strip().split(":")
            for step in zip(*(c.split(",") for c in channels)):
                table.append("%d,%s,%s" % (k + 1, ",".join(step), label))
        self.write("m.csv", "\n".join(table) + "\n")
        options = ("--task", "classify", "--test", 0, "--epochs", 3, "--quiet")
        self.stretto("train", MOTIONS % "TRAIN", *options, "-o", "a.model")
        self.stretto("train", "m.ts.gz", *options, "-o", "b.model")
        self.stretto("train", "m.csv", "--id", "sequence", "--target", "class", *options, "-o", "c.model")
        for other in ("b.model", "c.model"):
            self.assertEqual(e2e.model(self.path("a.model"))[1], e2e.model(self.path(other))[1], other)
        self.assertEqual(self.rows("a.model", "m.ts.gz"), self.rows("a.model", MOTIONS % "TRAIN"))

    def test_classes_of_sequences(self):
        self.write("train.csv", sequences(120, 1, whole))
        self.write("new.csv", sequences(60, 2, whole))
        self.stretto("train", "train.csv", "--task", "classify", *TABLE, "-o", "m.model")
        text = self.stretto("eval", "m.model", "new.csv").out
        self.assertGreater(self.accuracy(text), 0.9, text)
        self.assertGreater(self.accuracy(text), self.accuracy(text, "ridge of mean, sd, slope"), text)
        rows = self.rows("m.model", "new.csv")
        self.assertEqual([r["id"] for r in rows], ["s%d" % k for k in range(60)])
        for r in rows:
            p = {k[2:]: float(v) for k, v in r.items() if k.startswith("p_")}
            self.assertAlmostEqual(sum(p.values()), 1, 4)
            self.assertEqual(r["class"], max(p, key=p.get))

    def test_classes_of_steps(self):
        self.write("train.csv", sequences(80, 1, of_steps))
        self.write("new.csv", sequences(30, 2, of_steps))
        self.stretto("train", "train.csv", "--task", "classify", *TABLE, "--no-bidirectional", "-o", "m.model")
        text = self.stretto("eval", "m.model", "new.csv").out
        self.assertGreater(self.accuracy(text), 0.95, text)
        rows = self.rows("m.model", "new.csv")
        with open(self.path("new.csv"), encoding="utf-8") as f:
            want = list(csv.DictReader(f))
        self.assertEqual([(r["id"], int(r["step"])) for r in rows], [(r["id"], int(r["t"]) + 1) for r in want])

    def test_numbers_of_sequences(self):
        self.write("train.csv", sequences(160, 1, number))
        self.write("new.csv", sequences(60, 2, number))
        for loss in ("mse", "mae"):
            self.stretto("train", "train.csv", "--task", "regress", "--loss", loss, *TABLE, "-o", "m.model")
            text = self.stretto("eval", "m.model", "new.csv").out
            self.assertLess(self.accuracy(text), 0.5 * self.accuracy(text, "median"), text)

    def test_rows_in_any_order(self):
        """--time orders the steps; sequences are numbered by their first row."""
        text = sequences(40, 1, whole)
        head, *lines = text.strip().split("\n")
        self.write("a.csv", text)
        self.write("b.csv", "\n".join([head] + lines[::40] + [x for i, x in enumerate(lines) if i % 40]) + "\n")
        options = ("--task", "classify", *TABLE, "--epochs", 2, "--test", 0, "--validation", 0)
        self.stretto("train", "a.csv", *options, "-o", "a.model")
        by_id = {r["id"]: r for r in self.rows("a.model", "a.csv")}
        self.assertEqual(by_id, {r["id"]: r for r in self.rows("a.model", "b.csv")})

    def test_check_finds_what_training_refuses(self):
        head, *lines = sequences(40, 1, whole).strip().split("\n")
        fields = [x.split(",") for x in lines]
        label, value = head.split(",").index("y"), head.split(",").index("a")

        def made(name, change):
            rows = [list(f) for f in fields]
            change(rows)
            return self.write(name, "\n".join([head] + [",".join(r) for r in rows]) + "\n")

        def one_class(rows):
            for r in rows:
                r[label] = "a"

        def no_label(rows):
            for r in rows:
                r[label] = "" if r[0] == rows[0][0] else r[label]

        def huge(rows):
            rows[7][value] = "9e299"

        for name, change, code in (("one.csv", one_class, "E212"), ("none.csv", no_label, "E207"), ("huge.csv", huge, "E208")):
            made(name, change)
            found = self.stretto("check", name, "--task", "classify", *TABLE, status=3)
            refused = self.stretto("train", name, "--task", "classify", *TABLE, "-o", "m.model", status=3)
            self.assertIn("error[%s]" % code, found.out + found.err)
            self.assertIn("error[%s]" % code, refused.err)

    def test_stopped_by_the_time_limit_and_resumed(self):
        data = self.write("t.csv", sequences(200, 1, whole))
        options = ("--task", "classify", *TABLE, "--members", 3, "--epochs", 30, "--hidden", 32)
        self.stretto("train", data, *options, "-o", "whole.model")
        first = self.stretto("train", data, *options, "--time-limit", "0.3", "-o", "cut.model", status=None)
        self.assertIn(first.status, (0, 76))
        if first.status == 76:
            self.assertTrue(self.rows("cut.model", data))
            self.stretto("resume", "cut.model.run", "--time-limit", 0, "--quiet")
        self.same_model("whole.model", "cut.model")


if __name__ == "__main__":
    e2e.main()
