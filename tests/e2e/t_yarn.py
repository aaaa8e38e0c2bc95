"""t_yarn.py - trainings on a real YARN of three nodes on this host (tests/yarn/cluster.py): ranks in containers, the idle node first, and that a lost
container, node, application master or ResourceManager costs nothing: the model has the bits of an undisturbed run."""
import getpass
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import e2e
from e2e import AIR, Case, times
from webhdfs import Standin

sys.path.insert(0, os.path.join(e2e.ROOT, "tests", "yarn"))
import cluster  # noqa: E402

MPICH = os.path.exists(os.path.join(os.path.dirname(os.path.realpath(e2e.PROGRAM)), "..", "src", "comm", "stretto-mpi-mpich.so"))
TRAIN = ["train", AIR, "--target", "Passengers", "--horizon", "12", "--members", "1", "--batch", "40", "--progress", "none"]
SHORT = [*TRAIN, "--steps", "60"]
LONG = [*TRAIN, "--steps", "12000", "--validate-every", "1000", "--checkpoint-every", "0.5s"]
NODES = 3


def whole(path):
    with open(path, "rb") as f:
        return f.read().decode(errors="replace")


def reason():
    """Why no cluster can be started here; "" = it can."""
    if not MPICH:
        return "the build has no plug-in for MPICH"
    if not shutil.which("mpiexec.mpich") and not shutil.which("mpiexec.hydra"):
        return "there is no mpiexec of MPICH"
    try:
        cluster.jars()
    except (cluster.Absent, subprocess.TimeoutExpired) as why:
        return str(why)
    return ""


def members(folder, number=None):
    """Processes in containers of the cluster in this folder: {pid: member}."""
    out = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = whole(path).split("\0")
            parent = re.search(r"PPid:\s*(\d+)", whole(os.path.dirname(path) + "/status")).group(1)
            program = whole("/proc/%s/cmdline" % parent)
            ours = "LOG_DIRS=" + folder + "/" in whole(os.path.dirname(path) + "/environ")
        except (OSError, AttributeError):
            continue
        member = [w for w in words if w.startswith("--member=") and w != "--member=-1"]
        if ours and len(words) > 2 and words[0].endswith("stretto") and words[1] == "join" and member and "/bin/bash" in program:
            if number is None or member[0] == "--member=%d" % number:
                out[int(path.split("/")[2])] = int(member[0].split("=")[1])
    return out


def user():
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


class Yarn(Case):
    @classmethod
    def setUpClass(cls):
        why = reason()
        if why:
            print("skipped: " + why)
            sys.exit(77)
        cls.folder = tempfile.mkdtemp(prefix="stretto-yarn-")
        cls.yarn = cluster.Yarn(cls.folder, NODES, 18100 + os.getpid() % 400 * 10)
        load = "time,gpu,utilisation,memory\n0,0,%d,10\n"
        for i in range(1, NODES + 1):  # node 2 is idle, the others are busy
            with open(os.path.join(cls.folder, "load." + cls.yarn.host(i)), "w") as f:
                f.write(load % (0 if i == 2 else 95))
        with open(cls.yarn.path("attributes"), "w") as f:
            f.write("#!/bin/sh\nexec %s gpuload --yarn --smooth 0 --node node-$1 --recorded %s/load.$1 --state %s/state.$1\n" % (
                e2e.PROGRAM, cls.folder, cls.folder))
        os.chmod(cls.yarn.path("attributes"), 0o755)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            cls.yarn.up()
        except Exception:
            cls.yarn.down()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.yarn.down()
        shutil.rmtree(cls.folder, True)

    def setUp(self):
        super().setUp()
        os.environ["STRETTO_YARN"] = self.yarn.url

    def submit(self, options, command, **more):
        return self.stretto("submit", "--on", "yarn", *options, "--", *command, timeout=180, **more)

    def application(self, text):
        """What the ResourceManager says of the job whose number was printed."""
        return self.yarn.ask("cluster/apps/" + re.search(r"application_\d+_\d+", text).group())["app"]

    def over(self, text):
        self.yarn.wait(lambda: self.application(text)["state"] in ("FINISHED", "FAILED", "KILLED"), 60, "the application does not end")
        return self.application(text)

    def members(self, number=None):
        return members(self.yarn.folder, number)

    def nothing_left(self):
        self.yarn.wait(lambda: not self.members(), 30, "containers are left: %s" % self.members())


class Jobs(Yarn):
    def test_slices_on_the_idle_node(self):
        """The whole path: occupancy as a node attribute, a container on the idle node, time slices on its ranks, the bits of the same
        command by hand."""
        self.yarn.wait(lambda: sorted(self.load()) == ["busy", "busy", "idle"], 60, "the nodes report no GPU load")
        command = [*SHORT, "--parallel", "time:4", "--context", "24"]
        self.stretto(*command, "--threads", "1", "-o", "hand.model", timeout=120)
        r = self.submit(["--nodes", "1", "--ranks-per-node", "2", "--wait"], [*command, "-o", "yarn.model"])
        self.assertIn("1 idle, 0 light, 2 busy; the job goes to idle ones", r.err)
        self.same_model("hand.model", "yarn.model", "on YARN")
        self.assertEqual(self.over(r.out)["finalStatus"], "SUCCEEDED")
        self.assertIn("127.0.0.3", self.read(glob.glob(self.path("yarn.model.run/join/*/hello-0"))[0]).decode())
        self.assertIn("model yarn.model", self.read(glob.glob(self.path("yarn.model.run/stretto-*.out.0"))[0]).decode())
        self.nothing_left()

    def test_nodes_with_a_label(self):
        self.assertIn("no node that runs has the label \"slow\"", self.submit(["--node-label", "slow"], [*SHORT, "-o", "n.model"], status=8).err)
        self.yarn.label(3)
        self.addCleanup(self.yarn.unlabel, 1, 3)
        self.assertIn("the labels are fast", self.submit(["--node-label", "slow"], [*SHORT, "-o", "n.model"], status=8).err)
        label = ["--node-label", "fast", "--occupancy", "off"]
        self.assertIn("the queue \"small\" may not use nodes with the label \"fast\"",
                      self.submit([*label, "--queue", "small"], [*SHORT, "-o", "n.model"], status=8).err)
        self.assertIn("2 nodes are asked for, and the cluster has 1 that run with the label fast",
                      self.submit([*label, "--nodes", "2"], [*SHORT, "-o", "n.model"], status=8).err)
        r = self.submit(["--node-label", "fast", "--nodes", "2", "--occupancy", "idle"], [*SHORT, "-o", "n.model"], status=2)
        self.assertIn("YARN does not place several containers by a label and by GPU load at once", r.err)
        self.assertFalse(os.path.exists(self.path("n.model.run")))
        self.stretto(*SHORT, "-o", "hand.model", timeout=120)
        for nodes, hosts in ((1, [self.yarn.host(3)]), (2, [self.yarn.host(1), self.yarn.host(3)])):
            if nodes == 2:
                self.yarn.label(1)
            name = "label%d.model" % nodes
            self.submit([*label, "--nodes", str(nodes), "--wait"], [*SHORT, "-o", name])
            self.same_model("hand.model", name, "on nodes with a label")
            self.assertEqual(sorted(self.read(f).decode().split()[1] for f in glob.glob(self.path(name + ".run/join/*/hello-*"))), hosts)

    def load(self):
        nodes = self.yarn.ask("cluster/nodes")["nodes"]["node"]
        return [a["value"] for n in nodes for a in n["nodeAttributesInfo"]["nodeAttributeInfo"] if a["name"] == "gpuload"]

    def test_two_nodes(self):
        self.stretto(*SHORT, "-o", "hand.model", timeout=120)
        r = self.submit(["--nodes", "2", "--ranks-per-node", "2", "--occupancy", "off", "--wait"], [*SHORT, "-o", "yarn.model"])
        self.same_model("hand.model", "yarn.model", "on YARN")
        hosts = {self.read(f).decode().split()[1] for f in glob.glob(self.path("yarn.model.run/join/*/hello-*"))}
        self.assertEqual(len(hosts), 2, hosts)

    def test_data_and_model_in_hdfs(self):
        """Only the run folder is on a file system that the nodes share."""
        self.stretto(*SHORT, "-o", "hand.model", timeout=120)
        hdfs = Standin()
        self.addCleanup(hdfs.close)
        hdfs.put("/d/air.csv", whole(AIR).encode())
        command = [w if w != AIR else hdfs.url + "/d/air.csv" for w in SHORT]
        self.submit(["--nodes", "2", "--occupancy", "off", "--wait"], [*command, "-o", hdfs.url + "/d/yarn.model"])
        with open(self.path("yarn.model"), "wb") as f:
            f.write(hdfs.files["/d/yarn.model"].data)
        self.same_model("hand.model", "yarn.model", "in HDFS")

    def test_a_job_that_fails(self):
        """Its status comes back, YARN does not start it for ever, and does not call it a success."""
        r = self.submit(["--occupancy", "off", "--wait"], [*SHORT, "--hiden", "8", "-o", "f.model"], status=None)
        self.assertEqual(r.status, 2, r.err)  # found before anything is sent
        self.write("late.csv", whole(AIR))
        command = [w if w != AIR else "late.csv" for w in SHORT]
        r = self.submit(["--occupancy", "off"], [*command, "-o", "f.model"])
        os.unlink(self.path("late.csv"))
        app = self.over(r.out)
        self.assertIn(app["finalStatus"], ("KILLED", "FAILED"), app)
        self.assertIn("error[E701]", self.read(glob.glob(self.path("f.model.run/stretto-*.out.0"))[0]).decode())
        self.assertFalse(os.path.exists(self.path("f.model")))
        self.nothing_left()

    def test_what_the_cluster_lacks(self):
        hdfs = Standin()
        self.addCleanup(hdfs.close)
        for options, said in ((["--nodes", "4"], "4 nodes are asked for, and the cluster has 3"),
                              (["--queue", "ml"], "the cluster has no queue \"ml\""),
                              (["--queue", "small", "--nodes", "2", "--mem", "1G"],
                               "the job needs 2048 MiB, and the queue \"small\" may have 1228 MiB, 10 % of the cluster"),
                              (["--stage", hdfs.url], "the cluster works on file:///, and YARN looks for the program there"),
                              (["--mem", "64G"], "a container needs 65536 MiB, and the largest node has 4096 MiB"),
                              (["--ranks-per-node", "9"], "a container needs 9 vcores, and the largest node has 4"),
                              (["--mpi", "openmpi"], "--on yarn starts ranks by mpich, not by openmpi"),
                              (["--manager", "http://127.0.0.1:1"], "http://127.0.0.1:1 gave no answer"),
                              (["--manager", self.yarn.url + "/nowhere"], "this is no active ResourceManager")):
            r = self.submit(options, [*SHORT, "-o", "n.model"], status=None)
            self.assertNotEqual(r.status, 0)
            self.assertIn(said, r.err)
            self.assertEqual(r.err.count("error["), 1, r.err)
            self.assertIn("fix:", r.err)
        self.assertFalse(os.path.exists(self.path("n.model.run")))

    def test_containers_that_never_come(self):
        """Two jobs of which only one fits at a time both end: the one that waits gives its containers back and is handed in again."""
        self.stretto(*SHORT, "-o", "hand.model", timeout=120)
        half = ["--nodes", "2", "--occupancy", "off", "--mem", "2400M", "--wait", "--gather-time", "4s"]
        jobs = [self.start("submit", "--on", "yarn", *half, "--", *SHORT, "-o", "j%d.model" % k) for k in range(3)]
        for k, job in enumerate(jobs):
            out, err = job.communicate(timeout=170)
            self.assertEqual(job.returncode, 0, err.decode())
            self.same_model("hand.model", "j%d.model" % k, "one of three")


class Apart(Case):
    """A cluster whose nodes see nothing of this host but HDFS: program, data, checkpoints, models and output go through it."""
    @classmethod
    def setUpClass(cls):
        why = reason()
        if not why and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            why = "no mount namespace may be made here (unshare -m)"
        if why:
            print("skipped: " + why)
            sys.exit(77)
        cls.folder = tempfile.mkdtemp(prefix="stretto-yarn-apart-")
        base = 17100 + os.getpid() % 400 * 10
        cls.script, cls.at = os.path.join(e2e.ROOT, "tests", "hdfs", "hdfs.sh"), os.path.join(cls.folder, "hdfs")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.addClassCleanup(subprocess.run, [cls.script, "down", cls.at])
        up = subprocess.run([cls.script, "up", cls.at], env=dict(os.environ, HDFS_BASEPORT=str(base)), stdout=subprocess.PIPE, check=True, timeout=120)
        cls.url = up.stdout.decode().strip()
        cls.private = os.path.join(cls.folder, "private")  # where the user is; the nodes see it empty
        os.mkdir(cls.private)
        build = os.path.dirname(os.path.dirname(os.path.realpath(e2e.PROGRAM)))
        hide = [cls.private, os.path.join(e2e.ROOT, "examples"), *[p for p in (os.path.join(build, "cli"), os.path.join(build, "src"), os.path.join(build, "bin"),
                                                                           os.path.join(build, "lib")) if os.path.isdir(p)]]
        cls.yarn = cluster.Yarn(os.path.join(cls.folder, "yarn"), 2, 18100 + os.getpid() % 400 * 10, "hdfs://127.0.0.1:%d" % (base + 1), hide)
        os.makedirs(cls.yarn.folder)
        cls.addClassCleanup(cls.yarn.down)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        cls.yarn.up()

    def setUp(self):
        super().setUp()
        os.environ["STRETTO_YARN"] = self.yarn.url
        self.home, self.dir = self.dir, tempfile.mkdtemp(dir=self.private)

    def fetch(self, path, name):
        """A file of HDFS, as the folder of the test has it."""
        with urllib.request.urlopen("http://%s/webhdfs/v1%s?op=OPEN&user.name=%s" % (self.url[7:], path, user()), timeout=20) as r:
            with open(self.path(name), "wb") as f:
                f.write(r.read())
        return self.path(name)

    def names(self, path):
        with urllib.request.urlopen("http://%s/webhdfs/v1%s?op=LISTSTATUS&user.name=%s" % (self.url[7:], path, user()), timeout=20) as r:
            return [f["pathSuffix"] for f in json.loads(r.read())["FileStatuses"]["FileStatus"]]

    def test_nothing_is_shared(self):
        self.write("air.csv", whole(AIR))
        command = [w if w != AIR else "air.csv" for w in SHORT]
        self.stretto(*command, "--threads", "1", "-o", "hand.model", timeout=120)
        submit = ["submit", "--on", "yarn", "--stage", self.url, "--nodes", "2", "--occupancy", "off"]
        dry = self.stretto(*submit, "--dry-run", "--", *command, "-o", self.url + "/m/a.model")
        self.assertRegex(dry.err, r"yarn: the program, its plug-in and libraries, \d+\.\d MB, as hdfs://\S+/\.stretto/program-[0-9a-f]{16}\.tar \(--stage\)")
        self.assertRegex(dry.err, r"stage: air\.csv, \d+ bytes, as hdfs://\S+/\.stretto/[0-9a-f]{16}-air\.csv")
        self.mkdir("/m")
        r = self.stretto(*submit, "--wait", "--", *command, "-o", self.url + "/m/a.model", timeout=180)
        self.fetch("/m/a.model", "yarn.model")
        self.same_model("hand.model", "yarn.model", "through HDFS")
        session = re.search(r"stretto-a-model-[0-9a-f]+", r.err).group()
        self.assertIn("model " + self.url + "/m/a.model", whole(self.fetch("/m/a.model.run/%s.out.0" % session, "out")))
        self.assertIn("report.html", self.names("/m/a.model.run"))
        staged = self.names("/user/%s/.stretto" % user())
        self.assertEqual(len(staged), 2, staged)
        r = self.stretto(*submit, "--wait", "--", *command, "-o", self.url + "/m/b.model", timeout=180)  # the second time nothing is sent
        self.assertIn("it is there", r.err)
        self.assertEqual(self.names("/user/%s/.stretto" % user()), staged)
        self.same_model("hand.model", os.path.basename(self.fetch("/m/b.model", "b.model")), "the second time")

    def mkdir(self, path):
        request = urllib.request.Request("http://%s/webhdfs/v1%s?op=MKDIRS&user.name=%s" % (self.url[7:], path, user()), method="PUT")
        urllib.request.urlopen(request, timeout=20).close()

    def test_a_program_that_is_not_on_the_nodes(self):
        """Without --stage: one sentence with the remedy, and the application is gone."""
        r = self.stretto("submit", "--on", "yarn", "--occupancy", "off", "--wait", "--", *SHORT, "-o", "n.model", status=None, timeout=120)
        self.assertEqual(r.status, 8, r.err)
        self.assertRegex(r.err, r"error\[E805\] a node of the cluster cannot start the program: .*stretto: No such file or directory")
        self.assertRegex(r.err, r"fix: --stage hdfs://NAMENODE:9870")
        self.yarn.wait(lambda: not self.yarn.ask("cluster/apps?states=RUNNING,ACCEPTED")["apps"], 60, "the application goes on")

    def test_what_cannot_be_staged(self):
        self.write("air.csv", whole(AIR))
        command = ["train", "air.csv", *TRAIN[2:]]
        for options, words, said in ((["--stage", "folder"], command, '"folder" is no folder of HDFS'),
                                     (["--stage", self.url], [*command, "--plot", "p.svg"], "p.svg would be a file of a container"),
                                     (["--stage", "hdfs://127.0.0.1:1"], command, "the name node cannot be used")):
            os.environ["STRETTO_HDFS_PATIENCE"] = "1"
            self.addCleanup(os.environ.pop, "STRETTO_HDFS_PATIENCE", None)
            r = self.stretto("submit", "--on", "yarn", *options, "--", *words, "-o", self.url + "/n.model", status=None)
            self.assertNotEqual(r.status, 0)
            self.assertIn(said, r.err)
            self.assertEqual(r.err.count("error["), 1, r.err)
            self.assertIn("fix:", r.err)

    def test_a_container_is_lost(self):
        """Killed together with its folder: the next one begins with what is in HDFS."""
        self.write("air.csv", whole(AIR))
        command = [{AIR: "air.csv", "12000": "8000"}.get(w, w) for w in LONG]
        self.stretto(*command, "--threads", "1", "-o", "hand.model", timeout=170)
        self.mkdir("/l")
        for member in (0, 1)[:times(1, 2)]:  # t_join.py loses both, on a stand-in for HDFS
            name = "m%d.model" % member
            job = self.start("submit", "--on", "yarn", "--stage", self.url, "--nodes", "2", "--occupancy", "off", "--wait", "--", *command, "-o",
                             self.url + "/l/" + name)
            self.yarn.wait(lambda: [n for n in self.names("/l/%s.run/checkpoints" % name) if n.endswith(".ckpt")], 90, "no checkpoint")
            os.kill(list(members(self.yarn.folder, member))[0], signal.SIGKILL)
            out, err = job.communicate(timeout=170)
            self.assertEqual(job.returncode, 0, err.decode())
            self.fetch("/l/" + name, name)
            self.same_model("hand.model", name, "member %d lost" % member)
            self.assertEqual([n for n in self.names("/l/%s.run" % name) if n == "checkpoints"], [])


class Losses(Yarn):
    """-9 to each part of a running job."""
    def lost(self, what, kill, nodes=2):
        whole_model = os.path.join(self.folder, "whole.model")
        if not os.path.exists(whole_model):
            self.stretto(*LONG, "--threads", "1", "-o", whole_model, timeout=170)
        name = what.replace(" ", "-") + ".model"
        job = self.start("submit", "--on", "yarn", "--nodes", str(nodes), "--occupancy", "off", "--wait", "--", *LONG, "-o", name)
        self.yarn.wait(lambda: glob.glob(self.path(name + ".run/checkpoints/*.ckpt")), 60, "no checkpoint")
        kill()
        out, err = job.communicate(timeout=170)
        self.assertEqual(job.returncode, 0, "%s: %s" % (what, err.decode()))
        self.same_model(whole_model, name, what)
        self.nothing_left()

    def end(self, pid):
        os.kill(pid, signal.SIGKILL)

    def test_container(self):
        for k in range(times(1, 20)):
            self.lost("container %d" % k, lambda: self.end(list(self.members(1))[0]))

    def test_container_of_the_supervisor(self):
        for k in range(times(1, 20)):
            self.lost("first container %d" % k, lambda: self.end(list(self.members(0))[0]))

    def test_application_master(self):
        def kill():
            self.assertEqual(subprocess.run(["pkill", "-9", "-f", "service.ServiceMaster.*" + self.folder]).returncode, 0)
        for k in range(times(1, 20)):
            self.lost("master %d" % k, kill)

    def test_node(self):
        """The NodeManager dies and its container goes on: YARN starts another one, and the first gives way."""
        def kill():
            pid = list(self.members(1))[0]
            host = [v for v in whole("/proc/%d/environ" % pid).split("\0") if v.startswith("NM_HOST=")][0]
            self.node = int(host.rsplit(".", 1)[1]) - 1
            self.end(self.yarn.pid("nm%d" % self.node))
        for k in range(times(1, 20)):
            self.lost("node %d" % k, kill)
            self.yarn.start_node(self.node)
            self.yarn.wait(lambda: self.yarn.ask("cluster/metrics")["clusterMetrics"]["activeNodes"] == NODES, 60, "the node does not come back")

    def test_resource_manager(self):
        def kill():
            self.end(self.yarn.pid("rm"))
            self.yarn.start_manager()
        self.lost("resource manager", kill)


if __name__ == "__main__":
    e2e.main()
