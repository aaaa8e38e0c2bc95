"""e2e.py - what the end-to-end tests start with: the program, an empty folder for each test, a reader of model files.

    python3 t_session.py PROGRAM [TestClass.test_name]      one file = one test of CTest; only the standard library is used

Every test is a method of a Case; self.stretto("train", ...) runs the program and checks its exit status.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
AIR = os.path.join(ROOT, "examples", "airline-passengers.csv")
SHARED = os.environ.get("STRETTO_SHARED") or os.path.join(ROOT, "..", "shared")
PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
SLOW = float(os.environ.get("STRETTO_TEST_PATIENCE", "1"))  # longer waits for sanitizers and valgrind

FEW = bool(os.environ.get("STRETTO_TEST_FEW"))  # fewer cases under a sanitizer


def times(few, many):
    """How often a test draws a moment: `few` in ./check, `many` with STRETTO_TEST_MANY (make endurance)."""
    return many if os.environ.get("STRETTO_TEST_MANY") else few


def below(pid):
    """This process and all below it."""
    found = [pid]
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                found += [q for child in f.read().split() for q in below(int(child))]
    except OSError:
        pass
    return found


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class Case(unittest.TestCase):
    maxDiff = 4000
    above = None  # where the folder of a test is made; None: where temporary files go
    LEARNS = False  # same_model compares only networks that have learned: equal initial weights say nothing

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="stretto-e2e-", dir=self.above)
        self.addCleanup(shutil.rmtree, self.dir, True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def environment(self, **more):
        return dict(os.environ, **{"NO_COLOR": "1", "LC_ALL": "C", "STRETTO_WISDOM": "off", **more})

    def stretto(self, *args, status=0, timeout=60, **more):
        """Runs the program in the folder of the test; fails unless it ends with `status` (None: any)."""
        done = subprocess.run([PROGRAM, *map(str, args)], cwd=more.pop("cwd", self.dir), stdin=subprocess.DEVNULL,
                              stdout=more.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, timeout=timeout * SLOW, env=self.environment(), **more)
        done.stdout = done.stdout or b""
        r = Result(done)
        if status is not None and r.status != status:
            self.fail("stretto %s: exit status %d, expected %d\n%s%s" % (" ".join(map(str, args)), r.status, status, r.out, r.err))
        return r

    def start(self, *args):
        """The program in the background; ended when the test ends."""
        child = subprocess.Popen([PROGRAM, *map(str, args)], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=self.environment())

        def end():
            if child.poll() is None:
                child.kill()
            child.communicate()
        self.addCleanup(end)
        return child

    def said(self, child, text):
        """Reads stderr of the program up to the line that holds `text`."""
        seen = []
        for line in iter(child.stderr.readline, b""):
            seen.append(line.decode())
            if text in seen[-1]:
                return
        self.fail("the program ended without a line with \"%s\":\n%s" % (text, "".join(seen)))

    def same_model(self, a, b, what=""):
        """Equal in every tensor and in all metadata but the record of the training, the options, and the sum over them."""
        self.assertTrue(not self.LEARNS or learned(self.path(a) + ".run"), "%s: %s holds the weights of step 0" % (what, a))
        ha, ta = model(self.path(a))
        hb, tb = model(self.path(b))
        self.assertEqual(sorted(ta), sorted(tb), what)
        for name in ta:
            self.assertEqual(ta[name], tb[name], "%s: tensor %s of %s and %s" % (what, name, a, b))
        for key in ha:
            if key not in ("stretto.record", "stretto.options", "stretto.sum"):
                self.assertEqual(ha[key], hb[key], "%s: metadata %s of %s and %s" % (what, key, a, b))

    def same_metrics(self, a, b, what=""):
        """Equal line by line, but for times, and what depends on who trained."""
        first, second = metrics(self.path(a)), metrics(self.path(b))
        for i, (x, y) in enumerate(zip(first, second)):
            self.assertEqual(x, y, "%s: line %d of %s and %s" % (what, i + 1, a, b))
        self.assertEqual(len(first), len(second), "%s: lines of %s and %s" % (what, a, b))


def learned(run):
    """Is a validation behind the first step the best of a member?  True where the run has none, or is not there."""
    path = os.path.join(run, "metrics.jsonl")
    if not os.path.exists(path):
        return True
    with open(path, encoding="utf-8") as f:
        lines = [line for line in map(json.loads, f) if line.get("split") == "valid"]
    return not lines or any(line["best"] and line["step"] > 0 for line in lines)


def metrics(run):
    """The lines of RUN/metrics.jsonl, without what differs from run to run."""
    own = ("seconds", "windows_per_s", "device_share", "rounds", "forgets", "efficiency")
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as f:
        return [{k: v for k, v in json.loads(line).items() if k not in own} for line in f]


def model(path):
    """(metadata, {tensor: (dtype, shape, bytes)}) of a safetensors file."""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(n).decode("utf-8"))
        body = f.read()
    meta = head.pop("__metadata__", {})
    tensors = {}
    for name, t in head.items():
        a, b = t["data_offsets"]
        tensors[name] = (t["dtype"], tuple(t["shape"]), body[a:b])
    return meta, tensors


def shared(name):
    path = os.path.join(SHARED, "data", name)
    if not os.path.exists(path):
        raise unittest.SkipTest("the shared data file %s is not here" % name)
    return path


def main():
    if not PROGRAM or not os.access(PROGRAM, os.X_OK):
        sys.exit("usage: python3 %s PROGRAM [TestClass.test_name]" % sys.argv[0])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2 if len(sys.argv) > 2 else 1)
