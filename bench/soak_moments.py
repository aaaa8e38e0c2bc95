"""soak_moments.py - one process in every kind of trouble, each at random moments; soak.py runs it and writes the table.

A moment is drawn from the whole life of the run: reading, base, training, guard, scores, files.  What must hold, every time: the run
ends with the model of the undisturbed run, or leaves a model or a checkpoint from which `resume` makes it, with the same bits."""
import ctypes
import os
import random
import resource
import shutil
import signal
import subprocess
import time

import e2e
from t_limits import unprivileged

TRAIN = ["--target", "Passengers", "--horizon", "12", "--members", "2", "--steps", "600", "--validate-every", "100", "--batch", "40",
         "--threads", "1", "--checkpoint-every", "0.05s", "-q"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGXCPU]
PATIENCE, TRIES = 120, 8
libc = ctypes.CDLL(None, use_errno=True)


class Skip(Exception):
    """This machine cannot make that trouble."""


class Trouble(e2e.Case):
    """A run in an empty folder; helpers are those of the tests."""
    drop, program, whole = [], e2e.PROGRAM, ""

    def runTest(self):
        pass

    def setUp(self):
        super().setUp()
        self.resumed = 0
        for name in ("out", "state", "tmp"):
            os.mkdir(self.path(name))
        for name in ("", "out", "state", "tmp"):
            os.chmod(self.path(name), 0o777)
        shutil.copy(e2e.AIR, self.path("air.csv"))

    def environment(self, **more):
        return super().environment(XDG_STATE_HOME=self.path("state"), TMPDIR=self.path("tmp"), **more)

    def begin(self, *args, front=()):
        with open(self.path("words"), "a", encoding="utf-8") as words:
            words.write("# %s\n" % " ".join(args))
            words.flush()
            return subprocess.Popen([*front, *self.drop, self.program, *args], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=words,
                                    stderr=words, env=self.environment())

    def train(self):
        return self.begin("train", "air.csv", *TRAIN, "-o", "out/m.model")

    def finished(self):
        try:
            with open(self.path("out/m.model.run/run.json"), encoding="utf-8") as f:
                return '"finished": true' in f.read()
        except OSError:
            return False

    def tidy(self):
        """Who is ended between the model and the end leaves checkpoints, which any later look at the run deletes."""
        if any(n.endswith((".ckpt", ".part")) for _, folders, _ in os.walk(self.path("out/m.model.run")) for n in folders):
            self.begin("resume", "out/m.model.run").wait(PATIENCE)

    def finish(self, *more, front=()):
        """Resumes until the run is over, from the beginning where it had not begun."""
        for _ in range(TRIES):
            if self.finished():
                self.tidy()
                return
            there = os.path.exists(self.path("out/m.model.run/run.json"))
            words = ["resume", "out/m.model.run", *more] if there else ["train", "air.csv", *TRAIN, "-o", "out/m.model"]
            self.resumed += 1
            child = self.begin(*words, front=front)
            if child.wait(PATIENCE) not in (0, 75):
                raise AssertionError("resume ended with %d" % child.returncode)
        raise AssertionError("not over after %d resumes" % TRIES)

    def judge(self):
        """What the run left; raises AssertionError."""
        shutil.copy(self.whole, self.path("whole.model"))
        self.same_model("whole.model", "out/m.model")
        left = [os.path.join(at, n) for at, folders, names in os.walk(self.dir) for n in folders + names
                if n.endswith((".part", ".ckpt", ".trained")) or n in ("reserve", "trained.model")]
        self.assertEqual([n for n in left if "whole" not in n], [])
        self.assertEqual([n for name in ("state", "tmp") for _, _, names in os.walk(self.path(name)) for n in names], [])


def until(begin, moment):
    time.sleep(max(0.0, begin + moment - time.monotonic()))


def kill(run, moment):
    begin, child = time.monotonic(), run.train()
    until(begin, moment)
    child.kill()
    child.wait()
    run.finish()


def send(run, moment):
    begin, child = time.monotonic(), run.train()
    until(begin, moment)
    number = random.choice(SIGNALS)
    child.send_signal(number)
    if child.wait(PATIENCE) not in (0, 75, -number):
        raise AssertionError("signal %d: ended with %d" % (number, child.returncode))
    run.finish()


def full_disk(run, moment):
    """Model and run folder on a disk of 1.5 MB that another program fills, once or until the run ends."""
    out = run.path("out")
    if os.geteuid() != 0 or libc.mount(b"none", out.encode(), b"tmpfs", 0, b"size=1500k") != 0:
        raise Skip("a small disk can only be mounted by root")
    try:
        begin, child = time.monotonic(), run.train()
        until(begin, moment)
        hungry = random.randrange(2)
        with open(os.path.join(out, "fill"), "wb", buffering=0) as f:
            while child.poll() is None and time.monotonic() < begin + PATIENCE:
                try:
                    f.write(bytes(1024))
                except OSError:
                    if not hungry:
                        break
                    time.sleep(0.0005)
        status = child.wait(PATIENCE)
        os.unlink(os.path.join(out, "fill"))
        if status not in (0, 7):
            raise AssertionError("full disk: ended with %d" % status)
        run.finish()
        kept = run.path("copy")
        shutil.copytree(out, kept)
    finally:
        libc.umount2(out.encode(), 2)
    shutil.rmtree(out)
    os.rename(kept, out)


def quota(run, moment):
    """A limit on the size of files, as `ulimit -f` and a quota set one; drawn around what the run writes."""
    begin, child = time.monotonic(), run.train()
    until(begin, moment)
    try:
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (random.choice([0, 1000, 10000, 50000, 100000]), resource.RLIM_INFINITY))
    except ProcessLookupError:
        pass
    if child.wait(PATIENCE) not in (0, 7):
        raise AssertionError("limit on file sizes: ended with %d" % child.returncode)
    run.finish()


def read_only(run, moment):
    """The folder of the model, and the run folder in half of the runs, lose the right to be written to."""
    run.drop = unprivileged()
    run.program = shutil.copy(e2e.PROGRAM, run.path("stretto"))
    folders = [run.path("out")] + [run.path("out/m.model.run"), run.path("out/m.model.run/checkpoints")][:2 * random.randrange(2)]
    begin, child = time.monotonic(), run.train()
    until(begin, moment)
    for folder in reversed(folders):
        if os.path.isdir(folder):
            os.chmod(folder, 0o555)
    status = child.wait(PATIENCE)
    for folder in folders:
        if os.path.isdir(folder):
            os.chmod(folder, 0o777)
    if status not in (0, 7):
        raise AssertionError("read-only: ended with %d" % status)
    run.finish()


def clock(run, moment):
    """The process stands still for a while, is stopped, and goes on where the monotonic clock began anew, as after a reboot."""
    if subprocess.run(["unshare", "--time", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("time namespaces (unshare --time) are not allowed here")
    begin, child = time.monotonic(), run.train()
    until(begin, moment * random.random())
    child.send_signal(signal.SIGSTOP)
    time.sleep(random.uniform(0.1, 1.0))
    child.send_signal(signal.SIGCONT)
    until(time.monotonic(), moment * random.random())
    child.send_signal(signal.SIGKILL if random.randrange(2) else signal.SIGTERM)
    child.wait(PATIENCE)
    run.finish(front=["unshare", "--time", "--fork", "--monotonic", str(random.choice([-1000, 1000, 10000000]))])


def changed(lines):
    """(name, the file after it) of one way in which a file changes between two calls."""
    at = random.randrange(1, len(lines))
    return random.choice([("a row appended", lines + ["1961-01,450"]), ("rows cut off", lines[:random.randrange(20, len(lines) - 1)]),
                          ("a value", lines[:at] + [lines[at] + "1"] + lines[at + 1:]), ("a row gone", lines[:at] + lines[at + 1:]),
                          ("a column renamed", [lines[0].replace("Passengers", "People")] + lines[1:])])


def changed_data(run, moment):
    """The run is stopped, the file changes: refused, and nothing of the run is harmed."""
    with open(run.path("air.csv"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    begin, child = time.monotonic(), run.train()
    until(begin, moment)
    child.send_signal(signal.SIGTERM)
    child.wait(PATIENCE)
    if not run.finished() and os.path.exists(run.path("out/m.model.run/data.json")):
        what, after = changed(lines)
        run.write("air.csv", "\n".join(after) + "\n")
        status = run.begin("resume", "out/m.model.run").wait(PATIENCE)
        if status not in (2, 3, 4):
            raise AssertionError("%s: resume ended with %d" % (what, status))
        run.write("air.csv", "\n".join(lines) + "\n")
    run.finish()


KINDS = [("kill -9", kill), ("a signal (INT, TERM, USR1, HUP, XCPU)", send), ("a disk that is full", full_disk),
         ("a limit on file sizes", quota), ("folders that become read-only", read_only), ("clocks that jump", clock),
         ("data that changed", changed_data)]


def one(kind, moment):
    """(what came of it, resumes)"""
    run = Trouble()
    run.setUp()
    try:
        kind(run, moment)
        run.judge()
        return "same bits", run.resumed
    except (AssertionError, subprocess.TimeoutExpired) as why:
        with open(run.path("words"), encoding="utf-8") as f:
            print(f.read()[-3000:], flush=True)
        return str(why).splitlines()[0], run.resumed
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", run.dir], check=False)
        run.doCleanups()


def soak(moments):
    """Rows of the table: kind, runs with the same bits, of how many, resumes, the range of moments, what else came of it."""
    first = Trouble()
    first.setUp()
    begin = time.monotonic()
    if first.train().wait(PATIENCE) != 0:
        raise AssertionError("the undisturbed run failed")
    life, rows = 1.1 * (time.monotonic() - begin), []
    Trouble.whole = first.path("out/m.model")
    for name, kind in KINDS:
        good, resumes, other = 0, 0, []
        try:
            for k in range(moments):
                what, resumed = one(kind, life * (k + random.random()) / moments)
                good += what == "same bits"
                resumes += resumed
                other += [] if what == "same bits" else [what]
                print("%s %d: %s" % (name, k + 1, what), flush=True)
        except Skip as why:
            other = ["not run: %s" % why]
        rows.append((name, good, 0 if other and other[0].startswith("not run") else moments, resumes, life, other))
    first.doCleanups()
    return rows
