"""t_learners.py - a training of another learner than the forecaster that is stopped or killed, and resumed, ends with the bits of the
training that was not.

A checkpoint every 50 ms; once there is one, SIGTERM (exit 75, a whole checkpoint of that moment) or SIGKILL -> `stretto resume`, with
another number of threads and ranks -> the same model.
"""
import glob
import json
import os
import signal
import time

import e2e
from e2e import Case

STOPPED = 75
EVERY = ("--checkpoint-every", "0.05", "--quiet")


def numbers(seed):
    """Endless whole numbers 0..999, the same on every machine."""
    x = seed
    while True:
        x = (x * 1103515245 + 12345) % 2147483648
        yield x // 65536 % 1000


def table(rows):
    n, lines = numbers(7), ["a,b,c,d,e,kind"]
    for _ in range(rows):
        v = [next(n) for _ in range(5)]
        kind = "xyz"[(v[0] > 500) + (v[1] + v[2] > 900 + next(n) // 10)]
        lines.append(",".join(map(str, v)) + "," + kind)
    return "\n".join(lines) + "\n"


def points(rows):
    n = numbers(3)
    return "a,b,c,d\n" + "".join(",".join(str(next(n)) for _ in range(4)) + "\n" for _ in range(rows))


def sentences(count):
    n, out = numbers(11), []
    for _ in range(count):
        state = next(n) % 4
        for _ in range(4 + next(n) % 20):
            state = (state + next(n) // 700) % 4
            out.append("w%d t%d" % (state * 40 + next(n) % 50, state))
        out.append("")
    return "\n".join(out) + "\n"


def words(count):
    return "\n".join(line.split(" ")[0] for line in sentences(count).split("\n"))


class Learners(Case):
    def wait_for_checkpoint(self, child, folder):
        limit = time.monotonic() + 60 * e2e.SLOW
        while child.poll() is None and not glob.glob(folder + "/*.ckpt"):
            self.assertLess(time.monotonic(), limit, "the training never wrote a checkpoint")
            time.sleep(0.002)

    def cut(self, args, number):
        """Trains until the first checkpoint, then sends the signal.  False when the training was over before."""
        if os.path.exists(self.path("cut.model")):
            os.unlink(self.path("cut.model"))
        child = self.start("train", *args, "-o", "cut.model", *EVERY)
        self.wait_for_checkpoint(child, self.path("cut.model.run/checkpoints"))
        if child.poll() is None:
            child.send_signal(number)
        _, err = child.communicate(timeout=60 * e2e.SLOW)
        if child.returncode == 0 or (child.returncode == -signal.SIGKILL and os.path.exists(self.path("cut.model"))):
            return False
        self.assertEqual(child.returncode, STOPPED if number == signal.SIGTERM else -number, err.decode())
        self.assertFalse(os.path.exists(self.path("cut.model")))
        return True

    def same(self, a, b, what):
        """Equal tensors, and equal facts but for times and for what k-means saved, which depends on where its bounds began."""
        own = ("lloyd_seconds", "lloyd_cpu_seconds", "distances_saved")
        (ha, ta), (hb, tb) = e2e.model(self.path(a)), e2e.model(self.path(b))
        self.assertEqual(ta, tb, what)
        for key in ("stretto.forest", "stretto.kmeans", "stretto.hmm", "stretto.tagger", "stretto.crf", "stretto.classify"):
            fa, fb = json.loads(ha.get(key, "{}")), json.loads(hb.get(key, "{}"))
            self.assertEqual(*({k: v for k, v in f.items() if k not in own} for f in (fa, fb)), what)

    def compare(self, *args, more=(), cuts=3):
        """more: options of a training that takes longer, where this machine was too fast for the others."""
        ways = ((signal.SIGTERM, ("--ranks", 2, "--threads", 1)), (signal.SIGKILL, ("--threads", 2)),
                (signal.SIGTERM, ("--ranks", 1, "--threads", 1)))[:cuts]
        for options in ((*args,), (*args, *more)):
            self.stretto("train", *options, "-o", "whole.model", "--quiet")
            hits = 0
            for number, way in ways:
                if not self.cut(options, number):
                    continue
                hits += 1
                self.stretto("resume", "cut.model.run", *way, *EVERY)
                self.same("whole.model", "cut.model", "signal %d, %s" % (number, way))
            if hits == cuts:
                return
        self.assertGreater(hits, 0, "every training was over before it could be stopped")

    def test_forest(self):
        self.compare(self.write("t.csv", table(12000)), "--task", "forest", "--target", "kind", "--trees", 400,
                     more=("--trees", 4000))

    def test_kmeans(self):
        self.compare(self.write("t.csv", points(20000)), "--task", "kmeans", "--clusters", 60, "--restarts", 4,
                     more=("--restarts", 40))

    def test_kmeans_trimmed(self):
        self.compare(self.write("t.csv", points(20000)), "--task", "kmeans", "--clusters", 60, "--restarts", 4, "--trim", 2,
                     more=("--restarts", 20), cuts=1)

    def test_kmeans_by_batches(self):
        self.compare(self.write("t.csv", points(20000)), "--task", "kmeans", "--clusters", 60, "--restarts", 20, "--minibatch", 1000,
                     more=("--restarts", 200), cuts=1)

    def test_crf(self):
        self.compare(self.write("s.txt", sentences(1500)), "--task", "crf", "--epsilon", "1e-9", more=("--epsilon", "1e-12"))

    def test_crf_with_l1(self):
        self.compare(self.write("s.txt", sentences(1500)), "--task", "crf", "--l1", 0.1, "--epsilon", "1e-9",
                     more=("--epsilon", "1e-12"), cuts=1)

    def test_crf_by_sgd(self):
        for trainer in ("sgd", "asgd"):
            self.compare(self.write("s.txt", sentences(1500)), "--task", "crf", "--trainer", trainer, "--steps", 60,
                         "--epsilon", 0, more=("--steps", 600), cuts=2)

    def test_hmm(self):
        self.compare(self.write("w.txt", words(1500)), "--task", "hmm", "--states", 12, "--restarts", 3, "--tolerance", 0,
                     "--iterations", 60, more=("--iterations", 400))

    def test_tagger(self):
        """The second checkpoint may be one of the refit."""
        self.compare(self.write("s.txt", sentences(400)), "--task", "tagger", "--epochs", 3, "--hidden", 24, "--validate-every", 4,
                     more=("--epochs", 12))

    def test_tagger_in_the_refit(self):
        data = self.write("s.txt", sentences(400))
        options = (data, "--task", "tagger", "--epochs", 3, "--hidden", 24, "--validate-every", 4)
        self.stretto("train", *options, "-o", "whole.model", "--quiet")
        child = self.start("train", *options, "-o", "cut.model", "--checkpoint-every", "0.05")
        self.said(child, "refit on all sentences")
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60 * e2e.SLOW)
        if child.returncode == STOPPED:
            self.stretto("resume", "cut.model.run", "--quiet")
        self.same_model("whole.model", "cut.model")

    def test_tagger_validates_as_often_when_resumed(self):
        """An option without a flag has the value of the first run, not that of options.def."""
        data = self.write("s.txt", sentences(100))
        options = ("--task", "tagger", "--epochs", 12, "--hidden", 8)
        self.stretto("train", data, *options, "-o", "whole.model", "--quiet")
        first = self.stretto("train", data, *options, "--time-limit", "0.01", "-o", "cut.model", "--quiet", status=None)
        self.assertEqual(first.status, 76)
        self.stretto("resume", "cut.model.run", "--time-limit", 0, "--quiet")
        self.same_model("whole.model", "cut.model")

    def test_classify(self):
        """Checkpoints of every member, of its first fit and of its refit."""
        n = numbers(5)
        rows = ["id,x,z,y"] + ["s%d,%d,%d,%s" % (k, next(n) * (1 + k % 2), next(n), "ab"[k % 2]) for k in range(150)
                               for _ in range(10 + k % 7)]
        self.compare(self.write("q.csv", "\n".join(rows) + "\n"), "--task", "classify", "--id", "id", "--target", "y", "--members", 2,
                     "--epochs", 20, "--hidden", 24, more=("--epochs", 200))

    def test_time_limit(self):
        data = self.write("t.csv", table(4000))
        options = ("--task", "forest", "--target", "kind", "--trees", 3000)
        self.stretto("train", data, *options, "-o", "whole.model", "--quiet")
        first = self.stretto("train", data, *options, "--time-limit", "0.2", "-o", "cut.model", "--quiet", status=None)
        self.assertIn(first.status, (0, 76))
        if first.status == 76:
            self.stretto("resume", "cut.model.run", "--time-limit", 0, "--quiet")
        self.same_model("whole.model", "cut.model")

    def slow_graph(self):
        """A ring with a short cut: changes go round it and fall by the damping factor alone."""
        n = 3000
        return self.write("ring.txt", "".join("%d %d\n" % (i, (i + 1) % n) for i in range(n)) + "0 %d\n" % (n // 2)), n

    def ranks(self, name, nodes):
        lines = self.read(name).decode().split("\n")
        self.assertEqual(len(lines), nodes + 2)
        self.assertAlmostEqual(sum(float(line.split(",")[1]) for line in lines[1:-1]), 1, 9)

    def test_graph_stopped_by_hand(self):
        """A signal ends the iteration; the table is what was reached, and ranks sum to 1."""
        data, nodes = self.slow_graph()
        for number, extra in ((signal.SIGINT, ("--threads", 2)), (signal.SIGTERM, ("--ranks", 2))):
            child = self.start("graph", "pagerank", data, "-o", "ranks.csv", "--damping", "0.9999", "--tol", "1e-14",
                               "--max-iter", 1000000000, *extra)
            self.said(child, "read ring.txt")
            time.sleep(0.3)
            child.send_signal(number)
            _, err = child.communicate(timeout=60 * e2e.SLOW)
            self.assertEqual(child.returncode, STOPPED, err.decode())
            self.assertIn("error[E806] stopped as asked; the table is what was reached", err.decode())
            self.ranks("ranks.csv", nodes)
            os.remove(self.path("ranks.csv"))

    def test_graph_time_limit(self):
        data, nodes = self.slow_graph()
        r = self.stretto("graph", "pagerank", data, "-o", "ranks.csv", "--damping", "0.9999", "--tol", "1e-14", "--max-iter",
                         1000000000, "--time-limit", "0.3", status=76)
        self.assertIn("error[E807] unfinished: --time-limit 0.3", r.err)
        self.ranks("ranks.csv", nodes)

    def test_other_data(self):
        data = self.write("t.csv", table(12000))
        if not self.cut((data, "--task", "forest", "--target", "kind", "--trees", 4000), signal.SIGTERM):
            self.fail("the training was over before it could be stopped")
        self.write("t.csv", table(12000).replace(",x\n", ",y\n", 1))
        self.assertIn("E215", self.stretto("resume", "cut.model.run", "--quiet", status=3).err)
        self.write("t.csv", table(12000))
        self.stretto("resume", "cut.model.run", "--quiet")


if __name__ == "__main__":
    e2e.main()
