"""t_join.py - the members of a job as processes of this host, as a scheduler starts them in containers (`stretto join`): equal bits, a member that is lost
and started again, a stop, members that never come.  On a real YARN: t_yarn.py."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import e2e
from e2e import AIR, SLOW, Case
from webhdfs import Standin

MPICH = os.path.exists(os.path.join(os.path.dirname(os.path.realpath(e2e.PROGRAM)), "..", "src", "comm", "stretto-mpi-mpich.so"))
TRAIN = ["train", AIR, "--base", "none", "--no-guard", "--target", "Passengers", "--horizon", "12", "--members", "1", "--batch", "40", "--progress", "none", "--threads", "1"]
SHORT = [*TRAIN, "--steps", "60"]
LONG = [*TRAIN, "--steps", "8000", "--validate-every", "1000", "--checkpoint-every", "0.2s"]


@unittest.skipUnless(MPICH and shutil.which("mpiexec.mpich"), "skipped: no mpiexec of MPICH, or no plug-in for it")
class Join(Case):
    LEARNS = True

    def member(self, number, command, model, *more):
        return self.start("join", "--session", "s", "--member", str(number), "--nodes", "2", *more, "--", *command,
                          "-o", model)

    def ended(self, child, seconds=60):
        out, err = child.communicate(timeout=seconds * SLOW)
        return child.returncode, out.decode() + err.decode()

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds * SLOW
        while not glob.glob(self.path(pattern)):
            self.assertLess(time.monotonic(), end, "no " + pattern)
            time.sleep(0.02)

    def test_bits_and_output(self):
        self.stretto(*SHORT, "-o", "whole.model")
        members = [self.member(k, SHORT, "m.model", "--ranks-per-node", "2") for k in (1, 0)]
        self.assertEqual(self.ended(members[0])[0], 0)
        status, text = self.ended(members[1])
        self.assertEqual(status, 0, text)
        self.assertIn("model m.model", text)
        self.same_model("whole.model", "m.model", "two members of two ranks")

    def member_apart(self, number, command, session="s"):
        """A member in a folder of its own, which the others do not see."""
        folder = os.path.join(self.dir, "of-%d-%f" % (number, time.monotonic()))
        os.mkdir(folder)
        child = subprocess.Popen([e2e.PROGRAM, "join", "--submitted", "1", "--session", session, "--member", str(number), "--nodes", "2", "--", *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        self.addCleanup(lambda: child.poll() is None and (child.kill(), child.communicate()))
        return child

    def test_no_folder_is_shared(self):
        """Members meet in HDFS and write their checkpoints there; one that is lost, with its folder, costs nothing."""
        self.stretto(*LONG, "-o", "whole.model", timeout=120)
        for lost in (1, 0):
            hdfs = Standin()
            self.addCleanup(hdfs.close)
            hdfs.put("/d/air.csv", self.read(AIR))
            command = [w if w != AIR else hdfs.url + "/d/air.csv" for w in LONG]
            command += ["-o", hdfs.url + "/d/m.model"]
            members = [self.member_apart(k, command) for k in (0, 1)]
            end = time.monotonic() + 60 * SLOW
            while not [p for p in hdfs.files if p.endswith(".ckpt")]:
                self.assertLess(time.monotonic(), end, "no checkpoint")
                time.sleep(0.02)
            members[lost].kill()
            members[lost].communicate()
            members[lost] = self.member_apart(lost, command)
            status, text = self.ended(members[0], 120)
            self.assertEqual(status, 0, text)
            self.assertEqual(self.ended(members[1])[0], 0)
            with open(self.path("m.model"), "wb") as f:
                f.write(hdfs.files["/d/m.model"].data)
            self.same_model("whole.model", "m.model", "member %d lost with its folder" % lost)
            self.assertEqual([p for p in hdfs.files if ".ckpt" in p], [])
            self.assertIn("/d/m.model.run/report.html", hdfs.files)

    def test_stopped_and_resumed_without_a_shared_folder(self):
        self.stretto(*LONG, "-o", "whole.model", timeout=120)
        hdfs = Standin()
        self.addCleanup(hdfs.close)
        hdfs.put("/d/air.csv", self.read(AIR))
        url, command = hdfs.url + "/d/m.model", [w if w != AIR else hdfs.url + "/d/air.csv" for w in LONG]
        members = [self.member_apart(k, [*command, "-o", url]) for k in (0, 1)]
        end = time.monotonic() + 60 * SLOW
        while not [p for p in hdfs.files if p.endswith(".ckpt")]:
            self.assertLess(time.monotonic(), end, "no checkpoint")
            time.sleep(0.02)
        members[0].send_signal(signal.SIGTERM)
        status, text = self.ended(members[0])
        self.assertEqual(status, 75, text)
        self.assertEqual(self.ended(members[1])[0], 0)
        self.assertNotIn("/d/m.model", hdfs.files)
        again = [self.member_apart(k, ["resume", url + ".run", "--threads", "1"], session="t") for k in (0, 1)]
        status, text = self.ended(again[0], 120)
        self.assertEqual(status, 0, text)
        self.assertIn("resumed", text)
        with open(self.path("m.model"), "wb") as f:
            f.write(hdfs.files["/d/m.model"].data)
        self.same_model("whole.model", "m.model", "resumed from HDFS")

    def test_programs_that_differ(self):
        """One sentence with the remedy, and no rank is started."""
        other = self.path("stretto")
        shutil.copy(e2e.PROGRAM, other)
        with open(other, "ab") as f:
            f.write(b"x")
        folder = os.path.join(os.path.dirname(os.path.realpath(e2e.PROGRAM)), "..", "src", "comm")
        os.environ["STRETTO_PLUGINS"] = folder
        self.addCleanup(os.environ.pop, "STRETTO_PLUGINS")
        first = self.member(0, SHORT, "m.model")
        child = subprocess.Popen([other, "join", "--session", "s", "--member", "1", "--nodes", "2", "--", *SHORT, "-o", "m.model"], cwd=self.dir,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        status, text = self.ended(first)
        self.assertEqual(status, 8, text)
        self.assertRegex(text, r"container 1 on \S+ runs another build of stretto than container 0 on \S+: install the same on every node, or submit with --stage")
        self.assertEqual(self.ended(child)[0], 0)
        self.assertFalse(os.path.exists(self.path("m.model")))

    def test_a_lost_member(self):
        self.stretto(*LONG, "-o", "whole.model", timeout=120)
        first, second = self.member(0, LONG, "m.model"), self.member(1, LONG, "m.model")
        self.wait_for("m.model.run/checkpoints/*.ckpt")
        second.kill()
        second.wait()
        again = self.member(1, LONG, "m.model")
        status, text = self.ended(first, 120)
        self.assertEqual(status, 0, text)
        self.assertEqual(self.ended(again)[0], 0)
        self.assertIn("resumed member 1 of 1", text)
        self.same_model("whole.model", "m.model", "a member lost")

    def test_another_takes_the_place_of_the_supervisor(self):
        """What happens when a scheduler gives up a node that still runs."""
        self.stretto(*LONG, "-o", "whole.model", timeout=120)
        first, second = self.member(0, LONG, "m.model"), self.member(1, LONG, "m.model")
        self.wait_for("m.model.run/checkpoints/*.ckpt")
        again = self.member(0, LONG, "m.model")
        status, text = self.ended(first)
        self.assertEqual(status, 0, text)
        self.assertIn("another container has taken this place", text)
        status, text = self.ended(again, 120)
        self.assertEqual(status, 0, text)
        self.assertEqual(self.ended(second)[0], 0)
        self.same_model("whole.model", "m.model", "a supervisor replaced")

    def test_a_stop_leaves_a_checkpoint(self):
        first, second = self.member(0, LONG, "m.model"), self.member(1, LONG, "m.model")
        self.wait_for("m.model.run/checkpoints/*.ckpt")
        first.send_signal(signal.SIGTERM)
        status, text = self.ended(first)
        self.assertEqual(status, 75, text)
        self.assertIn("stopped as asked", text)
        self.assertEqual(self.ended(second)[0], 0)
        self.stretto("resume", "m.model.run", "--time-limit", "0.2s", status=None)

    def test_a_stop_under_mpich(self):
        """MPICH has a handler of SIGUSR1, by which a supervisor asks its ranks for a checkpoint."""
        job = self.start("submit", "--ranks", "2", "--mpi", "mpich", "--", *LONG, "-o", "m.model")
        self.wait_for("m.model.run/checkpoints/*.ckpt")
        job.send_signal(signal.SIGTERM)
        status, text = self.ended(job, 30)
        self.assertEqual(status, 75, text)
        self.assertIn("stopped as asked", text)

    def test_members_that_never_come(self):
        status, text = self.ended(self.member(0, SHORT, "m.model", "--gather-time", "1s"))
        self.assertEqual(status, 74, text)
        self.assertIn("1 of 2 containers came within 1 s", text)


if __name__ == "__main__":
    if not MPICH:
        print("skipped: the build has no plug-in for MPICH")
        sys.exit(77)
    e2e.main()
