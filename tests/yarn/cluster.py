#!/usr/bin/env python3
"""cluster.py up FOLDER [NODES] | down FOLDER | jars: a real YARN on this machine, for tests and for a first try (docs/yarn.md).

One ZooKeeper, one ResourceManager with the REST interface of YARN services, and NODES NodeManagers, which YARN takes for hosts: number i is
127.0.0.(i+1).  Needs Java 17 and, once, Maven, which copies the jars of Hadoop (115 MB) into build/hadoop (`jars` does no more than that).  All that the processes write lies in
FOLDER; FOLDER/attributes is an executable that a test may put there: NodeManagers call it as `attributes HOST` every second.
Prints the address for STRETTO_YARN.  Exit status 77: Java or the jars cannot be had here."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
JARS = os.path.join(ROOT, "build", "hadoop")
JAVA = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k", "--add-opens=java.base/java.lang=ALL-UNNAMED"]  # Guice 4 on Java 17
LABEL = "fast"  # that queue default may use; nodes have none until label() gives it to one
MEMORY, CORES = 4096, 4  # MiB and cores of a node
NODE_LOST, MASTER_LOST = 10000, 40000  # ms of silence
LOG = """log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


class Absent(Exception):
    """Why there can be no cluster here."""


def jars():
    """The folder of jars; Maven fetches them once."""
    done = os.path.join(JARS, "complete")
    if os.path.exists(done):
        return JARS
    for tool in ("java", "mvn"):
        if not shutil.which(tool):
            raise Absent("there is no %s here (Debian: packages openjdk-17-jre-headless, maven)" % tool)
    shutil.rmtree(JARS, True)
    said = subprocess.run(["mvn", "-q", "-B", "-f", os.path.join(ROOT, "tests", "hadoop", "pom.xml"), "dependency:copy-dependencies",
                           "-DoutputDirectory=" + JARS, "-DincludeScope=runtime"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=900)
    if said.returncode != 0:
        raise Absent("Maven cannot fetch Hadoop: " + said.stdout.decode(errors="replace")[-400:])
    with open(done, "w"):
        pass
    return JARS


def xml(values):
    lines = ["  <property><name>%s</name><value>%s</value></property>" % pair for pair in values.items()]
    return "<?xml version=\"1.0\"?>\n<configuration>\n%s\n</configuration>\n" % "\n".join(lines)


class Yarn:
    def __init__(self, folder, nodes=2, port=18030, hdfs="", hide=()):
        """hdfs: hdfs://HOST:PORT of a name node (RPC), the file system of the cluster in place of that of this host.  hide: folders that the NodeManagers and
        their containers see empty, as on other hosts; they run in a mount namespace of their own (unshare)."""
        self.folder, self.nodes, self.port, self.hdfs, self.hide = os.path.abspath(folder), nodes, port, hdfs, list(hide)
        self.url = "http://127.0.0.1:%d" % (port + 5)

    def host(self, i):
        return "127.0.0.%d" % (i + 1)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    # ---- configuration ----------------------------------------------------------------------------------------------------
    def core(self):
        user = os.environ.get("USER") or subprocess.run(["id", "-un"], stdout=subprocess.PIPE).stdout.decode().strip()
        return {"fs.defaultFS": self.hdfs or "file:///", "hadoop.tmp.dir": self.path("tmp"), "hadoop.registry.zk.quorum": "127.0.0.1:%d" % (self.port + 6),
                "hadoop.proxyuser.%s.hosts" % user: "*", "hadoop.proxyuser.%s.groups" % user: "*", "hadoop.http.staticuser.user": user}

    def manager(self):
        rm = "yarn.resourcemanager."
        return {rm + "hostname": "127.0.0.1", rm + "scheduler.address": "127.0.0.1:%d" % self.port,
                rm + "resource-tracker.address": "127.0.0.1:%d" % (self.port + 1), rm + "address": "127.0.0.1:%d" % (self.port + 2),
                rm + "admin.address": "127.0.0.1:%d" % (self.port + 3), rm + "webapp.address": "127.0.0.1:%d" % (self.port + 5),
                rm + "placement-constraints.handler": "scheduler", rm + "nodemanagers.heartbeat-interval-ms": 200,
                rm + "am.max-attempts": 4, rm + "recovery.enabled": "true", rm + "store.class":
                "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
                rm + "fs.state-store.uri": "file://" + self.path("state"),
                "yarn.node-labels.enabled": "true", "yarn.node-labels.fs-store.root-dir": "file://" + self.path("node-labels"),
                "yarn.webapp.api-service.enable": "true", "yarn.service.base.path": self.hdfs + "/services" if self.hdfs else "file://" + self.path("services"),
                "yarn.service.am-resource.memory": 256, "yarn.service.am.java.opts": "-Xmx192m " + " ".join(JAVA),
                "yarn.service.readiness-check-interval.seconds": 1, "yarn.node-attribute.fs-store.root-dir": "file://" + self.path("node-attributes"),
                "yarn.scheduler.minimum-allocation-mb": 64, "yarn.scheduler.maximum-allocation-mb": MEMORY,
                "yarn.am.liveness-monitor.expiry-interval-ms": MASTER_LOST, "yarn.nm.liveness-monitor.expiry-interval-ms": NODE_LOST}

    def manager_of_node(self, host):
        nm, at = "yarn.nodemanager.", self.path(host)
        out = {nm + "hostname": host, nm + "address": host + ":0", nm + "localizer.address": host + ":0", nm + "webapp.address": host + ":0",
               nm + "collector-service.address": host + ":0", nm + "local-dirs": at + "/local", nm + "log-dirs": at + "/logs",
               nm + "resource.memory-mb": MEMORY, nm + "resource.cpu-vcores": CORES, nm + "vmem-check-enabled": "false",
               nm + "disk-health-checker.enable": "false", nm + "delete.debug-delay-sec": 600,
               nm + "env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,TZ", nm + "admin-env": "CLASSPATH=%s/*" % JARS}
        if os.path.exists(self.path("attributes")):
            provider = nm + "node-attributes."
            out.update({provider + "provider": "script", provider + "provider.script.path": self.path("attributes"),
                        provider + "provider.script.opts": host, provider + "provider.fetch-interval-ms": 1000,
                        provider + "resync-interval-ms": 1000})
        return out

    def configure(self, name, more):
        at, root = self.path("conf." + name), "yarn.scheduler.capacity."
        os.makedirs(at, exist_ok=True)
        queues = {root + "root.queues": "default,small", root + "root.default.capacity": 90, root + "root.default.maximum-capacity": 100,
                  root + "root.small.capacity": 10, root + "root.small.maximum-capacity": 10, root + "maximum-am-resource-percent": 0.9,
                  root + "root.accessible-node-labels": LABEL, root + "root.accessible-node-labels.%s.capacity" % LABEL: 100,
                  root + "root.default.accessible-node-labels": LABEL, root + "root.default.accessible-node-labels.%s.capacity" % LABEL: 100,
                  root + "root.small.accessible-node-labels": " ",
                  root + "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
                  root + "node-locality-delay": -1, root + "per-node-heartbeat.multiple-assignments-enabled": "false"}
        for file, text in (("core-site.xml", xml(self.core())), ("yarn-site.xml", xml(dict(self.manager(), **more))),
                           ("capacity-scheduler.xml", xml(queues)), ("log4j.properties", LOG), ("yarnservice-log4j.properties", LOG)):
            with open(os.path.join(at, file), "w", encoding="utf-8") as f:
                f.write(text)
        return at

    # ---- processes --------------------------------------------------------------------------------------------------------
    def apart(self):
        """The words that start a process which does not see the hidden folders."""
        script = 'n=$1; shift; while [ "$n" -gt 0 ]; do mount -t tmpfs tmpfs "$1" || exit 1; shift; n=$((n - 1)); done; exec "$@"'
        return ["unshare", "-m", "--", "sh", "-c", script, "sh", str(len(self.hide)), *self.hide] if self.hide else []

    def daemon(self, name, conf, heap, *words, front=()):
        java = os.path.realpath(shutil.which("java"))
        env = dict(os.environ, JAVA_HOME=os.path.dirname(os.path.dirname(java)), HADOOP_CONF_DIR=conf, HADOOP_HOME=self.folder)
        with open(self.path(name + ".log"), "ab") as log:
            child = subprocess.Popen([*front, "java", "-Xmx" + heap, *JAVA, "-Dhadoop.home.dir=" + self.folder, "-cp", "%s:%s/*" % (conf, JARS), *words],
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True)
        with open(self.path(name + ".pid"), "w") as f:
            f.write(str(child.pid))
        return child.pid

    def pid(self, name):
        with open(self.path(name + ".pid")) as f:
            return int(f.read())

    def start_manager(self):
        self.daemon("rm", self.configure("rm", {}), "384m", "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager")

    def start_node(self, i):
        host = self.host(i)
        for part in ("local", "logs"):
            os.makedirs(self.path(host, part), exist_ok=True)
        self.daemon("nm%d" % i, self.configure(host, self.manager_of_node(host)), "256m",
                    "org.apache.hadoop.yarn.server.nodemanager.NodeManager", front=self.apart())

    def up(self):
        jars()
        for part in ("services", "node-attributes", "node-labels", "zk", "state"):
            os.makedirs(self.path(part), exist_ok=True)
        with open(self.path("zoo.cfg"), "w") as f:
            f.write("tickTime=2000\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n" % (self.path("zk"), self.port + 6))
        self.daemon("zk", self.configure("rm", {}), "96m", "org.apache.zookeeper.server.ZooKeeperServerMain", self.path("zoo.cfg"))
        self.start_manager()
        for i in range(1, self.nodes + 1):
            self.start_node(i)
        self.wait(lambda: self.ask("cluster/metrics")["clusterMetrics"]["activeNodes"] == self.nodes, 120, "the nodes are not active")

    def down(self):
        for file in glob.glob(self.path("*.pid")):
            try:
                with open(file) as f:
                    os.killpg(int(f.read()), signal.SIGKILL)
            except (OSError, ValueError):
                pass
            os.unlink(file)
        mark = ("LOG_DIRS=" + self.folder + "/").encode()  # containers that a killed NodeManager has left
        for environ in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(environ, "rb") as f:
                    ours = any(v.startswith(mark) for v in f.read().split(b"\0"))
                if ours:
                    os.kill(int(environ.split("/")[2]), signal.SIGKILL)
            except OSError:
                pass

    # ---- what the cluster says --------------------------------------------------------------------------------------------
    def ask(self, path):
        with urllib.request.urlopen("%s/ws/v1/%s" % (self.url, path), timeout=10) as r:
            return json.loads(r.read())

    def tell(self, path, what):
        request = urllib.request.Request("%s/ws/v1/%s" % (self.url, path), json.dumps(what).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as r:
            r.read()

    def set_labels(self, i, labels):
        node = [n["id"] for n in self.ask("cluster/nodes")["nodes"]["node"] if n["id"].startswith(self.host(i) + ":")][0]
        self.tell("cluster/replace-node-to-labels", {"nodeToLabels": [{"nodeId": node, "labels": labels}]})
        self.wait(lambda: [n.get("nodeLabels", []) for n in self.ask("cluster/nodes")["nodes"]["node"] if n["id"] == node] == [labels], 20, "the label")

    def label(self, i):
        """Gives a node the label; others may use it while it is idle."""
        self.tell("cluster/add-node-labels", {"nodeLabelInfo": [{"name": LABEL, "exclusivity": "false"}]})
        self.set_labels(i, [LABEL])

    def unlabel(self, *nodes):
        for i in nodes:
            self.set_labels(i, [])

    def wait(self, true, seconds, why):
        end = time.monotonic() + seconds
        while True:
            try:
                if true():
                    return
            except (OSError, KeyError, ValueError, TypeError):
                pass
            if time.monotonic() > end:
                raise RuntimeError(why + " within %d s; logs: %s/*.log" % (seconds, self.folder))
            time.sleep(0.2)


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("up", "down", "jars") or (sys.argv[1] != "jars" and len(sys.argv) < 3):
        sys.exit(__doc__)
    if sys.argv[1] == "jars":
        try:
            print(jars())
        except Absent as why:
            print("skipped: %s" % why)
            sys.exit(77)
        return
    y = Yarn(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    if sys.argv[1] == "down":
        y.down()
        return
    os.makedirs(y.folder, exist_ok=True)
    try:
        y.up()
    except Absent as why:
        print("skipped: %s" % why)
        sys.exit(77)
    print("export STRETTO_YARN=%s" % y.url)


if __name__ == "__main__":
    main()
