#!/usr/bin/env python3
"""quick.py - stands for `stretto` while a page of the documentation runs, and makes a command small: fewer steps, units, rows.

    PROGRAM=.. quick.py VERB ARGUMENT..

Options keep their names and kinds, so a command that a page gets wrong fails here as it does for a reader."""
import os
import subprocess
import sys

MOST = {"--hidden": 32, "--rows": 20000, "--context": 4096, "--trees": 10, "--samples": 20, "--trials": 3, "--steps": 20, "--clusters": 20,
        "--restarts": 3, "--layers": 8}
STEPS = ("train", "backtest", "submit")  # verbs that train a forecaster unless --task says otherwise


def small(args):
    out = list(args)
    for k, word in enumerate(out[:-1]):
        if word in MOST and out[k + 1].isdigit():
            out[k + 1] = str(min(int(out[k + 1]), MOST[word]))
    if out and out[0] == "tune" and "--time-limit" in out: # the trials of a number of minutes depend on the machine
        at = out.index("--time-limit")
        out[at:at + 2] = ["--trials", "2"]
    if out and out[0] in STEPS and "--task" not in out:
        out += [more for pair in (("--steps", "12"), ("--members", "1")) if pair[0] not in out for more in pair]
    return out


def may_fail(verb, done):
    """What a page may show: `check` of data that training would refuse, `resume` of a run that is finished."""
    return done.returncode == 3 if verb == "check" else "is finished" in done.stderr


if __name__ == "__main__":
    command = [os.environ["PROGRAM"], *small(sys.argv[1:])]
    if command[1] in ("check", "resume"):
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        sys.exit(0 if may_fail(command[1], done) else done.returncode)
    os.execv(command[0], command)
