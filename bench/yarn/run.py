#!/usr/bin/env python3
"""run.py PROGRAM [ROUNDS]: how long a job on YARN takes to begin: make bench-yarn.

A real YARN of two nodes on this machine (tests/yarn/cluster.py); a job of two containers of one rank each.  Printed for every round, in seconds since
`submit` was started: the answer of YARN (accepted), the last container running (YARN's own allocation: application master, two containers), the first
line of metrics.jsonl (the first steps are done), the end of the job, the end of `submit --wait`."""
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "yarn"))
import cluster  # noqa: E402

TRAIN = ["train", os.path.join(ROOT, "examples", "airline-passengers.csv"), "--target", "Passengers", "--horizon", "12", "--members", "1",
         "--steps", "400", "--validate-every", "10", "--batch", "40", "--progress", "none"]
EVENTS = ["accepted", "containers", "first steps", "job", "submit"]


def one(program, folder, env):
    model = os.path.join(folder, "m.model")
    begin, seen = time.time(), {}
    job = subprocess.Popen([program, "submit", "--on", "yarn", "--nodes", "2", "--wait", "--", *TRAIN, "-o", model], env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    job.stdout.readline()
    seen["accepted"] = time.time() - begin
    while job.poll() is None:
        metrics = os.path.join(model + ".run", "metrics.jsonl")
        if "first steps" not in seen and os.path.exists(metrics) and os.path.getsize(metrics) > 0:
            seen["first steps"] = time.time() - begin
        time.sleep(0.01)
    seen["submit"] = time.time() - begin
    if job.returncode != 0:
        sys.exit("the job ended with status %d" % job.returncode)
    session = glob.glob(model + ".run/join/*")[0]
    seen["containers"] = max(os.path.getmtime(f) for f in glob.glob(session + "/hello-*")) - begin
    seen["job"] = os.path.getmtime(session + "/end") - begin
    return seen


def main():
    program, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    folder = tempfile.mkdtemp(prefix="stretto-bench-yarn-")
    y = cluster.Yarn(os.path.join(folder, "cluster"), 2, 18600)
    os.makedirs(y.folder)
    try:
        try:
            y.up()
        except cluster.Absent as why:
            print("skipped: %s" % why)
            return
        env = dict(os.environ, STRETTO_YARN=y.url, STRETTO_WISDOM="off")
        print("| round | %s | from the containers to the first steps |\n|---|%s---|" % (" | ".join(EVENTS), "---|" * len(EVENTS)))
        all_seen = []
        for k in range(rounds):
            seen = one(program, tempfile.mkdtemp(dir=folder), env)
            all_seen.append(seen)
            print("| %d | %s | %.2f |" % (k + 1, " | ".join("%.2f" % seen[e] for e in EVENTS), seen["first steps"] - seen["containers"]), flush=True)
        print("| median | %s | %.2f |" % (" | ".join("%.2f" % statistics.median(s[e] for s in all_seen) for e in EVENTS),
                                          statistics.median(s["first steps"] - s["containers"] for s in all_seen)))
    finally:
        y.down()
        shutil.rmtree(folder, True)


if __name__ == "__main__":
    main()
