"""t_heal.py - a rank is killed in the middle of a training under Open MPI's `mpirun --enable-recovery`, and the others go on in place
(--heal): the model is that of the undisturbed run bit for bit, whichever rank it was, and how many; nothing is left of it."""
import glob
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import threading
import time
import unittest

import e2e
from e2e import AIR
from t_ranks import LAUNCHERS, Launched

TRAIN = ["--target", "Passengers", "--horizon", "12", "--members", "2", "--steps", "600", "--batch", "40", "--validate-every", "100",
         "--threads", "1", "--progress", "none"]
WHOLE = {}  # undisturbed models, trained once


class Heal(Launched):
    far = False  # ranks of this host talk by MPI, as those of several hosts do
    deadline = None

    def environment(self, **more):
        more.update({"STRETTO_NEAR": "off"} if self.far else {})
        more.update({"STRETTO_DEADLINE": self.deadline} if self.deadline else {})
        return super().environment(**more)

    def whole(self, data, options):
        key = " ".join([data, *map(str, options)])
        if key not in WHOLE:
            self.stretto("train", data, *options, "-o", "whole.model", timeout=120)
            WHOLE[key] = self.read("whole.model")
        with open(self.path("whole.model"), "wb") as f:
            f.write(WHOLE[key])

    def record(self, rank):
        try:
            return json.loads(self.read("m.model.run/status/rank-%d.json" % rank).decode())
        except (OSError, ValueError):
            return {}

    def begin(self, n, *options, data=AIR):
        if os.path.exists(self.path("m.model")):
            os.unlink(self.path("m.model"))
        command = [*LAUNCHERS["openmpi"], "--enable-recovery", *self.launched("openmpi", n, "train", data, *options, "--heal", "-o",
                                                                            "m.model")[len(LAUNCHERS["openmpi"]):]]
        child = subprocess.Popen(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment())
        self.lines = []  # (when it came, what)
        self.reader = threading.Thread(target=lambda: [self.lines.append((time.monotonic(), line.decode())) for line in child.stderr])
        self.reader.start()
        self.addCleanup(self.end, child)
        return child

    def end(self, child):
        if child.poll() is None:
            child.kill()
        child.wait()
        child.stdout.close()
        self.reader.join()
        child.stderr.close()

    def until(self, what, child):
        limit = time.monotonic() + 60 * e2e.SLOW
        while not what():
            self.assertIsNone(child.poll(), "it ended too early\n" + "".join(line for _, line in self.lines))
            self.assertLess(time.monotonic(), limit, "".join(line for _, line in self.lines))
            time.sleep(0.002)

    def told(self, of="died"):
        return [(when, line) for when, line in self.lines if of in line]

    def kill(self, child, *ranks, step=0):
        """At the step or later; seconds until the others say that they go on."""
        before = len(self.told())
        self.until(lambda: all(self.record(r).get("step", -1) >= step and self.record(r).get("phase") == "train" and
                               os.path.exists("/proc/%d" % self.record(r)["pid"]) for r in ranks), child)  # not of one that is gone
        pids = [self.record(r)["pid"] for r in ranks]
        begin = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.until(lambda: len(self.told()) > before, child)
        return self.told()[before][0] - begin

    def well(self, child, what=""):
        """It ends well, with the bits of the undisturbed run, and leaves nothing behind."""
        pids = [self.record(r).get("pid") for r in range(4)]
        child.wait(timeout=120 * e2e.SLOW)
        self.reader.join()
        err = "".join(line for _, line in self.lines)
        self.assertEqual(child.returncode, 0, err)
        self.same_model("whole.model", "m.model", what)
        for pid in filter(None, pids):
            self.assertFalse(os.path.exists("/proc/%d" % pid), "process %d is left" % pid)
        stray = [p for p in glob.glob(self.path("**/*"), recursive=True) if p.endswith((".tmp", ".part"))]
        self.assertEqual(stray, [], what)
        return err

    def one_of_three_dies(self, ranks, layers, hidden, parallel):
        options = [*TRAIN, "--members", "1", "--layers", layers, "--hidden", hidden]
        self.whole(AIR, options)
        for rank in ranks:
            child = self.begin(3, *options, "--parallel", parallel)
            self.kill(child, rank, step=60)
            self.well(child, "rank %d of three was killed, %s" % (rank, parallel))

    def test_a_rank_that_has_some_of_the_units_may_die(self):
        """The three panels of each layer go on as three on two ranks."""
        self.one_of_three_dies((0, 2), "2", "40", "unit")

    def test_a_stage_of_a_pipeline_may_die(self):
        """The layers of three stages go on as two."""
        self.one_of_three_dies((1, 2), "3", "24", "pipeline")

    def test_cuts_that_do_not_fit_the_ranks_that_are_left(self):
        """The others go on with another strategy."""
        options = [*TRAIN, "--members", "1", "--layers", "3", "--hidden", "24"]
        self.whole(AIR, options)
        for n, parallel, others in ((2, ["pipeline"], "serial"), (2, ["unit:2"], "serial"), (3, ["pipeline:3", "--place", "cyclic"], "data:2")):
            child = self.begin(n, *options, "--parallel", *parallel)
            self.kill(child, n - 1, step=60)
            err = self.well(child, "one of %d ranks was killed, %s" % (n, parallel))
            self.assertIn("warning: --parallel does not fit the ranks that are left: going on with %s, same bits" % others, err)

    def test_any_rank_may_die(self):
        self.whole(AIR, TRAIN)
        took = []
        for rank in (1, 0, 2):
            child = self.begin(3, *TRAIN)
            took.append(self.kill(child, rank, step=100))
            err = self.well(child, "rank %d was killed" % rank)
            self.assertRegex(err, r"rank %d \(host \S+, pid \d+\) died: 2 ranks of 3 go on from step \d+ of member \d after \d\.\d+ s, no step is lost" % rank)
            self.assertIn("model m.model", err)  # whoever speaks for all
            self.assertIn("model ", child.stdout.read().decode())
            self.assertEqual(json.loads(self.read("m.model.run/run.json"))["finished"], True)
        print("%d deaths: going on after %.3f s, %.3f s at most" % (len(took), statistics.median(took), max(took)))
        self.assertLess(min(took), 1 * e2e.SLOW)

    def stop(self, child, phase, step=0):
        """SIGSTOP of rank 1."""
        self.until(lambda: self.record(0).get("phase") == phase and self.record(1).get("step", -1) >= step, child)
        os.kill(self.record(1)["pid"], signal.SIGSTOP)

    def test_a_stopped_rank_does_not_hold_the_others_back(self):
        """At the deadline it is killed, and the other goes on; nothing waits for it, the launcher neither."""
        self.deadline = "2"
        self.whole(AIR, TRAIN)
        for self.far in (False, True):
            child = self.begin(2, *TRAIN)
            self.stop(child, "train", step=100)
            err = self.well(child, "rank 1 was stopped")
            self.assertRegex(err, r"rank 1 \(host \S+, pid \d+\) died: 1 rank of 2 goes on from step \d+")

    def test_one_of_several_that_wait_kills_the_stopped_rank(self):
        """The others find it dying, at the same deadline, and do not take that for a rank which hangs."""
        self.deadline = "2"
        options = [*TRAIN, "--members", "1", "--layers", "3", "--hidden", "24", "--steps", "400", "--base", "none", "--no-guard"]
        self.whole(AIR, options)
        for turn in range(e2e.times(2, 8)):
            child = self.begin(4, *options, "--parallel", "pipeline")
            self.stop(child, "train", step=20)
            err = self.well(child, "rank 1 was stopped")
            self.assertRegex(err, r"rank 1 \(host \S+, pid \d+\) died: 3 ranks of 4 go on from step \d+", "turn %d" % turn)

    def test_deaths_at_any_moment(self):
        """Steps that are messages for the most part: what dies in the middle of one has said half of it, in memory or by MPI."""
        chance = random.Random(29)
        wide = [*TRAIN, "--steps", "900", "--hidden", "96", "--batch", "12"]
        self.whole(AIR, wide)
        for turn in range(e2e.times(3, 12)):  # the second kills two, the third talks by MPI
            self.far = turn % 3 == 2
            rank, step = chance.randrange(3), chance.randrange(20, 300)
            child = self.begin(3, *wide)
            self.kill(child, rank, step=step)
            if turn % 2:
                time.sleep(chance.uniform(0, 0.05))
                self.kill(child, chance.randrange(2), step=0)
            self.well(child, "turn %d: rank %d was killed after step %d" % (turn, rank, step))

    def test_one_after_another_and_two_at_once(self):
        self.both_ways()

    def test_the_same_by_mpi(self):
        self.far = True
        self.both_ways()

    def both_ways(self):
        self.whole(AIR, TRAIN)
        child = self.begin(4, *TRAIN)
        self.kill(child, 0, step=100)
        self.kill(child, 1, step=200)  # as they are numbered now
        self.well(child, "two, one after another")
        child = self.begin(3, *TRAIN)
        self.kill(child, 0, 2, step=100)
        self.assertRegex(self.well(child, "two at once"), r"died: 1 rank of 3 goes on from step|died: 2 ranks of 3 go on from")

    def test_beside_checkpoints_and_in_a_refit(self):
        options = [*TRAIN, "--refit-all", "--base", "none", "--no-guard"]
        self.whole(AIR, options)
        child = self.begin(3, *options, "--checkpoint-every", "0.02s")
        self.kill(child, 1, step=100)
        self.until(lambda: self.told("refit on all rows"), child)
        self.kill(child, 0, step=50)
        self.well(child, "in a refit")
        self.assertEqual(glob.glob(self.path("m.model.run/checkpoints/*")), [])

    def test_slices_of_time(self):
        self.stretto("sample", "long-memory", "--rows", "9000", "-o", "long.csv")
        options = ["--target", "y", "--horizon", "1", "--context", "2048", "--parallel", "time:16", "--hidden", "20", "--steps", "300",
                   "--threads", "1", "--progress", "none"]
        data = self.path("long.csv")
        self.whole("long.csv", options)
        child = self.begin(3, *options, data=data)
        self.kill(child, 1, step=20)
        self.well(child, "slices of time")

    def test_the_first_dies_when_the_training_is_over(self):
        self.stretto("sample", "tides", "--rows", "60000", "-o", "t.csv")
        options = ["--target", "height", "--horizon", "48", "--context", "96", "--steps", "30", "--hidden", "64", "--threads", "1",
                   "--no-guard", "--base", "none", "--quantiles", "0.5", "--test", "40000", "--progress", "none", "--verbose"]
        self.whole("t.csv", options)
        child = self.begin(2, *options, data=self.path("t.csv"))
        self.until(lambda: self.told("plan data"), child)  # said when the last step is done
        time.sleep(0.03)
        os.kill(self.record(0)["pid"], signal.SIGKILL)
        err = self.well(child, "while it scored")
        self.assertRegex(err, "died after the training|goes on from the end of the training")
        self.assertIn("model ", child.stdout.read().decode())

    def test_another_dies_when_the_model_is_written(self):
        """Rank 0 has ended its training and waits in MPI_Finalize for all ranks; the survivors ask it which ranks continue."""
        options = [*TRAIN, "--members", "1"]
        self.whole(AIR, options)
        for turn in range(e2e.times(4, 20)):
            shutil.rmtree(self.path("m.model.run"), True)
            child = self.begin(3, *options)
            self.until(lambda: self.record(1).get("phase") == "train", child)
            pid = self.record(1)["pid"]
            self.until(lambda: os.path.exists(self.path("m.model")), child)
            begin = time.monotonic()
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.well(child, "turn %d: rank 1 was killed" % turn)
            self.assertLess(time.monotonic() - begin, 20 * e2e.SLOW)

    def test_under_a_supervisor(self):
        """One rank: nobody is started again.  All of them, one after another within a moment: the job is."""
        self.whole(AIR, TRAIN)
        self.launched("openmpi", 3)
        for ranks, starts in (((1,), 1), ((0, 1, 2), 2)):
            child = self.start("submit", "--ranks", "3", "--mpi", "openmpi", "--", "train", AIR, *TRAIN, "--heal", "--checkpoint-every",
                               "0.05s", "-o", "m.model")
            self.lines = []
            self.until(lambda: self.record(2).get("step", 0) >= 100 and self.record(2).get("world") == 3 and
                       glob.glob(self.path("m.model.run/checkpoints/*.ckpt")), child)
            for pid in [self.record(r)["pid"] for r in ranks]:
                os.kill(pid, signal.SIGKILL)
            err = child.communicate(timeout=120 * e2e.SLOW)[1].decode()
            self.assertEqual(child.returncode, 0, err)
            self.same_model("whole.model", "m.model", err)
            log = [json.loads(line) for line in self.read("m.model.run/supervisor.log").decode().splitlines()]
            self.assertEqual(sum(e["event"] == "start" for e in log), starts, err)
            shutil.rmtree(self.path("m.model.run"))

    def test_where_it_cannot_be(self):
        few = [*TRAIN, "--steps", "20"]
        r = self.stretto("train", AIR, *few, "--ranks", "2", "--heal", "-o", "t.model")
        self.assertIn("--heal has no effect: ranks are threads of one process here", r.err)
        for more, says in ((["--pipeline", "delay1"], "--pipeline delay1"), (["--slice-rounds", "1"], "--slice-rounds 1"),
                           (["--plan", "x.plan"], "a plan file is for a fixed")):
            r = self.stretto("train", AIR, *few, "--heal", *more, "-o", "t.model", status=2)
            self.assertIn("error[E106]", r.err)
            self.assertIn(says, r.err)
        r = self.mpi("openmpi", 2, "train", AIR, *few, "--heal", "-o", "t.model")
        self.assertIn("unless it is Open MPI's mpirun --enable-recovery", r.err)

    def test_mpich_ends_all(self):
        r = self.mpi("mpich", 2, "train", AIR, *TRAIN, "--steps", "20", "--heal", "-o", "t.model")
        self.assertIn("--heal has no effect: mpiexec of MPICH (MPICH) ends all ranks when one dies", r.err)


if __name__ == "__main__":
    e2e.main()
