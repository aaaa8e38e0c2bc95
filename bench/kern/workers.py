"""workers.py - the processes that run.py interleaves: ours (bench_step --serve) and PyTorch's (peer.py), controlled by commands on a pipe.

Pinning: with n threads, thread i on processor i (one thread: on the last processor, away from where interrupts tend to land).  PyTorch's
OpenMP threads are pinned by GOMP_CPU_AFFINITY, ours by themselves.  libgomp's threads spin for ~20 ms after a parallel region, so a process that
runs after one with several threads waits for that.

realtime: every implementation runs with real-time priority (SCHED_RR), which gives undisturbed samples on a busy machine.
isa: of NARROW."""
import pathlib
import sys
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
from peers import KEEP, NARROW, Failed, Process, first_core, pinned  # noqa: E402, F401

SPIN = 0.025  # seconds


class Worker(Process):
    def __init__(self, kind, threads, build, realtime=False, isa=""):
        self.kind, self.threads = kind, threads
        command, env = [sys.executable, str(HERE / "peer.py"), str(build / "bench_calib.so"), str(threads), "1" if kind == "kept" else "0"], {}
        if kind == "ours":
            command = [str(build / "bench_step"), "--serve", "--threads", str(threads), "--cpu", str(first_core(threads))]
        else:
            env = pinned(threads) | (KEEP if kind == "kept" else {})
        super().__init__(command, env | NARROW[isa], realtime, kind)

    def ask(self, line, seconds=120):
        return self.order(line, seconds)


class Team:
    """All processes of one generation.  Started together, so that PyTorch's slow imports overlap."""

    def __init__(self, build, wanted, realtime=False, isa=""):
        self.how = (build, realtime, isa)
        self.worker = {w: Worker(*w, *self.how) for w in sorted(wanted)}
        self.last = None

    def revive(self):
        """Restarts ended processes."""
        for who, worker in self.worker.items():
            if worker.process.poll() is not None:
                self.worker[who] = Worker(*who, *self.how)
                self.worker[who].ask("info", 120)

    def start(self):
        return {w: worker.ask("info", 120) for w, worker in self.worker.items()}

    def ask(self, who, line, seconds=120):
        if self.last and self.last != who and self.last[0] != "ours" and self.last[1] > 1:
            time.sleep(SPIN)
        self.last = who
        return self.worker[who].ask(line, seconds)

    def close(self):
        for worker in self.worker.values():
            worker.close()


# ---------------------------------------------------------------------- data

GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def make_data(folder, row):
    """Weights and inputs of a row as raw f32 files with PyTorch's names."""
    words = dict(w.split("=") for w in row.data().split())
    T, B, I, H = row.size
    layers, dirs, proj, step = row.layers, int(words.get("dirs", 1)), int(words.get("proj", 0)), int(words.get("step", 0))
    G, out, a = GATES[words.get("cell", "lstm")], proj or H, H ** -0.5
    rng = numpy.random.default_rng([T, B, I, H, layers])

    def put(name, *shape, scale):
        rng.uniform(-scale, scale, shape).astype(numpy.float32).tofile(folder / f"{name}.f32")
    for layer in range(layers):
        for suffix in ("", "_reverse")[:dirs]:
            end = f"_l{layer}{suffix}"
            lead = "lstm." if step else ""
            put(f"{lead}weight_ih{end}", G * H, I if layer == 0 else dirs * out, scale=a)
            put(f"{lead}weight_hh{end}", G * H, out, scale=a)
            put(f"{lead}bias_ih{end}", G * H, scale=a)
            put(f"{lead}bias_hh{end}", G * H, scale=a)
            if proj:
                put(f"{lead}weight_hr{end}", proj, H, scale=a)
    put("x", T, B, I, scale=1)
    if step:
        put("head.weight", 1, H, scale=a)
        put("head.bias", 1, scale=a)
        put("target", B, 1, scale=1)
    else:
        put("dy", T, B, dirs * out, scale=1)
    return folder


class Data:
    """The folders of cases, created on first use."""

    def __init__(self, root):
        self.root, self.made = pathlib.Path(root), {}

    def folder(self, row):
        key = " ".join(w for w in row.data().split() if not w.startswith("prec="))
        if key not in self.made:
            folder = self.root / str(len(self.made))
            folder.mkdir()
            self.made[key] = make_data(folder, row)
        return self.made[key]
