"""t_ranks.py - several ranks train the model that one trains, bit for bit: as threads, under Open MPI, under MPICH; what is said when
they do not fit together, and that a run that lost a rank, or was asked to stop, goes on with another number of ranks."""
import datetime
import glob
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

import e2e
from e2e import AIR, Case

SHORT = ["--base", "none", "--no-guard", "--target", "Passengers", "--horizon", "12", "--members", "2", "--steps", "60", "--batch", "40"]
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.mpich"]}


def has(flavour):
    """The launcher, and the plug-in that was built for it."""
    program = os.path.realpath(e2e.PROGRAM)
    so = os.path.join(os.path.dirname(program), "..", "src", "comm", "stretto-mpi-%s.so" % flavour)
    return shutil.which(LAUNCHERS[flavour][0]) and os.path.exists(so)


class Launched(Case):
    """With ranks as processes under a launcher."""
    def environment(self, **more):
        return super().environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,vader,tcp", **more)

    def launched(self, flavour, n, *args):
        if not has(flavour):
            raise unittest.SkipTest("skipped: no %s, or no plug-in for it" % LAUNCHERS[flavour][0])
        return [*LAUNCHERS[flavour], "-n", str(n), e2e.PROGRAM, *map(str, args)]

    def mpi(self, flavour, n, *args, status=0, shell=None):
        command = shell or self.launched(flavour, n, *args)
        done = subprocess.run(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120 * e2e.SLOW, env=self.environment())
        r = e2e.Result(done)
        if status is not None and r.status != status:
            self.fail("%s: exit status %d, expected %d\n%s%s" % (" ".join(command), r.status, status, r.out, r.err))
        return r

    def train(self, name, *more, data=AIR, options=SHORT):
        return self.stretto("train", data, *options, *more, "-o", name + ".model", "--progress", "none", timeout=120)


class Ranks(Launched):
    LEARNS = True

    def test_threads_give_the_model_of_one(self):
        alone = self.train("one", "--threads", "1")
        for ranks, threads in ((2, 1), (3, 1), (4, 2), (8, 1)):
            name = "r%d" % ranks
            r = self.train(name, "--ranks", ranks, "--threads", threads)
            self.same_model("one.model", name + ".model", "%d ranks" % ranks)
            self.assertEqual(alone.out, r.out)
            self.assertIn("%d ranks (threads)" % ranks, r.err)

    def cores_of(self, child, workers):
        """Cores that threads which compute may run on, by rank, as soon as `workers` of them are bound; of all processes below child."""
        limit = time.monotonic() + 60 * e2e.SLOW
        while time.monotonic() < limit:
            self.assertIsNone(child.poll(), "it ended before anybody had looked")
            found = set()
            for status in glob.glob("/proc/[0-9]*/task/[0-9]*/status"):
                try:
                    with open(status) as f:
                        lines = dict(line.split(":", 1) for line in f if ":" in line)
                    with open(status.split("/task/")[0] + "/environ", "rb") as f:
                        ours = ("STRETTO_TEST_PIN=%s" % self.dir).encode() in f.read()
                except OSError:
                    continue
                if ours and lines["Name"].strip().startswith("stretto"):
                    found.add(lines["Cpus_allowed_list"].strip())
            bound = {cores for cores in found if "-" not in cores and "," not in cores}
            if len(bound) >= workers:
                return bound, found
            time.sleep(0.05)
        return set(), found

    def pinned(self, front, more):
        options = [*SHORT, "--members", "1", "--steps", "1000000", "--validate-every", "1000", "--threads", "1", *more]
        child = subprocess.Popen([*front, e2e.PROGRAM, "train", AIR, *options, "-o", "p.model", "--progress", "none"], cwd=self.dir,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=dict(self.environment(), STRETTO_TEST_PIN=self.dir))
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def test_ranks_have_cores_of_their_own(self):
        cores = {str(core) for core in os.sched_getaffinity(0)}
        if len(cores) != 2:
            raise unittest.SkipTest("skipped: written for two cores, this process has %d" % len(cores))
        for front in ([], self.launched("mpich", 2)[:-1]):
            child = self.pinned(front, [] if front else ["--ranks", "2"])
            self.assertEqual(self.cores_of(child, 2)[0], cores)
            child.send_signal(signal.SIGTERM)
            child.wait(60 * e2e.SLOW)
        child = self.pinned([], ["--ranks", "3"])  # more threads than cores: nobody is bound
        while not os.path.exists(self.path("p.model.run/status/rank-2.json")) or b'"train"' not in self.read("p.model.run/status/rank-2.json"):
            self.assertIsNone(child.poll())
            time.sleep(0.05)
        self.assertEqual(self.cores_of(child, 0)[0], set())

    def test_unlike_shares_give_the_same_bits(self):
        """However the rows are shared out, and so by whichever loads."""
        self.train("one", "--threads", "1", "--base", "none")
        for ranks, shares in ((2, "1,0.2"), (3, "0.05,1,0.5")):
            r = self.train("s", "--base", "none", "--ranks", ranks, "--threads", 1, "--rank-shares", shares)
            self.assertIn("shares of the ranks: %s (--rank-shares)" % shares.replace(",", ", "), r.err)
            self.same_model("one.model", "s.model", shares)
        self.write("c.yaml", "rank-shares: 1,0.4\n")
        r = self.train("c", "--base", "none", "--ranks", 3, "--threads", 1, "--config", "c.yaml")
        self.assertIn("shares of the ranks: 1, 1, 1 (those of the config file are for 2)", r.err)
        level = '{"stretto_gpuload": 1, "node": "n1", "source": "NVML", "time": 5, "level": [0.25, 0.75]}'
        self.write("n1.state", level)
        os.environ["SLURMD_NODENAME"] = "n1"
        self.addCleanup(os.environ.pop, "SLURMD_NODENAME", None)
        r = self.train("t", "--base", "none", "--ranks", 2, "--threads", 1, "--rank-shares", "%n.state")
        self.assertIn("shares of the ranks: 1, 1 (GPU loads of %n.state)", r.err)  # threads are all on one node
        self.same_model("one.model", "t.model", "loads of one node")

    def test_unlike_shares_of_processes(self):
        for flavour in LAUNCHERS:
            if not has(flavour):
                continue
            self.train("one", "--threads", "1", "--base", "none")
            r = self.mpi(flavour, 3, "train", AIR, *SHORT, "--base", "none", "--rank-shares", "0.1,1,0.5", "-o", "m.model", "--progress", "none")
            self.assertIn("shares of the ranks: 0.1, 1, 0.5", r.err)
            self.same_model("one.model", "m.model", flavour)
            r = self.mpi(flavour, 2, "train", AIR, *SHORT, "--rank-shares", "absent-%n.state", "-o", "x.model", status=None)
            self.assertIn("has no smoothed GPU load", r.err)

    def test_parts_of_a_batch_and_three_columns(self):
        self.stretto("sample", "tides", "--rows", "600", "-o", "t.csv")
        options = ["--preset", "long", "--target", "height", "--horizon", "24", "--context", "96", "--steps", "20", "--hidden", "20",
                   "--accumulate", "2"]
        data = self.path("t.csv")
        self.train("one", data=data, options=options)
        self.train("two", "--ranks", 3, data=data, options=options)
        self.same_model("one.model", "two.model", "--accumulate 2")
        self.train("mean", "--combine", "average", data=data, options=options)
        self.train("mean3", "--combine", "average", "--ranks", 3, data=data, options=options)
        self.same_model("mean.model", "mean3.model", "--combine average")

    def test_missing_cells_and_a_loss_at_every_row(self):
        self.stretto("sample", "tides", "--rows", "600", "-o", "t.csv")
        lines = self.read("t.csv").decode().splitlines()
        for i in (17, 18, 19, 300):
            lines[i] = lines[i].split(",")[0] + ","
        data = self.write("holes.csv", "\n".join(lines) + "\n")
        some = ["--target", "height", "--steps", "20", "--hidden", "20", "--gaps", "mask", "--dropout", "0.2", "--no-guard",
                "--base", "none"]
        for k, more in enumerate((["--preset", "day", "--horizon", "24", "--context", "48", "--head", "quantile"],
                                  ["--loss-steps", "all", "--horizon", "3", "--context", "40", "--batch", "9"])):
            self.train("one%d" % k, "--parallel", "serial", data=data, options=[*some, *more])
            self.train("two%d" % k, "--ranks", 3, "--parallel", "data_sync", data=data, options=[*some, *more])
            self.same_model("one%d.model" % k, "two%d.model" % k, " ".join(more))

    SLICED = ["--target", "y", "--horizon", "1", "--context", "2048", "--parallel", "time:16", "--hidden", "20", "--steps", "12"]

    def long(self):
        self.stretto("sample", "long-memory", "--rows", "9000", "-o", "long.csv")
        return self.path("long.csv")

    def test_slices_of_time(self):
        data = self.long()
        for k, more in enumerate(([], ["--slice-rank", "2", "--recompute"], ["--slice-rounds", "1"])):
            self.train("one%d" % k, "--threads", 1, *more, data=data, options=self.SLICED)
            for ranks, threads in ((2, 1), (4, 2)):
                self.train("r%d" % ranks, "--ranks", ranks, "--threads", threads, *more, data=data, options=self.SLICED)
                self.same_model("one%d.model" % k, "r%d.model" % ranks, "%d ranks %s" % (ranks, more))
        r = self.stretto("train", data, *self.SLICED, "--parallel", "time:4", "--batch", 1, "--ranks", 6, "-o", "six.model", status=2)
        self.assertIn("4 time slices in 4 sequences form 4 groups, this run has 6 ranks", r.err)
        self.assertIn("--parallel time:8", r.err)

    def slices_under(self, flavour):
        data = self.long()
        self.launched(flavour, 2)
        self.train("one", "--threads", 1, data=data, options=self.SLICED)
        for n in (2, 4):
            self.mpi(flavour, n, "train", data, *self.SLICED, "-o", "m.model", "--progress", "none")
            self.same_model("one.model", "m.model", "%s, %d ranks" % (flavour, n))

    def changed_under(self, flavour):
        """A row was appended before the resume: rank 0 compares, every rank ends alike, or all keep the split."""
        data = shutil.copy(AIR, self.path("air.csv"))
        self.mpi(flavour, 2, "train", data, *SHORT, "--steps", "100000", "--time-limit", "0.3s", "--quiet", "-o", "cut.model", status=76)
        with open(data, "a", encoding="utf-8") as f:
            f.write("1961-01,450\n")
        r = self.mpi(flavour, 3, "resume", "cut.model.run", "--quiet", status=None)
        self.assertEqual(set(re.findall(r"error\[(E\d+)\]", r.err)), {"E215"}, r.err)
        # MPICH's launcher kills the ranks that end after the first one, and may then report their signal
        self.assertIn(r.status, (3, 9) if flavour == "mpich" else (3,), r.err)
        r = self.mpi(flavour, 3, "resume", "cut.model.run", "--data-changed", "--time-limit", "0.2s", "--quiet", status=76)
        self.assertEqual(r.err.count("rows behind the test part are not used"), 1, r.err)

    def test_changed_data_under_open_mpi(self):
        self.changed_under("openmpi")

    def test_changed_data_under_mpich(self):
        self.changed_under("mpich")

    def test_slices_of_time_under_open_mpi(self):
        self.slices_under("openmpi")

    def test_slices_of_time_under_mpich(self):
        self.slices_under("mpich")

    SHOPS = ["--target", "sales", "--cat", "shop", "--horizon", "4", "--context", "16", "--segment", "1", "--decoder", "direct", "--hidden",
             "16", "--batch", "32", "--steps", "40", "--members", "1", "--base", "none", "--no-guard", "--calendar", "no",
             "--verbose"]

    def shops(self, rows=9000, shops=3000):
        """One row an hour, each of another shop."""
        r = random.Random(5)
        hour = datetime.datetime(2020, 1, 1)
        lines = ["time,shop,sales"]
        for k in range(rows):
            shop = r.randrange(shops)
            lines.append("%s,shop %d,%.3f" % ((hour + datetime.timedelta(hours=k)).isoformat(" "), shop, shop % 17 + r.random()))
        return self.write("shops.csv", "\n".join(lines) + "\n")

    def fewer(self, r, times):
        """What was said of the messages: rows of the embedding take a small part of it whole."""
        found = re.search(r"messages: rank 0 sends \S+ a step; packed by codecs: ([0-9.]+)KiB "
                          r"instead of ([0-9.]+)KiB", r.err)
        self.assertTrue(found, r.err)
        self.assertLess(times * float(found.group(1)), float(found.group(2)))

    def test_a_category_of_many_values(self):
        data = self.shops()
        self.train("one", "--threads", 1, data=data, options=self.SHOPS)
        for ranks, threads, more in ((2, 1, []), (3, 2, []), (2, 1, ["--pipeline", "linear"])):
            r = self.train("r%d" % ranks, "--ranks", ranks, "--threads", threads, *more, data=data, options=self.SHOPS)
            self.same_model("one.model", "r%d.model" % ranks, "%d ranks %s" % (ranks, more))
            self.fewer(r, 5)
        os.environ["STRETTO_EMBEDDINGS"] = "whole"
        self.addCleanup(os.environ.pop, "STRETTO_EMBEDDINGS", None)
        r = self.train("whole", "--ranks", 2, "--threads", 1, data=data, options=self.SHOPS)
        self.same_model("one.model", "whole.model", "whole gradients")
        self.assertRegex(r.err, r"messages: rank 0 sends \S+ a step\n")
        self.train("late", "--pipeline", "delay1", "--threads", 1, data=data, options=self.SHOPS)
        os.environ.pop("STRETTO_EMBEDDINGS")
        self.train("late2", "--pipeline", "delay1", "--ranks", 2, "--threads", 1, data=data, options=self.SHOPS)
        self.same_model("late.model", "late2.model", "delay1")
        shape = self.SHOPS[:self.SHOPS.index("--steps")]
        r = self.stretto("plan", data, *shape, "--machine", "host*2(cpu)", "--parallel", "data_sync:2")
        self.assertRegex(r.out, r"messages a step between 2 ranks, \S+; gradients of embed.0 are sent as sparse rows, at most \S+KiB instead of \S+KiB")
        said = json.loads(self.stretto("plan", data, *shape, "--machine", "host*2(cpu)", "--parallel", "data_sync:2", "--json").out)
        self.assertLess(said["message_bytes"], said["message_bytes_whole"])

    def shops_under(self, flavour):
        data = self.shops()
        self.launched(flavour, 2)
        self.train("one", "--threads", 1, data=data, options=self.SHOPS)
        for n in (2, 3):
            r = self.mpi(flavour, n, "train", data, *self.SHOPS, "--threads", 1, "-o", "m.model", "--progress", "none")
            self.same_model("one.model", "m.model", "%s, %d ranks" % (flavour, n))
            self.fewer(r, 5)

    def test_a_category_of_many_values_under_open_mpi(self):
        self.shops_under("openmpi")

    def test_a_category_of_many_values_under_mpich(self):
        self.shops_under("mpich")

    def test_slices_of_time_with_a_category(self):
        """Rows of a rank are not those from 0 on: gradients of its rows go to its own grains."""
        for shops, more in ((5, ["--norm"]), (3000, []), (5, ["--cell", "minlstm", "--decoder", "parallel", "--segment", "4", "--horizon", "8"])):
            data = self.shops(6000, shops)
            options = ["--target", "sales", "--cat", "shop", "--horizon", "1", "--context", "1024", "--parallel", "time:16", "--hidden", "20",
                       "--steps", "12", "--base", "none", "--no-guard", *more]
            self.train("one", "--threads", 1, data=data, options=options)
            for ranks in (2, 4):
                self.train("r%d" % ranks, "--ranks", ranks, "--threads", 1, data=data, options=options)
                self.same_model("one.model", "r%d.model" % ranks, "%d shops, %d ranks, %s" % (shops, ranks, more))

    UNEVEN = ["--base", "none", "--no-guard", "--target", "Passengers", "--horizon", "12", "--context", "36", "--hidden", "48", "--members", "1", "--steps", "200",
              "--batch", "64", "--validate-every", "100", "--verbose"]

    def slowed(self, text):
        """A rank that takes many times as long as it must: more than a busy machine can hide."""
        os.environ["STRETTO_FAULT"] = text
        self.addCleanup(os.environ.pop, "STRETTO_FAULT", None)

    def test_grains_move_to_the_faster_ranks(self):
        cases = (([], ["--threads", "1"], True), ([], ["--threads", "1", "--balance", "off"], False),
                 (["--grains", "16", "--accumulate", "2"], ["--threads", "2", "--parallel", "data_sync"], True))
        self.slowed("1:30:slow(6)") # a run without other ranks is never slow
        for data, more, moves in cases:
            self.train("one", "--threads", 1, *data, options=self.UNEVEN)
            r = self.train("two", "--ranks", 2, *data, *more, options=self.UNEVEN)
            self.same_model("one.model", "two.model", " ".join(data + more))
            if not moves:
                self.assertNotIn("balance:", r.err)
                continue
            self.assertRegex(r.err, r"balance: ranks have \d+ \d+ of \d+ micro-batches, had \d+ \d+: the slowest takes")
            self.assertRegex(r.err, r"balance: micro-batches moved \d+ times?; ranks have")

    def test_slices_of_time_move_to_the_faster_ranks(self):
        self.stretto("sample", "long-memory", "--rows", "12000", "-o", "long.csv")
        self.slowed("1:10:slow(6)")
        options = ["--target", "y", "--horizon", "1", "--context", "2048", "--parallel", "time:32", "--hidden", "24", "--members", "1",
                   "--steps", "120", "--validate-every", "60", "--threads", "1", "--progress", "none", "--verbose"]
        alone = self.stretto("train", "long.csv", *options, "-o", "one.model", timeout=120)
        r = self.stretto("train", "long.csv", *options, "--ranks", 2, "-o", "two.model", timeout=240)
        self.same_model("one.model", "two.model", "slices dealt out anew")
        self.assertRegex(r.err, r"balance: ranks have \d+ \d+ of \d+ micro-batches, had (\d+) \1: the slowest takes")
        self.assertEqual(alone.out, r.out)

    def test_stopped_after_a_move_and_resumed(self):
        options = [*self.UNEVEN, "--steps", "3000"]
        self.train("whole", options=options)
        self.slowed("0:0:slow(6)")
        child = self.start("train", AIR, *options, "--ranks", "2", "-o", "cut.model", "--progress", "none")
        seen = b""
        for line in child.stderr:
            seen += line
            if b"balance: ranks have" in line:
                break
        child.send_signal(signal.SIGTERM)
        seen += child.communicate(timeout=60 * e2e.SLOW)[1]
        self.assertEqual(child.returncode, 75, seen.decode())
        self.assertIn(b"balance: ranks have", seen)
        os.environ.pop("STRETTO_FAULT")
        self.stretto("resume", "cut.model.run", "--ranks", 3, "--progress", "none", timeout=120)
        self.same_model("whole.model", "cut.model", "2 ranks of unlike speed, then 3")

    def uneven_processes(self, flavour):
        self.launched(flavour, 3)
        self.train("one", "--threads", 1, options=self.UNEVEN)
        self.slowed("2:0:slow(8)")
        r = self.mpi(flavour, 3, "train", AIR, *self.UNEVEN, "--threads", 1, "-o", "m.model", "--progress", "none")
        self.assertIn("balance: ranks have", r.err)
        self.same_model("one.model", "m.model", "%s, one of 3 ranks slow" % flavour)

    def test_grains_move_under_open_mpi(self):
        self.uneven_processes("openmpi")

    def test_grains_move_under_mpich(self):
        self.uneven_processes("mpich")

    def layers_on_ranks(self, train):
        """Stages of a pipeline, alone and with rows, in both orders, and units of a layer: the model of one rank."""
        deep = [*SHORT, "--layers", "3", "--hidden", "20"]
        self.train("deep", "--threads", "1", options=deep)
        for n, parallel, more in ((2, "pipeline:2", []), (3, "pipeline:3", ["--stage-order", "gpipe"]),
                                  (4, "data:2*pipeline:2", ["--accumulate", "1"]), (2, "pipeline:2", ["--micro-batches", "5"]),
                                  (2, "pipeline", ["--place", "heft"]), (3, "pipeline:3", ["--place", "random:1"]),
                                  (2, "unit:2", []), (4, "data:2*unit:2", ["--accumulate", "1"]), (4, "pipeline:2*unit:2", []),
                                  (2, "wave:2", ["--pipeline", "linear"]), (4, "data:2*pipeline:2", ["--pipeline", "linear"])):
            train(n, "train", AIR, *deep, "--parallel", parallel, *more, "-o", "m.model", "--progress", "none")
            self.same_model("deep.model", "m.model", "%s on %d ranks" % (parallel, n))

    def test_layers_on_ranks(self):
        self.layers_on_ranks(lambda n, *args, status=0: self.stretto(*args, "--ranks", n, "--threads", 1, timeout=120, status=status))

    def test_layers_on_ranks_under_open_mpi(self):
        self.layers_on_ranks(lambda n, *args, status=0: self.mpi("openmpi", n, *args, "--threads", 1, status=status))

    def leg(self, *words):
        """Starts or resumes a run and stops it when it has written a checkpoint; whether it was stopped before its end."""
        kept = os.path.join(self.dir, "cut.model.run", "checkpoints", "*.ckpt")
        before, end = set(glob.glob(kept)), time.monotonic() + 60 * e2e.SLOW
        child = self.start(*words, "--threads", "1", "--progress", "none")
        while set(glob.glob(kept)) <= before and child.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        said = child.communicate(timeout=60 * e2e.SLOW)[1]
        self.assertIn(child.returncode, (0, 75), said.decode())
        return child.returncode == 75

    def test_layers_on_ranks_stopped_and_resumed_on_others(self):
        """The checkpoint of one product of cuts, opened by all others."""
        deep = [*SHORT, "--members", "1", "--steps", "6000", "--layers", "3", "--hidden", "20"]
        self.train("whole", options=deep)
        self.assertTrue(self.leg("train", AIR, *deep, "--ranks", "4", "--parallel", "pipeline:2*data:2", "--checkpoint-every", "0.1s",
                                 "-o", "cut.model"))
        legs = 0
        for n, parallel, more in ((2, "unit:2", []), (1, "serial", []), (3, "data:3", []), (2, "wave:2", []),
                                  (4, "pipeline:2*unit:2", []), (2, "unit:2", []), (2, "pipeline", ["--place", "heft"])):
            legs += self.leg("resume", "cut.model.run", "--ranks", str(n), "--parallel", parallel, *more)
        self.assertGreater(legs, 4, "the run was too short for its legs")
        self.stretto("resume", "cut.model.run", "--ranks", 3, "--threads", 1, "--parallel", "pipeline:3", "--place", "cyclic", "--progress", "none",
                     "--time-limit", "0", timeout=240)
        self.same_model("whole.model", "cut.model", "2 stages of 2 ranks, units, one rank and so on, then 3 stages")

    def peaks(self, front, *args):
        """Trains as processes; MiB of the peak resident memory of each, the whole run, and what rank 0 says."""
        code = ("import os, resource, subprocess, sys; rc = subprocess.call(sys.argv[1:], close_fds=False); "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open('peak-%d' % os.getpid(), 'w')); sys.exit(rc)")
        command = [*front, sys.executable, "-c", code, e2e.PROGRAM, "train", *map(str, args), "--progress", "none", "--verbose"]
        r = self.mpi("", 0, shell=command)
        found = glob.glob(self.path("peak-*"))
        peaks = sorted(int(self.read(name).split()[0]) / 1024 for name in found)
        for name in found:
            os.remove(name)
        stated = re.search(r"memory: series ([0-9.]+) MiB \+ plan ([0-9.]+) MiB", r.err)
        self.assertTrue(stated, r.err)
        return peaks, sum(map(float, stated.groups()))

    def memory_of_stages(self, flavour):
        """Training, validation, guard, score and model file of a network that is much larger than the program: a rank of four has a
        fraction of what one needs, about what was stated before, and the model is the same."""
        if e2e.SLOW > 1:
            raise unittest.SkipTest("skipped: a sanitizer's own memory hides that of the model")
        front = self.launched(flavour, 4)[:-1]
        self.stretto("sample", "tides", "--rows", 1500, "-o", "t.csv")
        options = ["t.csv", "--target", "height", "--horizon", 24, "--context", 96, "--base", "last", "--layers", 8, "--batch", 64,
                   "--members", 1, "--steps", 2, "--max-steps", 2, "--grains", 8, "--threads", 1]
        deep = [*options, "--hidden", 256]
        bare = self.peaks(front, *options, "--hidden", 8, "--parallel", "pipeline:4", "-o", "s.model")[0][-1]
        one, said_of_one = self.peaks([], *deep, "--parallel", "serial", "-o", "one.model")
        four, said = self.peaks(front, *deep, "--parallel", "pipeline:4", "-o", "four.model")
        self.same_model("one.model", "four.model", "four stages")
        self.assertEqual(len(four), 4)
        what = "one rank %s MiB, stated %.0f; four %s MiB, stated %.0f; a small model %.0f MiB" % (one, said_of_one, four, said, bare)
        print(what)
        self.assertLess(four[-1] - bare, 0.36 * one[0], what)
        self.assertLess(four[-1] - bare, 1.15 * said, what)
        self.assertGreater(four[-1], 0.85 * said, what)

    def test_memory_of_stages_under_open_mpi(self):
        self.memory_of_stages("openmpi")

    def test_memory_of_stages_under_mpich(self):
        self.memory_of_stages("mpich")


class Jobs(Launched):
    """What launchers start, stop and kill."""
    def processes(self, flavour):
        alone = self.train("one", "--threads", "1")
        for n in (2, 3):
            r = self.mpi(flavour, n, "train", AIR, *SHORT, "-o", "m.model", "--progress", "none")
            self.same_model("one.model", "m.model", "%s, %d ranks" % (flavour, n))
            self.assertEqual(alone.out, r.out, "one rank speaks")
        said = self.mpi(flavour, 2, "train", AIR, *SHORT, "--json", "-o", "m.model", "--progress", "none").out
        self.assertEqual(said, self.stretto("train", AIR, *SHORT, "--json", "-o", "j.model", "--progress", "none").out)
        self.assertEqual(said.count("\n"), 1)
        r = self.mpi(flavour, 2, "train", "absent.csv", *SHORT, status=None)
        self.assertRegex(r.err, r"(?m)^error\[E701\] absent.csv: |^rank 1: error\[E701\] absent.csv: ")
        r = self.mpi(flavour, 2, "train", AIR, *SHORT, "--ranks", 3, "-o", "m.model", status=None)
        self.assertNotEqual(r.status, 0)
        self.assertIn("error[E803] --ranks: --ranks 3, and the launcher started 2", r.err)

    def test_open_mpi(self):
        self.processes("openmpi")

    def test_mpich(self):
        self.processes("mpich")

    def differing(self, flavour, what, change):
        """Rank 1 is started with something else: what a shell does before."""
        self.launched(flavour, 2)
        script = self.write("go.sh", "#!/bin/sh\nr=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n[ $r = 1 ] && %s\nexec %s \"$@\"\n" %
                            (change, e2e.PROGRAM))
        os.chmod(script, 0o755)
        command = [*LAUNCHERS[flavour], "-n", "2", script, "train", AIR, *SHORT, "-o", "m.model", "--progress", "none"]
        begin = time.monotonic()
        r = self.mpi(flavour, 2, shell=command, status=None)
        self.assertEqual(r.status, 8, r.err)
        self.assertIn("%s: rank 1 " % what, r.err)
        self.assertLess(time.monotonic() - begin, 20 * e2e.SLOW)

    def test_ranks_that_differ_are_named(self):
        lines = self.read(AIR).decode().splitlines()
        lines[17] = lines[17].split(",")[0] + ",333"
        other = self.write("other.csv", "\n".join(lines) + "\n")
        same = " ".join(SHORT)
        self.differing("openmpi", "data", "set -- train %s %s -o m.model --progress none" % (other, same))
        self.differing("mpich", "options", "set -- train %s %s -o m.model --progress none --lr 0.5" % (AIR, same))
        self.differing("mpich", "kernels", "export STRETTO_ISA=ref")

    def test_library_of_another_launcher(self):
        self.launched("openmpi", 2)
        self.launched("mpich", 2)
        os.environ["STRETTO_MPI"] = "mpich"
        self.addCleanup(os.environ.pop, "STRETTO_MPI", None)
        r = self.mpi("openmpi", 2, "train", AIR, *SHORT, "-o", "m.model", status=None)
        self.assertNotEqual(r.status, 0)
        self.assertIn("launcher and the MPI library do not belong together", r.err)

    def wait_for_steps(self, child, run):
        limit = time.monotonic() + 60 * e2e.SLOW
        path = self.path(run + "/metrics.jsonl")
        while child.poll() is None and not (os.path.exists(path) and os.path.getsize(path) > 2000):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    def test_stopped_and_resumed_with_other_ranks(self):
        options = [*SHORT, "--steps", "1500", "--validate-every", "100"]
        self.train("whole", options=options)
        child = self.start("train", AIR, *options, "--ranks", "2", "-o", "cut.model", "--progress", "none")
        self.wait_for_steps(child, "cut.model.run")
        child.send_signal(signal.SIGTERM)
        err = child.communicate(timeout=60 * e2e.SLOW)[1].decode()
        self.assertEqual(child.returncode, 75, err)
        self.stretto("resume", "cut.model.run", "--ranks", 3, "--progress", "none", timeout=120)
        self.same_model("whole.model", "cut.model", "2 ranks, then 3")

    def test_stopped_and_resumed_under_a_launcher(self):
        options = [*SHORT, "--base", "none", "--no-guard", "--steps", "2000", "--validate-every", "200"]
        self.train("whole", options=options)
        command = self.launched("mpich", 2, "train", AIR, *options, "-o", "cut.model", "--progress", "none")
        child = subprocess.Popen(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment())
        self.addCleanup(child.kill)
        self.wait_for_steps(child, "cut.model.run")
        seen = subprocess.run(["pgrep", "-f", "--", "-o cut.model --progress none"], stdout=subprocess.PIPE)
        for pid in map(int, seen.stdout.split()):
            if pid != child.pid:
                os.kill(pid, signal.SIGUSR1)  # as the supervisor does: the launcher itself would not wait for a checkpoint
        child.communicate(timeout=60 * e2e.SLOW)
        if os.path.exists(self.path("cut.model.run/checkpoints")) and os.listdir(self.path("cut.model.run/checkpoints")):
            self.mpi("mpich", 3, "resume", "cut.model.run", "--progress", "none")
        self.same_model("whole.model", "cut.model", "2 ranks, then 3, under mpiexec")

    def on_a_terminal(self, command, when):
        """Everything it wrote, and its status; Ctrl-C comes from the terminal when `when` says so."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.dir)
            os.execvpe(command[0], command, self.environment())
        out, sent, limit = b"", False, time.monotonic() + 120 * e2e.SLOW
        while time.monotonic() < limit:
            if not sent and when():
                sent = os.write(terminal, b"\x03") == 1
            if not select.select([terminal], [], [], 0.01)[0]:
                continue
            try:
                more = os.read(terminal, 65536)
            except OSError:  # nobody has the other end any more
                break
            if not more:
                break
            out += more
        else:
            os.kill(child, signal.SIGKILL)
        os.close(terminal)
        return out.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def interrupted(self, flavour, statuses):
        """Ctrl-C: one sentence that says how to go on, and a checkpoint that goes on to the bits of the run that was left alone."""
        options = [*SHORT, "--base", "none", "--no-guard", "--steps", "20000", "--validate-every", "5000", "--threads", "1"]
        self.launched(flavour, 2)
        self.train("whole", options=options)
        command = self.launched(flavour, 2, "train", AIR, *options, "-o", "cut.model", "--progress", "none", "--checkpoint-every", "0.05s")
        out, status = self.on_a_terminal(command, lambda: glob.glob(self.path("cut.model.run/checkpoints/*.ckpt")))
        self.assertFalse(os.path.exists(self.path("cut.model")), out)
        self.assertIn(status, statuses, out)
        self.assertEqual(out.count("stretto resume cut.model.run"), 2, out)  # when it heard, and when the checkpoint was there
        self.assertEqual(out.count("error[E802] stopped as asked; a checkpoint is in cut.model.run"), 1, out)
        self.stretto("resume", "cut.model.run", "--progress", "none", timeout=120)
        self.same_model("whole.model", "cut.model", "Ctrl-C under %s" % flavour)

    def test_ctrl_c_under_open_mpi(self):
        self.interrupted("openmpi", (1, 75))

    def test_ctrl_c_under_mpich(self):
        self.interrupted("mpich", (75, 0))  # mpiexec forgets the status of its ranks now and then: 5 of 50

    def test_pipelines(self):
        """linear has the bits of overlap; delay1 has others, the same ones for all ranks and threads, and learns as well."""
        options = [*SHORT, "--steps", "200", "--validate-every", "50", "--no-guard", "--base", "none"]
        alone = self.train("one", options=options)
        for name, more in (("l1", ["--threads", 1]), ("l2", ["--ranks", 2, "--threads", 1])):
            self.train(name, "--pipeline", "linear", *more, options=options)
            self.same_model("one.model", name + ".model", "linear, %s" % more)
        late = self.train("late", "--pipeline", "delay1", "--threads", 1, options=options)
        self.assertIn("pipeline delay1: each update uses the gradient of the step before", late.err)
        for k, more in enumerate((["--threads", 2], ["--ranks", 2, "--threads", 1], ["--ranks", 3, "--threads", 2])):
            self.train("late%d" % k, "--pipeline", "delay1", *more, options=options)
            self.same_model("late.model", "late%d.model" % k, "delay1, %s" % more)
        self.assertNotEqual(e2e.model(self.path("one.model"))[1], e2e.model(self.path("late.model"))[1])
        losses = [min(json.loads(line)["valid"] for line in self.read(n + ".model.run/metrics.jsonl").decode().splitlines()
                      if json.loads(line).get("valid") is not None) for n in ("one", "late")]
        self.assertLess(losses[1], 1.25 * losses[0])

    def test_a_late_update_goes_on(self):
        """delay1, stopped by the clock with an update on its way: another number of ranks ends where the unbroken run does."""
        options = [*SHORT, "--steps", "3000", "--validate-every", "1000", "--pipeline", "delay1", "--no-guard"]
        self.train("whole", options=options)
        child = self.start("train", AIR, *options, "--ranks", "2", "-o", "cut.model", "--progress", "none", "--checkpoint-every", "0.05s")
        limit = time.monotonic() + 60 * e2e.SLOW
        seen = self.path("cut.model.run/checkpoints")
        while child.poll() is None and not (os.path.isdir(seen) and os.listdir(seen)):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        err = child.communicate(timeout=60 * e2e.SLOW)[1].decode()
        self.assertEqual(child.returncode, 75, err)
        self.stretto("resume", "cut.model.run", "--ranks", 3, "--progress", "none", timeout=120)
        self.same_model("whole.model", "cut.model", "2 ranks, then 3")

    def test_ranks_1_trains_alone_whoever_launched_it(self):
        self.launched("openmpi", 2)
        script = self.write("each.sh", "#!/bin/sh\nexec %s \"$@\" --ranks 1 -o alone$OMPI_COMM_WORLD_RANK.model\n" % e2e.PROGRAM)
        os.chmod(script, 0o755)
        self.train("one", "--threads", "1")
        self.mpi("openmpi", 2, shell=[*LAUNCHERS["openmpi"], "-n", "2", script, "train", AIR, *SHORT, "--progress", "none"])
        self.same_model("one.model", "alone0.model", "rank 0 alone")
        self.same_model("one.model", "alone1.model", "rank 1 alone")

    def test_scoring_may_take_longer_than_the_deadline(self):
        self.stretto("sample", "long-memory", "--rows", 60000, "-o", "long.csv")
        options = ["--target", "y", "--horizon", 8, "--context", 64, "--segment", 1, "--hidden", 160, "--steps", 4, "--max-steps", 0,
                   "--base", "last", "--no-guard", "--threads", 1, "--quantiles", "0.5", "--test", 30000]
        command = self.launched("openmpi", 2, "train", "long.csv", *options, "-o", "l.model", "--progress", "none")
        begin = time.monotonic()
        done = subprocess.run(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300 * e2e.SLOW, env=dict(self.environment(), STRETTO_DEADLINE="1"))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertTrue(os.path.exists(self.path("l.model")))
        self.assertGreater(time.monotonic() - begin, 3, "rank 0 scores for longer than rank 1 would wait in MPI_Finalize")

    def test_a_killed_rank_ends_the_job(self):
        options = [*SHORT, "--steps", "100000", "--validate-every", "1000"]
        command = self.launched("openmpi", 3, "train", AIR, *options, "-o", "k.model", "--progress", "none", "--checkpoint-every", "1")
        child = subprocess.Popen(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment())
        self.addCleanup(child.kill)
        self.wait_for_steps(child, "k.model.run")
        seen = subprocess.run(["pgrep", "-f", "-n", "k.model --progress none --checkpoint-every"], stdout=subprocess.PIPE)
        os.kill(int(seen.stdout), signal.SIGKILL)
        begin = time.monotonic()
        child.communicate(timeout=60 * e2e.SLOW)
        self.assertNotEqual(child.returncode, 0)
        self.assertLess(time.monotonic() - begin, 30 * e2e.SLOW)

    def test_a_stopped_rank_is_named_and_the_others_write_down_where_they_are(self):
        options = [*SHORT, "--members", "1", "--steps", "100000", "--validate-every", "1000", "--threads", "1", "--checkpoint-every", "1s"]
        command = self.launched("openmpi", 3, "train", AIR, *options, "-o", "s.model", "--progress", "none")
        child = subprocess.Popen(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=dict(self.environment(), STRETTO_DEADLINE="3"))
        self.addCleanup(child.kill)
        limit = time.monotonic() + 60 * e2e.SLOW
        while not glob.glob(self.path("s.model.run/checkpoints/*.ckpt")):
            self.assertIsNone(child.poll())
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.02)
        self.assertFalse(os.path.exists(self.path("s.model.run/flight")), "nothing is written while all is well")
        status = {r: json.loads(self.read("s.model.run/status/rank-%d.json" % r)) for r in range(3)}
        os.kill(status[1]["pid"], signal.SIGSTOP)
        begin = time.time()
        err = child.communicate(timeout=60 * e2e.SLOW)[1].decode()
        self.assertEqual(child.returncode, 75, err)
        self.assertRegex(err, r"(for|to send to) rank 1 \(host \S+, pid %d\)" % status[1]["pid"])
        ended = json.loads(self.read("s.model.run/status/rank-0.json"))["time"] - begin
        self.assertLess(ended, 3 + 3 * e2e.SLOW, "named within the deadline, a moment to write")
        for rank in (0, 2):
            record = self.read("s.model.run/flight/rank-%d.txt" % rank).decode()
            for words in ("Flight record of rank %d of 3 " % rank, "this rank: last seen in phase ", "worker 0: ",
                          "Threads of this process:", "stretto.agent, state ", "stretto_trainer_run+0x", "Begun and not done", "from 1\n", "  step "):
                self.assertTrue(words in record, "%s is not in\n%s" % (words, record[:3000]))
        self.assertIn("flight/rank-", err)
        self.stretto("train", AIR, *SHORT, "-o", "s.model", "--progress", "none")
        self.assertFalse(os.path.exists(self.path("s.model.run/flight/rank-0.txt")), "a new run begins without the record of another")


if __name__ == "__main__":
    e2e.main()
