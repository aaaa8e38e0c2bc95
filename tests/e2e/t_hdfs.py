"""t_hdfs.py - data, models and forecasts in HDFS: the same results as with local files, and failures that leave nothing half written.

Class Standin runs on a stand-in (webhdfs.py), Real on a name node and a data node of Hadoop (tests/hdfs/hdfs.sh), where its jars
and Java are here. Failures are injected into the stand-in only.
"""
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from e2e import AIR, FEW, ROOT, SLOW, Case, main
from webhdfs import Inode, Standin

TRAIN = ("--base", "none", "--no-guard", "--target", "Passengers", "--horizon", "12", "--preset", "short", "--steps", "20", "--quiet")


def air():
    with open(AIR, "rb") as f:
        return f.read()


def big_table(rows):
    """A table of several blocks."""
    draw = random.Random(7)
    lines = ["time,y,a,b,word"]
    lines += ["%d,%.6f,%.6f,%d,%s" % (i, draw.gauss(0, 1), draw.gauss(5, 2), draw.randrange(1000), draw.choice(("red", "green", "blue")))
              for i in range(rows)]
    return "\n".join(lines).encode() + b"\n"


class Hadoop:
    """A name node and a data node, reached with urllib."""
    kind = "Hadoop"

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="stretto-hdfs-")
        self.script = os.path.join(ROOT, "tests", "hdfs", "hdfs.sh")
        up = subprocess.run([self.script, "up", os.path.join(self.dir, "hdfs")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180)
        said = up.stdout.decode()
        if up.returncode:
            shutil.rmtree(self.dir, True)
            if up.returncode == 77:
                raise unittest.SkipTest(said.strip())
            raise AssertionError(said)
        self.url = said.strip().splitlines()[-1]

    def close(self):
        subprocess.run([self.script, "down", os.path.join(self.dir, "hdfs")], timeout=60)
        shutil.rmtree(self.dir, True)

    def ask(self, method, path, query, data=None):
        url = "http%s/webhdfs/v1%s?%s&user.name=%s" % (self.url[len("hdfs"):], urllib.parse.quote(path), query, os.environ.get("USER", "root"))
        if method == "PUT" and data is not None:
            url = urllib.request.urlopen(urllib.request.Request(url + "&noredirect=true", method="PUT")).read().decode().split('"')[3].replace("\\/", "/")
        url = urllib.parse.quote(url, safe="".join(map(chr, range(33, 127))))
        return urllib.request.urlopen(urllib.request.Request(url, data=data, method=method)).read()

    def put(self, path, data):
        self.ask("PUT", path, "op=CREATE&overwrite=true", data)

    def get(self, path):
        return self.ask("GET", path, "op=OPEN")

    def names(self, folder="/"):
        found = []
        try:
            members = json.loads(self.ask("GET", folder, "op=LISTSTATUS"))["FileStatuses"]["FileStatus"]
        except urllib.error.HTTPError:  # no such folder, or not any more
            members = []
        for s in members:
            path = folder.rstrip("/") + "/" + s["pathSuffix"]
            found += self.names(path) if s["type"] == "DIRECTORY" else [path]
        return sorted(found)


class Files:
    """What holds for every HDFS."""

    @classmethod
    def setUpClass(cls):
        cls.hdfs = cls.make()
        cls.addClassCleanup(cls.hdfs.close)

    def setUp(self):
        super().setUp()
        self.base = "/t/" + self.id().rsplit(".", 1)[1].replace("test_", "")
        self.url = self.hdfs.url + self.base
        self.put("air.csv", air())

    def put(self, name, data):
        self.hdfs.put(self.base + "/" + name, data)

    def get(self, name):
        return self.hdfs.get(self.base + "/" + name)

    def download(self, name, to):
        with open(self.path(to), "wb") as f:
            f.write(self.get(name))

    def leave_nothing(self):
        self.assertEqual([n for n in self.hdfs.names() if n.endswith((".tmp", ".part")) or ".part/" in n], [])

    def test_model_and_forecast_are_those_of_local_files(self):
        data = air()
        self.put("air.csv.gz", gzip.compress(data))
        self.stretto("train", AIR, *TRAIN, "-o", "local.model")
        self.stretto("predict", "local.model", AIR, "-o", "local.csv")
        for name in ("air.csv", "air.csv.gz"):
            self.stretto("train", self.url + "/" + name, *TRAIN, "-o", self.url + "/m.model", "--run-dir", name + ".run")
            self.download("m.model", "m.model")
            self.same_model("local.model", "m.model", name)
            self.stretto("predict", self.url + "/m.model", self.url + "/" + name, "-o", self.url + "/f.csv")
            self.assertEqual(self.get("f.csv"), self.read("local.csv"))
        self.leave_nothing()

    def test_scores_and_facts_are_those_of_local_files(self):
        self.stretto("train", AIR, *TRAIN, "-o", "m.model")
        self.put("m.model", self.read("m.model"))
        for verb in (("eval", "{}/m.model", "{}/air.csv"), ("info", "{}/m.model"), ("info", "{}/air.csv")):
            shutil.copy(AIR, self.path("air.csv"))
            here = self.stretto(*[w.format(self.dir) for w in verb])
            there = self.stretto(*[w.format(self.url) for w in verb])
            self.assertEqual(here.out.replace(self.dir, self.url).replace('"', ""), there.out.replace('"', ""))

    def test_table_of_many_blocks_is_read_by_several_threads(self):
        data = big_table(500000 if not FEW else 300000)
        with open(self.path("big.csv"), "wb") as f:
            f.write(data)
        self.put("big.csv", data)
        self.assertGreater(len(data), 1 << 23)  # two blocks
        self.stretto("cache", "big.csv", "-o", "here.bin")
        self.stretto("cache", self.url + "/big.csv", "-o", "there.bin")
        here, there = self.read("here.bin"), self.read("there.bin")
        size = 8 * 300000  # the columns, behind headers that name the source
        self.assertEqual(here[-size:-8], there[-size:-8])
        self.stretto("cache", self.url + "/big.csv", "-o", self.url + "/big.bin")
        there = self.stretto("info", self.url + "/big.bin").out
        self.assertEqual(there.replace(self.url + "/big.bin", "here.bin"), self.stretto("info", "here.bin").out)

    def test_edges_and_tokens_are_read(self):
        edges = "".join("%d %d\n" % (i, (i * 7 + 1) % 50) for i in range(50)) + "0 9\n3 9\n"
        self.write("edges.txt", edges)
        self.put("edges.txt", edges.encode())
        here = self.stretto("graph", "pagerank", "edges.txt", "-o", "rank.csv", "--quiet")
        self.stretto("graph", "pagerank", self.url + "/edges.txt", "-o", self.url + "/rank.csv", "--quiet")
        self.assertEqual(self.get("rank.csv"), self.read("rank.csv"), here.err)
        words = "".join("%s\t%s\n%s" % (w, t, "" if i % 5 else "\n") for i, (w, t) in enumerate([("the", "D"), ("dog", "N"), ("runs", "V")] * 40))
        self.write("words.tsv", words)
        self.put("words.tsv", words.encode())
        for name, to in ((self.path("words.tsv"), "here.model"), (self.url + "/words.tsv", "there.model")):
            self.stretto("train", name, "--task", "crf", "-o", to, "--quiet")
        self.same_model("here.model", "there.model")

    def test_file_that_is_there_is_replaced(self):
        self.put("m.model", b"old")
        self.stretto("train", self.url + "/air.csv", *TRAIN, "-o", self.url + "/m.model", "--run-dir", "r")
        self.assertGreater(len(self.get("m.model")), 1000)
        self.leave_nothing()

    def test_names_with_blanks_and_signs_are_read_and_written(self):
        name = "a b%20+&=\u00e4.csv"
        self.put(name, air())
        self.stretto("cache", self.url + "/" + name, "-o", self.url + "/" + name + ".bin")
        self.assertIn(self.base + "/" + name + ".bin", self.hdfs.names())

    # ---------------------------------------------------------------- run folders
    steps = 400

    def long(self):
        return ("--target", "Passengers", "--horizon", "12", "--preset", "none", "--base", "none", "--steps", self.steps, "--checkpoint-every", "0.02")

    def stop_early(self, model):
        """A run that was asked to stop with a checkpoint in HDFS."""
        child = self.start("train", self.url + "/air.csv", *map(str, self.long()), "--progress", "plain", "-o", model)
        deadline = time.time() + 60 * SLOW
        while not [n for n in self.hdfs.names(self.base) if ".ckpt/MANIFEST" in n]:
            self.assertIsNone(child.poll(), child.stderr.read() if child.poll() is not None else "")
            self.assertLess(time.time(), deadline)
            time.sleep(0.02)
        return child

    def test_run_is_resumed_on_another_host(self):
        self.stretto("train", AIR, *self.long(), "-o", "local.model")
        child = self.stop_early(self.url + "/m.model")
        child.send_signal(signal.SIGTERM)
        said = child.communicate(timeout=60 * SLOW)[1].decode()
        self.assertEqual(child.returncode, 75, said)
        self.assertIn("or, on any host, %s/m.model.run" % self.url, said)
        newest = sorted(os.listdir(self.path("m.model.run/checkpoints")))[-1]
        self.assertIn(self.base + "/m.model.run/checkpoints/%s/MANIFEST" % newest, self.hdfs.names())
        os.mkdir(self.path("other"))
        r = self.stretto("resume", self.url + "/m.model.run", cwd=self.path("other"))
        self.assertIn("resumed member 1 of 1 at step", r.err)
        self.download("m.model", "m.model")
        self.same_model("local.model", "m.model", "resumed on another host")
        rest = [n.rsplit("/", 1)[1] for n in self.hdfs.names() if n.startswith(self.base + "/m.model.run/")]
        self.assertEqual(rest, ["config.json", "data.json", "metrics.jsonl", "plan.txt", "report.html", "run.json"])
        self.leave_nothing()
        self.assertIn("is finished", self.stretto("resume", self.url + "/m.model.run", cwd=self.path("other"), status=7).err)

    def test_killed_run_is_resumed_from_its_newest_whole_checkpoint(self):
        self.stretto("train", AIR, *self.long(), "-o", "local.model")
        child = self.stop_early(self.url + "/m.model")
        child.kill()
        child.communicate()
        folder = self.base + "/m.model.run/checkpoints/"
        newest = max(n[len(folder):len(folder) + 12] for n in self.hdfs.names() if ".ckpt/MANIFEST" in n and n.startswith(folder))
        damaged = "%012d.ckpt" % (int(newest) + 1)
        self.hdfs.put(folder + damaged + "/MANIFEST", b"{")
        self.hdfs.put(folder + "%012d.part/MANIFEST" % (int(newest) + 2), b"{")
        os.mkdir(self.path("other"))
        self.stretto("resume", self.url + "/m.model.run", cwd=self.path("other"))
        self.download("m.model", "m.model")
        self.same_model("local.model", "m.model", "killed and resumed")

    def test_folder_of_another_run_is_not_overwritten(self):
        self.stretto("train", AIR, *TRAIN, "-o", "m.model")
        self.stretto("train", AIR, *TRAIN, "-o", self.url + "/m.model", cwd=self.make_dir("runs"))
        self.assertIn("is the run folder of", self.fails("E704", 7, "resume", self.url + "/m.model.run"))
        self.assertIn("no run in this folder", self.fails("E705", 7, "resume", self.url + "/none.run"))
        self.assertIn("run folder cannot be in HDFS", self.fails("E106", 2, "train", AIR, *TRAIN, "-o", "m.model", "--run-dir", self.url + "/r"))

    def make_dir(self, name):
        os.mkdir(self.path(name))
        return self.path(name)

    def fails(self, code, status, *args, **environment):
        with_ = dict(os.environ, **environment)
        before, os.environ = os.environ, with_
        try:
            r = self.stretto(*args, status=status)
        finally:
            os.environ = before
        self.assertEqual(r.err.count("error["), 1, r.err)
        self.assertIn("error[%s]" % code, r.err)
        self.assertIn("\n  fix: ", r.err)
        return r.err

    def test_bad_paths_give_one_sentence(self):
        self.assertIn("it is not in HDFS", self.fails("E701", 7, "info", self.url + "/none.csv"))
        self.assertIn("this is a directory", self.fails("E202", 3, "info", self.url))
        self.assertIn("no address of a file", self.fails("E701", 7, "info", "hdfs:///d/air.csv"))
        self.assertIn("cannot be used", self.fails("E706", 7, "info", "hdfs://127.0.0.1:1/d/air.csv"))
        self.assertIn("there is no folder", self.fails("E702", 7, "train", AIR, *TRAIN, "-o", self.url + "/none/m.model"))
        self.assertIn("would overwrite", self.fails("E702", 7, "cache", self.url + "/air.csv", "-o", self.url + "/air.csv"))
        self.assertIn("libcurl cannot be opened", self.fails("E810", 8, "info", self.url + "/air.csv", STRETTO_CURL="/none/libcurl.so"))
        self.leave_nothing()


class Real(Files, Case):
    make = Hadoop
    steps = 3000  # it takes a while until a checkpoint is seen

    def test_rights_of_hdfs_are_told(self):
        said = self.fails("E702", 7, "train", AIR, *TRAIN, "-o", self.url + "/m.model", HADOOP_USER_NAME="nobody")
        self.assertIn("Permission denied: user=nobody", said)

    def test_port_of_rpc_is_told(self):
        host, port = self.hdfs.url.rsplit(":", 1)
        self.assertIn("RPC port", self.fails("E706", 7, "info", "%s:%d/d/air.csv" % (host, int(port) + 1)))


class StandIn(Files, Case):
    make = Standin

    def setUp(self):
        super().setUp()
        self.hdfs.fault = None
        self.addCleanup(lambda: setattr(self.hdfs, "fault", None))

    def environment(self, **more):
        patience = os.environ.get("STRETTO_HDFS_PATIENCE", "2")
        return super().environment(STRETTO_HDFS_PATIENCE=patience, STRETTO_DEADLINE="1", **more)

    # ---------------------------------------------------------------- refusals
    def test_refusals_give_one_sentence(self):
        self.put("private/air.csv", b"a,b\n1,2\n")
        self.assertIn("Permission denied", self.fails("E701", 7, "info", self.url + "/private/air.csv", HADOOP_USER_NAME="nobody"))
        self.hdfs.make(self.base + "/full")
        self.assertIn("quota", self.fails("E703", 7, "cache", self.url + "/air.csv", "-o", self.url + "/full/air.bin"))
        for fault, text in (("standby", "on standby"), ("safe", "in safe mode"), ("500", "status 500"), ("close", "gave no whole answer")):
            self.hdfs.fault = lambda request, fault=fault: fault
            self.assertIn(text, self.fails("E706", 7, "info", self.url + "/air.csv", STRETTO_HDFS_PATIENCE="0.1"))

    def test_token_is_sent(self):
        other = Standin(token="secret/=&")
        self.addCleanup(other.close)
        other.put("/air.csv", air())
        self.assertIn("refuses the login", self.fails("E706", 7, "info", other.url + "/air.csv"))
        self.assertIn("refuses the login", self.fails("E706", 7, "info", other.url + "/air.csv", STRETTO_HDFS_TOKEN="old"))
        os.environ["STRETTO_HDFS_TOKEN"] = "secret/=&"
        self.addCleanup(os.environ.pop, "STRETTO_HDFS_TOKEN")
        self.stretto("cache", other.url + "/air.csv", "-o", other.url + "/air.bin")

    def test_active_name_node_of_two_is_found(self):
        idle = Standin()
        self.addCleanup(idle.close)
        idle.fault = lambda request: "standby"
        two = self.url.replace("127.0.0.1:", "127.0.0.1:%d,127.0.0.1:" % idle.port)
        self.stretto("cache", two + "/air.csv", "-o", two + "/air.bin")
        self.assertIn(self.base + "/air.bin", self.hdfs.names())

    def test_gateway_without_overwrite_replaces_a_file(self):
        other = Standin(gateway=True)
        self.addCleanup(other.close)
        other.put("/air.csv", air())
        other.put("/air.bin", b"old")
        self.stretto("cache", other.url + "/air.csv", "-o", other.url + "/air.bin")
        self.assertGreater(len(other.get("/air.bin")), 1000)
        self.assertEqual(other.names(), ["/air.bin", "/air.csv"])

    def test_server_that_is_no_name_node_is_refused(self):
        self.hdfs.name_GETFILESTATUS = lambda request, body: {"hello": 1}
        try:
            self.assertIn("does not answer like WebHDFS", self.fails("E706", 7, "info", self.url + "/air.csv"))
        finally:
            del self.hdfs.name_GETFILESTATUS

    def test_file_being_written_is_refused(self):
        self.hdfs.files[self.base + "/air.csv"].open = True
        self.assertIn("is being written", self.fails("E213", 3, "info", self.url + "/air.csv"))

    def test_file_that_changes_is_refused(self):
        data = big_table(300000)
        for change in (lambda: Inode(data), lambda: Inode(data[:1 << 22]), lambda: None):
            self.put("big.csv", data)
            seen = [0]

            def swap(request, change=change, seen=seen):
                seen[0] += request.op == "OPEN" and request.node == "data" and int(request.query["length"]) > 4096
                if seen[0] == 2:
                    seen[0] += 1
                    self.hdfs.files.pop(request.path)
                    if change():
                        self.hdfs.files[request.path] = change()

            self.hdfs.fault = swap
            self.fails("E213", 3, "info", self.url + "/big.csv")

    # ---------------------------------------------------------------- failures on the way
    def test_copies_that_fail_are_warnings_and_the_run_goes_on(self):
        self.hdfs.fault = lambda request: "500" if "/m.model.run" in request.path else None
        os.environ["STRETTO_HDFS_PATIENCE"] = "0.05"
        self.addCleanup(os.environ.pop, "STRETTO_HDFS_PATIENCE")
        r = self.stretto("train", self.url + "/air.csv", *self.long(), "-o", self.url + "/m.model")
        self.assertIn("warning: the run folder is not copied to %s/m.model.run: E706" % self.url, r.err)
        self.assertGreater(len(self.get("m.model")), 1000)

    def test_copies_under_random_failures_are_whole(self):
        self.stretto("train", AIR, *self.long(), "-o", "local.model")
        draw = random.Random(11)
        kinds = ("500", "close", "short", "less", "half", "lost", "standby")
        self.hdfs.fault = lambda request: draw.choice(kinds) if draw.random() < 0.1 else None
        child = self.stop_early(self.url + "/m.model")
        child.kill()
        child.communicate()
        os.mkdir(self.path("other"))
        self.stretto("resume", self.url + "/m.model.run", cwd=self.path("other"))
        self.hdfs.fault = None
        self.download("m.model", "m.model")
        self.same_model("local.model", "m.model", "resumed under failures")
        self.leave_nothing()

    def model_and_forecast(self):
        self.stretto("train", AIR, *TRAIN, "-o", "m.model")
        self.put("m.model", self.read("m.model"))
        self.stretto("predict", "m.model", AIR, "-o", "f.csv")
        self.command = ("predict", self.url + "/m.model", self.url + "/air.csv", "-o", self.url + "/f.csv")
        first = len(self.hdfs.requests)
        self.put("f.csv", b"old")
        self.stretto(*self.command)
        return self.read("f.csv"), len(self.hdfs.requests) - first

    def outcome(self, whole, what, status=None):
        """One command: whole, or one sentence and the file from before."""
        self.put("f.csv", b"old")
        r = self.stretto(*self.command, status=None, timeout=120)
        self.hdfs.fault = None
        self.assertIn(r.status, (0, 3, 7) if status is None else (status,), "%s\n%s" % (what, r.err))
        self.assertEqual(r.err.count("error["), r.status != 0, "%s\n%s" % (what, r.err))
        now = self.get("f.csv")
        self.assertIn(now, (whole,) if r.status == 0 else (whole, b"old"), what)
        return r.status

    def test_each_request_may_fail_once(self):
        whole, n = self.model_and_forecast()
        kinds = ("500", "close", "lost", "half", "short", "less", "standby")
        tried = 0
        for k in range(0, n, 4 if FEW else 2):
            for kind in kinds if not FEW else kinds[k % len(kinds):][:2]:
                first = len(self.hdfs.requests)
                self.hdfs.fault = lambda request, kind=kind: kind if request.number == first + k else None
                self.outcome(whole, "%s at request %d" % (kind, k), 0)
                self.leave_nothing()
                tried += 1
        self.assertGreater(tried, 100 if not FEW else 10)

    def test_server_that_fails_for_good_leaves_the_old_file(self):
        whole, n = self.model_and_forecast()
        os.environ["STRETTO_HDFS_PATIENCE"] = "0.05"
        self.addCleanup(os.environ.pop, "STRETTO_HDFS_PATIENCE")
        for k in range(0, n, 5 if FEW else 1):
            first = len(self.hdfs.requests)
            self.hdfs.fault = lambda request: "close" if request.number >= first + k and request.op != "DELETE" else None
            self.outcome(whole, "dead from request %d on" % k)
            self.leave_nothing()

    def test_random_failures_end_whole_or_with_one_sentence(self):
        whole, _ = self.model_and_forecast()
        os.environ["STRETTO_HDFS_PATIENCE"] = "0.3"
        self.addCleanup(os.environ.pop, "STRETTO_HDFS_PATIENCE")
        ends = []
        for seed in range(10 if FEW else 60):
            draw = random.Random(seed)
            rate = draw.choice((0.05, 0.2, 0.4))
            kinds = ("500", "503", "close", "short", "less", "half", "lost", "standby", "safe")
            self.hdfs.fault = lambda request: draw.choice(kinds) if draw.random() < rate else None
            ends.append(self.outcome(whole, "seed %d" % seed))
        self.assertIn(0, ends)

    def test_silent_server_is_given_up(self):
        whole, n = self.model_and_forecast()
        for k in (n // 4, n // 2, n - 3):
            first = len(self.hdfs.requests)
            self.hdfs.fault = lambda request: "stall" if request.number == first + k else None
            self.outcome(whole, "stall at request %d" % k, 0)

    def test_half_written_file_of_another_run_is_replaced(self):
        whole, _ = self.model_and_forecast()
        self.put("f.csv.tmp", whole[:20])
        self.outcome(whole, "a rest of another run", 0)
        self.leave_nothing()

    def test_upload_that_stays_short_keeps_the_old_file(self):
        whole, _ = self.model_and_forecast()
        self.hdfs.fault = lambda request: "half" if request.op == "CREATE" and request.node == "data" else None
        self.assertEqual(self.outcome(whole, "half of every upload"), 7)
        self.leave_nothing()


if __name__ == "__main__":
    sys.exit(main())
