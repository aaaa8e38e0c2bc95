"""peers.py - shared by the comparisons with PyTorch: its interpreter, and processes controlled by commands on a pipe.

A command is a line, its answer a line that starts with `ok`; any other answer raises Failed with its text."""
import os
import pathlib
import select
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".peers" / "bin" / "python"
# glibc: never give memory back, never map a block on its own.  Stock PyTorch maps fresh pages at every step.
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 34), "MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_TOP_PAD_": str(1 << 28)}
SESSION = ("OMP_", "GOMP_", "MKL_", "MALLOC_", "STRETTO_", "ONEDNN_", "DNNL_")  # variables that could help or hinder one side

# --isa: "avx2" keeps every implementation from wider instructions, for a processor without AVX-512 where none is at hand; "": each its own choice.
NARROW = {"": {}, "avx2": {"STRETTO_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}}


def enter():
    """Restarts the program in the interpreter that has PyTorch; exit status 77 if there is none (bench/peers.sh)."""
    if os.environ.get("STRETTO_IN_PEERS") == "1":
        return
    if not PYTHON.exists():
        print("skipped: there is no PyTorch to measure against; bench/peers.sh gets it")
        sys.exit(77)
    os.execve(PYTHON, [str(PYTHON), *sys.argv], os.environ | {"STRETTO_IN_PEERS": "1"})


def first_core(threads):
    """Thread i of n on processor i; a single one on the last, away from where interrupts tend to land."""
    return (os.cpu_count() or 1) - 1 if threads == 1 else 0


def pinned(threads):
    """Environment that pins the threads of PyTorch's OpenMP."""
    first = first_core(threads)
    return {"OMP_NUM_THREADS": str(threads), "GOMP_CPU_AFFINITY": f"{first}-{first + threads - 1}"}


class Failed(Exception):
    pass


class Process:
    """realtime: runs with real-time priority (SCHED_RR)."""

    def __init__(self, command, env=None, realtime=False, name=""):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(SESSION)} | (env or {})
        self.prefix = f"{name}: " if name else ""
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE if name else None,
                                        text=True, env=clean, bufsize=1)
        if realtime:
            os.sched_setscheduler(self.process.pid, os.SCHED_RR, os.sched_param(1))  # threads to come inherit it

    def order(self, line, seconds):
        """Sends one command, returns its answer without `ok`; raises Failed with any other answer."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            raise Failed(f"{self.prefix}the process has ended") from None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not ready:
            self.process.kill()
            raise Failed(f"{self.prefix}no answer to \"{line.split()[0]}\" within {seconds} s; the process was stopped")
        answer = self.process.stdout.readline().strip()
        if not answer:
            self.process.wait()
            said = self.process.stderr.read() if self.process.stderr else ""
            raise Failed(f"{self.prefix}the process has ended (status {self.process.returncode}) {' '.join(said.split()[-30:])}")
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise Failed(f"{word}: {rest}")
        return rest

    def close(self):
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
