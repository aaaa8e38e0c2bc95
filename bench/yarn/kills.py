#!/usr/bin/env python3
"""kills.py PROGRAM [N] [KIND,..] [SEED]: N times kill -9 of each part of a running job on YARN: make bench-yarn-kills.

    container   one of the two containers of the job, by lot            two jobs at once
    master      the application master of the job                       two jobs at once
    node        the NodeManager of one of its containers, by lot        one job at a time

A real YARN of three nodes on this machine (tests/yarn/cluster.py); a job has two containers of one rank each.  The moment is drawn between the first checkpoint and
the end that the undisturbed run would have, of a node early enough that the ResourceManager misses it (6 s here) while the job runs.  Checked after every kill: exit
status 0 and the tensors and metadata of a run by hand, bit for bit.  Measured: the work lost, from the checkpoint with which the job resumed to the kill
(of a node, whose container goes on: to the end of that attempt), beside the longest time between two checkpoints of that job.  Every run is a row; none is
left out.  KIND: container,node,master without it.  SEED (1) draws the moments."""
import glob
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "yarn"), os.path.join(ROOT, "tests", "e2e")]
import cluster  # noqa: E402
from e2e import model  # noqa: E402

STEPS, EVERY_S, NODES, TOGETHER, MISSED_S = 40000, 1.0, 3, 2, 6
TRAIN = ["train", os.path.join(ROOT, "examples", "airline-passengers.csv"), "--target", "Passengers", "--horizon", "12", "--members", "1", "--batch", "40",
         "--steps", str(STEPS), "--validate-every", "1000", "--checkpoint-every", "%gs" % EVERY_S, "--progress", "none", "--threads", "1"]
OWN = ("stretto.record", "stretto.options", "stretto.sum")  # of the training itself, as in e2e.py
cluster.NODE_LOST = 1000 * MISSED_S


def text(path):
    with open(path, "rb") as f:
        return f.read().decode(errors="replace")


def processes(model_path):
    """Members of the job that writes this model: {number: pid}."""
    out = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = text(path).split("\0")
            parent = re.search(r"PPid:\s*(\d+)", text(os.path.dirname(path) + "/status")).group(1)
            starter = text("/proc/%s/cmdline" % parent)
        except (OSError, AttributeError):
            continue
        member = [w for w in words if w.startswith("--member=") and w != "--member=-1"]
        if len(words) > 2 and words[1] == "join" and member and model_path in words and "/bin/bash" in starter:
            out[int(member[0].split("=")[1])] = int(path.split("/")[2])
    return out


def masters(app):
    """Processes of the application master: java, and the shell that started it."""
    mark, out = "CONTAINER_ID=container_" + app.replace("application_", ""), []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if "service.ServiceMaster" in text(path) and mark in text(os.path.dirname(path) + "/environ").replace("container_e", "container_"):
                out.append(int(path.split("/")[2]))
        except OSError:
            pass
    return out


def begun(job):
    return job.steps[0][0]


def node_of(pid):
    host = [v for v in text("/proc/%d/environ" % pid).split("\0") if v.startswith("NM_HOST=")][0]
    return int(host.rsplit(".", 1)[1]) - 1


class Job:
    """One job, and what is seen of it from outside."""

    def __init__(self, program, path, env):
        self.path, self.run, self.seen, self.steps = path, path + ".run", {}, []
        self.child = subprocess.Popen([program, "submit", "--on", "yarn", "--nodes", "2", "--occupancy", "off", "--wait", "--", *TRAIN, "-o", path], env=env,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.app = re.search(r"application_\d+_\d+", self.child.stdout.readline().decode()).group()
        self.said = []
        threading.Thread(target=lambda: self.said.extend(self.child.stderr.readlines()), daemon=True).start()

    def look(self):
        for p in glob.glob(self.run + "/checkpoints/*.ckpt"):
            self.seen.setdefault(int(os.path.basename(p)[:-5]), time.time())
        if not self.steps or time.time() - self.steps[-1][0] > 0.1:
            self.steps.append((time.time(), self.step()))

    def follow(self, true, seconds):
        end = time.time() + seconds
        while time.time() < end and not true():
            self.look()
            time.sleep(0.02)
        return true()

    def step(self):
        """The newest step in metrics.jsonl."""
        last = re.findall(r'^\{"step":(\d+)', text(self.run + "/metrics.jsonl"), re.M) if os.path.exists(self.run + "/metrics.jsonl") else []
        return int(last[-1]) if last else 0

    def resumed(self, since):
        """Of the first attempt that ended after a moment: when it ended, and the checkpoint with which the next one began; None = there is none."""
        ended = None
        for line in text(self.run + "/supervisor.log").splitlines():
            e = json.loads(line)
            if e["event"] == "ended" and e["time"] > since and ended is None:
                ended = e["time"]
            if e["event"] == "start" and e["time"] > since:
                return ended or since, e.get("checkpoint", -1)
        return None


class Bench:
    def __init__(self, program, seed):
        self.program, self.dice, self.lock = program, random.Random(seed), threading.Lock()
        self.folder = tempfile.mkdtemp(prefix="stretto-kills-")
        self.y = cluster.Yarn(os.path.join(self.folder, "cluster"), NODES, 18700)
        os.makedirs(self.y.folder)
        self.env = dict(os.environ, STRETTO_YARN=self.y.url, STRETTO_WISDOM="off")
        self.rows = []

    def prepare(self):
        self.y.up()
        self.whole = os.path.join(self.folder, "whole.model")
        subprocess.run([self.program, *TRAIN, "-o", self.whole], check=True, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.bits = model(self.whole)
        begin = self.job("undisturbed")
        self.follow_to_end(begin)
        at = sorted(begin.seen.values())
        self.span = at[-1] - at[0]
        print("undisturbed on YARN: status %d, %s, %d checkpoints in %.1f s" % (begin.child.returncode, self.equal(begin), len(at), self.span), flush=True)

    def job(self, name):
        return Job(self.program, os.path.join(self.folder, name + ".model"), self.env)

    def follow_to_end(self, job):
        if not job.follow(lambda: job.child.poll() is not None, 400):
            job.child.kill()
        job.child.wait()

    def equal(self, job):
        if not os.path.exists(job.path):
            return "no model"
        (ha, ta), (hb, tb) = self.bits, model(job.path)
        same = ta == tb and all(ha[k] == hb.get(k) for k in ha if k not in OWN)
        return "equal" if same else "DIFFERENT"

    def victim(self, kind, job, member):
        if kind == "master":
            return masters(job.app)
        pid = processes(job.path).get(member)
        if pid is None:
            return []
        if kind == "container":
            return [pid]
        job.node = node_of(pid)
        return [self.y.pid("nm%d" % job.node)]

    def one(self, kind, k):
        with self.lock:
            last = self.span - (MISSED_S + 2 if kind == "node" else 0)
            delay, member = self.dice.uniform(0, last), self.dice.randrange(2)
        job = self.job("%s-%d" % (kind, k))
        job.follow(lambda: job.seen or job.child.poll() is not None, 120)
        job.follow(lambda: job.child.poll() is not None, delay)
        pids = self.victim(kind, job, member)
        killed = time.time()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.follow_to_end(job)
        self.row(kind, k, job, killed if pids else None, delay, member)

    def row(self, kind, k, job, killed, delay, member):
        r = {"kind": kind, "k": k, "killed": killed is not None, "delay": delay, "member": member, "status": job.child.returncode, "bits": self.equal(job)}
        again = job.resumed(killed) if killed else None
        r["lost_s"] = r["lost_steps"] = r["interval"] = 0.0
        if again is not None:
            ended, number = again
            stopped = ended if kind == "node" else killed
            at = sorted(t for t in job.seen.values() if t <= stopped)
            r["interval"] = max([EVERY_S] + [b - a for a, b in zip(at, at[1:])])
            r["lost_s"] = max(0.0, stopped - job.seen.get(number, begun(job)))
            r["lost_steps"] = max(0, max([n for t, n in job.steps if t <= stopped], default=0) - max(number, 0))
        r["again"] = again is not None
        end = time.time() + 30  # a container that YARN has given up notices it at its next look
        while processes(job.path) and time.time() < end:
            time.sleep(0.2)
        left = processes(job.path)
        r["left"] = len(left)
        with self.lock:
            self.rows.append(r)
        print("%s %d: %s %.1f s after the first checkpoint%s; status %s, bits %s, %s, %d processes left" % (
            kind, k, "killed" if r["killed"] else "the job was over", delay, "" if kind == "master" else " (member %d)" % member, r["status"], r["bits"],
            "not started again" if again is None else "lost %.2f s, %d steps (interval %.2f s)" % (r["lost_s"], r["lost_steps"], r["interval"]), r["left"]), flush=True)
        if r["status"] != 0:
            sys.stdout.write("".join("    " + s.decode(errors="replace") for s in job.said[-12:]))

    def many(self, kind, n):
        """Until n kills have hit; a job that was over when the moment came is a row, but no kill."""
        numbers = list(range(2 * n))

        def work():
            while True:
                with self.lock:
                    if not numbers or len([r for r in self.rows if r["kind"] == kind and r["killed"]]) >= n:
                        return
                    k = numbers.pop(0)
                try:
                    self.one(kind, k)
                except Exception as why:  # a row all the same
                    print("%s %d: the bench itself failed: %r" % (kind, k, why), flush=True)
                    self.rows.append({"kind": kind, "k": k, "killed": False, "status": None, "bits": repr(why), "lost_s": 0, "lost_steps": 0, "interval": 0, "left": 0, "again": False})
                if kind == "node":
                    self.mend()
        threads = [threading.Thread(target=work) for _ in range(1 if kind == "node" else TOGETHER)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def mend(self):
        """NodeManagers that were killed start again."""
        for i in range(1, NODES + 1):
            try:
                os.kill(self.y.pid("nm%d" % i), 0)
                gone = "State:\tZ" in text("/proc/%d/status" % self.y.pid("nm%d" % i))
            except OSError:
                gone = True
            if gone:
                self.y.start_node(i)
        self.y.wait(lambda: self.y.ask("cluster/metrics")["clusterMetrics"]["activeNodes"] == NODES, 60, "the node does not come back")

    def table(self):
        print("\n| killed | kills | ended with status 0 and equal bits | started again | lost seconds, median / most | lost steps, median / most | lost at most one interval | processes left |")
        print("|---|---|---|---|---|---|---|---|")
        for kind in dict.fromkeys(r["kind"] for r in self.rows):
            rows = [r for r in self.rows if r["kind"] == kind and r["killed"]]
            good = [r for r in rows if r["status"] == 0 and r["bits"] == "equal"]
            loss = [r for r in rows if r["again"]]
            worst = "%.2f / %.2f | %d / %d" % (
                statistics.median(r["lost_s"] for r in loss), max(r["lost_s"] for r in loss), statistics.median(r["lost_steps"] for r in loss),
                max(r["lost_steps"] for r in loss)) if loss else "- | -"
            print("| %s | %d | %d | %d | %s | %d | %d |" % (kind, len(rows), len(good), len(loss), worst, sum(r["lost_s"] <= r["interval"] for r in rows),
                                                            sum(r["left"] for r in rows)))
            over = [r for r in self.rows if r["kind"] == kind and not r["killed"]]
            if over:
                print("%s: %d more whose job was over, or had no such part, when the moment came: %s" % (kind, len(over), ", ".join("%d" % r["k"] for r in over)))


def main():
    program, n = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    kinds = sys.argv[3].split(",") if len(sys.argv) > 3 else ["container", "node", "master"]
    b = Bench(program, int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    begin = time.time()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        try:
            b.prepare()
        except cluster.Absent as why:
            print("skipped: %s" % why)
            return
        for kind in kinds:
            b.many(kind, n)
        b.table()
        print("%.0f s in all" % (time.time() - begin))
    finally:
        b.y.down()
        if os.environ.get("KEEP"):
            print("kept: " + b.folder)
        else:
            shutil.rmtree(b.folder, True)


if __name__ == "__main__":
    main()
