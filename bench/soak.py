#!/usr/bin/env python3
"""soak.py PROGRAM [N] [SEED] [M]: N runs under the supervisor, each killed at random moments until it ends; then every other kind of
trouble at M random moments (soak_moments.py): writes bench/results/soak.md.

    what is killed (kill -9)    a rank, the launcher, the supervisor (then started again), or two of them at once
    how often                  after 0.1 to 2 s of each life, at most three times a run
    and once a run             a rank dies at a phase of writing or reading a checkpoint, or of the report (STRETTO_FAULT, src/base/fault.h)
    what must hold             the run ends with 0, every tensor of its model is that of the undisturbed run, no process is left, and
                               no file but those that a run leaves
Threads, Open MPI and MPICH alternate, as available."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.argv = [sys.argv[0], *(sys.argv[1:] or ["build/release/cli/stretto"])]
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import e2e  # noqa: E402  (it reads the program's name from sys.argv)
from t_ranks import has  # noqa: E402
from t_submit import Submit  # noqa: E402
import soak_moments  # noqa: E402

TRAIN = ["train", e2e.AIR, "--target", "Passengers", "--horizon", "12", "--members", "2", "--steps", "2500", "--validate-every", "250",
         "--batch", "40", "--threads", "1", "--checkpoint-every", "0.2s", "-q"]
WHOM = ["rank", "launcher", "supervisor", "rank+launcher", "rank+supervisor"]
PHASES = ["write", "rename", "manifest", "recovery", "report"]
KILLS, PATIENCE = 3, 300


class Soak(Submit):
    """One run; the helpers are those of the test."""
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="stretto-soak-")
        self.before = set(os.listdir("/dev/shm"))
        self.fault = self.phase = ""

    def draw_fault(self):
        """For the first rank that reaches this phase from some step on; once over all restarts."""
        self.phase = random.choice(PHASES)
        self.fault = "*:%d:%s@%s" % (0 if self.phase in ("recovery", "report") else random.randrange(2000), self.phase, self.path("fired"))

    def environment(self, **more):
        return super().environment(STRETTO_FAULT=self.fault, **more)

    def runTest(self):
        pass

    def begin(self, mpi):
        flags = ["--ranks", "2", "--max-restarts", "20", "--mpi", mpi]
        with open(self.path("words"), "a", encoding="utf-8") as words:
            return subprocess.Popen([e2e.PROGRAM, "submit", *flags, "--", *TRAIN, "-o", "m.model"], cwd=self.dir, stdin=subprocess.DEVNULL,
                                    stdout=words, stderr=words, env=self.environment())

    def pids(self, whom, child):
        """Processes of those names, as far as they live; a rank and its launcher are the same process where ranks are threads."""
        log = [e for e in self.log() if e["event"] == "start"] if os.path.exists(self.path("m.model.run/supervisor.log")) else []
        at = {"supervisor": child.pid, "launcher": log[-1]["pid"] if log else 0, "rank": self.record(random.randrange(2)).get("pid", 0)}
        return [at[name] for name in whom.split("+")]

    def one(self, mpi):
        """(kills, longest seconds from a kill to a new record of rank 0, orphans seen after the end)"""
        child, kills, slowest, limit = self.begin(mpi), [], 0.0, time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            try:
                child.wait(random.uniform(0.1, 2) if len(kills) < KILLS else PATIENCE)
                break
            except subprocess.TimeoutExpired:
                pass
            whom = random.choice(WHOM)
            at, pids = time.time(), self.pids(whom, child)
            for pid in pids:
                try:
                    if pid > 0:
                        os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            kills.append(whom)
            if "supervisor" in whom:
                child.wait()
                child = self.begin(mpi)
            slowest = max(slowest, self.recovery(at, child))
        over = child.poll() is not None
        if not over:
            child.kill()
        child.wait()
        self.ended = child.returncode if over else "nothing: it was not over after %d s" % PATIENCE
        return kills, slowest

    def recovery(self, at, child):
        limit = time.monotonic() + 60
        while time.monotonic() < limit and child.poll() is None:
            r = self.record(0)
            if r.get("time", 0) > at + 0.05 and r.get("phase") == "train":
                return r["time"] - at
            time.sleep(0.01)
        return 0.0

    def verdict(self):
        if self.ended != 0:
            with open(self.path("words"), encoding="utf-8") as words:
                print(words.read()[-3000:], flush=True)
            return "ended with %s" % self.ended
        try:
            self.same_model("whole.model", "m.model")
            self.none_left(2)
        except AssertionError as why:
            return str(why).splitlines()[0]
        left = [os.path.join(at, n) for at, folders, names in os.walk(self.dir) for n in folders + names
                if n.endswith((".tmp", ".part", ".ckpt")) or os.path.basename(at) == "checkpoints"]
        return "files left: %s" % left if left else "same bits"


def write_kinds(f, kinds, seed):
    f.write("# Runs in trouble\n\nMade by `make soak` (`bench/soak.py`, `bench/soak_moments.py`, seed %d). Models are compared tensor by tensor with the undisturbed "
            "run's.\n\n## One process, every kind of trouble\n\nA run of 2 x 600 steps, a checkpoint every 0.05 s. The moment is drawn from its whole life of %.1f s: "
            "reading, base, training, guard, scores, files.\nIt must end with the model, or leave a model or a checkpoint from which `resume` makes it, and "
            "leave no other file.\n\n| kind | same bits | moments | calls of `resume` | else |\n|---|---|---|---|---|\n" % (seed, kinds[0][4]))
    for name, good, of, resumes, _, other in kinds:
        f.write("| %s | %d | %d | %d | %s |\n" % (name, good, of, resumes, "; ".join(sorted(set(other))) or "-"))
    f.write("\nThe full disk is a tmpfs of 1.5 MB with model and run folder; in half of the runs the other program takes every byte that becomes free. The "
            "limit on file sizes\n(RLIMIT_FSIZE, set on the running process) stands for a quota: no file system with quotas is set up here. Read-only folders are "
            "made by chmod, for a process\nwithout root's rights. Clocks: the process stands still for up to 1 s, is stopped, and goes on in a time namespace "
            "whose monotonic clock is off by -1000 s\nto 10^7 s; the wall clock of the machine is left alone. Data: the file changes between a stop and "
            "`resume`, which must refuse, and is put back.\n")


def main():
    n, seed, moments = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((2, 100), (3, 1), (4, 50)))
    random.seed(seed)
    kinds = soak_moments.soak(moments)
    ways = ["none"] + [m for m in ("openmpi", "mpich") if has(m)]
    whole = Soak()
    whole.setUp()
    whole.stretto(*TRAIN, "-o", "whole.model", timeout=PATIENCE)
    rows, good, begin = [], 0, time.monotonic()
    for k in range(n):
        run = Soak()
        run.setUp()
        shutil.copy(whole.path("whole.model"), run.path("whole.model"))
        mpi, start = ways[k % len(ways)], time.monotonic()
        run.draw_fault()
        kills, slowest = run.one(mpi)
        kills += ["in " + run.phase] if os.path.exists(run.path("fired")) else []
        what = run.verdict()
        run.end_all()
        shm = set(os.listdir("/dev/shm")) - run.before
        good += what == "same bits"
        rows.append((k + 1, mpi, ", ".join(kills) or "-", time.monotonic() - start, slowest, shm, what))
        print("%d %s" % (len(rows), rows[-1]), flush=True)
        shutil.rmtree(run.dir if what == "same bits" else "", True)
    shutil.rmtree(whole.dir, True)
    there = set(os.listdir("/dev/shm"))  # what was there in between belonged to other programs
    rows = [(*r[:5], len(r[5] & there), r[6]) for r in rows]
    back = sorted(r[4] for r in rows if r[4] > 0)
    with open(os.path.join(ROOT, "bench", "results", "soak.md"), "w", encoding="utf-8") as f:
        write_kinds(f, kinds, seed)
        f.write("\n## Runs that are killed under the supervisor\n\nN = %d, seed %d: a run of 2 ranks, 2 x 2500 steps, a checkpoint every 0.2 s, up to %d "
                "times kill -9 of whom the third column\nnames, at random moments, and once of a rank in the middle of a checkpoint: while it writes its part, "
                "before that is renamed, before the\nmanifest, before it reads one, or while it writes the report.\n\n" % (n, seed, KILLS))
        f.write("**%d of %d have the same bits, with no process and no file left**, in %.0f s." % (good, n, time.monotonic() - begin))
        if back:
            f.write(" From a kill to steps that go on (the slowest of each run): median %.2f s, largest %.2f s." %
                    (back[len(back) // 2], back[-1]))
        f.write("\n\n| run | ranks by | killed | seconds | slowest recovery | shared memory files left | result |\n|---|---|---|---|---|---|---|\n")
        for row in rows:
            f.write("| %d | %s | %s | %.1f | %.2f | %d | %s |\n" % row)
    return 0 if good == n and all(r[1] == r[2] for r in kinds) else 1


if __name__ == "__main__":
    sys.exit(main())
