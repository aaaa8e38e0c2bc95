"""timing.py - what is measured by the clock: parts `straggler`, `network`, `hogwild` and `path`.  Before other programs with --first."""
import datetime
import os
import random
import shutil
import subprocess
import tempfile
import time

from common import DATA, Failed, MPI, ROOT, machine, middle, run, say, table, train, verdict
from losses import WIDE, options

SLOW = "1:0:slow(2)"
HOSTS = str(ROOT / "tests" / "netns" / "hosts.sh")


def shape(b, t, h, steps, every):
    """As bench/ranks: one input, horizon 24."""
    return ["--target", "height", "--preset", "short", "--horizon", "24", "--context", str(t), "--segment", "1", "--decoder", "direct", "--hidden",
            str(h), "--batch", str(b), "--steps", str(steps), "--calendar", "no", "--base", "last", "--no-guard", "--members", "1", "--dropout", "0",
            "--validate-every", str(every), "--threads", "1"]


def sample(args, folder):
    run([args.program, "sample", "tides", "--rows", "4000", "-o", folder + "/t.csv"])
    return folder + "/t.csv"


# ------------------------------------------------------------------ one slow rank -------------------------------------------------

def straggler_part(args):
    stores = [("sync, --balance off", ["--store", "sync", "--parallel", "data_sync", "--balance", "off"]), ("asp", ["--store", "asp"]), ("auto", ["--store", "auto"]),
              ("ssp:4", ["--store", "ssp:4"]), ("sync, --balance auto", ["--store", "sync", "--parallel", "data_sync"])]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = sample(args, folder)
        for (b, t, h), every, ways in (((256, 48, 128), 60, (False, True)), ((256, 48, 256), 40, (False,))):
            for mpi in ways:
                got = {name: [] for name, _ in stores}
                for turn in range(args.turns):
                    for name, more in stores:
                        r = train(args, data, [*shape(b, t, h, 3 * every, every), *more], 2, mpi, args.front, {"STRETTO_FAULT": SLOW})
                        got[name].append(middle(r["rate"][1:]))
                    say("straggler", (b, t, h), mpi, {k: v[-1] for k, v in got.items()})
                for name, _ in stores:
                    over = middle([a / c for a, c in zip(got[name], got[stores[0][0]])])
                    rows.append(["%d, %d, %d" % (b, t, h), "Open MPI" if mpi else "threads", name, "%.0f" % middle(got[name]), "%.2fx" % over,
                                 "%.0f %%" % (100 * over / 1.5), verdict(over >= 0.9 * 1.5) if name in ("asp", "ssp:4") else "-"])
    return "\n".join(["## One slow rank", "", machine(args, "medians of %d turns%s" % (args.turns, first(args))) +
                      " Two ranks of one thread; rank 1 sleeps after each step as long as it took (`STRETTO_FAULT=%s`). Windows a second behind the first "
                      "interval between validations, over those of `--store sync --balance off` of the same turn; 1.5x is the ideal." % SLOW, "",
                      table(["B, T, H", "ranks", "store", "windows/s", "over sync", "of the ideal 1.5x", "bar 90 %"], rows), ""])


def first(args):
    return ", before other programs (nice -15)" if args.first else ""


# ------------------------------------------------------------------ lines between hosts -------------------------------------------

class Hosts:
    """Two network namespaces: by line.c (rate and delay), or by hosts.sh (rate alone where the kernel has no netem)."""

    def __init__(self, args, folder, rate, delay, own):
        self.name, self.own, self.line, self.folder = "ststore%d" % os.getpid(), own, None, folder
        self.net = "78" if own else "77"
        self.device = "l0" if own else "e0"
        self.args, self.rate, self.delay = args, rate, delay

    def __enter__(self):
        if not self.own:
            out, _ = run([HOSTS, "up", self.name, "2", "%ggbit" % self.rate, "%gus" % (1e6 * self.delay)])
            self.says = out.strip()
            return self
        compile_c("gcc", "line.c", self.folder + "/line", "-pthread")
        for k in (1, 2):
            run(["ip", "netns", "add", "%s-%d" % (self.name, k)])
        front = ["chrt", "-r", "30"] if self.args.first else []
        self.line = subprocess.Popen([*front, self.folder + "/line", self.name + "-1", self.name + "-2", "%g" % (1e9 * self.rate), "%g" % self.delay],
                                     stdout=subprocess.PIPE, text=True)
        if self.line.stdout.readline() != "ready\n":
            self.__exit__()
            raise Failed("no TUN device can be made here")
        mtu = 9000 if self.rate <= 1 else 65000
        for k in (1, 2):
            space = "%s-%d" % (self.name, k)
            run(["ip", "-n", space, "link", "set", "l0", "mtu", mtu, "up"])
            run(["ip", "-n", space, "addr", "add", "10.77.78.%d/24" % k, "dev", "l0"])
            run(["ip", "-n", space, "link", "set", "lo", "up"])
        self.says = "emulated: 2 hosts, %g Gb/s, %g us each way, frames of %d (bench/stores/line.c)" % (self.rate, 1e6 * self.delay, mtu)
        return self

    def __exit__(self, *_):
        if self.line:
            self.line.kill()
            self.line.wait()
        subprocess.run([HOSTS, "down", self.name], capture_output=True)

    def train(self, data, words):
        agent = self.folder + "/agent.sh"
        with open(agent, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec %s agent %s \"$@\"\n" % (HOSTS, self.name))
        os.chmod(agent, 0o755)
        front = [HOSTS, "agent", self.name, "10.77.%s.1" % self.net, *self.args.front, "mpirun.openmpi", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
                 agent, "--mca", "plm_rsh_no_tree_spawn", "1", "--host", ",".join("10.77.%s.%d:1" % (self.net, k) for k in (1, 2)), "-n", "2",
                 *self.args.front]
        env = {"OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_btl_tcp_if_include": self.device, "OMPI_MCA_oob_tcp_if_include": self.device}
        return train(self.args, data, words, 1, False, front, env, 240)


def compile_c(compiler, source, out, *more):
    run([compiler, "-std=c17", "-O2", "-o", out, ROOT / "bench" / "stores" / source, *more])


LINES = [(1, 1e-3, True), (10, 50e-6, False), (25, 50e-6, False)]
WIRES = [("none, messages of the plan", ["--store", "sync", "--parallel", "data_sync"], 160), ("none, store", ["--granularity", "1step", "--store", "sync"], 160),
         *((c, ["--store", "sync", "--codec", c], 160) for c in ("bf16", "int8", "sign", "powersgd:4")), ("topk:0.01", ["--store", "sync", "--codec", "topk:0.01"], 400)]


def network_part(args):
    data, text = DATA / "ett" / "ETTh1.csv", []
    for rate, delay, own in LINES:
        rows, got = [], {name: [] for name, _, _ in WIRES}
        with tempfile.TemporaryDirectory() as folder, Hosts(args, folder, rate, delay, own) as hosts:
            for turn in range(args.turns):
                for name, more, steps in WIRES:
                    try:
                        r = hosts.train(data, [*options(WIDE, steps, 1), *more, "--validate-every", str(steps // 2)])
                        got[name].append(1e3 * 32 / r["rate"][-1])
                        say("network %g Gb/s, %s: %.1f ms, %s" % (rate, name, got[name][-1], r["fewer"]))
                    except Failed as why:
                        say(why)
            says = hosts.says
        plan, store = middle(got[WIRES[0][0]]), middle(got[WIRES[1][0]])
        best = min((middle(got[name]) for name, _, _ in WIRES[2:] if got[name]), default=None)
        for name, _, _ in WIRES:
            ms = middle(got[name])
            rows.append([name, "%.1f" % ms, "%.2fx" % (store / ms), "%.2fx" % (plan / ms),
                         verdict(min(store, plan) / ms >= 3) if ms == best and rate == 1 else "-"] if ms else [name, "failed", "-", "-", "-"])
        text += ["### %g Gb/s, %g us" % (rate, 1e6 * delay), "", says[0].upper() + says[1:] + ".", "",
                 table(["codec", "ms a step", "over none, store", "over none, plan", "bar 3x of the best"], rows), ""]
    return "\n".join(["## Emulated lines", "", machine(args, "medians of %d turns%s" % (args.turns, first(args))) +
                      " Emulated hosts: two network namespaces on the same cores, one rank of one thread each, Open MPI over TCP. LSTM of H = 512 with "
                      "24 inputs, T = 4, batches of 32: 1.2 million weights. Milliseconds of a step in the second half of the run, from windows a second.", "",
                      *text])


# ------------------------------------------------------------------ threads without locks -----------------------------------------

def shops(folder, values=30000, rows=60000):
    """A row a minute, each of another shop."""
    path, r, begin = "%s/shops.csv" % folder, random.Random(7), datetime.datetime(2020, 1, 1)
    with open(path, "w", encoding="utf-8") as f:
        f.write("time,shop,height\n")
        for k in range(rows):
            f.write("%s,s%d,%.3f\n" % (begin + datetime.timedelta(minutes=k), r.randrange(values), r.random()))
    return path


def hogwild_part(args):
    ways = [("1 thread", 1, ["--threads", "1", "--parallel", "serial"]), ("2 threads, hogwild", 1, ["--threads", "2", "--store", "hogwild"]),
            ("2 threads, hogwild:64", 1, ["--threads", "2", "--store", "hogwild:64"]), ("2 processes of 1 thread", 2, ["--threads", "1", "--parallel", "serial"])]
    got = {name: [] for name, _, _ in ways}
    with tempfile.TemporaryDirectory() as folder:
        data = shops(folder)
        words = [*shape(64, 24, 32, 1200, 400)[:-2], "--cat", "shop", "--test", "1%", "--validation", "1%"]
        for turn in range(args.turns):
            for name, n, more in ways:
                got[name].append(together(args, data, [*words, *more], n))
            say("hogwild", {k: v[-1] for k, v in got.items()})
    one = got["1 thread"]
    over = {name: middle([a / b for a, b in zip(got[name], one)]) for name in got}
    striped = middle([a / b for a, b in zip(got["2 threads, hogwild:64"], got["2 threads, hogwild"])])
    bars = {"2 threads, hogwild": "1.8x: " + verdict(over["2 threads, hogwild"] >= 1.8),
            "2 threads, hogwild:64": "0.7 of racy: %.2f, %s" % (striped, verdict(striped >= 0.7))}
    rows = [[name, "%.0f" % middle(got[name]), "%.2fx" % over[name], bars.get(name, "the ceiling" if "processes" in name else "-")] for name, _, _ in ways]
    return "\n".join(["## Hogwild", "", machine(args, "medians of %d turns%s" % (args.turns, first(args))) +
                      " A category of 30000 values, another one at every row, an embedding of 16 floats a value; B, T, H = 64, 24, 32 (`bench/ranks/run.py`). "
                      "Windows a second behind the first of three intervals between validations, over one thread in the same turn. Two processes that "
                      "share nothing show what the two cores give.", "", table(["what", "windows/s", "over 1 thread", "bar"], rows), ""])


def together(args, data, words, n):
    """Windows a second of n trainings side by side, together."""
    children, folders = [], [tempfile.mkdtemp(prefix="stretto-stores-") for _ in range(n)]
    for folder in folders:
        command = [*args.front, args.program, "train", data, *words, "--progress", "none", "--verbose", "-o", folder + "/m.model"]
        children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                         env=dict(os.environ, **MPI), start_new_session=True))
    try:
        from common import read_run
        said = [child.communicate(timeout=300)[1] for child in children]
        if any(child.returncode for child in children):
            raise Failed(said[0][-2000:])
        return sum(middle(read_run(folder, words)["rate"][1:]) for folder, words in zip(folders, said))
    finally:
        for child, folder in zip(children, folders):
            if child.poll() is None:
                child.kill()
                child.wait()
            shutil.rmtree(folder, True)


# ------------------------------------------------------------------ the way to a server -------------------------------------------

def path_part(args):
    program, rows = str(args.build / "bench" / "stores" / "bench_store_path"), []
    front0 = ["chrt", "-r", "20"] if args.first else []  # two threads that spin, on two cores: nobody waits for a slice to end
    spin = {"OMPI_MCA_mpi_yield_when_idle": "0"}  # MPI at its best: it spins
    with tempfile.TemporaryDirectory() as folder:
        compile_c("mpicc.openmpi", "mpi_pingpong.c", folder + "/pingpong")
        mpi = [*front0, "mpirun.openmpi", "-n", "2"]
        for floats in (16, 1 << 20, 1 << 22):
            got = {"copy": [], "threads": [], "Open MPI": [], "pingpong": []}
            for turn in range(args.turns):
                for name, front in (("threads", front0), ("Open MPI", [*mpi, *front0])):
                    out, _ = run([*front, program, floats, "0.1"], 120)
                    words = out.split()
                    got["copy"].append(1e6 * float(words[2]))
                    got[name].append(1e6 * float(words[5]))
                out, _ = run([*mpi, *front0, folder + "/pingpong", 4 * floats, "0.1"], 120, spin)
                got["pingpong"].append(1e6 * float(out.split()[2]))
                time.sleep(0.2)
                say("path", floats, {k: v[-1] for k, v in got.items()})
            copy, ping = middle(got["copy"]), middle(got["pingpong"])
            for name in ("threads", "Open MPI"):
                us = middle(got[name])
                small = floats == 16
                rows.append([4 * floats, name, "%.2f" % us, "%.2f" % (4 * copy), "%.2f" % ping, "%.2f" % (us / ping), "-" if small else "%.2f" % (4 * copy / us),
                             ("2x ping-pong: " + verdict(us <= 2 * ping)) if small else ("0.8 of the copy limit: " + verdict(4 * copy / us >= 0.8)) if floats == 1 << 20 else "-"])
    return "\n".join(["## The way to a server", "", machine(args, "medians of %d turns%s" % (args.turns, ", before other programs (SCHED_RR)" if args.first else "")) +
                      " `bench_store_path`: a ticket, a pull and a push of the vector between a worker and a server on two ranks. The copy limit is half of "
                      "the bandwidth of memcpy, in and out of memory that both share: four copies of the vector by one thread, there and back, which lie in "
                      "the caches of one core where the vector is small; ping-pong is a message of the same bytes there and back by Open MPI "
                      "(`bench/stores/mpi_pingpong.c`).", "",
                      table(["bytes", "ranks", "pull + push, us", "four copies, us", "MPI ping-pong, us", "over ping-pong", "of the copy limit", "bar"], rows), ""])
