"""workers.py - the processes that run.py and rounds.py give orders to: bench_slices, and PyTorch (peer.py)."""
import os
import pathlib
import select
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# glibc: never give memory back, never map a block on its own.  Stock PyTorch maps fresh pages at every step.
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 34), "MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_TOP_PAD_": str(1 << 28)}
SESSION = ("OMP_", "GOMP_", "MKL_", "MALLOC_", "STRETTO_", "ONEDNN_", "DNNL_")  # variables that could help or hinder one side


class Failed(Exception):
    pass


class Worker:
    def __init__(self, command, realtime=False, env=()):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(SESSION)} | dict(env)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean, bufsize=1)
        if realtime:
            os.sched_setscheduler(self.process.pid, os.SCHED_RR, os.sched_param(1))  # threads to come inherit it

    def ask(self, line, seconds=300):
        """One order; the words of its answer."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            raise Failed("the process has ended") from None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not ready:
            self.process.kill()
            raise Failed(f"no answer to \"{line.split()[0]}\" within {seconds} s")
        word, *rest = self.process.stdout.readline().split() or ["the process has ended"]
        if word != "ok":
            raise Failed(" ".join([word, *rest]))
        return rest

    def close(self):
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def ours(build, realtime=False):
    return Worker([str(build / "bench_slices")], realtime)


def peer(threads, realtime=False):
    cores = os.cpu_count() or 1
    first = cores - 1 if threads == 1 else 0
    env = KEEP | {"OMP_NUM_THREADS": str(threads), "GOMP_CPU_AFFINITY": f"{first}-{first + threads - 1}"}
    return Worker([sys.executable, str(HERE / "peer.py"), str(threads)], realtime, env)
