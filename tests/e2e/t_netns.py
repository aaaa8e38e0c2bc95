"""t_netns.py - several hosts, emulated: network namespaces of this host with links of a stated rate and delay (tests/netns/hosts.sh),
and Open MPI over TCP between them.  The model is that of one process, bit for bit; a link that is cut in the middle is noticed within
the deadline, the missing rank is named, and the run goes on from its checkpoint.  Emulated: one clock, one set of cores, one file system."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import e2e
from e2e import AIR, Case

HOSTS = os.path.join(e2e.ROOT, "tests", "netns", "hosts.sh")
NAME = "stretto%d" % os.getpid()
DEADLINE = 4  # seconds, where a link is cut; elsewhere the usual minute: all hosts share two cores
NET = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--batch", "40", "--base", "none", "--no-guard", "--threads", "1",
       "--progress", "none"]
SHORT = [*NET, "--steps", "40"]
LONG = [*NET, "--steps", "4000", "--validate-every", "200", "--checkpoint-every", "1s"]


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def forget_the_dead():
    """Hosts of a test that was killed, and could not remove them."""
    listed = subprocess.run(["ip", "netns", "list"], stdout=subprocess.PIPE).stdout.decode()
    for name, pid in set(re.findall(r"(?m)^(stretto(\d+))-", listed)):
        if not os.path.exists("/proc/" + pid):
            subprocess.run([HOSTS, "down", name])


class Netns(Case):
    deadline = 60

    @classmethod
    def setUpClass(cls):
        so = os.path.join(os.path.dirname(os.path.realpath(e2e.PROGRAM)), "..", "src", "comm", "stretto-mpi-openmpi.so")
        if not shutil.which("mpirun.openmpi") or not os.path.exists(so):
            skip("no mpirun of Open MPI, or no plug-in for it")
        if shutil.which("ip"):
            forget_the_dead()
        done = subprocess.run([HOSTS, "up", NAME, "3", "1gbit", "200us"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        print(done.stdout.decode(), end="", flush=True)
        if done.returncode != 0:
            subprocess.run([HOSTS, "down", NAME], stdout=subprocess.DEVNULL)
            if done.returncode == 77:
                sys.exit(77)
            raise RuntimeError("the hosts do not come up")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the hosts end with the test

    @classmethod
    def tearDownClass(cls):
        subprocess.run([HOSTS, "down", NAME], check=True)

    def environment(self, **more):
        return super().environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,vader,tcp",
                                   OMPI_MCA_btl_tcp_if_include="e0", OMPI_MCA_oob_tcp_if_include="e0", STRETTO_DEADLINE=str(self.deadline),
                                   **more)

    def launched(self, hosts, per_host, *args):
        """mpirun on host 1; its agent is what ssh is on a cluster."""
        agent = self.write("agent.sh", "#!/bin/sh\nexec %s agent %s \"$@\"\n" % (HOSTS, NAME))
        os.chmod(agent, 0o755)
        where = ",".join("10.77.77.%d:%d" % (k + 1, per_host) for k in range(hosts))
        return [HOSTS, "agent", NAME, "10.77.77.1", "mpirun.openmpi", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca",
                "plm_rsh_no_tree_spawn", "1", "--host", where, "-n", str(hosts * per_host), e2e.PROGRAM, *map(str, args)]

    def sent(self, host):
        """Bytes that have left a host by its link."""
        path = "/sys/class/net/e0/statistics/tx_bytes"
        return int(subprocess.run(["ip", "netns", "exec", "%s-%d" % (NAME, host), "cat", path], stdout=subprocess.PIPE, check=True).stdout)

    def status_of(self, run):
        records = []
        for path in sorted(glob.glob(self.path(run + "/status/rank-*.json"))):
            with open(path, encoding="utf-8") as f:
                records.append(json.load(f))
        return records

    def records_of(self, run):
        """What ranks wrote down when they failed: their folder goes with the test."""
        text = ""
        for path in sorted(glob.glob(self.path(run + "/flight/*.txt"))):
            text += "\n== %s\n%s" % (os.path.basename(path), self.read(path).decode())
        return text

    def ran(self, command):
        """To its end.  A launcher may wait for a daemon of its own that it lost (ranks have deadlines): then once more."""
        for left in (1, 0):
            try:
                return subprocess.run(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      timeout=100 * e2e.SLOW, env=self.environment())
            except subprocess.TimeoutExpired as e:
                print("mpirun did not end in %.0f s: %s" % (e.timeout, "tried again" if left else "given up"), flush=True)
                if not left:
                    raise

    def test_hosts_give_the_model_of_one(self):
        self.stretto("train", AIR, *SHORT, "-o", "one.model")
        for hosts, per_host in ((3, 1), (2, 2)):
            before = [self.sent(k + 1) for k in range(hosts)]
            done = self.ran(self.launched(hosts, per_host, "train", AIR, *SHORT, "-o", "m.model"))
            self.assertEqual(done.returncode, 0, done.stdout.decode() + self.records_of("m.model.run"))
            self.same_model("one.model", "m.model", "%d hosts, %d ranks each" % (hosts, per_host))
            self.assertEqual({r["host"] for r in self.status_of("m.model.run")}, {"host%d" % (k + 1) for k in range(hosts)})
            for k in range(hosts):  # 40 steps of at least some weights each way
                self.assertGreater(self.sent(k + 1) - before[k], 40 * 4000, "over the link, not by shared memory")

    def wait(self, what, ready, child, seconds):
        limit = time.monotonic() + seconds * e2e.SLOW
        while not ready():
            self.assertLess(time.monotonic(), limit, "waited in vain: " + what)
            if child:
                self.assertIsNone(child.poll(), "the job ended before: %s\n%s" % (what, self.read("err").decode()))
            time.sleep(0.02)

    def test_a_link_that_is_cut(self):
        self.deadline = DEADLINE
        with open(self.path("err"), "wb") as err:
            child = subprocess.Popen(self.launched(3, 1, "train", AIR, *LONG, "-o", "k.model"), cwd=self.dir, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=err, env=self.environment(), start_new_session=True)
        self.addCleanup(lambda: child.poll() is None and (os.killpg(child.pid, signal.SIGKILL), child.wait()))
        self.wait("a checkpoint", lambda: glob.glob(self.path("k.model.run/checkpoints/*.ckpt")), child, 60)
        cut = time.time()
        subprocess.run([HOSTS, "cut", NAME, "3"], check=True)
        self.addCleanup(subprocess.run, [HOSTS, "mend", NAME, "3"], check=True)
        self.wait("every rank's end", lambda: all(r["exit"] >= 0 for r in self.status_of("k.model.run")), None, 100)
        names = re.compile(r"rank [01] has waited ([\d.]+) s (?:for|to send to) rank 2 \(host host3, pid \d+\)")
        self.wait("the name of the missing rank", lambda: names.search(self.read("err").decode()), None, 20)
        said = names.search(self.read("err").decode())
        allowed = float(said.group(1))  # the deadline, or 20 steps where these are slow
        self.assertGreaterEqual(allowed, DEADLINE)
        ends = [r["time"] - cut for r in self.status_of("k.model.run")]
        print("cut: deadline %.1f s, ranks ended after %s s, with %s" % (
            allowed, " ".join("%.1f" % t for t in ends), [r["exit"] for r in self.status_of("k.model.run")]), flush=True)
        self.assertEqual([r["exit"] for r in self.status_of("k.model.run")], [75, 75, 75])
        self.assertLess(min(ends[:2]), allowed + 5 * e2e.SLOW)
        for k in (0, 1):
            record = self.read("k.model.run/flight/rank-%d.txt" % k).decode()
            for word in ("Flight record of rank %d of 3 (host host%d, " % (k, k + 1), "Threads of this process:", "stretto.agent, state",
                         "from 2\n", "worker 0: "):
                self.assertTrue(word in record, "%s is not in\n%s" % (word, record[:3000]))
        self.assertEqual(child.wait(timeout=120 * e2e.SLOW), 75, "mpirun gives the host up (tcp_retries2)")
        print("mpirun ended %.1f s after the cut" % (time.time() - cut), flush=True)
        self.stretto("train", AIR, *LONG, "-o", "whole.model", timeout=120)
        self.stretto("resume", "k.model.run", "--progress", "none", timeout=120)  # on what is left
        self.same_model("whole.model", "k.model", "cut, then resumed")


if __name__ == "__main__":
    e2e.main()
