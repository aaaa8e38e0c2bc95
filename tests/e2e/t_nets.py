"""t_nets.py - the kinds of networks a person can ask for: trained, shown by info, used again; what does not go together is refused."""
import csv
import io
import json

import e2e
from e2e import AIR, Case

QUICK = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "40", "--no-guard"]


class Nets(Case):
    def train(self, *flags, name="m.model"):
        """Trains on the airline data; returns the notes, and info as JSON."""
        r = self.stretto("train", AIR, *QUICK, *flags, "-o", name)
        return r, json.loads(self.stretto("info", name, "--json").out)

    def forecast(self, *flags, name="m.model"):
        return [float(row["mean"]) for row in csv.DictReader(io.StringIO(self.stretto("predict", name, AIR, *flags).out))]

    def layers(self, info):
        return [line.split(":")[0] for line in info["layers"]]

    def test_bidirectional(self):
        r, info = self.train("--bidirectional", "--layers", "2")
        self.assertIn("lstm.1.reverse", self.layers(info))
        self.assertIn("lstm.weight_ih_l1_reverse", e2e.model(self.path("m.model"))[1])
        self.assertIn("both ways", self.read("m.model.run/report.html").decode())
        for value in self.forecast():
            self.assertTrue(300 < value < 800, value)
        # whatever a preset says of the decoder, the flag decides
        r = self.stretto("train", AIR, *QUICK, "--preset", "long", "--bidirectional", "--print-config")
        self.assertRegex(r.out, r"(?m)^decoder: direct +# auto: --bidirectional is given$")

    def test_projection(self):
        _, info = self.train("--projection", "6", "--bidirectional")
        self.assertIn("lstm.0: projected, 36 steps, 1 -> 6", info["layers"])
        tensors = e2e.model(self.path("m.model"))[1]
        self.assertEqual(tensors["lstm.weight_hr_l0_reverse"][1], (6, 32))
        self.assertEqual(tensors["lstm.weight_hh_l0"][1], (128, 6))
        self.assertEqual(len(self.forecast()), 12)
        for flags, text in ((["--cell", "gru"], "--projection is of an lstm"), (["--hidden", "6"], "6 values out of --hidden 6"),
                            (["--precision", "bf16"], "no bf16 products"), (["--decoder", "parallel"], "the final state of a plain")):
            self.assertIn(text, self.stretto("train", AIR, *QUICK, "--projection", "6", *flags, "-o", "no.model", status=2).err)

    def test_autoregressive(self):
        flags = ["--decoder", "autoregressive", "--segment", "3"]
        _, info = self.train(*flags, "--teacher-forcing", "0.7")
        self.assertIn("decoder: unroll, 4 steps, 3 -> 3", info["layers"])
        tensors = e2e.model(self.path("m.model"))[1]
        self.assertEqual(tensors["decoder.weight_ih_l0"][1], (128, 3))
        self.assertEqual(tensors["decoder.head.weight"][1], (3, 32))
        self.assertIn("continues from its own output", self.read("m.model.run/report.html").decode())
        for value in self.forecast():
            self.assertTrue(300 < value < 800, value)
        # the share of true values is part of training, alike on any number of threads, and nothing else
        self.train(*flags, "--teacher-forcing", "0.7", "--threads", "1", name="one.model")
        self.same_model("m.model", "one.model")
        self.train(*flags, "--teacher-forcing", "0", name="free.model")
        self.assertNotEqual(tensors["decoder.head.weight"], e2e.model(self.path("free.model"))[1]["decoder.head.weight"])
        # quantiles, known columns, categories, several targets, a context of several segments
        self.write("mixed.csv", "t,a,b,k,word\n" + "".join(
            "2021-01-%02d %02d:00,%s,%g,%g,%s\n" % (1 + i // 24, i % 24, "" if i % 50 == 7 else 10 + i % 24, 5 - i % 12, i % 7, "uvw"[i % 3])
            for i in range(600)))
        r = self.stretto("train", "mixed.csv", "--target", "a,b", "--known", "k", "--gaps", "mask", "--horizon", "10", "--context", "33",
                         "--segment", "4", "--steps", "60", "--head", "quantile", "--layers", "2", "--base", "none", "--no-guard",
                         "--decoder", "autoregressive", "--calendar", "yes", "--validation", "80", "--test", "80", "-o", "x.model")
        layers = json.loads(self.stretto("info", "x.model", "--json").out)["layers"]
        self.assertIn("decoder: unroll, 3 steps, 14 -> 12", layers)  # 4 values, 4 known, 6 of the calendar | 3 quantiles of 4
        self.stretto("eval", "x.model", "mixed.csv")
        for flags, text in ((["--decoder", "direct", "--teacher-forcing", "0.3"], "the decoder autoregressive, this one is direct"),
                            (["--decoder", "autoregressive", "--norm"], "has its head inside the loop"),
                            (["--decoder", "autoregressive", "--bidirectional"], "the final state of a plain recurrent layer")):
            self.assertIn(text, self.stretto("train", AIR, *QUICK, *flags, "-o", "no.model", status=2).err)

    def test_precision(self):
        r, info = self.train()
        self.assertEqual(info["training"]["precision"], "fp32")
        r = self.stretto("train", AIR, *QUICK, "--precision", "bf16", "--verbose", "-o", "b.model", status=None)
        if r.status == 2:  # a processor without bf16 products says so, and how to go on
            self.assertRegex(r.err, r"(?m)^error\[E103\] --precision: .*bf16.*\n  fix: .*--precision fp32$")
            return
        self.assertIn(" in bf16, ", r.err)
        self.assertEqual(json.loads(self.stretto("info", "b.model", "--json").out)["training"]["precision"], "bf16")
        self.assertIn("recurrent products in bf16", self.read("b.model.run/report.html").decode())
        here = self.forecast(name="b.model")
        r = self.stretto("predict", "b.model", AIR, "--kernel", "base")
        self.assertIn("the model was trained in bf16", r.err)
        for a, b in zip(here, self.forecast("--kernel", "base", name="b.model")):
            self.assertAlmostEqual(a, b, delta=0.02 * b)
        r = self.stretto("resume", "b.model.run", "--precision", "fp32", status=2)
        self.assertIn("resume takes no --precision", r.err)


class Trees(Case):
    def setUp(self):
        super().setUp()
        rows = ["load,heat"]
        for i in range(900):
            heat = (i * 7919 % 100) / 50 - 1
            high = (heat > 0.2) == (i % 12 < 6)
            rows.append(f"{(3 if high else 1) + (i * 104729 % 97) / 970:.3f},{heat:.2f}")
        self.write("led.csv", "\n".join(rows) + "\n")

    def test_trees_come_into_the_base_and_stay_in_the_file(self):
        fit = ["led.csv", "--target", "load", "--known", "heat", "--horizon", "6", "--season", "12", "--members", "1", "--steps", "20"]
        for preset in "short", "day":
            r = self.stretto("train", *fit, "--preset", preset, "--calendar", "no", "-o", "m.model")
            self.assertRegex(r.err, r"boosted trees: validation loss .*: taken")
            self.assertRegex(r.err, r"(?m)^base .*trees\(6:")
            self.assertIn("boosted trees", self.read("m.model.run/report.html").decode())
            self.assertIn("base.trees", e2e.model(self.path("m.model"))[1])
            score = {row["name"].split(" ")[0]: row["MAE"] for row in json.loads(self.stretto("eval", "m.model", "led.csv", "--json").out)["rows"]}
            self.assertLess(score["model"], 0.6 * score["ridge"])
        # any number of threads
        self.stretto("train", *fit, "--preset", "day", "--calendar", "no", "--threads", "3", "-o", "three.model")
        self.same_model("m.model", "three.model")
        # a model with trees needs the column that it was trained with
        self.write("bare.csv", "load\n" + "".join(f"{i % 5}\n" for i in range(100)))
        self.assertIn("heat", self.stretto("predict", "m.model", "bare.csv", status=9).err)


if __name__ == "__main__":
    e2e.main()
