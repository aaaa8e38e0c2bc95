"""t_host_data.py - ranks of one host that share one reading of the data: the model of one rank for every kind of data, with and without
--memory; less memory than that of as many copies; one message for a file that cannot be read; nothing is left of ranks that are killed."""
import datetime
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import e2e
from t_ranks import Launched, has

ROWS, COLUMNS = 400000, 6
WIDE = ["--target", "x0", "--past", "x1,x2,x3,x4,x5", "--horizon", "6", "--preset", "none", "--context", "24", "--hidden", "8", "--batch", "32",
        "--steps", "40", "--members", "1", "--base", "last", "--no-guard"]
ALWAYS = ["--threads", "1", "--progress", "none"]
ON_HOSTS = """#!/bin/sh
exec unshare -u sh -c 'hostname host$((PMI_RANK / 2)) && exec "$@"' sh "$@"
"""


def wide(path):
    draw, block = random.Random(3), []
    for _ in range(2000):
        block.append(",".join("%d.%d" % (draw.randrange(10), draw.randrange(10)) for _ in range(COLUMNS)))
    with open(path, "w") as f:
        f.write(",".join("x%d" % i for i in range(COLUMNS)) + "\n")
        for _ in range(ROWS // 2000):
            f.write("\n".join(block) + "\n")


def panel(path):
    draw, first = random.Random(5), datetime.date(2020, 1, 1)
    with open(path, "w") as f:
        f.write("shop,day,units,price,sky,size\n")
        for shop in range(12):
            for day in range(shop, 900):
                f.write("s%d,%s,%.2f,%s,%s,%d\n" % (shop, first + datetime.timedelta(day), shop + day % 7 + draw.random(),
                                                   "" if day % 50 == 3 else "%.1f" % draw.random(), draw.choice(("sun", "rain", "snow")), shop % 3))


def classes(path):
    draw = random.Random(7)
    with open(path, "w") as f:
        f.write("a,b,c,class\n")
        for _ in range(60000):
            a, b = draw.random(), draw.random()
            f.write("%.3f,%.3f,%s,%s\n" % (a, b, draw.choice("xyz"), "p" if a + b > 1 else "q"))


def motions(path):
    draw = random.Random(9)
    with open(path, "w") as f:
        f.write("id,step,x,label\n")
        for k in range(2000):
            fast = draw.random() < 0.5
            for t in range(20):
                f.write("%d,%d,%.3f,%s\n" % (k, t, (t * (1 + fast) % 5) + 0.1 * draw.random(), "run" if fast else "walk"))


def links(path):
    with open(path, "w") as f:
        for k in range(20):
            f.write("\n".join("word%d NN %s" % (i * k % 11, "B" if i % 3 == 0 else "I") for i in range(9)) + "\n\n")


def runs_program(pid):
    try:
        return os.readlink("/proc/%d/exe" % pid) == os.path.realpath(e2e.PROGRAM)
    except OSError:
        return False  # it has ended


def ranks_of(pid):
    return [q for q in e2e.below(pid) if runs_program(q)]


def proportional(pids):
    """Memory of processes in bytes; a page that n processes map counts 1 / n for each."""
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += sum(1024 * int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            pass
    return total


class HostData(Launched):
    def flavour(self):
        for name in ("mpich", "openmpi"):
            if has(name):
                return name
        raise unittest.SkipTest("skipped: no launcher of MPI, or no plug-in for it")

    def make(self, write):
        path = self.path("data.csv")
        write(path)
        return path

    def both(self, data, *options, ranks=3):
        """One rank, and several: the same model."""
        self.stretto("train", data, *options, *ALWAYS, "-o", "one.model", timeout=120)
        self.mpi(None, None, shell=[*self.launched(self.flavour(), ranks), "train", data, *options, *ALWAYS, "-o", "more.model"])
        self.same_model("one.model", "more.model", " ".join(options))

    def test_series(self):
        self.both(self.make(wide), *WIDE)

    def test_series_beyond_the_limit(self):
        data = self.make(wide)
        self.both(data, *WIDE, "--memory", "128M")
        os.remove(self.path("more.model"))
        self.both(data, *WIDE)

    def test_panel_with_words_and_gaps(self):
        self.both(self.make(panel), "--id", "shop", "--target", "units", "--past", "price", "--cat", "sky", "--static", "size", "--horizon", "7", "--steps", "40",
                  "--max-steps", "0")

    def test_table(self):
        self.both(self.make(classes), "--task", "forest", "--target", "class", "--trees", "8")

    def test_sequences(self):
        self.both(self.make(motions), "--task", "classify", "--id", "id", "--time", "step", "--target", "label", "--steps", "20", "--max-steps", "0")

    def test_tokens_that_each_rank_reads(self):
        self.both(self.make(links), "--task", "crf", ranks=2)

    def test_hosts_have_a_copy_each(self):
        if not has("mpich") or subprocess.run(["unshare", "-u", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("skipped: no MPICH, or no name spaces for host names")
        data, script = self.make(wide), self.write("on-hosts", ON_HOSTS)
        os.chmod(script, 0o755)
        command = self.launched("mpich", 4, "train", data, *WIDE, *ALWAYS, "-o", "more.model")
        command.insert(command.index(e2e.PROGRAM), script)
        self.stretto("train", data, *WIDE, *ALWAYS, "-o", "one.model", timeout=120)
        self.mpi(None, None, shell=command)
        self.same_model("one.model", "more.model", "4 ranks on 2 hosts")

    def start_ranks(self, n, *args, **environment):
        child = subprocess.Popen(self.launched(self.flavour(), n, *args), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, env=self.environment(**environment))
        self.addCleanup(child.stderr.close)
        self.addCleanup(lambda: child.poll() is None and child.kill())
        return child

    def peak(self, **environment):
        child, most = self.start_ranks(4, "train", self.path("data.csv"), *WIDE, *ALWAYS, "-o", "m.model", **environment), 0
        while child.poll() is None:
            most = max(most, proportional(ranks_of(child.pid)))
            time.sleep(0.02)
        self.assertEqual(child.returncode, 0, child.stderr.read())
        return most

    def test_memory_of_ranks_is_less_than_that_of_copies(self):
        self.make(wide)
        shared, apart = self.peak(), self.peak(STRETTO_NEAR="off")
        copy = ROWS * (COLUMNS * 4 + 8)  # what a rank keeps of the data
        self.assertLess(shared, apart - 2 * copy)

    def test_line_that_is_wrong_is_said_once(self):
        data = self.make(panel)
        with open(data, "a") as f:
            f.write("s1,2024-01-01,seven,1,sun,1\n")
        with open(data) as f:
            lines = sum(1 for _ in f)
        for launcher in ("openmpi", "mpich"):
            if not has(launcher):
                continue
            for more in ([], ["--memory", "128M"]):
                r = self.mpi(launcher, 4, "train", data, "--id", "shop", "--target", "units", *more, "-o", "m.model", status=3)
                self.assertEqual(r.err.count("error["), 1, r.err)
                self.assertIn("error[E204] %s:%d:3: " % (data, lines), r.err)
        self.assertFalse(os.path.exists(self.path("m.model")))

    def test_file_that_a_host_lacks(self):
        if not has("mpich") or subprocess.run(["unshare", "-u", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("skipped: no MPICH, or no name spaces for host names")
        self.make(panel)
        script = self.write("on-hosts", ON_HOSTS.replace("exec unshare", "test $PMI_RANK -lt 2 || cd /\nexec unshare"))
        os.chmod(script, 0o755)
        command = self.launched("mpich", 4, "train", "data.csv", "--target", "units", "--id", "shop", *ALWAYS, "-o", "m.model")
        command.insert(command.index(e2e.PROGRAM), script)
        r = self.mpi(None, None, shell=command, status=7)
        self.assertEqual(r.err.count("error["), 1, r.err)
        self.assertIn("(rank 2, host host1)", r.err)

    def test_ranks_that_are_killed_leave_nothing(self):
        self.make(wide)
        folder = self.path("spilled")
        os.mkdir(folder)
        for victim in (0, 2):
            child = self.start_ranks(3, "train", self.path("data.csv"), *WIDE, *ALWAYS, "--memory", "128M", "--steps", "100000", "-o", "m.model",
                                     TMPDIR=folder)
            limit = time.monotonic() + 60 * e2e.SLOW
            while len(ranks_of(child.pid)) < 3 and time.monotonic() < limit:
                time.sleep(0.01)
            time.sleep(0.5 + 0.5 * victim)
            ranks = ranks_of(child.pid)
            self.assertEqual(len(ranks), 3)
            os.kill(sorted(ranks)[victim], signal.SIGKILL)
            child.wait(60 * e2e.SLOW)
            while any(os.path.exists("/proc/%d" % pid) for pid in ranks) and time.monotonic() < limit:
                time.sleep(0.05)
            self.assertFalse([pid for pid in ranks if os.path.exists("/proc/%d" % pid)])
            self.assertEqual([name for name in os.listdir(folder) if name.startswith("stretto")], [])
            self.assertEqual([name for name in os.listdir("/dev/shm") if "stretto" in name], [])
            shutil.rmtree(self.path("m.model.run"), True)


if __name__ == "__main__":
    e2e.main()
