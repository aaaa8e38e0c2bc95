#!/usr/bin/env python3
"""shake.py PROGRAM [N] [--seed S] [--only K] [--cuts]: random configurations of train; bits must be those of one thread and rank.

    a configuration    data, cell, sizes, optimiser, ...: drawn from the seed S and its number K alone, so that --only K repeats it
    its reference      1 thread, 1 rank
    two or three modes other numbers of threads and ranks, another strategy; a third of them is killed (kill -9) and resumed
    what must hold     every tensor of each model, and its metadata, are those of the reference

    --cuts             products of cuts, placed, over threads, ranks and processes, and what refusals say (shake_cuts.py)

A run that takes longer than 20 times its reference and 30 s is examined: the stacks of its threads, and whether it makes progress.
"slow" made progress (metrics.jsonl grew) and is waited for; "stuck" is an error."""
import argparse
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
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import e2e  # noqa: E402  (it reads the program's name from sys.argv)
import shake_cuts  # noqa: E402

CELLS = ["lstm", "lstm", "gru", "rnn", "paragru", "paralstm", "minlstm"]
OPTIMS = ["sgd", "adam", "adamw", "rmsprop", "adagrad"]
LOOK_S = 30        # between two looks at a run that is late
LAST_S = 600       # a run that gets on is waited for so long, and no longer
TICKS = os.sysconf("SC_CLK_TCK")


def draw(rng):
    """(columns of data, options that decide the bits)"""
    name = rng.choice(["airline", "airline", "tides"])
    hidden, batch, layers = rng.choice([5, 8, 16, 24, 33, 40]), rng.choice([1, 7, 16, 24, 40]), rng.randint(1, 3)
    cell = rng.choice(CELLS)
    words = ["--target", "Passengers" if name == "airline" else "height", "--horizon", str(rng.choice([1, 4, 12])), "--cell", cell,
             "--layers", str(layers), "--hidden", str(hidden), "--batch", str(batch), "--steps", str(rng.choice([20, 40, 80])),
             "--optim", rng.choice(OPTIMS), "--validate-every", str(rng.choice([7, 20])), "--seed", str(rng.randrange(1000))]
    parts = [n for n in (2, 4, 5) if batch % n == 0]
    if parts and rng.random() < 0.25:
        words += ["--accumulate", str(rng.choice(parts))]
    if rng.random() < 0.3:
        words += ["--grains", str(rng.choice([1, 3, 6, 16]))]
    if rng.random() < 0.25:
        words += ["--dropout", "0.2"]
    if rng.random() < 0.2 and cell in ("lstm", "gru", "rnn"):
        words += ["--precision", "bf16"]
    if rng.random() < 0.2:
        words += ["--members", "2"]
    return name, words, rng.random() < 0.2 and cell in ("lstm", "gru")


def draw_way(rng, slices, hidden, plain):
    """Options that must not decide the bits; plain: some that always apply."""
    threads, ranks = rng.choice([1, 2, 2, 3, 4, 7]), rng.choice([1, 1, 2, 3, 5, 7])
    if slices:
        return ["--threads", str(threads), "--ranks", "1"]
    words = ["--threads", str(threads), "--ranks", str(ranks)]
    free = ["auto", "data_sync", "wavefront"] + (["data_sync:%d" % threads, "unit_split:%d" % min(threads, hidden)] if ranks == 1 else [])
    return words + ["--parallel", "auto" if plain else rng.choice(free)]


class Standing:
    """Stacks of a process's threads, and the progress of its run."""
    def __init__(self, pid, course):
        self.threads, self.ticks = [], 0
        try:
            self.size = os.path.getsize(course)
        except OSError:
            self.size = 0
        for tid in sorted(self.of("/proc/%d/task" % pid, os.listdir, []), key=int):
            at = "/proc/%d/task/%s/" % (pid, tid)
            stat = self.of(at + "stat", self.text, "0 (gone) ? " + "0 " * 40).rsplit(")", 1)
            field = stat[1].split()
            used = int(field[11]) + int(field[12])
            self.ticks += used
            self.threads.append("%s %s %s in %s, %.2f s user, %.2f s system" % (
                tid, stat[0].partition("(")[2], field[0], self.of(at + "wchan", self.text, "?") or "?", int(field[11]) / TICKS,
                int(field[12]) / TICKS))

    @staticmethod
    def text(path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    @staticmethod
    def of(path, read, absent):
        try:
            return read(path)
        except OSError:
            return absent


class Shake(e2e.Case):
    """One configuration; the helpers are those of the tests."""
    def runTest(self):
        pass

    def spawn(self, words):
        with open(self.path("words"), "a", encoding="utf-8") as out:
            return subprocess.Popen([e2e.PROGRAM, *words], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    env=self.environment())

    def look(self, child, name, late):
        """A slow run: what it does now, and whether it made progress since the last check."""
        course = self.path(name + ".run/metrics.jsonl")
        first = Standing(child.pid, course)
        try:
            child.wait(LOOK_S)
            return True
        except subprocess.TimeoutExpired:
            pass
        now = Standing(child.pid, course)
        grown, used = now.size - first.size, (now.ticks - first.ticks) / TICKS
        print("  after %.0f s: metrics.jsonl grew by %d bytes and %.2f s were computed in the last %d s" % (late, grown, used, LOOK_S))
        for line in now.threads:
            print("    " + line)
        if shutil.which("gdb"):
            subprocess.run(["gdb", "-batch", "-p", str(child.pid), "-ex", "thread apply all bt"], check=False, timeout=120)
        return grown > 0

    def finish(self, child, name, limit):
        """None, or "slow" (it ended) or "stuck" (it was killed)."""
        begin = time.monotonic()
        try:
            child.wait(limit)
            return None
        except subprocess.TimeoutExpired:
            pass
        while child.poll() is None:
            late = time.monotonic() - begin
            if not self.look(child, name, late) or late > LAST_S:
                child.kill()
                child.wait()
                return "stuck"
        return "slow"

    def run_way(self, words, name, limit, kill_after):
        """(None or "slow" or "stuck", exit status, kills)"""
        kills, first = 0, ["train", *words, "-o", name, "-q"]
        child = self.spawn(first + (["--checkpoint-every", "0.05s"] if kill_after else []))
        if kill_after:
            try:
                child.wait(kill_after)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
                kills = 1
                child = self.spawn(self.onward(first, name))
        late = self.finish(child, name, limit)
        return late, child.returncode, kills

    def onward(self, first, name):
        """resume, where there is a checkpoint; else the run begins again."""
        at = self.path(name + ".run/checkpoints")
        if not os.path.isdir(at) or not os.listdir(at):
            shutil.rmtree(self.path(name + ".run"), True)
            return first
        machine = [w for k, w in enumerate(first) if "--threads" in first[max(k - 1, 0):k + 1] or "--ranks" in first[max(k - 1, 0):k + 1]]
        return ["resume", name + ".run", *machine, "-q"]

    def said(self):
        lines = [line for line in Standing.text(self.path("words")).splitlines() if line.strip()]
        return lines[-1] if lines else "nothing"

    def one(self, rng):
        """(verdict, configuration, ways, pairs, kills)"""
        data, words, slices = draw(rng)
        self.setUp()
        if data == "tides":
            self.stretto("sample", "tides", "--rows", "600", "-o", "tides.csv")
        whole = [e2e.AIR if data == "airline" else "tides.csv", *words, *(["--parallel", "time:4"] if slices else [])]
        ways, kills, slow = [], 0, False
        begin = time.monotonic()
        late, status, _ = self.run_way([*whole, "--threads", "1", "--ranks", "1"], "whole.model", LAST_S, 0)
        took = time.monotonic() - begin
        if late or status != 0:
            return late or ("refused: " + self.said() if status in (1, 2) else "ended with %d: %s" % (status, self.said())), whole, ways, kills
        for k in range(rng.randint(2, 3)):
            way = draw_way(rng, slices, int(words[words.index("--hidden") + 1]), k == 0)
            kill = rng.uniform(0.2, 1.2) * took if rng.random() < 0.33 else 0
            ways.append(" ".join(way))
            late, status, killed = self.run_way([*whole, *way], "way%d.model" % k, 20 * took + 30, kill)
            kills += killed
            slow = slow or late == "slow"
            if not late and status == 2 and "fix: --parallel auto" in self.said():
                ways[-1] += " (does not apply)"
                continue
            if late == "stuck" or status != 0:
                return "%s: %s" % (late or "ended with %d" % status, self.said()), whole, ways, kills
            try:
                self.same_model("whole.model", "way%d.model" % k, ways[-1])
            except AssertionError as why:
                return "OTHER BITS: " + str(why).splitlines()[0], whole, ways, kills
        return "same bits, slow" if slow else "same bits", whole, ways, kills


def all_cuts(numbers, seed):
    """Exit status; prints every configuration that is not as it should be."""
    kinds, begin, case = {}, time.monotonic(), Shake()
    case.setUp()
    for k in numbers:
        verdict, at = shake_cuts.Cuts(case, random.Random("%d %d" % (seed, k))).one()
        kind = "same bits after a fix" if verdict.startswith("same bits after") else verdict.split(":")[0]
        kinds[kind] = kinds.get(kind, 0) + 1
        if not kind.startswith("same bits") or len(numbers) == 1:
            print("--cuts --seed %d --only %d  %s  train %s" % (seed, k, verdict, at), flush=True)
        for name in os.listdir(case.dir):
            if name.endswith(".run"):
                shutil.rmtree(case.path(name))
    shutil.rmtree(case.dir, True)
    print("%s, in %.0f s" % (", ".join("%d %s" % (n, kind) for kind, n in sorted(kinds.items())), time.monotonic() - begin))
    return 0 if all(k.startswith(("same bits", "refused in words")) for k in kinds) else 1


def main():
    p = argparse.ArgumentParser(description="random configurations of train: same bits?")
    p.add_argument("program")
    p.add_argument("n", type=int, nargs="?", default=20)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", type=int)
    p.add_argument("--cuts", action="store_true")
    a = p.parse_args()
    e2e.PROGRAM = os.path.abspath(a.program)
    if a.cuts:
        return all_cuts(range(a.n) if a.only is None else [a.only], a.seed)
    pairs = killed = bad = refused = 0
    begin = time.monotonic()
    for k in range(a.n) if a.only is None else [a.only]:
        run, start = Shake(), time.monotonic()
        verdict, whole, ways, kills = run.one(random.Random("%d %d" % (a.seed, k)))
        print("--seed %d --only %d  %5.1f s  %s  train %s | %s%s" % (a.seed, k, time.monotonic() - start, verdict, " ".join(
            [os.path.basename(whole[0]), *whole[1:]]), " | ".join(ways), ", %d killed" % kills if kills else ""), flush=True)
        good, no = verdict.startswith("same bits"), verdict.startswith("refused")
        bad, refused, pairs, killed = bad + (not good and not no), refused + no, pairs + sum("(" not in w for w in ways), killed + kills
        if good or no:
            shutil.rmtree(run.dir, True)
        else:
            print("  left in " + run.dir)
    print("%d pairs, %d kills, %d refused, %d bad, in %.0f s" % (pairs, killed, refused, bad, time.monotonic() - begin))
    return 1 if bad or pairs == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
