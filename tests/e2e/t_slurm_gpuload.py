"""t_slurm_gpuload.py - GPU occupancy on the cluster of tests/slurm: Slurm's health check runs `gpuload` on three nodes, and jobs go to the
idlest one.  Loads are recorded, or come from a library that stands in for NVIDIA's (tests/topo/fake_nvml.c): there is no GPU here."""
import json
import os
import re
import subprocess
import time
import unittest

import e2e
from e2e import AIR
from t_slurm import SHORT, Cluster

FAKE = os.path.join(os.path.dirname(os.path.realpath(e2e.PROGRAM)), "..", "tests", "topo", "libfake_nvml.so")
NODES = ("node1", "node2", "node3")
SETTLED = 1000  # seconds of a record after which nothing of what was before is left

# A node with a record plays it, one with a list of fake GPUs reads these; one that has neither says nothing yet.
HEALTH = """#!/bin/sh
export PATH=/usr/local/bin:/usr/bin:/bin SLURM_CONF={folder}/cluster/slurm.conf
cd {folder} || exit 1
if [ -e $SLURMD_NODENAME.csv ]; then set -- --recorded $SLURMD_NODENAME.csv --refresh 0
elif [ -e $SLURMD_NODENAME.gpus ]; then export STRETTO_NVML={fake} FAKE_NVML={folder}/$SLURMD_NODENAME.gpus; set -- --refresh 3s
else exit 0
fi
exec {program} gpuload --state {folder}/gpuload-%n.state --smooth 2s "$@" >>$SLURMD_NODENAME.log 2>&1
"""


class Load(Cluster):
    @classmethod
    def prepare(cls):
        health = os.path.join(cls.folder, "health")
        with open(health, "w", encoding="utf-8") as f:
            f.write(HEALTH.format(folder=cls.folder, fake=os.path.realpath(FAKE), program=e2e.PROGRAM))
        os.chmod(health, 0o755)
        return {"SLURM_HEALTH": health, "SLURM_HEALTH_EVERY": "1"}

    def setUp(self):
        super().setUp()
        for node in NODES:
            for end in (".csv", ".gpus", ".log"):
                self.forget(node + end)
            self.forget("gpuload-%s.state" % node)

    def forget(self, name):
        if os.path.exists(self.common(name)):
            os.remove(self.common(name))

    def common(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text):
        """As a whole: the health check may read it at any moment."""
        with open(self.common(name + ".new"), "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.common(name + ".new"), self.common(name))

    def weight(self, node):
        text = subprocess.run(["scontrol", "show", "node", node, "-o"], stdout=subprocess.PIPE, env=self.environment()).stdout.decode()
        found = re.search(r" Weight=(\d+) ", text)
        return int(found.group(1)) if found else -1

    def said(self):
        text = ""
        for node in NODES:
            if os.path.exists(self.common(node + ".log")):
                with open(self.common(node + ".log"), encoding="utf-8") as f:
                    text += "--- %s\n%s" % (node, f.read()[-2000:])
        return text

    def until_weights(self, *want):
        end = time.monotonic() + 40 * e2e.SLOW
        while [self.weight(n) for n in NODES] != list(want):
            self.assertLess(time.monotonic(), end, "weights %s, wanted %s\n%s" % ([self.weight(n) for n in NODES], want, self.said()))
            time.sleep(0.1)

    def recorded(self, *loads):
        """Adds to the record of every node: utilisation of its two GPUs, long enough to be all that counts."""
        for node, busy in zip(NODES, loads):
            path = self.common(node + ".csv")
            text = "time,gpu,utilisation,memory\n"
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    text = f.read()
            at = (text.count("\n") - 1) // 2 * SETTLED
            self.put(node + ".csv", text + "".join("%d,%d,%d,1\n" % (at, gpu, busy) for gpu in (0, 1)))

    def goes_to(self):
        """Where the next job lands."""
        return self.run_("srun", "-N", 1, "-n", 1, "--mpi=none", "printenv", "SLURMD_NODENAME").out.strip()

    def test_the_next_job_goes_to_the_idlest_node(self):
        for loads, weights, idlest in (((95, 40, 3), (96, 41, 4), "node3"), ((3, 95, 40), (4, 96, 41), "node1"),
                                       ((40, 3, 95), (41, 4, 96), "node2")):
            self.recorded(*loads)
            self.until_weights(*weights)
            self.assertEqual(self.goes_to(), idlest, self.said())
        job = self.job(self.submit("train", AIR, *SHORT, "-o", "m.model", nodes=1))
        self.assertEqual(self.state(job)["NodeList"], "node2", self.said())
        for line in self.said().splitlines():
            self.assertTrue(line.startswith(("recorded: ", "---")), "a line that does not say that it is recorded: " + line)

    def test_a_wobble_is_not_told(self):
        self.recorded(50, 20, 80)
        self.until_weights(51, 21, 81)
        self.recorded(53, 17, 84)
        end = time.monotonic() + 30 * e2e.SLOW
        while self.said().count("time %d, the last one" % SETTLED) < 3:
            self.assertLess(time.monotonic(), end, self.said())
            time.sleep(0.1)
        self.assertEqual([self.weight(n) for n in NODES], [51, 21, 81], self.said())
        self.assertEqual(self.said().count("scontrol update"), 3, self.said())

    def test_ranks_start_from_the_same_numbers(self):
        self.recorded(60, 20, 20)
        self.until_weights(61, 21, 21)
        r = self.srun(self.mpi(), 3, "gpuload", "--shares", "--state", self.common("gpuload-%n.state"))
        text = r.out.split("#")[0].strip()
        self.assertEqual(text, "host*3(gpu*2) shares=0.4,0.4,0.8,0.8,0.8,0.8", r.out + r.err)
        self.assertIn("node1, node2, node3; recorded", r.out)
        shape = ["--horizon", "12", "--context", "24", "--batch", "400"]
        planned = self.stretto("plan", "--machine", text, *shape, "--parallel", "data_sync:6", "--print").out
        rows = [int(b) - int(a) for a, b in re.findall(r"\(fwd lstm\.0 b\[(\d+),(\d+)\)", planned)]
        self.assertEqual(sum(rows), 400)
        self.assertLessEqual(max(abs(sum(rows[:2]) - 80), abs(sum(rows[2:4]) - 160), abs(sum(rows[4:]) - 160)), 40, rows)
        self.stretto("train", AIR, *SHORT, "--base", "none", "-o", "one.model")
        r = self.srun(self.mpi(), 3, "train", AIR, *SHORT, "--base", "none", "--rank-shares", self.common("gpuload-%n.state"), "-o", "m.model")
        self.assertIn("shares of the ranks: 0.4, 0.8, 0.8 (GPU loads (recorded) of ", r.err)
        self.same_model("one.model", "m.model", "unlike shares")
        self.forget("node2.csv")
        self.forget("gpuload-node2.state")
        r = self.srun(self.mpi(), 3, "train", AIR, *SHORT, "--rank-shares", self.common("gpuload-%n.state"), "-o", "x.model", status=7)
        self.assertIn("error[E701] %s: node node2 has no smoothed GPU load" % self.common("gpuload-node2.state"), r.err)

    def test_loads_by_nvml_come_back_after_a_reconfigure(self):
        if not os.path.exists(FAKE):
            raise unittest.SkipTest("the library that stands in for NVML was not built")
        for node, busy in zip(NODES, (90, 5, 30)):
            self.put(node + ".gpus", "gpu %d 0 1000\ngpu %d 0 1000\n" % (busy, busy))
        self.until_weights(91, 6, 31)
        self.assertEqual(self.goes_to(), "node2", self.said())
        self.assertNotIn("recorded", self.said())
        with open(self.common("gpuload-node1.state"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["source"], "NVML")
        before = self.said().count("(again, after ")
        self.run_("scontrol", "reconfigure")  # after which Slurm knows the weights of slurm.conf only
        self.until("the weights of after that", lambda: self.said().count("(again, after ") >= before + 6)
        self.until_weights(91, 6, 31)
        self.put("node3.gpus", "gpu 0 0 1000\nfail memory 15\n")  # a GPU falls off the bus: the node keeps its weight
        end = time.monotonic() + 30 * e2e.SLOW
        while "error[E820]" not in self.said():
            self.assertLess(time.monotonic(), end, self.said())
            time.sleep(0.1)
        self.assertEqual(self.weight("node3"), 31)


if __name__ == "__main__":
    e2e.main()
