"""t_memory.py - data beyond --memory: a data set of ten times the limit trains, in at most 5 % more than the limit of resident memory,
to the bits of the training in memory; on one rank and on two, from text, packed text and a cache file; a full disk is said in time."""
import gzip
import os
import random
import resource
import shutil
import unittest

import e2e
from e2e import Case

LIMIT = 40 << 20
HELD = 1.08  # pages of the code that has just run, and of stacks, come on top for a moment
COLUMNS, ROWS, BLOCK = 20, 2600000, 2000  # 416 MB of numbers, half as much text
FAST = ["--target", "x0", "--past", "x1,x2,x3", "--horizon", "6", "--preset", "none", "--context", "24", "--hidden", "8", "--batch", "32",
        "--steps", "40", "--members", "1", "--threads", "2", "--base", "ridge", "--progress", "none"]


def measured(command, folder, environment):
    """Exit status, what the program said, and its peak resident memory in bytes.  The kernel counts the peak of this process, too, which
    must therefore stay small."""
    with open(os.path.join(folder, "said"), "w+b") as said:
        child = os.posix_spawn(command[0], command, environment, file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, said.fileno(), 1), (os.POSIX_SPAWN_DUP2, said.fileno(), 2)])
        _, status, usage = os.wait4(child, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(status), said.read().decode(), usage.ru_maxrss * 1024


class Memory(Case):
    @classmethod
    def setUpClass(cls):
        """One file for all tests: a block of rows again and again, each column another walk."""
        cls.folder = os.path.join(os.environ.get("TMPDIR") or "/var/tmp", "stretto-memory-%d" % os.getpid())
        os.makedirs(cls.folder)
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        if shutil.disk_usage(cls.folder).free < 3 << 30:
            raise unittest.SkipTest("skipped: less than 3 GB of disk are free")
        draw, block = random.Random(3), []
        for _ in range(BLOCK):
            block.append(",".join("%d.%d" % (draw.randrange(10), draw.randrange(10)) for _ in range(COLUMNS)))
        text = ("\n".join(block) + "\n").encode()
        cls.csv = os.path.join(cls.folder, "big.csv")
        with open(cls.csv, "wb") as f:
            f.write((",".join("x%d" % i for i in range(COLUMNS)) + "\n").encode())
            for _ in range(ROWS // BLOCK):
                f.write(text)

    def train(self, data, name, *more):
        """Trains in the folder of the test; returns the peak."""
        here = os.getcwd()
        os.chdir(self.dir)
        try:
            status, said, peak = measured([e2e.PROGRAM, "train", data, *FAST, *more, "-o", name], self.dir, self.environment())
        finally:
            os.chdir(here)
        self.assertEqual(status, 0, said)
        return peak

    def test_ten_times_the_limit(self):
        free = self.train(self.csv, "free.model")
        self.assertGreater(free, 10 * LIMIT, "the data are ten times the limit")
        for name, more in (("held", []), ("ranks", ["--ranks", "2", "--threads", "1"])):
            peak = self.train(self.csv, name + ".model", "--memory", str(LIMIT), *more)
            self.same_model("free.model", name + ".model", name)
            self.assertLess(peak, HELD * LIMIT, name)

    def test_cache_and_packed_text(self):
        small = self.path("small.csv")
        with open(self.csv, "rb") as f, open(small, "wb") as plain, gzip.open(small + ".gz", "wb", compresslevel=1) as packed:
            for _ in range(ROWS // 4):
                line = f.readline()
                plain.write(line)
                packed.write(line)
        self.train(small, "free.model")
        self.stretto("cache", small, "-o", "small.cache", "--memory", LIMIT)
        for data in (small + ".gz", "small.cache"):
            peak = self.train(data, "held.model", "--memory", str(LIMIT))
            self.same_model("free.model", "held.model", data)
            self.assertLess(peak, HELD * LIMIT, data)

    def test_hard_limit(self):
        """Where the system refuses more memory of its own to the process, the training in memory ends, and the one from disk does not."""
        def limited():
            resource.setrlimit(resource.RLIMIT_DATA, (5 * LIMIT, 5 * LIMIT))
        r = self.stretto("train", self.csv, *FAST, "-o", "m.model", status=6, timeout=300, preexec_fn=limited)
        self.assertIn("error[E601]", r.err)
        self.stretto("train", self.csv, *FAST, "--memory", LIMIT, "-o", "m.model", timeout=300, preexec_fn=limited)

    def test_disk_that_is_full(self):
        os.environ["STRETTO_FAULT"] = "*:0:spill=enospc"
        self.addCleanup(os.environ.pop, "STRETTO_FAULT")
        r = self.stretto("train", self.csv, *FAST, "--memory", LIMIT, "-o", "m.model", status=7)
        self.assertRegex(r.err, r"error\[E703\] .*: [\d.]+ MiB of data beyond --memory need a file here: ")
        self.assertIn("  fix: TMPDIR=", r.err)
        self.assertFalse(os.path.exists(self.path("m.model")))


if __name__ == "__main__":
    e2e.main()
