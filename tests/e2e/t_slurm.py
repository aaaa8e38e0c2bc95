"""t_slurm.py - a cluster of Slurm with three nodes on this host (tests/slurm/cluster.sh): several ranks under srun, jobs by `submit`, and
that a lost rank, a lost node and the end of the time allowed cost nothing: the model has the bits of an undisturbed run."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import e2e
from e2e import AIR, Case

CLUSTER = os.path.join(e2e.ROOT, "tests", "slurm", "cluster.sh")
SHORT = ["--target", "Passengers", "--horizon", "12", "--members", "2", "--steps", "60", "--batch", "40", "--progress", "none"]
LONG = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "40000", "--validate-every", "1000", "--batch", "40",
        "--threads", "1", "--checkpoint-every", "1s", "--progress", "none"]


def plugin(flavour):
    return os.path.exists(os.path.join(os.path.dirname(os.path.realpath(e2e.PROGRAM)), "..", "src", "comm", "stretto-mpi-%s.so" % flavour))


class Cluster(Case):
    node_timeout = "60"  # a busy host is not a lost one

    @classmethod
    def prepare(cls):
        """What the cluster is started with beyond the usual: environment of cluster.sh."""
        return {}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stretto-slurm-")
        os.chmod(cls.folder, 0o755)
        cls.cluster = os.path.join(cls.folder, "cluster")
        port = str(20000 + os.getpid() % 1500 * 8)  # below those that the kernel gives to any socket
        done = subprocess.run([CLUSTER, "up", cls.cluster, "3", "2"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=180,
                              env=dict(os.environ, SLURM_BASEPORT=port, SLURM_NODE_TIMEOUT=cls.node_timeout, **cls.prepare()))
        text = done.stdout.decode()
        if done.returncode == 77:
            shutil.rmtree(cls.folder)
            print(text, end="")
            sys.exit(77)
        if done.returncode != 0:
            shutil.rmtree(cls.folder)
            raise RuntimeError(text)
        exports = subprocess.run([CLUSTER, "env", cls.cluster], stdout=subprocess.PIPE, check=True).stdout.decode()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the daemons end with the test
        cls.exported = dict(word.split("=", 1) for word in exports.split() if "=" in word)

    @classmethod
    def tearDownClass(cls):
        subprocess.run([CLUSTER, "down", cls.cluster], check=True)
        shutil.rmtree(cls.folder, ignore_errors=True)

    def environment(self, **more):
        return super().environment(**self.exported, **more)

    def run_(self, *command, status=0, timeout=60):
        done = subprocess.run(list(map(str, command)), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout * e2e.SLOW, env=self.environment())
        r = e2e.Result(done)
        if status is not None and r.status != status:
            self.fail("%s: exit status %d, expected %d\n%s%s" % (" ".join(map(str, command)), r.status, status, r.out, r.err))
        return r

    def srun(self, mpi, ranks, *args, **more):
        return self.run_("srun", "-N", ranks, "-n", ranks, "--mpi=" + mpi, "--kill-on-bad-exit=1", e2e.PROGRAM, *args, **more)

    def need(self, flavour):
        if not plugin(flavour):
            raise unittest.SkipTest("skipped: no plug-in for %s" % flavour)

    def mpi(self):
        """The flavour of a job, whichever was built."""
        if plugin("openmpi"):
            return "pmix"
        self.need("mpich")
        return "pmi2"

    def submit(self, *args, nodes=2, per_node=1, wait=True, status=0, timeout=120, time_="30:00"):
        self.mpi()
        return self.run_(e2e.PROGRAM, "submit", "--on", "slurm", "--nodes", nodes, "--ranks-per-node", per_node, "--time", time_,
                         *(["--wait"] if wait else []), "--", *args, status=status, timeout=timeout)

    def job(self, r):
        return re.search(r"(?m)^job (\d+)$", r.out).group(1)

    def log(self, name):
        text = ""
        for path in glob.glob(self.path(name + ".slurm-*.out")):
            with open(path, encoding="utf-8") as f:
                text += f.read()
        return text

    def state(self, job):
        text = subprocess.run(["scontrol", "show", "job", "-o", job], stdout=subprocess.PIPE, env=self.environment()).stdout.decode()
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def until(self, what, ready, limit=120):
        end = time.monotonic() + limit * e2e.SLOW
        while not ready():
            if self.log("*").count("srun: error: node") > 8:
                self.fail("%s: it fails again and again\n%s" % (what, self.log("*")))
            self.assertLess(time.monotonic(), end, "waited in vain: %s\n%s" % (what, self.log("*")))
            time.sleep(0.05)

    def until_over(self, job, name):
        self.until("end of the job", lambda: self.state(job)["JobState"] in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"))
        self.assertEqual(self.state(job)["JobState"], "COMPLETED", self.log(name))

    def until_checkpoint(self, name):
        self.until("a checkpoint", lambda: glob.glob(self.path(name + ".run/checkpoints/*.ckpt")))

    def undisturbed(self):
        """The long run, once for all tests."""
        kept = os.path.join(self.folder, "long.model")
        if not os.path.exists(kept):
            self.stretto("train", AIR, *LONG, "-o", "long.model", timeout=100)
            shutil.copy(self.path("long.model"), kept)
        else:
            shutil.copy(kept, self.path("long.model"))

    def ranks_of(self, name):
        """Processes of a run: each has its model on the command line, or its run folder; found below the step daemons of our nodes."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as f:
                    words = f.read().split(b"\0")
                if words[0] == e2e.PROGRAM.encode() and os.readlink(os.path.dirname(path) + "/cwd") == os.path.realpath(self.dir):
                    found.append(int(path.split("/")[2]))
            except OSError:
                continue
        return sorted(found)


class Jobs(Cluster):
    def under_srun(self, mpi):
        self.stretto("train", AIR, *SHORT, "--threads", "1", "-o", "one.model")
        for ranks in (2, 3):
            r = self.srun(mpi, ranks, "train", AIR, *SHORT, "-o", "m.model")
            self.assertIn("%d ranks (mpi)" % ranks, r.err)
            self.same_model("one.model", "m.model", "%s, %d ranks" % (mpi, ranks))

    def test_srun_pmix(self):
        self.need("openmpi")
        self.under_srun("pmix")

    def test_srun_pmi2(self):
        self.need("mpich")
        self.under_srun("pmi2")

    def test_ranks_that_would_be_alone_are_named(self):
        r = self.srun("none", 2, "train", AIR, *SHORT, "-o", "m.model", status=8)
        self.assertIn("error[E803] Slurm (--mpi=none) started 2 ranks that cannot find each other", r.err)
        self.assertFalse(os.path.exists(self.path("m.model")))
        os.environ["STRETTO_MPI"] = "openmpi"
        self.addCleanup(os.environ.pop, "STRETTO_MPI", None)
        r = self.srun("pmi2", 2, "train", AIR, *SHORT, "-o", "m.model", status=8)
        self.assertIn("error[E803] Slurm (pmi2) started 2 ranks, but Open MPI speaks pmix only", r.err)
        self.need("mpich")
        os.environ["STRETTO_MPI"] = "mpich"
        r = self.srun("pmix", 2, "train", AIR, *SHORT, "-o", "m.model", status=8)
        self.assertIn("the launcher and the MPI library do not belong together", r.err)

    def test_doctor_on_every_host(self):
        r = self.srun(self.mpi(), 3, "doctor", "--threads", "1", status=None)
        self.assertEqual(r.status, 0, r.out + r.err)
        self.assertRegex(r.out, r"(?m)^ok    launcher +Slurm \(\w+\), 3 ranks$")
        self.assertRegex(r.out, r"(?m)^3 ranks on 3 hosts; the lines above are of node1")
        self.assertEqual(len(re.findall("launcher ", r.out)), 1, "hosts that are the same are said once")
        r = self.run_("srun", "-N", 2, "-n", 2, "--mpi=none", e2e.PROGRAM, "doctor", status=11)  # each says what it has to say
        self.assertIn("stop  launcher         Slurm (--mpi=none) started 2 ranks", r.out)

    def test_submit_and_wait(self):
        self.stretto("train", AIR, *SHORT, "-o", "one.model")
        r = self.submit("train", AIR, *SHORT, "-o", "m.model", per_node=2, nodes=2)
        self.assertIn("COMPLETED", r.err)
        self.assertIn("4 ranks (mpi)", self.log("m.model"))
        self.same_model("one.model", "m.model", "2 nodes of 2 ranks")
        r = self.submit("train", AIR, *SHORT, "--require-skill", "--lr", "0", "-o", "w.model", status=10)
        self.assertIn("FAILED, exit code 10", r.err)

    def test_nothing_is_queued_in_vain(self):
        for args, status, text in (
                (["train", "absent.csv", *SHORT], 7, "absent.csv"),
                (["train", AIR, *SHORT, "--horizon", "100000"], 4, "error[E301]"),
                (["train", AIR, *SHORT, "--ranks", "3"], 2, "--ranks 3, and 2 hosts of 1 ranks are asked for"),
                (["resume", self.dir], 7, "is no run folder"),
                (["predict", "m", AIR, "-o", "x"], 2, "submit runs train and resume")):
            r = self.submit(*args, status=status)
            self.assertIn(text, r.err)
        r = self.run_(e2e.PROGRAM, "submit", "--on", "slurm", "--queue", "absent", "--", "train", AIR, *SHORT, status=8)
        self.assertIn("error[E805]", r.err)
        self.assertIn("invalid partition", r.err)
        jobs = subprocess.run(["squeue", "-h", "-o", "%j"], stdout=subprocess.PIPE, env=self.environment()).stdout.decode()
        self.assertNotIn("airline", jobs)

    def test_killed_rank(self):
        self.undisturbed()
        job = self.job(self.submit("train", AIR, *LONG, "-o", "k.model", wait=False))
        self.until_checkpoint("k.model")
        os.kill(self.ranks_of("k.model")[-1], signal.SIGKILL)
        self.until("the second start", lambda: self.state(job).get("Restarts") == "1")
        self.until_over(job, "k.model")
        self.same_model("long.model", "k.model", "a rank was killed")

    def test_end_of_the_time_allowed(self):
        self.undisturbed()
        job = self.job(self.submit("train", AIR, *LONG, "-o", "t.model", wait=False))
        self.until_checkpoint("t.model")
        subprocess.run(["scancel", "--signal=USR1", job], check=True, env=self.environment())  # what --signal=USR1@120 does
        self.until("the second start", lambda: self.state(job).get("Restarts") == "1")
        self.until_over(job, "t.model")
        self.assertIn("error[E802] stopped as asked", self.log("t.model"))
        self.same_model("long.model", "t.model", "asked to stop")


class Slow(Cluster):
    """What waits a minute and more for Slurm to notice."""
    node_timeout = "15"

    def test_killed_node(self):
        self.undisturbed()
        job = self.job(self.submit("train", AIR, *LONG, "-o", "n.model", wait=False))
        self.until_checkpoint("n.model")
        first = self.state(job)["NodeList"]
        node = "node" + re.search(r"(\d)\D*$", first).group(1)
        subprocess.run([CLUSTER, "node-down", self.cluster, node], check=True)
        try:
            self.until("the second start", lambda: self.state(job).get("Restarts") == "1")
            self.until("running again", lambda: self.state(job)["JobState"] in ("RUNNING", "COMPLETED"))
            self.until_over(job, "n.model")
            self.same_model("long.model", "n.model", "a node was lost")
            self.assertNotIn(node[-1], self.state(job)["NodeList"].replace("node", ""))
        finally:
            subprocess.run([CLUSTER, "node-up", self.cluster, node], check=True, env=self.environment())

    def test_time_limit(self):
        """--time 1:00 warns 30 s before, or up to a minute earlier than that."""
        job = self.job(self.submit("train", AIR, *LONG, "--steps", "1000000", "-o", "l.model", wait=False, time_="1:00", nodes=1))
        self.until("the second start", lambda: self.state(job).get("Restarts") == "1")
        self.assertIn("error[E802] stopped as asked", self.log("l.model"))
        self.until("going on", lambda: "resumed member 1" in self.log("l.model"))
        subprocess.run(["scancel", job], check=True, env=self.environment())


if __name__ == "__main__":
    e2e.main()
