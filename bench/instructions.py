#!/usr/bin/env python3
"""instructions.py PROGRAM [--record]: instructions of whole trainings against bench/results/step-instructions.tsv.

    a command   one training on one thread with the AVX2 kernels (callgrind of valgrind 3.19 knows no AVX-512)
    its counts  a step: instructions of 32 steps less those of 2, divided by 30; the start: the rest.  Each training runs
                twice and the smaller count stands, because monitor threads act by the clock
    a slowdown  a count that grew by more than 1 % (ranks: 15 %, because waiting ranks count their loops): exit status 1

Counts follow the compiler, the C library and valgrind: where one differs from the table, the check is skipped (status 77).
--record writes the table.  A run takes about two minutes of processor time."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bits  # noqa: E402

TABLE = os.path.join(bits.ROOT, "bench", "results", "step-instructions.tsv")
MARGIN = 0.01
MARGIN_RANKS = 0.15
FEW, MORE, TIMES = 2, 32, 2
COMMANDS = {
    "layers": "airline --target Passengers --horizon 4 --context 24 --hidden 8 --layers 2 --batch 16 --members 1 --no-guard --base none",
    "categories": "mixed --target a,b --cat word --horizon 6 --context 24 --segment 3 --decoder parallel --hidden 6 --batch 16 "
                  "--preset none --base ridge --no-guard --validation 60 --test 60 --gaps mask --dropout 0.2 --norm --accumulate 2",
    "ranks": "airline --target Passengers --horizon 4 --context 24 --hidden 8 --cell gru --batch 16 --members 1 --no-guard "
             "--base none --ranks 2",
    "slices": "along --target y --past u --horizon 1 --context 192 --segment 1 --hidden 8 --batch 4 --no-guard --base none "
              "--loss-steps all --validate-every 100 --parallel time:4 --slice-rank 0",
}


def instructions(runs, words, steps):
    """Instructions of one training."""
    data, *words = words.split()
    shutil.rmtree(os.path.join(runs.dir, "m.model.run"), True)
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", runs.program, "train", data + ".csv",
                           *words, "--steps", str(steps), "--threads", "1", "-o", "m.model", "--quiet"], cwd=runs.dir,
                          env=dict(runs.environment("avx2"), STRETTO_DEADLINE="600"), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    total = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not total:
        sys.exit("train %s ended with %d: %s" % (" ".join(words), done.returncode, done.stderr))
    return int(total[1])


def count(runs, words):
    """(instructions of a step, of the start)."""
    few, more = (min(instructions(runs, words, steps) for _ in range(TIMES)) for steps in (FEW, MORE))
    step = (more - few) // (MORE - FEW)
    return step, few - FEW * step


def versions(program):
    """None without valgrind."""
    try:
        valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return None
    return dict(zip(("compiler", "libc", "machine"), bits.compiler_of(program)), valgrind=valgrind)


def read_table():
    head, rows = {}, {}
    if os.path.exists(TABLE):
        with open(TABLE, encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if line.startswith("# "):
                    key, _, value = line[2:].strip().partition(": ")
                    head[key] = value
                elif words and words[0] in COMMANDS:
                    rows[words[0]] = (int(words[1]), int(words[2]))
    return head, rows


def write_table(head, rows):
    with open(TABLE, "w", encoding="utf-8") as f:
        f.write("# Instructions of whole trainings, written by bench/instructions.py --record.\n")
        f.writelines("# %s: %s\n" % item for item in head.items())
        f.write("command\tstep\tstart\n")
        f.writelines("%s\t%d\t%d\n" % (name, *row) for name, row in rows.items())


def main():
    p = argparse.ArgumentParser(description="instructions of whole trainings against recorded counts")
    p.add_argument("program")
    p.add_argument("--record", action="store_true", help="write the table")
    p.add_argument("--only", default="", metavar="REGEX", help="commands whose name matches")
    a = p.parse_args()
    here, (head, table) = versions(a.program), read_table()
    if not here:
        print("skipped: there is no valgrind")
        return 77
    for key, value in here.items():
        if not a.record and head.get(key) != value:
            print("skipped: %s: this is %s, the table was recorded with %s" % (key, value, head.get(key)))
            return 77
    runs, new, slower = bits.Runs(a.program), {}, 0
    try:
        print("%-12s%14s%14s%9s%16s%14s%9s" % ("command", "step", "recorded", "change", "start", "recorded", "change"))
        for name, words in COMMANDS.items():
            if not re.search(a.only, name):
                continue
            new[name] = count(runs, words)
            line = "%-12s" % name
            for (got, old) in zip(new[name], table.get(name, (0, 0))):
                slower += old > 0 and got > old * (1 + (MARGIN_RANKS if name == "ranks" else MARGIN))
                line += "%14d%14s%9s  " % (got, old or "-", "%+.2f %%" % (100 * (got / old - 1)) if old else "-")
            print(line, flush=True)
    finally:
        shutil.rmtree(runs.dir, True)
    if a.record:
        write_table(here, new)
        return 0
    print("%d of %d counts grew by more than %g %% (ranks: %g %%)" % (slower, 2 * len(new), 100 * MARGIN, 100 * MARGIN_RANKS))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
