"""t_offload.py - learners whose kernel runs on OpenCL devices (learn/offload.h): the model equals that of --device cpu in every bit, for
any devices, and for devices that fail at a random moment.

PoCL stands in for GPUs, as in t_devices.py, which this file takes its devices and failures from.
"""
import json
import os
import random

import e2e
import t_devices
from e2e import times

SETS = ("opencl:0", "opencl:0*2", "cpu,opencl:0")
TWO = ("opencl:0,opencl:1", "opencl:1*3,cpu,opencl:0", "all")


class Offload(t_devices.Devices):
    """What all learners share: `data` and `options` of a training."""
    def sets(self):
        return SETS + (TWO if self.devices >= 2 else ())

    def fit(self, name, data, options, device, *more):
        return self.stretto("train", data, *options, "--threads", "2", "--quiet", "--device", device, "-o", name + ".model", *more)

    def same_fit(self, a, b, what):
        """Equal in every tensor and every fact but times and what was not computed."""
        (ha, ta), (hb, tb) = e2e.model(self.path(a)), e2e.model(self.path(b))
        self.assertEqual(ta, tb, what)
        facts = [json.loads(h["stretto." + self.TASK]) for h in (ha, hb)]
        for f in facts:
            for key in [k for k in f if k.endswith("seconds") or k == "distances_saved"]:
                del f[key]
        self.assertEqual(facts[0], facts[1], what)

    def same_on_all(self, data, options, sets=None):
        self.fit("cpu", data, options, "cpu")
        for device in sets or self.sets():
            r = self.fit("m", data, options, device)
            self.same_fit("cpu.model", "m.model", "%s on %s" % (" ".join(map(str, options)), device))
            self.assertEqual(r.err, "", device)

    def count(self, data, options, device, fault="none"):
        """How often each kind of call happens in an undisturbed training."""
        self.more = {"STRETTO_OPENCL": t_devices.FAULTY, "FAULTY_OPENCL": fault, "FAULTY_COUNT": self.path("count")}
        self.fit("m", data, options, device)
        self.more = {}
        n = {k: int(v) for k, v in (word.split("=") for word in self.read("count").decode().split())}
        os.unlink(self.path("count"))
        return n

    def fails(self, fault, data, options, device):
        """A training whose device fails: the model of the cores and one warning, or E831 where it never worked."""
        what = "FAULTY_OPENCL=%s --device %s %s" % (fault, device, " ".join(map(str, options)))
        self.more = {"STRETTO_OPENCL": t_devices.FAULTY, "FAULTY_OPENCL": fault, "STRETTO_DEADLINE": "2" if "hang" in fault else "60"}
        if os.path.exists(self.path("m.model")):
            os.unlink(self.path("m.model"))
        r = self.stretto("train", data, *options, "--threads", "2", "--quiet", "--device", device, "-o", "m.model", status=None)
        self.more = {}
        warned = [line for line in r.err.splitlines() if line.startswith("warning: device opencl:")]
        if r.status != 0:
            self.assertRegex(r.err, r"(?m)\A(warning: .*\n)*error\[E83[01]\] \S", what)
            self.assertEqual(r.err.count("error["), 1, what + r.err)
            self.assertFalse(os.path.exists(self.path("m.model")), what)
            return "not begun"
        self.assertLessEqual(len(warned), 1, what + r.err)
        if warned:
            self.assertRegex(warned[0], r" failed: .+; its rows go to (the other devices|the cores of the host)$", what)
        self.same_fit("cpu.model", "m.model", what)
        return "went on" if warned else "trained"

    def resumed_elsewhere(self, data, options, limit):
        """A training that a time limit ends on a device, and that goes on with the cores beside it: the model of the cores."""
        self.fit("cpu", data, options, "cpu")
        args = ["train", data, *options, "--checkpoint-every", "0.01s", "--time-limit", limit, "--device", "opencl:0", "--quiet"]
        r = self.stretto(*args, "-o", "m.model", status=76)
        self.stretto("resume", "m.model.run", "--quiet", "--time-limit", "60s", "--device", "cpu,opencl:0")
        self.same_fit("cpu.model", "m.model", "resumed; " + r.err)

    def draw_failures(self, data, options, draws=2):
        """Half of the way through its calls a device is at work; at random moments it may be opened, or idle, too."""
        if not os.path.exists(t_devices.FAULTY):
            self.skipTest("%s was not built (no OpenCL headers)" % t_devices.FAULTY)
        self.fit("cpu", data, options, "cpu")
        tally = {}
        devices = [("opencl:0", ""), ("cpu,opencl:0", "")]
        if self.devices >= 2:
            devices += [("opencl:0,opencl:1", ",device=0"), ("opencl:0,opencl:1", ",device=1")]
        for device, which in devices if draws > 1 or times(0, 1) else devices[::2]:
            n = self.count(data, options, device, "none" + which)
            for kind, of in (("launch", "launch"), ("work", "launch"), ("memory-late", "memory-late"), ("lost", "any"), ("any", "any")):
                for draw in range(times(draws, 100)):
                    at = self.random.randint(1, max(1, n[of])) if draw else max(1, n[of] // 2)
                    outcome = self.fails("%s:%d%s" % (kind, at, which), data, options, device)
                    tally.setdefault(kind, []).append(outcome)
        tally["memory"] = [self.fails("memory:1", data, options, "opencl:0")]
        n = self.count(data, options, "opencl:0", "none,gpu")
        tally["hang"] = [self.fails("hang:%d,gpu" % max(1, n["launch"] // 2), data, options, "opencl:0")]
        for kind, outcomes in tally.items():
            print("%s: %s: %s" % (self.id().split(".")[-1], kind, ", ".join("%d %s" % (outcomes.count(o), o) for o in sorted(set(outcomes)))))
        for kind in ("launch", "work", "memory", "hang"):
            self.assertIn("went on", tally[kind], kind)


class Kmeans(Offload):
    TASK = "kmeans"

    def points(self, n, d, k, seed, grid=False):
        draw = random.Random(seed)
        centers = [[draw.gauss(0, 2) for _ in range(d)] for _ in range(k)]
        rows = [[draw.gauss(c, 1) for c in centers[draw.randrange(k)]] for _ in range(n)]
        lines = [",".join(("%d" if grid else "%.5f") % (round(v) if grid else v) for v in row) for row in rows]
        return self.write("p.csv", ",".join("c%d" % j for j in range(d)) + "\n" + "\n".join(lines) + "\n")

    def test_models_equal_those_of_the_cores(self):
        for n, d, k, grid in ((3001, 5, 7, False), (4000, 40, 20, False), (2500, 3, 40, False), (3000, 3, 9, True), (30, 2, 1, False),
                              (17, 2, 17, False)):
            data = self.points(n, d, k, "%d %d" % (n, t_devices.SEED), grid)
            self.same_on_all(data, ["--task", "kmeans", "--clusters", k, "--seed", "3"])

    def test_options(self):
        data = self.points(3000, 6, 12, t_devices.SEED)
        base = ["--task", "kmeans", "--clusters", "12"]
        for more in (["--restarts", "3"], ["--trim", "2"], ["--standardize"], ["--seeding", "random"], ["--lloyd-iterations", "0"],
                     ["--lloyd-iterations", "2"], ["--test", "10%"]):
            self.same_on_all(data, base + more, ("cpu,opencl:0",))

    def test_resumed_on_another_device(self):
        data = self.points(20000, 8, 30, t_devices.SEED)
        options = ["--task", "kmeans", "--clusters", "30", "--restarts", "3"]
        self.resumed_elsewhere(data, options, "0.3s")

    def test_failures(self):
        data = self.points(4000, 12, 20, t_devices.SEED)
        self.draw_failures(data, ["--task", "kmeans", "--clusters", "20", "--lloyd-iterations", "6"])

    def test_refused(self):
        data = self.points(100, 2, 2, 1)
        base = ["train", data, "--task", "kmeans", "--clusters", "2", "-o", "m.model"]
        for more, code, words in ((["--device", "opencl:0", "--minibatch", "50"], "E106", "--minibatch"),
                                  (["--device", "opencl:0", "--ranks", "2"], "E106", "--device"),
                                  (["--device", "opencl:9"], "E830", "opencl:9"), (["--device", "gpu"], "E103", "--device")):
            r = self.stretto(*base, *more, status=None)
            self.assertRegex(r.err, r"(?m)^error\[%s\] %s" % (code, words))
            self.assertEqual(r.err.count("error["), 1, r.err)
        self.stretto(*base, "--quiet")
        for verb in ("predict", "eval"):
            r = self.stretto(verb, "m.model", data, "--device", "opencl:0", status=2)
            self.assertIn("error[E106] --device: predictions of --task kmeans run on the cores", r.err)

    def test_iris(self):
        self.same_on_all(e2e.shared("tabular/iris.csv"), ["--ignore", "5", "--task", "kmeans", "--clusters", "3", "--restarts", "4"])


class Forest(Offload):
    TASK = "forest"

    def table(self, rows, classes, seed):
        """Nodes of more than 32768 rows, which devices count; words and missing cells among the inputs."""
        draw = random.Random(seed)
        lines = ["a,b,c,w,y"]
        for _ in range(rows):
            x, word = [draw.gauss(0, 1) for _ in range(3)], draw.choice("pqrst")
            y = 2 * x[0] - x[1] + (x[2] if word < "r" else -x[2]) + draw.gauss(0, 0.5)
            cells = ["%.3f" % v if draw.random() > 0.02 else "" for v in x]
            lines.append(",".join([*cells, word, "class%d" % max(0, min(classes - 1, y + classes / 2)) if classes else "%.4f" % y]))
        return self.write("f%d.csv" % classes, "\n".join(lines) + "\n")

    def test_models_equal_those_of_the_cores(self):
        for classes, sets, more in ((3, self.sets(), []), (20, ("cpu,opencl:0", "opencl:0"), ["--criterion", "entropy"]),
                                    (0, ("cpu,opencl:0", "opencl:0"), ["--mtry", "4"])):
            data = self.table(90000, classes, t_devices.SEED)
            self.same_on_all(data, ["--task", "forest", "--target", "y", "--trees", "3", *more], sets)

    def test_options(self):
        data = self.table(80000, 4, t_devices.SEED)
        base = ["--task", "forest", "--target", "y", "--trees", "2"]
        for more in (["--reduce", "3"], ["--class-weights", "balanced"], ["--criterion", "gain-ratio"], ["--depth", "2"], ["--mtry", "1"]):
            self.same_on_all(data, base + more, ("cpu,opencl:0",))

    def test_failures(self):
        data = self.table(80000, 3, t_devices.SEED)
        self.draw_failures(data, ["--task", "forest", "--target", "y", "--trees", "2", "--depth", "4"], 1)

    def test_refused(self):
        data = self.write("s.csv", "a,y\n" + "".join("%d,%d\n" % (i, i % 2) for i in range(50)))
        base = ["train", data, "--task", "forest", "--target", "y", "-o", "m.model"]
        r = self.stretto(*base, "--device", "opencl:0", "--ranks", "2", status=None)
        self.assertRegex(r.err, r"(?m)^error\[E106\] --device")
        self.stretto(*base, "--quiet")
        r = self.stretto("predict", "m.model", data, "--device", "opencl:0", status=2)
        self.assertIn("error[E106] --device: predictions of --task forest run on the cores", r.err)


class Crf(Offload):
    """Training and tags; sentences are very uneven, one is much longer than all others."""
    TASK = "crf"

    def data(self, tags=5):
        draw, lines = random.Random(t_devices.SEED), []
        for k in range(900):
            tag = 0
            for _ in range(900 if k == 450 else draw.randint(1, 40 if draw.random() < 0.1 else 9)):
                tag = (tag + draw.choice((0, 1, 1, 2))) % tags
                lines.append("w%d p%d t%d" % (tag * 3 + draw.randrange(6), draw.randrange(4), tag))
            lines.append("")
        return self.write("s.txt", "\n".join(lines) + "\n")

    def test_models_equal_those_of_the_cores(self):
        for tags, sets, more in ((5, self.sets(), []), (2, ("cpu,opencl:0",), ["--l1", "0.5"]), (30, ("opencl:0*2",), ["--cutoff", "2"])):
            data = self.data(tags)
            self.same_on_all(data, ["--task", "crf", "--steps", "8", *more], sets)
        r = self.stretto("train", data, "--task", "crf", "--steps", "8", "--device", "opencl:0", "--verbose", "-o", "m.model")
        self.assertIn("sentences by device: opencl:0 100 %; the cores repeated 0 blocks", r.err + r.out)

    def test_tags_equal_those_of_the_cores(self):
        for tags in (3, 70):
            data = self.data(tags)
            self.fit("m", data, ["--task", "crf", "--steps", "3"], "cpu")
            for more in ([], ["--marginals"]):
                self.stretto("predict", "m.model", data, "-o", "cpu.txt", *more)
                for device in self.sets():
                    self.stretto("predict", "m.model", data, "-o", "dev.txt", "--device", device, *more)
                    self.assertEqual(self.read("cpu.txt"), self.read("dev.txt"), device)
            self.assertEqual(self.scores("eval", "m.model", data), self.scores("eval", "m.model", data, "--device", "cpu,opencl:0"))

    def test_resumed_on_another_device(self):
        data = self.data()
        options = ["--task", "crf", "--steps", "60", "--epsilon", "0"]
        self.resumed_elsewhere(data, options, "0.5s")

    def test_failures(self):
        self.draw_failures(self.data(), ["--task", "crf", "--steps", "3"], 1)

    def test_refused(self):
        data = self.write("s.txt", "a X\nb Y\n\n" * 5)
        base = ["train", data, "--task", "crf", "-o", "m.model"]
        for more, words in ((["--device", "opencl:0", "--ranks", "2"], "--device"), (["--device", "opencl:0", "--kernel", "base"], "--device: the cores round")):
            r = self.stretto(*base, *more, status=None)
            self.assertRegex(r.err, r"(?m)^error\[E106\] %s" % words)
            self.assertEqual(r.err.count("error["), 1, r.err)
        many = self.write("m.txt", "".join("w%d t%d\n" % (k, k) for k in range(300)))
        r = self.stretto("train", many, "--task", "crf", "-o", "m.model", "--device", "opencl:0", status=None)
        self.assertRegex(r.err, r"(?m)^error\[E106\] --device: 300 labels are too many for a device \(256\)")


class Hmm(Offload):
    """Predictions, not trainings, run on devices: paths are the same byte by byte."""
    def sentences(self, name, n, longest, seed, tags=5):
        """Lengths are very uneven; one sentence is much longer than all others."""
        draw, lines = random.Random(seed), []
        for k in range(n):
            tag = 0
            for _ in range(1500 if k == n // 2 else draw.randint(1, longest if draw.random() < 0.1 else 9)):
                tag = (tag + draw.choice((0, 1, 1, 2))) % tags
                lines.append("w%d t%d" % (tag * 3 + draw.randrange(6), tag))
            lines.append("")
        return self.write(name, "\n".join(lines) + "\n")

    def model(self, seed, tags=5):
        data = self.sentences("train.txt", 300, 40, "a %s" % seed, tags)
        self.stretto("train", data, "--task", "hmm", "-o", "m.model", "--quiet")
        return self.sentences("new.txt", 700, 120, "b %s" % seed, tags)

    def test_paths_equal_those_of_the_cores(self):
        for tags in (2, 5, 40):
            data = self.model(t_devices.SEED, tags)
            self.stretto("predict", "m.model", data, "-o", "cpu.csv")
            scores = self.scores("eval", "m.model", data)
            for device in self.sets():
                self.stretto("predict", "m.model", data, "-o", "dev.csv", "--device", device)
                self.assertEqual(self.read("cpu.csv"), self.read("dev.csv"), device)
            self.assertEqual(scores, self.scores("eval", "m.model", data, "--device", "cpu,opencl:0"))

    def test_hidden_states_and_empty_files(self):
        data = self.write("plain.txt", "a\nb\nb\na\n\nb\na\n\na\n" * 30)
        self.stretto("train", data, "--task", "hmm", "--states", "3", "-o", "m.model", "--quiet")
        for name, text in (("one.txt", "a\n"), ("new.txt", "a\nb\n\nb\nc\n")):
            self.write(name, text)
            self.stretto("predict", "m.model", name, "-o", "cpu.csv")
            self.stretto("predict", "m.model", name, "-o", "dev.csv", "--device", "opencl:0")
            self.assertEqual(self.read("cpu.csv"), self.read("dev.csv"))

    def test_failures(self):
        if not os.path.exists(t_devices.FAULTY):
            self.skipTest("%s was not built (no OpenCL headers)" % t_devices.FAULTY)
        data = self.model(t_devices.SEED)
        self.stretto("predict", "m.model", data, "-o", "cpu.csv")
        went_on = 0
        for device, which in (("opencl:0", ""), ("cpu,opencl:0", ""), *([("opencl:0,opencl:1", ",device=1")] if self.devices > 1 else [])):
            for fault in ("launch:1", "work:1", "memory:1", "memory-late:%d" % self.random.randint(1, 9), "any:%d" % self.random.randint(1, 300)):
                self.more = {"STRETTO_OPENCL": t_devices.FAULTY, "FAULTY_OPENCL": fault + which}
                r = self.stretto("predict", "m.model", data, "-o", "dev.csv", "--device", device, status=None)
                self.more = {}
                if r.status == 0:
                    self.assertEqual(self.read("cpu.csv"), self.read("dev.csv"), fault)
                    went_on += 1
                else:
                    self.assertRegex(r.err, r"(?m)^error\[E83[01]\] \S", fault)
                    self.assertTrue(fault.startswith("any"), "%s: %s" % (fault, r.err))
        self.assertGreaterEqual(went_on, 4)

    def test_refused(self):
        data = self.model(1)
        for args in (["train", data, "--task", "hmm", "-o", "x.model"], ["decode", "m.model", data, "-o", "x.txt"]):
            r = self.stretto(*args, "--device", "opencl:0", status=2)
            self.assertRegex(r.err, r"(?m)^error\[E106\] --device: .*predict and eval take --device$")


if __name__ == "__main__":
    e2e.main()
