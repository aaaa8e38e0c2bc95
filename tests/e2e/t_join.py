"""t_join.py - the members of a job as processes of this host, as a scheduler starts them in containers (`stretto join`): equal bits, a member that is lost
and started again, a stop, members that never come.  On a real YARN: t_yarn.py."""
import glob
import os
import shutil
import signal
import sys
import time
import unittest

import e2e
from e2e import AIR, SLOW, Case

MPICH = os.path.exists(os.path.join(os.path.dirname(os.path.realpath(e2e.PROGRAM)), "..", "src", "comm", "stretto-mpi-mpich.so"))
TRAIN = ["train", AIR, "--target", "Passengers", "--horizon", "12", "--members", "1", "--batch", "40", "--progress", "none", "--threads", "1"]
SHORT = [*TRAIN, "--steps", "60"]
LONG = [*TRAIN, "--steps", "8000", "--validate-every", "1000", "--checkpoint-every", "0.2s"]


@unittest.skipUnless(MPICH and shutil.which("mpiexec.mpich"), "skipped: no mpiexec of MPICH, or no plug-in for it")
class Join(Case):
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
