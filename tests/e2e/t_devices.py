"""t_devices.py - training and forecasts on OpenCL devices, and devices that fail at a random moment.

PoCL stands in for GPUs: two devices on the cores of this host.  tests/gpu/faulty_opencl.c injects the failures.  The kernels are
compiled once, into a cache that all tests share: $STRETTO_CACHE and $POCL_CACHE_DIR, or device-cache beside the program.
"""
import glob
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import e2e
from e2e import AIR, Case, times

SEED = int(os.environ.get("STRETTO_TEST_SEED") or random.randrange(1 << 30))
BUILD = os.environ.get("STRETTO_LIBRARY") or os.path.join(os.path.dirname(e2e.PROGRAM), "..")
FAULTY = os.path.abspath(os.path.join(BUILD, "tests", "gpu", "libfaulty_opencl.so"))
CACHE = os.path.abspath(os.environ.get("STRETTO_CACHE") or os.path.join(BUILD, "device-cache"))
POCL = os.environ.get("POCL_CACHE_DIR") or os.path.join(CACHE, "pocl")
TINY = ["--target", "Passengers", "--hidden", "8", "--context", "12", "--horizon", "4", "--steps", "20", "--threads", "1",
        "--quiet"]
WIDE = ["--base", "none", "--no-guard", "--target", "Passengers", "--hidden", "48", "--context", "36", "--horizon", "4", "--batch", "64", "--steps", "20", "--threads", "1"]
SCRATCH = 16 << 10  # KiB that a lane has for partial sums
LONG = [*TINY[:9], "4000", "--threads", "1", "--quiet", "--checkpoint-every", "0.01s"]
CLUSTER, MEMORY = 8, 6  # exit status of E831 and of E601


def floats(tensor):
    dtype, _, data = tensor
    return struct.unpack("<%df" % (len(data) // 4), data) if dtype == "F32" else ()


class Devices(Case):
    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(SEED)
        print("seed %d (STRETTO_TEST_SEED repeats a run)" % SEED)
        os.makedirs(POCL, exist_ok=True)
        env = dict(os.environ, POCL_DEVICES="pthread pthread", POCL_CACHE_DIR=POCL, STRETTO_CACHE=CACHE, STRETTO_WISDOM="off")
        out = subprocess.run([e2e.PROGRAM, "info", "--probe"], stdout=subprocess.PIPE, check=True, env=env).stdout.decode()
        cls.devices = out.count("# --device opencl:") - out.count("# --device opencl: none")
        cls.missing = "" if cls.devices else out
        if cls.devices:  # compiles the kernels
            cls.compile(env)
            cls.compile(dict(env, STRETTO_OPENCL=FAULTY, FAULTY_OPENCL="none,gpu"))

    @staticmethod
    def compile(env):
        with tempfile.TemporaryDirectory() as at:
            subprocess.run([e2e.PROGRAM, "train", AIR, *TINY, "--steps", "1", "--device", "opencl:0", "-o", os.path.join(at, "m")],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)

    def setUp(self):
        super().setUp()
        self.more = {}
        if not self.devices:
            self.skipTest("no OpenCL device: %s" % self.missing)

    def environment(self, **more):
        own = {"POCL_DEVICES": "pthread pthread", "POCL_CACHE_DIR": POCL, "STRETTO_CACHE": CACHE, "TMPDIR": self.dir}
        return super().environment(**{**own, **self.more, **more})

    def two_devices(self):
        if self.devices < 2:
            self.skipTest("no second OpenCL device")

    def train(self, name, device, *more, options=TINY, data=AIR):
        self.stretto("train", data, *options, *more, "--device", device, "-o", name + ".model")
        return name + ".model"

    def close(self, a, b, what, most=1e-4):
        """Every weight within `most` of the largest weight of its tensor."""
        ha, ta = e2e.model(self.path(a))
        _, tb = e2e.model(self.path(b))
        self.assertEqual(sorted(ta), sorted(tb), what)
        for name in ta:
            x, y = floats(ta[name]), floats(tb[name])
            self.assertEqual(len(x), len(y), what)
            self.assertTrue(all(map(math.isfinite, y)), "%s: tensor %s is not finite" % (what, name))
            scale = max([1e-3, *map(abs, x)])
            worst = max([0, *(abs(p - q) for p, q in zip(x, y))])
            self.assertLessEqual(worst, most * scale, "%s: tensor %s" % (what, name))
        return ha

    def scores(self, *args):
        return json.loads(self.stretto(*args, "--json").out)

    def forecasts(self, name, *more):
        lines = [line.split(",") for line in self.stretto("predict", name, AIR, *more).out.splitlines()]
        return [line[:4] + [float(x) for x in line[4:]] for line in lines[1:]]

    def close_numbers(self, a, b, what, most=1e-4):
        """Two JSON values that differ in their numbers by a share of `most` only; times and paths do not count."""
        if isinstance(a, dict):
            self.assertEqual(sorted(a), sorted(b), what)
            for key in a:
                if key not in ("seconds", "model", "path", "time", "elapsed"):
                    self.close_numbers(a[key], b[key], "%s: %s" % (what, key), most)
        elif isinstance(a, list):
            self.assertEqual(len(a), len(b), what)
            for i, (x, y) in enumerate(zip(a, b)):
                self.close_numbers(x, y, "%s[%d]" % (what, i), most)
        elif isinstance(a, float):
            self.assertLessEqual(abs(a - b), most * max(1, abs(a)), what)
        else:
            self.assertEqual(a, b, what)


class Bits(Devices):
    LEARNS = True

    def test_lanes_and_equal_devices_train_the_same_bits(self):
        one = self.train("one", "opencl:0")
        self.train("cpu", "cpu")
        self.close("cpu.model", one, "one lane")
        for device in ("opencl:0*2", "opencl:0*5"):
            self.same_model(one, self.train("m", device), device)
        if self.devices >= 2:
            for device in ("opencl:1", "opencl:0,opencl:1", "opencl:1*2,opencl:0*2", "all"):
                self.same_model(one, self.train("m", device, "--rank-shares", "even"), device)
        self.close("cpu.model", self.train("m", "cpu,opencl:0", "--rank-shares", "even"), "cpu,opencl:0")

    def test_forecasts_on_devices(self):
        name = self.train("m", "opencl:0")
        here = self.scores("eval", name, AIR)
        for device in ("cpu", "opencl:0", "opencl:0*2", "cpu,opencl:0", "all"):
            self.close_numbers(here, self.scores("eval", name, AIR, "--device", device), "eval on " + device)
            self.close_numbers(self.forecasts(name), self.forecasts(name, "--device", device), "predict on " + device)
        self.more = {"STRETTO_OPENCL": "none"}
        self.close_numbers(here, self.scores("eval", name, AIR), "a host without OpenCL")

    def test_backtest_on_a_device(self):
        args = ["backtest", AIR, *TINY, "--folds", "2"]
        cpu = self.scores(*args)
        for device in ("opencl:0", "cpu,opencl:0"):
            self.close_numbers(cpu, self.scores(*args, "--device", device), "backtest on " + device, 1e-3)

    def test_nets_with_steps_on_the_host(self):
        for more in (["--norm"], ["--bidirectional", "--layers", "2"], ["--projection", "4"], ["--decoder", "autoregressive"],
                     ["--cell", "gru"], ["--cell", "rnn"], ["--dropout", "0.2"], ["--head", "quantile"], ["--optim", "sgd"],
                     ["--decoder", "parallel", "--segment", "4"], ["--accumulate", "2"], ["--cell", "minlstm"]):
            self.train("cpu", "cpu", *more)
            one = self.train("one", "opencl:0", *more)
            self.close("cpu.model", one, " ".join(more), 1e-3)
            self.same_model(one, self.train("two", "opencl:0*2", *more), " ".join(more))

    def test_time_slices(self):
        self.stretto("sample", "long-memory", "--rows", "3000", "-o", "long.csv")
        options = ["--target", "y", "--past", "u", "--horizon", "1", "--context", "512", "--hidden", "8", "--steps", "6",
                   "--parallel", "time:4", "--threads", "1", "--quiet"]
        data = self.path("long.csv")
        self.train("cpu", "cpu", options=options, data=data)
        self.close("cpu.model", self.train("m", "opencl:0", options=options, data=data), "time slices", 1e-3)

    def test_pipeline_and_stores_on_two_devices(self):
        self.two_devices()
        deep = ["--layers", "2"]
        one = self.train("one", "opencl:0", *deep)
        self.same_model(one, self.train("m", "opencl:0,opencl:1", *deep, "--parallel", "pipeline:2"), "pipeline:2")
        self.stores()
        self.same_model(self.train("one", "opencl:0"), self.train("m", "opencl:0,opencl:1", "--heal"), "--heal")

    def stores(self):
        """The weights are the host's between two steps: the store writes them."""
        two = "opencl:0,opencl:1"
        for store in ("ssp:0 --granularity 1step", "sync --servers 1", "local:2"):
            words = ["--members", "1", "--store", *store.split()]
            devices = two + ",cpu" if "--servers" in words else two
            ranks = ["--ranks", "3" if "--servers" in words else "2"]
            self.train("cpu", "cpu", *words, *ranks)
            self.close("cpu.model", self.train("m", devices, *words), "--store " + store, 1e-3)
        for store in ("asp", "hogwild"):
            words = ["--store", store, "--members", "1"]
            self.train("cpu", "cpu", *words, *(["--ranks", "2"] if store == "asp" else []))
            self.train("m", two if store == "asp" else "opencl:0", *words)
            self.close("cpu.model", "m.model", "--store " + store, 0.5)  # 20 steps of Adam move a weight by more

    def test_trace(self):
        self.train("m", "opencl:0*2", "--trace", self.path("t.json"))
        events = json.loads(self.read("t.json").decode())
        events = events["traceEvents"] if isinstance(events, dict) else events
        spans = [e for e in events if e.get("ph") == "X"]
        self.assertTrue(any("fwd lstm" in e["name"] for e in spans), [e["name"] for e in spans[:20]])
        self.assertTrue(all(e["dur"] >= 0 for e in spans))
        self.assertTrue({"put", "get"} <= {e["name"] for e in spans}, "copies")
        self.assertIn('"name":"copies 0"', self.read("t.json").decode())

    def test_report_shows_memory_and_copies(self):
        self.train("m", "opencl:0*2", "--parallel", "data")
        facts = dict(re.findall(r"<dt>(opencl:0 \w+)</dt>\s*<dd>(.*?)</dd>", self.read("m.model.run/report.html").decode()))
        peak, capacity = re.match(r"at most ([0-9.]+) MiB of ([0-9.]+) MiB", facts["opencl:0 memory"]).groups()
        self.assertTrue(16 < float(peak) < float(capacity), facts)  # a lane has 16 MiB for partial sums
        to, put, get, took, share = re.match(r"([0-9.]+) MiB to it in ([0-9.]+) s, ([0-9.]+) MiB from it in ([0-9.]+) s; .*: ([0-9]+) %$",
                                             facts["opencl:0 copies"]).groups()
        self.assertTrue(min(float(x) for x in (to, put, get, took)) > 0 and 0 <= int(share) <= 100, facts)

    def test_deterministic_refuses_unlike_devices(self):
        r = self.stretto("train", AIR, *TINY, "--deterministic", "--device", "cpu,opencl:0", "-o", "m.model", status=None)
        self.assertIn("error[E106] --deterministic", r.err)
        self.assertNotEqual(r.status, 0)
        self.train("m", "opencl:0*2", "--deterministic")

    def test_texts_that_name_no_device(self):
        for text, code in (("opencl:9", "E830"), ("opencl:-1", "E103"), ("opencl:0*0", "E103"), ("opencl:0*16", "E103"),
                           ("opencl:0x", "E103"), (",opencl:0", "E103"), ("opencl:0,,cpu", "E103"), ("OPENCL:0", "E103"),
                           ("opencl:0 ", "E103"), ("opencl:99999", "E103"), ("all:1", "E103"), ("auto,cpu", "E103"), ("", "E103"),
                           ("cpu:3", "E103"), ("cpu*2", "E103"), ("opencl:0,opencl:0", "")):
            r = self.stretto("train", AIR, *TINY, "--device", text, "-o", "m.model", status=None)
            codes = [line for line in r.err.splitlines() if line.startswith("error[")]
            with self.subTest(text=text):
                self.assertEqual([c[6:10] for c in codes], [code] if code else [], r.err)

    @unittest.skipUnless(os.path.exists(FAULTY), "the library of failures was not built (no OpenCL headers)")
    def test_device_that_lacks_something(self):
        for fault, lacks in (("no-f64", "double precision"), ("small-groups", "work groups of 256 items"),
                             ("small-shared,gpu", "48 KiB of memory that a work group shares")):
            self.more = {"STRETTO_OPENCL": FAULTY, "FAULTY_OPENCL": fault}
            with self.subTest(fault=fault):
                self.assertIn("; not usable, it lacks %s\n" % lacks, self.stretto("info", "--probe").out)
                r = self.stretto("train", AIR, *TINY, "--device", "opencl:0", "-o", "m.model", status=CLUSTER)
                self.assertRegex(r.err, r"error\[E831\] opencl:0 \(.*\): the kernels need %s, which it has not" % lacks)
                r = self.stretto("train", AIR, *TINY, "--device", "all", "-o", "m.model", status=2)
                self.assertRegex(r.err, r"error\[E830\] .*opencl:0 \(.*, it lacks %s\)" % lacks)
            self.more = {"STRETTO_OPENCL": FAULTY, "FAULTY_OPENCL": fault + ",device=0"}
            if self.devices > 1:
                self.assertNotIn("error", self.stretto("train", AIR, *TINY, "--device", "all", "-o", "m.model").err)

    def test_cache_of_programs(self):
        """A cache that is damaged, truncated, unwritable or off: the program works without it."""
        self.more = gpu = {"STRETTO_OPENCL": FAULTY, "FAULTY_OPENCL": "none,gpu"}  # programs for cores are not kept
        one = self.train("one", "opencl:0")
        self.more = dict(gpu, STRETTO_CACHE=self.path("cache"))
        self.train("m", "opencl:0")
        kernels = self.path("cache/kernels")
        whole = {p: self.read(p) for p in glob.glob(kernels + "/*")}
        self.assertEqual(len(whole), 1)
        for damage in (lambda b: b[:len(b) // 2], lambda b: b"", lambda b: b[:7], lambda b: b[:99] + b"xyz" + b[102:],
                       lambda b: bytes(len(b)), lambda b: b + b"more"):
            for path, data in whole.items():
                with open(path, "wb") as f:
                    f.write(damage(data))
            self.same_model(one, self.train("m", "opencl:0"), "a damaged cache")
            self.assertEqual(len(os.listdir(kernels)), 1)
        self.assertEqual({p: self.read(p) for p in whole}, whole, "written anew")
        self.more = dict(gpu, STRETTO_CACHE="off")
        self.same_model(one, self.train("m", "opencl:0"), "STRETTO_CACHE=off")
        self.more = dict(gpu, STRETTO_CACHE="/proc/no/such")
        self.same_model(one, self.train("m", "opencl:0"), "a cache that cannot be written")
        self.more = dict(gpu, STRETTO_CACHE=AIR)
        self.same_model(one, self.train("m", "opencl:0"), "a file in the place of the cache")


class Resumed(Devices):
    def stopped(self, device, options=LONG):
        """A run that SIGTERM has stopped after a checkpoint."""
        child = self.start("train", AIR, *options, "--device", device, "-o", "m.model")
        limit = time.monotonic() + 60 * e2e.SLOW
        while child.poll() is None and not glob.glob(self.path("m.model.run/checkpoints/*.ckpt")):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.002)
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60 * e2e.SLOW)
        self.assertEqual(child.returncode, 75, err.decode())

    def test_a_run_moves_between_devices(self):
        options = [*LONG[:9], "800", *LONG[10:]]
        self.stretto("train", AIR, *options, "--device", "cpu", "-o", "cpu.model")
        for first, second in (("opencl:0", "cpu"), ("cpu", "opencl:0"), ("opencl:0", "opencl:0*2"), ("opencl:0", "all")):
            self.stopped(first, options)
            self.stretto("resume", "m.model.run", "--device", second, "--quiet")
            self.close("cpu.model", "m.model", "%s, then %s" % (first, second), 0.02)
            os.unlink(self.path("m.model"))

    def test_resume_on_a_device_has_the_bits_of_the_whole_run(self):
        options = [*LONG[:9], "800", *LONG[10:]]
        self.train("whole", "opencl:0", options=options)
        self.stopped("opencl:0", options)
        self.stretto("resume", "m.model.run", "--quiet")
        self.same_model("whole.model", "m.model", "resumed on its device")

    def test_a_run_goes_on_where_no_opencl_is(self):
        self.stopped("opencl:0")
        self.more = {"STRETTO_OPENCL": "none"}
        r = self.stretto("resume", "m.model.run", "--quiet", status=None)
        self.assertIn("error[E830]", r.err)
        self.stretto("resume", "m.model.run", "--quiet", "--device", "cpu")


class Failures(Devices):
    LEARNS = True
    PASSES = r"a device has no memory for its samples of a step of (\d+): it takes them in (\d+) passes of at most (\d+); the weights have the same bits"
    KINDS = ("launch", "memory", "memory-late", "any", "work", "lost", "hang", "compile", "no-compiler", "no-f64", "bad-binary")

    def setUp(self):
        super().setUp()
        if not os.path.exists(FAULTY):
            self.skipTest("%s was not built (no OpenCL headers)" % FAULTY)
        self.tally = {}

    def faulty(self, fault, *args):
        """Runs the program with a failure; one that hangs is ended, and fails the test."""
        self.more = {"STRETTO_OPENCL": FAULTY, "FAULTY_OPENCL": fault, "STRETTO_DEADLINE": "60"}
        if "hang" in fault or "bad-binary" in fault:  # programs for cores are not kept
            self.more.update(FAULTY_OPENCL=fault + ",gpu", STRETTO_DEADLINE="2")
        if fault == "compile":
            self.more["STRETTO_CACHE"] = "off"
        try:
            return self.stretto(*args, status=None, timeout=60 if "hang" not in fault else 25)
        finally:
            self.more = {}

    def counts(self, *args, suffix=""):
        """How often each kind can fail in an undisturbed run; suffix: ",device=1", of that device alone."""
        host, gpu = self.count("none" + suffix, *args), self.count("none,gpu" + suffix, *args)  # a GPU is given other kernels
        return dict(host, work=host["launch"], hang=gpu["launch"], lost=host["any"])

    def count(self, fault, *args):
        self.more = {"STRETTO_OPENCL": FAULTY, "FAULTY_OPENCL": fault, "FAULTY_COUNT": self.path("count")}
        self.stretto(*args)
        self.more = {}
        n = {k: int(v) for k, v in (word.split("=") for word in self.read("count").decode().split())}
        os.unlink(self.path("count"))
        return n

    def moment(self, kind, n):
        """Half of the moments are among the first hundred calls: the opening of the device."""
        if kind not in n:
            return kind
        most = n[kind] if self.random.random() < 0.5 else min(n[kind], 100)
        return "%s:%d" % (kind, self.random.randint(1, max(1, most)))

    @staticmethod
    def plain(line):
        """A line of stderr; an error of --json as the program prints it without."""
        if not line.startswith('{"error"'):
            return line
        e = json.loads(line)
        return "error[%s] %s: %s\n  fix: %s\n" % (e["error"], e["where"], e["text"], e["fix"])

    def sentence(self, r, what):
        """Exactly one error that says what failed and what to do; the exit status is its own."""
        text = "".join(self.plain(line) for line in r.err.splitlines(True))
        errors = [line for line in text.splitlines() if line.startswith("error[")]
        self.assertEqual(len(errors), 1, "%s (exit status %d):\n%s" % (what, r.status, r.err))
        # where a device hangs, the other rank's deadline for its message may come first
        codes = "831|801|802" if "hang" in what and "opencl:0,opencl:1" in what else "601|830|831"
        self.assertRegex(errors[0], r"^error\[E(%s)\] \S" % codes, what)
        self.assertIn("  fix: ", text, what)
        self.assertEqual(r.status, {"E601": MEMORY, "E802": 75, "E830": 2}.get(errors[0][6:10], CLUSTER), what)
        self.assertNotRegex(r.err + r.out, r"(?i)segmentation|sanitizer|assert|traceback|\bnan\b", what)
        return errors[0][6:10]

    def clean(self, what):
        left = [os.path.join(at, n) for at, _, names in os.walk(self.dir) for n in names if n.endswith(".tmp") or n == "core"]
        self.assertEqual(left, [], what)

    def finite(self, name, what):
        for tensor, t in e2e.model(self.path(name))[1].items():
            self.assertTrue(all(map(math.isfinite, floats(t))), "%s: %s" % (what, tensor))

    def note(self, kind, outcome):
        self.tally.setdefault(kind, {}).setdefault(outcome, 0)
        self.tally[kind][outcome] += 1

    def tearDown(self):
        for kind, outcomes in getattr(self, "tally", {}).items():
            print("%s: %s: %s" % (self.id().split(".")[-1], kind, ", ".join("%d %s" % (n, o) for o, n in sorted(outcomes.items()))))

    def went_on(self, r, device, what, exact=True):
        """A run with a failure has ended well: at most one warning, which names the device that was lost and what took over;
        the weights are those of whole.model.  True if a device was lost, or refused memory and took the rows in passes."""
        lost = [line for line in r.err.splitlines() if " failed at step " in line]
        self.assertLessEqual(len(lost), 1, "%s:\n%s" % (what, r.err))
        self.assertEqual(r.err.count("error["), 0, "%s:\n%s" % (what, r.err))
        others = "," in device
        if lost:
            self.assertRegex(lost[0], r"^warning: device opencl:\d.* failed at step \d+: .+; the run goes on, on (%s), from the "
                             r"(newest checkpoint|beginning)$|, to (score the model|write the report)$" %
                             ("opencl:\\d" if others else "the cores of the host"), what)
        if exact and (others or not lost):  # an equal device gives the same bits
            self.same_model("whole.model", "m.model", what)
        elif exact:
            self.close("whole.model", "m.model", what, 1e-3)
        else:
            self.finite("m.model", what)
        steps = [(line["member"], line["step"], line["split"]) for line in self.lines("m.model.run/metrics.jsonl")]
        self.assertEqual(steps, sorted(set(steps)), "%s: metrics.jsonl" % what)
        return bool(lost) or bool(re.search(self.PASSES, r.out + r.err))

    def lines(self, name):
        return [json.loads(line) for line in self.read(name).decode().splitlines()]

    def middle(self, kind, n):
        """A moment in the middle of a training; memory: that of the first net."""
        if kind == "memory":
            return "memory:1"
        return "%s:%d" % (kind, n[kind] // (10 if kind == "hang" else 3))  # rank 0 alone launches what follows the training

    def goes_on(self, device, suffixes, options=TINY):
        """A device that fails in the middle of a training, in each way: the run ends as without the failure."""
        options = [o for o in options if o != "--quiet"]  # says which passes it takes
        args = ["train", AIR, *options, "--device", device, "-o", "m.model", "--checkpoint-every", "0.01s"]
        n = self.counts(*args)
        self.stretto(*args)
        os.rename(self.path("m.model"), self.path("whole.model"))
        os.rename(self.path("m.model.run"), self.path("whole.run"))
        for kind in ("lost", "launch", "memory", "work", "hang"):
            for suffix in suffixes:
                fault = self.middle(kind, {k: v // len(suffixes) for k, v in n.items()}) + suffix
                what = "FAULTY_OPENCL=%s stretto %s" % (fault, " ".join(args))
                r = self.faulty(fault, *args)
                self.assertEqual(r.status, 0, "%s:\n%s" % (what, r.err))
                self.assertTrue(self.went_on(r, device, what, kind != "hang"), "%s: nothing failed" % what)
                if "," in device and kind != "hang":
                    self.same_metrics("whole.run", "m.model.run", what)
                self.clean(what)
                self.note(kind, "went on")

    def test_training_goes_on_without_its_device(self):
        self.goes_on("opencl:0", [""], [*TINY, "--members", "1"])

    def in_passes(self, device, more, fault, fixed):
        """A device with a quarter of the memory that the rows of a step take: more passes, the same bits."""
        args = ["train", AIR, *WIDE, *more, "--members", "1", "--device", device, "-o", "m.model"]
        rows = self.count("none", *args)["room"] - fixed
        self.stretto(*args)
        os.rename(self.path("m.model"), self.path("whole.model"))
        r = self.faulty("room:%d%s" % (fixed + rows // 4, fault), *args)
        self.assertEqual(r.status, 0, r.err)
        self.assertNotIn(" failed at step ", r.err)
        told = re.findall(self.PASSES, r.out + r.err)
        self.assertTrue(told, r.out + r.err)
        devices = device.count(":")  # with equal shares
        self.assertTrue(all(int(n) >= 4 and devices * int(n) * int(most) >= int(all_) for all_, n, most in told), told)
        self.same_model("whole.model", "m.model", "passes on " + device)
        self.note(device, "took %s passes" % told[0][1])

    def test_training_takes_passes_where_memory_is_small(self):
        self.in_passes("opencl:0", [], "", 3 * SCRATCH)  # heaps for training, validation, forecasts

    def test_training_on_two_devices_takes_passes_where_one_is_small(self):
        self.two_devices()
        even = ["--rank-shares", "even", "--parallel", "data"]
        self.in_passes("opencl:0,opencl:1", even, ",device=1", 4 * SCRATCH)  # one more lane, for messages

    def test_training_goes_on_where_memory_is_too_small_for_a_micro_batch(self):
        args = ["train", AIR, *WIDE, "--members", "1", "--device", "opencl:0", "-o", "m.model"]
        r = self.faulty("room:%d" % (SCRATCH + 64), *args)
        self.assertEqual(r.status, 0, r.err)
        self.assertRegex(r.err, r"(?m)^warning: device opencl:0 .*: the device refused .* MiB in one piece; .*; the run goes on, on the cores")
        self.train("cpu", "cpu", "--members", "1", options=WIDE)
        self.same_model("cpu.model", "m.model", "on the cores")

    def test_report_goes_on_without_the_device(self):
        """The last launch of a run is one of the report."""
        args = ["train", AIR, *TINY, "--members", "1", "--device", "opencl:0", "-o", "m.model"]
        n = self.counts(*args)["launch"]
        self.stretto(*args)
        os.rename(self.path("m.model"), self.path("whole.model"))
        r = self.faulty("launch:%d" % n, *args)
        self.assertEqual(r.status, 0, r.err)
        self.assertRegex(r.err, r"(?m)^warning: device opencl:0 .* failed at step \d+: .*; the run goes on, on the cores of the host, "
                         "to write the report$")
        self.same_model("whole.model", "m.model", "the report")
        self.assertIn("</html>", self.read("m.model.run/report.html").decode())

    def test_training_goes_on_with_the_other_device(self):
        self.two_devices()
        self.goes_on("opencl:0,opencl:1", [",device=0", ",device=1"], [*TINY, "--rank-shares", "even", "--parallel", "data"])

    def test_training_goes_on_under_a_launcher(self):
        """A process for each device, the first one has two: with --heal the others go on, and no step is lost."""
        self.two_devices()
        if not shutil.which("mpirun") or "Open MPI" not in subprocess.run(["mpirun", "--version"], stdout=subprocess.PIPE).stdout.decode():
            self.skipTest("no Open MPI")
        self.train("whole", "opencl:0")
        env = self.environment(STRETTO_OPENCL=FAULTY, FAULTY_OPENCL="launch:200,device=1", OMPI_ALLOW_RUN_AS_ROOT="1",
                               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(["mpirun", "--enable-recovery", "--oversubscribe", "-n", "3", e2e.PROGRAM, "train", AIR, *TINY, "--device",
                               "opencl:0,opencl:1", "--heal", "--parallel", "data", "--rank-shares", "even", "-o", "m.model"], cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120 * e2e.SLOW)
        err = done.stderr.decode()
        self.assertIn("error[E831] opencl:1", err)
        self.assertRegex(err, r"warning: rank 1 \(.*\) died: 2 ranks of 3 go on from step \d+.*, no step is lost")
        self.same_model("whole.model", "m.model", "--heal")

    def test_backtest_goes_on(self):
        args = ["backtest", AIR, *TINY, "--members", "1", "--folds", "2", "--device", "opencl:0", "--json"]
        n, whole = self.counts(*args), self.scores(*args[:-1])
        failed = 0
        for part in (2, 3, 5):  # how many calls there are depends on the pieces into which forecasts are cut: the last may not come
            r = self.faulty("lost:%d" % (n["lost"] // part), *args)
            self.assertEqual(r.status, 0, r.err)
            self.close_numbers(whole, json.loads(r.out), "backtest", 1e-3)
            failed += r.err.count(" failed at step ")
            if failed:
                break
        self.assertEqual(failed, 1, r.err)

    def draw_training(self, device, kinds, options=TINY, suffix="", few=1):
        """Failures of a training at random moments.  Only a device that never worked ends it."""
        args = ["train", AIR, *options, "--device", device, "-o", "m.model", "--checkpoint-every", "0.01s"]
        n = self.counts(*args)
        self.stretto(*args)
        os.rename(self.path("m.model"), self.path("whole.model"))
        for kind in kinds:
            for _ in range(times(few if kind != "hang" else 1, 100) if kind in n else 1):
                fault = self.moment(kind, n) + suffix
                what = "FAULTY_OPENCL=%s stretto %s" % (fault, " ".join(args))
                shutil.rmtree(self.path("m.model.run"), True)
                if os.path.exists(self.path("m.model")):
                    os.unlink(self.path("m.model"))
                r = self.faulty(fault, *args)
                self.clean(what)
                if r.status == 0:
                    lost = self.went_on(r, device, what, "gpu" not in what and kind not in ("hang", "bad-binary"))
                    self.note(kind, "went on" if lost else "trained")
                    continue
                self.assertNotIn(kind, ("launch", "memory", "memory-late", "work", "hang"), what)
                code = self.sentence(r, what)
                self.assertFalse(os.path.exists(self.path("m.model")), what)
                began = os.path.exists(self.path("m.model.run/run.json"))
                if began:
                    self.stretto("resume", "m.model.run", "--device", "cpu", "--parallel", "auto", "--quiet")
                    self.finite("m.model", what)
                self.note(kind, "%s at the beginning, %s" % (code, "resumed" if began else "not begun"))

    def test_training(self):
        self.draw_training("opencl:0", self.KINDS, [*TINY, "--members", "1"])

    def test_training_on_two_lanes(self):
        self.draw_training("opencl:0*2", ("launch", "any", "work", "lost", "hang"), [*TINY, "--members", "1"], few=1)

    def test_training_on_two_devices(self):
        self.two_devices()
        for bad in (0, 1):
            self.draw_training("opencl:0,opencl:1", ("launch", "memory", "any", "lost", "work", "hang"),
                               [*TINY, "--rank-shares", "even", "--parallel", "data"],
                               ",device=%d" % bad, 1)

    def test_forecasts_on_one_device(self):
        self.train("m", "cpu")
        args = ["eval", "m.model", AIR, "--device", "opencl:0", "--json"]
        whole, n = self.scores(*args[:-1]), self.counts(*args)
        for kind in self.KINDS:
            for _ in range(times(1, 100) if kind in n else 1):
                fault = self.moment(kind, n)
                r = self.faulty(fault, *args)
                if r.status == 0:
                    self.close_numbers(whole, json.loads(r.out), fault, 1e-6)
                    self.note(kind, "evaluated")
                else:
                    self.note(kind, self.sentence(r, "%s: eval" % fault))
                self.clean(fault)

    def test_forecasts_take_fewer_rows_where_memory_is_refused(self):
        self.train("m", "cpu", "--test", "40")  # several windows
        args = ["eval", "m.model", AIR, "--device", "opencl:0", "--json"]
        whole = self.scores(*args[:-1])
        r = self.faulty("memory:1", *args)
        self.assertEqual(r.status, 0, r.err)
        self.close_numbers(whole, json.loads(r.out), "eval", 1e-6)
        r = self.faulty("memory-always", *args)
        self.assertEqual(self.sentence(r, "memory-always"), "E601", r.err)

    def test_forecasts_go_on_with_the_other_device(self):
        self.two_devices()
        self.train("m", "cpu")
        for devices, bad in (("opencl:0,opencl:1", 0), ("opencl:0,opencl:1", 1), ("cpu,opencl:1", 1)):
            args = ["eval", "m.model", AIR, "--device", devices, "--json"]
            whole, n = self.scores(*args[:-1]), self.counts(*args)
            for kind in self.KINDS:
                if kind in ("no-compiler", "compile"):
                    continue  # the device is not in the list, then; and all compile
                for _ in range(times(1, 100) if kind in n else 1):
                    fault = "%s,device=%d" % (self.moment(kind, n), bad)
                    r = self.faulty(fault, *args)
                    if r.status == 0:
                        self.close_numbers(whole, json.loads(r.out), fault, 1e-6)
                        self.note(kind, "evaluated")
                    else:
                        self.note(kind, self.sentence(r, "%s: eval on %s" % (fault, devices)))
                    self.clean(fault)


if __name__ == "__main__":
    e2e.main()
