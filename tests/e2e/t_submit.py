"""t_submit.py - jobs under the supervisor (`stretto submit`): a rank, the launcher or the supervisor is killed, a rank is stopped, and
the model is that of the undisturbed run bit for bit, with no process left; what ranks say of themselves (`stretto top`)."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import e2e
from e2e import AIR, Case
from t_ranks import LAUNCHERS, has

TRAIN = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "24000", "--validate-every", "1500", "--batch", "40",
         "--threads", "1"]
WHOLE = {}  # files of the undisturbed run, trained once


class Submit(Case):
    deadline = "60"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_all)
        if not WHOLE:
            self.stretto("train", AIR, *TRAIN, "-o", "whole.model", "-q", timeout=120)
            WHOLE.update({name: self.read(name) for name in ("whole.model", "whole.model.run/metrics.jsonl")})
        os.makedirs(self.path("whole.model.run"), exist_ok=True)
        for name, content in WHOLE.items():
            with open(self.path(name), "wb") as f:
                f.write(content)

    def environment(self, **more):
        return super().environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,vader,tcp",
                                   STRETTO_DEADLINE=self.deadline, **more)

    # --- the job
    def submit(self, *flags, train=()):
        return self.start("submit", *flags, "--", "train", AIR, *TRAIN, "--checkpoint-every", "0.2s", "-q", *train, "-o", "m.model")

    def mpi(self, flavour):
        if not has(flavour):
            raise unittest.SkipTest("skipped: no %s, or no plug-in for it" % LAUNCHERS[flavour][0])
        return self.submit("--ranks", "2", "--mpi", flavour)

    def processes(self):
        """Everything that has the mark of a run in the folder of this test."""
        found, mark = [], ("STRETTO_SUPERVISED=" + os.path.realpath(self.dir)).encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    if any(text.startswith(mark) for text in f.read().split(b"\0")):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def scratch(self):
        """The folder of the run for files of MPI (src/launch/scratch.c): those of other tests come and go beside it."""
        h = 0xcbf29ce484222325
        for byte in os.path.realpath(self.path("m.model.run")).encode():
            h = (h ^ byte) * 0x100000001b3 % 2 ** 64
        return "/dev/shm/stretto-%d-%016x" % (os.geteuid(), h)

    def end_all(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def none_left(self, within=0.0):
        limit = time.monotonic() + within * e2e.SLOW
        while self.processes() and time.monotonic() < limit:
            time.sleep(0.02)
        self.assertEqual(self.processes(), [])

    def log(self):
        return [json.loads(line) for line in self.read("m.model.run/supervisor.log").decode().splitlines()]

    def record(self, rank):
        try:
            return json.loads(self.read("m.model.run/status/rank-%d.json" % rank).decode())
        except (OSError, ValueError):
            return {}

    def checkpoint(self):
        folder = self.path("m.model.run/checkpoints")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return max([int(n[:-5]) for n in names if re.fullmatch(r"\d+\.ckpt", n)] or [-1])

    def wait_for(self, child, what, seconds=60):
        limit = time.monotonic() + seconds * e2e.SLOW
        while not what():
            if child.poll() is not None:
                self.fail("it ended with %s\n%s" % (child.returncode, child.communicate()[1].decode()))
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.005)

    def until_checkpoint(self, child):
        self.wait_for(child, lambda: self.checkpoint() > 0 and self.record(0).get("exit") == -1)

    def ends(self, child, status=0):
        out, err = child.communicate(timeout=120 * e2e.SLOW)
        self.assertEqual(child.returncode, status, err.decode())
        return err.decode()

    def is_whole(self, starts):
        self.same_model("whole.model", "m.model", "disturbed")
        self.same_metrics("whole.model.run", "m.model.run", "disturbed")
        log = self.log()
        self.assertEqual(sum(e["event"] == "start" for e in log), starts, log)
        self.assertEqual((log[-1]["event"], log[-1]["exit"]), ("end", 0))
        self.none_left()
        self.assertFalse(os.path.exists(self.scratch()))

    # --- what may happen to it
    def killed(self, flavour, whom):
        child = self.mpi(flavour)
        self.until_checkpoint(child)
        self.assertEqual(os.path.isdir(self.scratch()), flavour == "openmpi")
        pid = {"rank": lambda: self.record(1)["pid"], "launcher": lambda: self.log()[-1]["pid"]}[whom]()
        os.kill(pid, signal.SIGKILL)
        err = self.ends(child)
        self.assertIn("supervisor: started again after 0.", err)
        self.assertIn(" resume m.model.run ", self.log()[4]["command"])
        self.assertLess(self.log()[4]["down"], 5 * e2e.SLOW)
        self.is_whole(2)

    def test_killed_rank_open_mpi(self):
        self.killed("openmpi", "rank")

    def test_killed_rank_mpich(self):
        self.killed("mpich", "rank")

    def test_killed_launcher_open_mpi(self):
        self.killed("openmpi", "launcher")

    def test_killed_launcher_mpich(self):
        self.killed("mpich", "launcher")

    def killed_supervisor(self, begin):
        child = begin()
        self.until_checkpoint(child)
        self.assertNotEqual(self.processes(), [])
        child.send_signal(signal.SIGKILL)
        child.communicate()
        self.none_left(10)  # the job ends with it
        again = begin()
        self.assertIn("supervisor: continuing from ", self.ends(again))
        self.is_whole(2)

    def test_killed_supervisor_of_threads(self):
        self.killed_supervisor(lambda: self.submit("--ranks", "2"))

    def test_killed_supervisor_open_mpi(self):
        self.killed_supervisor(lambda: self.mpi("openmpi"))

    def stopped_rank(self, flavour):
        self.deadline = "4"  # more than a checkpoint takes on a busy machine
        child = self.mpi(flavour)
        self.until_checkpoint(child)
        pid, begin = self.record(1)["pid"], time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        self.wait_for(child, lambda: any(e["event"] == "ended" for e in self.log()), 30)
        self.assertLess(time.monotonic() - begin, 20 * e2e.SLOW)
        err = self.ends(child)
        self.assertRegex(err, r"error\[E802\] E801, rank 0 has waited 4 s (for|to send to) rank 1 \(host \S+, pid %d\): message \d+, "
                              r"\S+ of \d+ bytes; last seen in phase \w+ at step \d+ of 24000, \d s ago; stacks and last messages in \S+; a checkpoint is in m.model.run" % pid)
        self.assertEqual([e["exit"] for e in self.log() if e["event"] == "ended"], [75, 0])
        self.is_whole(2)

    def test_stopped_rank(self):
        self.stopped_rank("openmpi")

    def test_rank_lost_without_a_checkpoint(self):
        if not has("mpich"):
            raise unittest.SkipTest("skipped: no %s" % LAUNCHERS["mpich"][0])
        self.deadline = "2.5"
        command = [*LAUNCHERS["mpich"], "-n", "2", e2e.PROGRAM, "train", AIR, *TRAIN, "--steps", "1000000", "-q", "-o", "m.model"]
        child = subprocess.Popen(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment())
        self.addCleanup(child.kill)
        self.wait_for(child, lambda: self.record(1).get("phase") in ("train", "validate"))
        os.kill(self.record(1)["pid"], signal.SIGSTOP)
        err = child.communicate(timeout=120 * e2e.SLOW)[1].decode()
        self.assertIn(child.returncode, (8, 8 | signal.SIGKILL), err)  # MPICH ends the other rank, and may add how that ended
        self.assertIn("error[E801] rank 0 has waited 2.5 s ", err)
        self.assertEqual(self.record(0)["exit"], 8)

    def test_stop_is_passed_on_and_the_same_command_goes_on(self):
        os.environ["STRETTO_FAULT"] = "*:0:slow(8)" # so that it lasts until a second supervisor has come
        self.addCleanup(os.environ.pop, "STRETTO_FAULT", None)
        child = self.submit("--ranks", "2")
        self.wait_for(child, lambda: self.record(0).get("exit") == -1)
        second = self.submit("--ranks", "2")
        self.assertIn("error[E704] another supervisor has the run folder m.model.run", self.ends(second, 7))
        self.until_checkpoint(child)
        child.send_signal(signal.SIGTERM)
        self.ends(child, 75)
        self.none_left()
        self.assertEqual(self.record(1)["phase"], "stopped")
        table = self.stretto("top", "m.model.run").out
        self.assertIn("not running; stretto resume m.model.run continues", table)
        os.environ.pop("STRETTO_FAULT")
        self.ends(self.submit("--ranks", "2"))
        self.is_whole(2)

    def test_closed_terminal(self):
        """SIGHUP is passed on as SIGTERM is; under nohup neither the supervisor nor its job hears it."""
        child = self.submit("--ranks", "2", train=["--steps", "10000000"])
        self.until_checkpoint(child)
        child.send_signal(signal.SIGHUP)
        self.ends(child, 75)
        self.assertEqual(self.record(0)["phase"], "stopped")
        command = [e2e.PROGRAM, "submit", "--", "train", AIR, *TRAIN, "--checkpoint-every", "0.2s", "-q", "--steps", "10000000", "-o", "m.model"]
        child = subprocess.Popen(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment(), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.addCleanup(child.kill)
        self.until_checkpoint(child)
        child.send_signal(signal.SIGHUP)
        os.kill(self.record(0)["pid"], signal.SIGHUP)
        time.sleep(1)
        self.assertIsNone(child.poll())
        child.send_signal(signal.SIGTERM)
        self.ends(child, 75)

    def test_time_limit_of_the_job(self):
        """It is no failure that a restart would mend; the status says that the run is unfinished."""
        for flavour in ["none", *filter(has, ("openmpi",))]:
            err = self.ends(self.submit("--ranks", "2", "--mpi", flavour, train=["--steps", "1000000", "--time-limit", "1s"]), 76)
            self.assertIn("error[E807]", err)
            self.assertEqual([e["event"] for e in self.log()][-4:], ["begin", "start", "ended", "end"])
            self.assertEqual(self.record(0)["phase"], "unfinished")
            shutil.rmtree(self.path("m.model.run"))

    def test_failures_of_the_job_are_passed_on(self):
        err = self.ends(self.submit("--ranks", "2", train=["--target", "nobody"]), 2)
        self.assertIn("error[E102]", err)
        self.assertEqual([e["event"] for e in self.log()], ["begin", "start", "ended", "end"])
        if has("mpich"):
            self.ends(self.submit("--ranks", "2", "--mpi", "mpich", train=["--target", "nobody"]), 2)
        self.none_left()

    def test_background(self):
        started = self.stretto("submit", "--no-wait", "--", "train", AIR, *TRAIN, "--steps", "500", "-q", "-o", "m.model")
        pid = int(re.search(r"supervisor: process (\d+), its output is in m.model.run/supervisor.out", started.err).group(1))
        limit = time.monotonic() + 60 * e2e.SLOW
        while os.path.exists("/proc/%d/exe" % pid) and time.monotonic() < limit:
            time.sleep(0.02)
        self.assertTrue(os.path.exists(self.path("m.model")))
        self.assertIn("MASE", self.read("m.model.run/supervisor.out").decode())
        self.assertEqual(self.log()[-1]["exit"], 0)

    def test_top_shows_every_rank(self):
        child = self.submit("--ranks", "2", train=["--steps", "10000000"])
        self.until_checkpoint(child)
        self.wait_for(child, lambda: self.record(1).get("step", 0) > 0)
        lines = self.stretto("top", "m.model.run", "--once").out.splitlines()
        self.assertRegex(lines[0], r"^rank +host +pid +phase +member +step +windows/s +rows +age +state$")
        for rank in range(2):
            self.assertRegex(lines[1 + rank], r"^ +%d +\S+ +\d+ +(train|validate|checkpoint) +1/1 +\d+/10000000 +\S+ +(-|\d+%%) +\S+ s +runs$" % rank)
        seen = json.loads(self.stretto("top", "m.model.run", "--json").out)
        self.assertEqual([r["rank"] for r in seen["ranks"]], [0, 1])
        self.assertEqual((seen["finished"], seen["ranks"][1]["state"]), (False, "runs"))
        child.send_signal(signal.SIGTERM)  # it would run for minutes, so that a busy host sees it run
        self.ends(child, 75)
        shutil.rmtree(self.path("m.model.run"))
        self.ends(self.submit("--ranks", "2"))
        table = self.stretto("top", "m.model.run").out
        self.assertIn("finished: the model is ", table)
        self.assertEqual(table.count(" done"), 4)
        self.stretto("top", self.dir, status=7)


if __name__ == "__main__":
    e2e.main()
