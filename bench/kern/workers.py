"""workers.py - the processes that run.py interleaves: ours (bench_step --serve) and PyTorch's (peer.py), orders on a pipe.

Pinning: with n threads, thread i on processor i (one thread: on the last processor, away from where interrupts tend to land).  PyTorch's
OpenMP threads are pinned by GOMP_CPU_AFFINITY, ours by themselves.  libgomp's threads spin for ~20 ms after a parallel region, so whoever
comes after one with several threads waits for that.

realtime: every contender alike runs before all other programs of the machine (SCHED_RR), which makes quiet samples out of a busy machine."""
import os
import pathlib
import select
import subprocess
import sys
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
# glibc: never give memory back, never map a block on its own.  Stock PyTorch maps fresh pages at every step.
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 34), "MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_TOP_PAD_": str(1 << 28)}
SPIN = 0.025  # seconds


class Failed(Exception):
    pass


class Worker:
    def __init__(self, kind, threads, build, realtime=False):
        self.kind, self.threads = kind, threads
        cores = os.cpu_count() or 1
        first = cores - 1 if threads == 1 else 0
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "MKL_", "MALLOC_", "STRETTO_", "ONEDNN_", "DNNL_"))}
        if kind == "ours":
            command = [str(build / "bench_step"), "--serve", "--threads", str(threads), "--cpu", str(first)]
        else:
            command = [sys.executable, str(HERE / "peer.py"), str(build / "bench_calib.so"), str(threads), "1" if kind == "kept" else "0"]
            env |= {"OMP_NUM_THREADS": str(threads), "GOMP_CPU_AFFINITY": f"{first}-{first + threads - 1}"} | (KEEP if kind == "kept" else {})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, bufsize=1)
        if realtime:
            os.sched_setscheduler(self.process.pid, os.SCHED_RR, os.sched_param(1))  # threads to come inherit it

    def ask(self, line, seconds=120):
        """One order, one answer without its `ok`; raises Failed with the sentence that came instead."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            raise Failed(f"{self.kind}: the process has ended") from None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not ready:
            self.process.kill()
            raise Failed(f"{self.kind}: no answer to \"{line.split()[0]}\" within {seconds} s; the process was stopped")
        answer = self.process.stdout.readline().strip()
        if not answer:
            self.process.wait()
            error = " ".join(self.process.stderr.read().split()[-30:])
            raise Failed(f"{self.kind}: the process has ended (status {self.process.returncode}) {error}")
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise Failed(f"{word}: {rest}" if word != "absent" else f"absent: {rest}")
        return rest

    def close(self):
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Team:
    """All processes of one generation.  Started together, so that PyTorch's slow imports overlap."""

    def __init__(self, build, wanted, realtime=False):
        self.how = (build, realtime)
        self.worker = {w: Worker(*w, *self.how) for w in sorted(wanted)}
        self.last = None

    def revive(self):
        """New processes for those that have ended."""
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
    """The folders of cases, made when first asked for."""

    def __init__(self, root):
        self.root, self.made = pathlib.Path(root), {}

    def folder(self, row):
        key = " ".join(w for w in row.data().split() if not w.startswith("prec="))
        if key not in self.made:
            folder = self.root / str(len(self.made))
            folder.mkdir()
            self.made[key] = make_data(folder, row)
        return self.made[key]
