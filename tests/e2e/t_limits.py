"""t_limits.py - what stops a run from outside: full disks, rights, memory, losses that explode, a skill that is not there."""
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import e2e
from e2e import AIR, Case

FAST = ["--base", "none", "--no-guard", "--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "20"]


def unprivileged():
    """Arguments that drop root's rights, [] when there are none to drop; skips where that cannot be done."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise unittest.SkipTest("root may read and write everything, and there is no setpriv to drop the right")
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


class Limits(Case):
    def as_nobody(self, *args):
        drop = unprivileged()
        copy = self.path("stretto")
        shutil.copy(e2e.PROGRAM, copy)
        os.chmod(self.dir, 0o755)
        if drop and subprocess.run([*drop, copy, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("the rights of root cannot be dropped here")
        done = subprocess.run([*drop, copy, *args], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60 * e2e.SLOW, env=self.environment())
        return e2e.Result(done)

    def test_data_that_may_not_be_read(self):
        shutil.copy(AIR, self.path("air.csv"))
        os.chmod(self.path("air.csv"), 0)
        r = self.as_nobody("check", "air.csv")
        self.assertEqual((r.status, r.err), (7, "error[E701] air.csv: cannot read the file: Permission denied\n"
                                                    "  fix: chmod +r the file, or ask its owner\n"))

    def test_folder_that_may_not_be_written(self):
        shutil.copy(AIR, self.path("air.csv"))
        os.mkdir(self.path("locked"))
        os.chmod(self.path("locked"), 0o555)
        r = self.as_nobody("train", "air.csv", *FAST, "-o", "locked/m.model", "--quiet")
        self.assertEqual(r.status, 7)
        self.assertRegex(r.err, r"^error\[E702\] locked/m\.model: cannot write into the folder locked: Permission denied\n"
                                r"  fix: another place: --out OTHER/NAME\n$")
        r = self.as_nobody("sample", "airline", "-o", "locked/a.csv")
        self.assertEqual(r.status, 7)
        self.assertRegex(r.err, r"^error\[E702\] locked/a\.csv: cannot write into the folder locked: Permission denied\n  fix: another place: --out OTHER/NAME\n")

    def test_a_run_folder_that_may_not_be_written(self):
        """resume has no --run-dir: the remedy continues a copy."""
        shutil.copy(AIR, self.path("air.csv"))
        self.stretto("train", "air.csv", *FAST[:-2], "--steps", "1000000", "--time-limit", "0.1s", "-o", "m.model", status=76)
        for name in os.listdir(self.path("m.model.run")):
            os.chmod(self.path("m.model.run/" + name), 0o555 if os.path.isdir(self.path("m.model.run/" + name)) else 0o444)
        os.chmod(self.path("m.model.run"), 0o555)
        r = self.as_nobody("resume", "m.model.run", "--time-limit", "0.1s", "--quiet")
        os.chmod(self.path("m.model.run"), 0o755)
        self.assertEqual(r.status, 7)
        fix = re.search(r"^error\[E702\] .*m\.model\.run.*: Permission denied\n  fix: (cp -r .*)\n$", r.err).group(1)
        command = fix.replace("stretto resume", "%s resume" % e2e.PROGRAM) + " --time-limit 0.1s --quiet"
        done = subprocess.run(command, cwd=self.dir, shell=True, capture_output=True, text=True, env=self.environment())
        self.assertEqual(done.returncode, 76, done.stderr)
        self.assertTrue(os.path.exists(self.path("resumed.model")))

    def test_a_signal_while_the_base_is_chosen(self):
        """Minutes of a large ridge: the signal is heard, nothing is left but the folder of the run."""
        self.stretto("sample", "long-memory", "--rows", "12000", "-o", "long.csv")
        command = [e2e.PROGRAM, "train", "long.csv", "--target", "y", "--horizon", "96", "--preset", "long", "--context", "2000"]
        child = subprocess.Popen(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment())
        self.said(child, "columns: ")
        time.sleep(0.3)
        begin = time.time()
        child.send_signal(signal.SIGINT)
        err = child.communicate(timeout=60 * e2e.SLOW)[1].decode()
        self.assertEqual(child.returncode, 75, err)
        self.assertRegex(err, r"error\[E806\] stopped as asked while choosing the base\n  fix: the same command again\n")
        self.assertLess(time.time() - begin, 5 * e2e.SLOW)
        self.assertFalse(os.path.exists(self.path("long.model")))

    LONG = ["--target", "y", "--horizon", "24", "--context", "128", "--segment", "1", "--base", "last", "--hidden", "80", "--steps", "4",
            "--members", "1", "--validation", "2000", "--test", "3000", "--threads", "1", "--progress", "none"]

    def signalled(self, phase, *args):
        """Starts the program, sends SIGINT when the run is in this phase; its status, stdout and stderr."""
        status = self.path("m.model.run/status/rank-0.json")
        child = subprocess.Popen([e2e.PROGRAM, *args], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=self.environment())
        limit = time.monotonic() + 120 * e2e.SLOW
        while child.poll() is None and not (os.path.exists(status) and b'"%s"' % phase.encode() in self.read("m.model.run/status/rank-0.json")):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.005)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60 * e2e.SLOW)
        return child.returncode, out.decode(), err.decode()

    def test_a_signal_after_the_last_step(self):
        """While the recurrent part is weighed: a checkpoint, and the model of the unbroken run; while it is scored: the model."""
        self.stretto("sample", "long-memory", "--rows", "12000", "-o", "long.csv")
        self.stretto("train", "long.csv", *self.LONG, "-o", "whole.model")
        code, out, err = self.signalled("guard", "train", "long.csv", *self.LONG, "-o", "m.model")
        self.assertEqual((code, out), (75, ""), err)
        self.assertIn("error[E802] stopped as asked; a checkpoint is in m.model.run\n  fix: stretto resume m.model.run\n", err)
        self.assertFalse(os.path.exists(self.path("m.model")))
        os.unlink(self.path("m.model.run/status/rank-0.json"))
        code, out, err = self.signalled("score", "resume", "m.model.run")
        self.assertEqual((code, out), (0, ""), err)
        self.assertIn("warning: scoring was interrupted: the model is saved without scores", err)
        self.same_model("whole.model", "m.model", "stopped twice")

    def test_full_stdout(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        self.stretto("train", AIR, *FAST, "-o", "m.model", "--quiet")
        for args in (["predict", "m.model", AIR], ["sample", "airline"], ["check", AIR], ["info", "m.model"], ["eval", "m.model", AIR],
                     ["help"], ["--version"], ["plan", "--columns", "1", "--horizon", "4", "--print"], ["explain", "E204"],
                     ["train", AIR, *FAST, "-o", "n.model", "--quiet"]):
            with open("/dev/full", "wb") as full:
                r = self.stretto(*args, stdout=full, status=7)
            self.assertIn("error[E703] cannot write to standard output", r.err, args[0])

    def test_full_disk(self):
        libc = ctypes.CDLL(None, use_errno=True)
        small = self.path("small")
        os.mkdir(small)
        if os.geteuid() != 0 or libc.mount(b"none", small.encode(), b"tmpfs", 0, b"size=64k") != 0:
            self.skipTest("a small disk can only be mounted by root")
        try:
            r = self.stretto("sample", "tides", "--rows", "20000", "-o", "small/t.csv", status=7)
            self.assertRegex(r.err, r"error\[E703\] .*small/t\.csv.*\n")
            self.assertEqual(os.listdir(small), [], "no half file stays")
            # an old model survives a new one that does not fit
            self.stretto("train", AIR, *FAST, "--hidden", "4", "-o", "small/m.model", "--run-dir", "r", "--quiet")
            old = self.read("small/m.model")
            r = self.stretto("train", AIR, *FAST, "--hidden", "128", "-o", "small/m.model", "--run-dir", "r", "--quiet", status=7)
            self.assertRegex(r.err, r"error\[E703\] .*small/m\.model")
            self.assertEqual(old, self.read("small/m.model"))
            # the run folder on the full disk
            r = self.stretto("train", AIR, *FAST, "-o", "m.model", "--run-dir", "small/run", "--hidden", "128", status=None)
            self.assertIn(r.status, (0, 7))
            if r.status == 7:
                self.assertIn("error[E703]", r.err)
        finally:
            libc.umount2(small.encode(), 2)

    def test_memory_is_refused(self):
        r = self.stretto("train", AIR, "--target", "Passengers", "--horizon", "12", "--memory", "1M", "-o", "m.model", "--quiet", status=6)
        self.assertRegex(r.err, r"^error\[E601\] [\d.]+ MiB more are needed, --memory allows 1\.0 MiB and [\d.]+ are in use\n  fix: ")
        self.assertFalse(os.path.exists(self.path("m.model")))

    def test_loss_that_explodes(self):
        self.stretto("sample", "mackey-glass", "--rows", "300", "-o", "g.csv")
        r = self.stretto("train", "g.csv", "--target", "x", "--horizon", "8", "--preset", "none", "--base", "none", "--optim", "sgd", "--lr", "10",
                         "--clip", "0", "--schedule", "constant", "--warmup", "0", "--loss", "mse", "--steps", "400", "-o", "m.model",
                         "--progress", "none", status=None)
        self.assertIn(r.status, (0, 5), r.err)
        if r.status == 5:
            self.assertRegex(r.err, r"error\[E501\] loss is not finite at step \d+ \(lr [\d.e+-]+, gradient norm [\d.e+a-z-]+ at the step before\)")
            self.assertIn("  fix: --lr ", r.err)
            self.assertFalse(os.path.exists(self.path("m.model")))
        else:
            self.assertIn("warning: loss is not finite", r.err)
        self.assertIn("lr halved", r.err)

    def test_skill_that_is_not_there(self):
        noise = random.Random(7)
        self.write("noise.csv", "step,y\n" + "".join("%d,%.4f\n" % (i, noise.gauss(0, 1)) for i in range(400)))
        args = ["train", "noise.csv", "--target", "y", "--horizon", "5", "--base", "last", "--no-guard", "--members", "1", "--steps", "0",
                "-o", "m.model", "--quiet", "--require-skill"]
        r = self.stretto(*args, status=10)
        self.assertRegex(r.err, r"(?m)^error\[E1001\] skill [+-][\d.]+% against the best naive forecast\n")
        self.assertTrue(os.path.exists(self.path("m.model")), "the model is written all the same")
        r = self.stretto("eval", "m.model", "noise.csv", "--require-skill", status=10)
        self.assertIn("error[E1001]", r.err)
        self.stretto("train", AIR, *FAST, "--base", "mix", "-o", "a.model", "--require-skill", "--quiet", status=None)

    def test_file_that_shrinks_while_it_is_read(self):
        """A file cut short under the reader is an error (E213), never a crash; a race, so the reader may also win."""
        line = "%d,1.2345678\n"
        whole = ("step,y\n" + "".join(line % i for i in range(600000))).encode()
        seen = False
        for attempt in range(8):
            with open(self.path("big.csv"), "wb") as f:
                f.write(whole)
            child = self.start("check", "big.csv", "--target", "y", "--threads", "1")
            time.sleep(0.004 * attempt)
            os.truncate(self.path("big.csv"), len(whole) // 3)
            out, err = child.communicate(timeout=60 * e2e.SLOW)
            self.assertIn(child.returncode, (0, 3), err.decode())
            if child.returncode == 3:  # cut while it was read (stderr), or before, in the middle of a row (a finding, on stdout)
                self.assertRegex((out + err).decode(), r"error\[E2\d\d\] big\.csv")
                seen |= b"E213" in err
        print("a shrinking file was noticed: %s" % ("yes" if seen else "no, the reader was always faster"))


if __name__ == "__main__":
    e2e.main()
