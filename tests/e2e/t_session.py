"""t_session.py - a whole session as a person would type it; each answer is read, not only its exit status."""
import csv
import io
import json
import os
import re
import xml.dom.minidom

import e2e
from e2e import AIR, Case


class Session(Case):
    def test_from_a_sample_to_a_forecast(self):
        self.stretto("sample", "airline", "-o", "air.csv")
        r = self.stretto("check", "air.csv", "--write-config", "air.yaml")
        self.assertIn("no problem found", r.out)
        self.assertIn("144 rows, 2 columns", r.out)
        # train with the config that check proposed
        r = self.stretto("train", "air.csv", "--config", "air.yaml", "-o", "air.model", "--plot", "air.svg", "--log", "course.csv")
        self.assertRegex(r.err, r"read air\.csv: 1 target of 1 column, 144 rows, monthly 1949-01\.\.1960-12, no gaps\n")
        self.assertIn("preset short (1 target column, 144 rows)", r.err)
        self.assertRegex(r.out, r"(?m)^  model +\d")
        self.assertRegex(r.out, r"(?m)^  naive +76\.0 ")   # a property of the file, not of the model
        self.assertRegex(r.out, r"(?m)^  snaive \(12\) +47\.8 ")
        self.assertLess(float(re.search(r"(?m)^  model +([\d.]+)", r.out).group(1)), 25)
        for name in ("air.model", "air.model.run/report.html", "air.model.run/config.json", "air.model.run/metrics.jsonl", "course.csv"):
            self.assertTrue(os.path.getsize(self.path(name)) > 0, name)
        xml.dom.minidom.parse(self.path("air.svg"))
        config = json.loads(self.read("air.model.run/config.json"))
        self.assertEqual((config["preset"], config["horizon"], config["members"]), ("short", 12, 5))
        for line in self.read("air.model.run/metrics.jsonl").splitlines():
            json.loads(line)
        # predict needs no column flags
        r = self.stretto("predict", "air.model", "air.csv", "-o", "next.csv")
        self.assertEqual(r.err, "12 forecasts for 1 series in next.csv\n")
        rows = list(csv.DictReader(io.StringIO(self.read("next.csv").decode())))
        self.assertEqual([x["time"] for x in rows], ["1961-%02d" % m for m in range(1, 13)])
        self.assertEqual([x["step"] for x in rows], [str(k) for k in range(1, 13)])
        for x in rows:
            self.assertEqual((x["id"], x["origin"]), ("Passengers", "1960-12"))
            self.assertTrue(300 < float(x["mean"]) < 800, x)
            self.assertTrue(float(x["q0.1"]) <= float(x["q0.5"]) <= float(x["q0.9"]), x)
        self.assertEqual(self.read("next.csv").decode(), self.stretto("predict", "air.model", "air.csv").out)
        wide = list(csv.DictReader(io.StringIO(self.stretto("predict", "air.model", "air.csv", "--wide-output").out)))
        self.assertEqual([x["Passengers"] for x in wide], [x["mean"] for x in rows])
        # eval, info
        r = self.stretto("eval", "air.model", "air.csv", "--json")
        table = json.loads(r.out)
        self.assertIn("model", json.dumps(table))
        info = json.loads(self.stretto("info", "air.model", "--json").out)
        self.assertEqual(info["horizon"], 12)
        self.assertIn("frequency: monthly", self.stretto("info", "air.model").out)

    def test_backtest(self):
        args = ["backtest", AIR, "--target", "Passengers", "--horizon", "12", "--folds", "2", "--members", "1", "--steps", "30"]
        never = self.stretto(*args)
        self.assertEqual(len(re.findall(r"(?m)^fold \d of 2: ", never.out)), 2)
        self.assertRegex(never.out, r"(?m)^mean over 2 folds: error [\d.]+, best naive forecast of each fold [\d.]+, skill [+-][\d.]+%$")
        each = json.loads(self.stretto(*args, "--refit", "each", "--json").out)
        self.assertEqual(len(each), 2)

    def test_plan(self):
        args = ["plan", AIR, "--target", "Passengers", "--horizon", "12", "--threads", "2"]
        self.assertRegex(self.stretto(*args).out, r"strategy data:2 on .*\npredicted [\d.]+ ms per step, [\d.]+ MiB held")
        self.assertTrue(self.stretto(*args, "--print").out.startswith("(plan data:2 train B "))
        self.assertRegex(self.stretto(*args, "--compare").out, r"(?m)^serial .* yes\n^data:2 .* yes$")
        self.assertIn("r0.cpu1 |", self.stretto(*args, "--draw", "text").out)
        xml.dom.minidom.parseString(self.stretto(*args, "--draw", "svg").out)
        json.loads(self.stretto(*args, "--json").out)
        # no data at all: shapes alone, for a machine that is not here
        r = self.stretto("plan", "--columns", "7", "--horizon", "96", "--machine", "host*2(cpu*4)", "--compare")
        self.assertIn("data:8", r.out)

    def test_plan_saved_and_trained(self):
        common = [AIR, "--target", "Passengers", "--horizon", "12", "--threads", "2", "--members", "1", "--steps", "40"]
        self.stretto("plan", *common[:7], "--save", "p.plan")
        self.stretto("train", *common, "--quiet", "-o", "auto.model")
        self.stretto("train", *common, "--quiet", "-o", "plan.model", "--plan", "p.plan")
        self.same_model("auto.model", "plan.model", "a saved plan")

    def test_plan_saved_of_what_only_training_has(self):
        """Layers of dropout and the states of the optimiser are tasks of the plan: whoever trains with them can plan with them."""
        more = ["--decoder", "direct", "--layers", "2", "--dropout", "0.3", "--optim", "rmsprop"]
        common = [AIR, "--target", "Passengers", "--horizon", "12", "--threads", "2", *more]
        self.stretto("plan", *common, "--save", "p.plan")
        train = ["train", *common, "--members", "1", "--steps", "20", "--quiet"]
        self.stretto(*train, "-o", "auto.model")
        self.stretto(*train, "-o", "plan.model", "--plan", "p.plan")
        self.same_model("auto.model", "plan.model", "a saved plan with dropout and rmsprop")

    def test_bench_is_short(self):
        r = self.stretto("bench", "--columns", "1", "--horizon", "4", "--context", "8", "--hidden", "16", "--repeat", "1", "--threads", "1")
        self.assertRegex(r.out, r"(?m)^ +16 +\d+  serial +- +[\d.]+ +[\d.]+ +\d+(  auto)?$")
        rows = json.loads(self.stretto("bench", "--horizon", "4", "--context", "8", "--hidden", "16", "--repeat", "1", "--json").out)
        self.assertTrue(all(x["step_ms"] > 0 for x in rows))

    def test_cache_gives_the_same_model(self):
        self.stretto("cache", AIR, "-o", "air.bin", "--quiet")
        for data, name in ((AIR, "a.model"), ("air.bin", "b.model")):
            self.stretto("train", data, "--target", "Passengers", "--horizon", "6", "--members", "1", "--steps", "20", "-o", name, "--quiet")
        self.same_model("a.model", "b.model", "cache")

    def test_words(self):
        self.assertIn("forecast", self.stretto("help").out)
        self.assertIn("--horizon", self.stretto("train", status=2).out)
        self.assertIn("exit status 3", self.stretto("explain", "E204").out)
        self.assertRegex(self.stretto("--version").out, r"^stretto \d+\.\d+\.\d+\n$")
        json.loads(self.stretto("version", "--json").out)
        probe = self.stretto("info", "--probe").out
        self.write("machine.txt", probe)
        self.assertIn("serial", self.stretto("plan", "--columns", "1", "--horizon", "4", "--machine", "machine.txt", "--compare").out)

    def test_every_sample_can_be_trained(self):
        targets = {"tides": "height", "mackey-glass": None, "integrator": None, "long-memory": None}
        for name, target in targets.items():
            self.stretto("sample", name, "--rows", "400", "--seed", "3", "-o", name + ".csv")
            if target is None:
                target = self.read(name + ".csv").decode().split("\n")[0].split(",")[-1]
            r = self.stretto("train", name + ".csv", "--target", target, "--horizon", "8", "--members", "1", "--steps", "20", "-o", name + ".model")
            self.assertRegex(r.out, r"(?m)^  model ", name)

    def test_resume_from_another_folder(self):
        os.mkdir(self.path("a"))
        self.stretto("train", AIR, "--target", "Passengers", "--horizon", "6", "--members", "1", "--steps", "20", "-o", "a/m.model", "--quiet")
        run = json.loads(self.read("a/m.model.run/run.json"))
        self.assertTrue(os.path.isabs(run["model"]) and os.path.isabs(run["data"]), run)

    def test_print_config_loads_again(self):
        text = self.stretto("train", AIR, "--target", "Passengers", "--horizon", "12", "--hidden", "40", "--print-config").out
        self.assertRegex(text, r"(?m)^hidden: 40 +# flag")
        self.write("c.yaml", text)
        again = self.stretto("train", AIR, "--config", "c.yaml", "--print-config").out
        strip = lambda t: sorted(line.split(" #")[0].rstrip() for line in t.splitlines())
        self.assertEqual(strip(text), strip(again))


if __name__ == "__main__":
    e2e.main()
