#!/usr/bin/env python3
"""bits.py PROGRAM [--record] [--only REGEX] [--quick]: trained weights against checksums recorded earlier.

    a configuration   data and options that decide the weights
    its ways          numbers of threads and ranks, strategies, an interruption and a resume: each must give the same weights
    its checksum      sha256 over name, type, shape and bytes of every tensor of the model file but those of the bands and of the
                      ridge of the score table, which training does not read; metadata does not count
    the table         bench/results/bits.tsv: configuration, instruction set, checksum; --record writes it

Each configuration is trained with each instruction set of x86 (STRETTO_ISA) that the machine has.  A compiler or a C library
of another version may round otherwise: then only the ways of a configuration are compared with each other.
Exit status: 0 equal, 1 a difference, 2 wrong usage."""
import argparse
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import e2e  # noqa: E402  (it reads the program's name from sys.argv)

TABLE = os.path.join(ROOT, "bench", "results", "bits.tsv")
SETS = ["ref", "avx2", "avx512"]
BF16 = "avx512_bf16"  # for the configurations in bf16
STOPPED = 75
PATIENCE = 120  # seconds a training may take on a busy machine

# Words that stand for options, so that a configuration fits a line.
AIR = "airline --target Passengers --horizon 4 --steps 12 --hidden 12 --members 1 --batch 24 --no-guard --base none"
MIXED = ("mixed --target a,b --horizon 6 --context 24 --steps 10 --hidden 10 --batch 16 --no-guard --base none --preset none "
         "--validation 60 --test 60 --gaps mask")
ALONG = ("along --target y --past u --horizon 1 --context 192 --segment 1 --steps 6 --hidden 8 --batch 6 --validate-every 3 "
         "--no-guard --base none --loss-steps all")
T1, T2, T4 = "--threads 1", "--threads 2", "--threads 4"
R2, R3, R4 = "--threads 1 --ranks 2", "--threads 2 --ranks 3", "--threads 1 --ranks 4"
DATA2, DATA3 = "--threads 2 --parallel data_sync:2", "--threads 3 --parallel data_sync:3"
UNIT2, WAVE2 = "--threads 2 --parallel unit_split:2", "--threads 2 --parallel wavefront:2"
STOP, PLAN = "STOP", "PLAN"  # ways that are not options: stop and resume; a plan that was saved


def configurations():
    """name: (options, ways); the first way is the one whose checksum is recorded."""
    c = {}

    def add(name, options, *ways):
        c[name] = (options, ways or (T1,))

    # cells, with every number of threads and ranks
    for cell in ("lstm", "gru", "rnn"):
        add("cell-" + cell, AIR + " --layers 2 --cell " + cell, T1, T2, R2)
    for cell in ("paragru", "paralstm", "minlstm"):
        add("cell-" + cell, AIR + " --layers 2 --cell " + cell, T1, T2, R3)
    add("threads", AIR + " --layers 2 --hidden 20", T1, T2, T4, "--threads 3", "--parallel serial", DATA2, DATA3, WAVE2)
    add("ranks", AIR + " --layers 2 --cell gru --hidden 20", T1, R2, R3, R4, R2 + " --pipeline linear", R3 + " --rank-shares 1,0.4,0.7",
        R2 + " --balance off", R3 + " --heal")
    add("units", AIR + " --batch 1 --hidden 40 --layers 2", T1, UNIT2, "--threads 3 --parallel unit_split:3")
    add("plan", AIR + " --layers 2 --batch 20", T2, PLAN)
    # shapes of a net
    add("bidirectional", AIR + " --bidirectional --layers 2", T1, T2, R2, WAVE2)
    add("projection", AIR + " --projection 5 --layers 2", T1, T2, R2)
    add("projection-bidirectional", AIR + " --projection 5 --bidirectional --cell lstm")
    add("layers-3", AIR + " --layers 3 --cell gru", T1, "--threads 3 --parallel wavefront:3")
    add("hidden-33", AIR + " --hidden 33 --segment 3 --batch 7", T1, T2)
    add("norm", AIR + " --norm --layers 2", T1, R2)
    add("norm-bidirectional-rnn", AIR + " --norm --bidirectional --cell rnn")
    # decoders, heads, losses
    add("decoder-parallel", MIXED + " --decoder parallel --segment 3", T1, T2, R2)
    add("decoder-autoregressive", MIXED + " --decoder autoregressive --segment 3 --teacher-forcing 0.7", T1, T2, R2)
    add("decoder-autoregressive-gru", MIXED + " --decoder autoregressive --segment 2 --cell gru --teacher-forcing 0 --head quantile")
    add("quantile", MIXED + " --head quantile --quantiles 0.1,0.3,0.9 --loss quantile --decoder direct", T1, R2)
    add("quantile-parallel", MIXED + " --head quantile --decoder parallel --segment 3")
    add("loss-mse", AIR + " --loss mse --scale series")
    add("loss-mae", AIR + " --loss mae --scale last", T1, R2)
    # optimisers and the course of training
    for optim, more in (("sgd", "--lr 0.1 --momentum 0.8 --schedule step"), ("adam", "--schedule linear --warmup 3"),
                        ("adamw", "--weight-decay 0.1 --schedule constant"), ("rmsprop", "--warmup 0"), ("adagrad", "--lr 0.05")):
        add("optim-" + optim, AIR + " --optim %s %s" % (optim, more), T1, R2)
    add("clip", AIR + " --clip 0.01 --optim sgd --lr 0.5", T1, R3)
    add("clip-none", AIR + " --clip 0")
    add("accumulate", AIR + " --accumulate 3", T1, T2, R2)
    add("grains", AIR + " --grains 5", T1, T2, R3)
    add("dropout", AIR + " --dropout 0.3 --layers 2 --norm", T1, T2, R2)
    add("members", AIR + " --members 3", T1, R2, STOP)
    add("patience", AIR + " --steps 30 --validate-every 4 --patience 2 --lr 0.2")
    add("refit-all", AIR + " --refit-all --validate-every 4", T1, R2)
    # data: categories (sparse gradients), calendar, known and past columns, gaps
    add("categories", MIXED + " --cat word --decoder direct", T1, T2, R2, R3, R2 + " --pipeline linear")
    add("categories-parallel", MIXED + " --cat word --known k --decoder parallel --segment 3 --optim sgd --dropout 0.2", T1, R2)
    add("categories-accumulate", MIXED + " --cat word --accumulate 2 --clip 0.1 --optim adagrad --members 2", T1, R2)
    add("categories-autoregressive", MIXED + " --cat word --decoder autoregressive --segment 2 --layers 2 --cell gru", T1, R3)
    add("calendar", MIXED + " --calendar yes --known k --past u", T1, R2)
    add("gaps-interpolate", MIXED + " --gaps interpolate --past u,k --segment 2")
    # forecasts that the net corrects
    for base, more in (("last", ""), ("season", ""), ("ridge", ""), ("mix", " --steps 60 --lr 0.02 --validate-every 2")):
        add("base-" + base, AIR.replace("--base none", "--base " + base).replace("--no-guard", "--guard") + more)
    add("no-correction", AIR.replace("--base none", "--base mix") + " --no-correction")
    add("preset-short", "airline --target Passengers --horizon 12 --steps 60 --validate-every 2", T1, T2, R2)
    add("preset-long", "mixed --preset long --target a,b --horizon 12 --context 48 --steps 8 --hidden 8 --gaps mask --base none", T1, R2)
    add("preset-day", "mixed --preset day --target a --horizon 6 --context 24 --steps 8 --hidden 8 --batch 32 --gaps mask", T1, R2)
    # stopped and resumed
    add("resume", AIR + " --steps 600 --validate-every 20 --dropout 0.1", T2, STOP)
    add("resume-ranks", AIR + " --steps 300 --validate-every 20", T1, R2 + " " + STOP)
    # a step late
    add("delay1", AIR + " --layers 2 --pipeline delay1", R2)
    add("delay1-3-ranks", AIR + " --layers 2 --pipeline delay1 --optim sgd --lr 0.1", R3)
    # slices of time
    add("time", ALONG + " --parallel time:4 --slice-rank 0", T1, T2, T4)
    add("time-ranks", ALONG + " --parallel time:4 --slice-rank 0 --layers 2", T1, R2)
    add("time-rank-2", ALONG + " --parallel time_slice:4 --slice-rank 2 --cell gru", T1, T2)
    add("time-stale", ALONG + " --parallel time:4 --slice-rounds 1 --slice-rank 0", T1, T2, R2)
    add("time-recompute", ALONG + " --parallel time:3 --slice-rank 0 --recompute --bidirectional --loss-steps last", T1, T2)
    add("time-projection", ALONG + " --parallel time:4 --slice-rank 0 --projection 4 --loss-steps last", T1, T2)
    add("time-resume", ALONG + " --steps 60 --parallel time:4 --slice-rank 1", T1, T1 + " " + STOP)
    add("loss-steps-all", ALONG + " --preset stream --context 64", T1, T2, R2)
    add("walk-newton", ALONG + " --cell paralstm --lr 0.01 --kernel auto:newton --steps 12")
    add("walk-scan", ALONG + " --cell minlstm --kernel auto:scan --context 64")
    # recurrent products in bf16
    for cell in ("lstm", "gru", "rnn"):
        add("bf16-" + cell, AIR + " --precision bf16 --layers 2 --hidden 24 --cell " + cell, T1, T2, R2)
    add("bf16-time", ALONG + " --precision bf16 --parallel time:4 --slice-rank 0", T1, T2)
    return c


QUICK = re.compile("^(cell-lstm|cell-paragru|ranks|threads|bidirectional|decoder-autoregressive|quantile|categories|dropout|base-mix|"
                   "delay1|time-ranks|bf16-lstm|resume)$")


def write_data(folder):
    """Data out of whole numbers, the same on every machine."""
    shutil.copy(e2e.AIR, os.path.join(folder, "airline.csv"))
    x, rows, along, sum_, held = 12345, ["t,a,b,k,u,word"], ["step,u,y"], 0, 0
    for i in range(420):
        x = (x * 1103515245 + 12345) % 2147483648
        noise = x // 65536 % 100
        rows.append("2021-%02d-%02d %02d:00,%s,%d.%02d,%d,%d,w%d" % (
            1 + i // 24 // 28, 1 + i // 24 % 28, i % 24, "" if i % 50 == 7 else str(40 + abs(i % 24 - 12) * 3 + noise % 7), 5 + i % 12,
            noise, i % 7, noise % 13, x // 4096 % 40))
        sum_ = sum_ * 9 // 10 + noise - 50
        held = noise if noise > 95 else held
        along.append("%d,%d,%d" % (i, noise - 50, sum_ + held))
    for name, lines in (("mixed", rows), ("along", along)):
        with open(os.path.join(folder, name + ".csv"), "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")


class Failed(Exception):
    pass


class Runs:
    """Trains configurations in a folder of its own."""
    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.dir = tempfile.mkdtemp(prefix="stretto-bits-")
        write_data(self.dir)

    def run(self, isa, words, status=0):
        done = subprocess.run([self.program, *words], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.environment(isa), timeout=PATIENCE, check=False)
        if done.returncode != status:
            raise Failed("%s ended with %d: %s" % (" ".join(words), done.returncode, done.stderr.decode().strip()))
        return done

    @staticmethod
    def environment(isa):
        return dict(os.environ, NO_COLOR="1", LC_ALL="C", STRETTO_WISDOM="off", STRETTO_ISA=isa)

    def has(self, isa):
        done = subprocess.run([self.program, "info", "--probe"], cwd=self.dir, env=self.environment(isa), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def stopped(self, isa, words, run):
        """Starts a training and stops it once it has validated; True when it left a checkpoint."""
        child = subprocess.Popen([self.program, *words], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=self.environment(isa))
        course, limit = os.path.join(self.dir, run, "metrics.jsonl"), time.monotonic() + PATIENCE
        while child.poll() is None and not (os.path.exists(course) and os.path.getsize(course) > 0):
            if time.monotonic() > limit:
                child.kill()
                child.wait()
                raise Failed("%s never validated" % " ".join(words))
            time.sleep(0.001)
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        if child.wait(PATIENCE) not in (0, STOPPED):
            raise Failed("%s ended with %d when it was stopped" % (" ".join(words), child.returncode))
        return child.returncode == STOPPED

    def train(self, isa, options, way):
        """The checksum of one training."""
        data, *words = options.split()
        shutil.rmtree(os.path.join(self.dir, "m.model.run"), True)
        flags = [w for w in way.split() if w not in (STOP, PLAN)]
        whole = ["train", data + ".csv", *words, *flags, "-o", "m.model", "--quiet"]
        if STOP in way:
            for _ in range(5):
                if self.stopped(isa, whole, "m.model.run"):
                    self.run(isa, ["resume", "m.model.run", "--quiet"])
                    break
            else:
                raise Failed("every training was over before it could be stopped")
        elif PLAN in way:
            shape = [w for k, w in enumerate(words) if not {"--steps", "--members", "--no-guard", "--base"} & {w, words[k - 1]}]
            self.run(isa, ["plan", data + ".csv", *shape, "--machine", "host(cpu*2)", "--parallel", "data_sync:2", "--save", "m.plan",
                           "--quiet"])
            self.run(isa, [*whole, "--plan", "m.plan"])
        else:
            self.run(isa, whole)
        return checksum(os.path.join(self.dir, "m.model"))


def checksum(path):
    _, tensors = e2e.model(path)
    h = hashlib.sha256()
    for name in sorted(set(tensors) - {"spread", "bands", "paths", "row.ridge"}):
        kind, shape, body = tensors[name]
        h.update(("%s %s %s\n" % (name, kind, shape)).encode())
        h.update(body)
    return h.hexdigest()[:16]


def compiler_of(program):
    """What may round otherwise: the compiler's name and major version, the C library's version, the processor's family."""
    with open(program, "rb") as f:
        found = re.findall(rb"GCC: \([^)]*\) (\d+)|clang version (\d+)", f.read())
    names = sorted({"gcc %s" % g.decode() if g else "clang %s" % c.decode() for g, c in found}, reverse=True)
    # a C library built by gcc leaves its mark beside that of clang
    clang = [n for n in names if n.startswith("clang")]
    return (clang or names or ["unknown"])[0], os.confstr("CS_GNU_LIBC_VERSION") or "unknown", platform.machine()


def read_table():
    head, rows = {}, {}
    if not os.path.exists(TABLE):
        return head, rows
    with open(TABLE, encoding="utf-8") as f:
        for line in f:
            if line.startswith("# ") and ": " in line:
                key, _, value = line[2:].rstrip("\n").partition(": ")
                head[key] = value
            elif line.strip() and not line.startswith(("#", "configuration\t")):
                name, isa, found = line.split()
                rows[name, isa] = found
    return head, rows


def write_table(built, rows):
    os.makedirs(os.path.dirname(TABLE), exist_ok=True)
    order = list(configurations())
    with open(TABLE, "w", encoding="utf-8") as f:
        f.write("# Checksums of trained weights, written by bench/bits.py --record.\n# compiler: %s\n# libc: %s\n# machine: %s\n" % built)
        f.write("configuration\tisa\tchecksum\n")
        for (name, isa), found in sorted(rows.items(), key=lambda r: (order.index(r[0][0]), r[0][1])):
            f.write("%s\t%s\t%s\n" % (name, isa, found))


def one(runs, name, isa, expected):
    """(checksum or None, [differences]) of a configuration with an instruction set."""
    options, ways = configurations()[name]
    first, wrong = None, []
    for way in ways:
        try:
            got = runs.train(isa, options, way)
        except Failed as why:
            wrong.append("%s, %s, %s: %s" % (name, isa, way, why))
            continue
        if first is None:
            first = got
            if expected not in (None, got):
                wrong.append("%s, %s, %s: expected %s, got %s   (train %s)" % (name, isa, way, expected, got, options))
        elif got != first:
            wrong.append("%s, %s, %s: expected %s as with %s, got %s   (train %s)" % (name, isa, way, first, ways[0], got, options))
    return first, wrong


def main():
    p = argparse.ArgumentParser(description="trained weights against recorded checksums")
    p.add_argument("program")
    p.add_argument("--record", action="store_true", help="write the table")
    p.add_argument("--only", default="", metavar="REGEX", help="configurations whose name matches")
    p.add_argument("--quick", action="store_true", help="a dozen configurations, the first and the last instruction set")
    a = p.parse_args()
    if a.record and (a.only or a.quick):
        p.error("--record records every configuration")
    begin, runs, built = time.monotonic(), Runs(a.program), compiler_of(a.program)
    head, table = read_table()
    comparable = not a.record and tuple(head.get(key) for key in ("compiler", "libc", "machine")) == built
    if not a.record and not comparable:
        print("skipped: recorded with %s, %s, %s; this is %s, %s, %s: the ways of each configuration are compared with each other" % (
            head.get("compiler"), head.get("libc"), head.get("machine"), *built))
    try:
        have = [isa for isa in [*SETS, BF16] if runs.has(isa)]
        for isa in sorted(set([*SETS, BF16]) - set(have)):
            print("skipped: this machine or build has no %s" % isa)
        if a.quick:
            have = [isa for k, isa in enumerate(have) if isa == BF16 or isa == [s for s in have if s != BF16][-1]]
        new, wrong, compared = {}, [], 0
        for name in configurations():
            if not re.search(a.only, name) or (a.quick and not QUICK.match(name)):
                continue
            for isa in have:
                if (isa == BF16) != name.startswith("bf16"):
                    continue
                expected = table.get((name, isa)) if comparable else None
                if comparable and expected is None:
                    wrong.append("%s, %s: not in the table (bench/bits.py PROGRAM --record)" % (name, isa))
                found, differences = one(runs, name, isa, expected)
                compared += expected is not None
                wrong += differences
                if found:
                    new[name, isa] = found
    finally:
        shutil.rmtree(runs.dir, True)
    for line in wrong:
        print("DIFFERENT: " + line)
    if a.record and not wrong:
        write_table(built, new)
    print("%d configurations in %d rows, %d compared with the table, %d different, %.0f s" % (
        len({name for name, _ in new}), len(new), compared, len(wrong), time.monotonic() - begin))
    return 1 if wrong or not new else 0


if __name__ == "__main__":
    sys.exit(main())
