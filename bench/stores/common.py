"""common.py - how the parts of run.py train, what they read from a run, and the words of the page."""
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("STRETTO_DATA", "/" + "work/shared/data"))
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "STRETTO_WISDOM": "off"}
MPIRUN = ["mpirun.openmpi", "--oversubscribe", "-n"]


class Failed(Exception):
    """A command that ended with an error, or did not end in its time."""


def run(command, seconds=300, env=None, cwd=None):
    """(stdout, stderr) of a command; all its processes end with it."""
    child = subprocess.Popen([str(w) for w in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                             env={**os.environ, **MPI, **(env or {})}, start_new_session=True, text=True)
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise Failed("did not end in %d s: %s" % (seconds, " ".join(map(str, command)))) from None
    if child.returncode:
        raise Failed("status %d: %s\n%s" % (child.returncode, " ".join(map(str, command)), err[-2000:]))
    return out, err


def number(pattern, text, scale=1.0):
    found = re.search(pattern, text)
    return float(found.group(1)) * scale if found else None


def size(text):
    """Bytes of "1.5KiB"."""
    digits, unit = re.match(r"([0-9.]+) ?([KMGT]?)i?B", text).groups()
    return float(digits) * 1024 ** " KMGT".index(unit or " ")


def read_run(folder, err):
    """What a training says of itself."""
    lines = [json.loads(line) for line in open(folder + "/m.model.run/metrics.jsonl")]
    lines = [line for line in lines if line.get("split") == "valid"]
    plan = re.search(r"rank 0 sends (\S+) a step", err)
    got = {"valid": min(line["valid"] for line in lines), "last": lines[-1]["valid"], "seconds": lines[-1]["seconds"] - lines[0]["seconds"],
           "steps": lines[-1]["step"], "rate": [line["windows_per_s"] for line in lines[1:]],
           "ms": number(r"and took ([0-9.]+) ms", err), "mb": number(r"([0-9.]+) MB sent", err), "fewer": number(r"\(([0-9.]+) times fewer", err),
           "stale": number(r"mean staleness ([0-9.]+)", err), "waited": number(r"waited (\d+)%", err),
           "plan_bytes": size(plan.group(1)) if plan else None, "said": err}
    return got


def train(args, data, options, ranks=1, mpi=False, front=(), env=None, seconds=300, keep=None):
    """One training; keep: a folder in which the model and the run stay."""
    folder = keep or tempfile.mkdtemp(prefix="stretto-stores-")
    launch = [*MPIRUN, str(ranks)] if mpi else []
    command = [*front, *launch, *(front if mpi else []), args.program, "train", data, *options, *([] if mpi or ranks < 2 else ["--ranks", str(ranks)]),
               "--progress", "none", "--verbose", "-o", folder + "/m.model"]
    try:
        _, err = run(command, seconds, env)
        return read_run(folder, err)
    finally:
        if not keep:
            shutil.rmtree(folder, True)


def middle(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def machine(args, what):
    """The line under a heading."""
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    dirty = subprocess.run([*git, "status", "--porcelain", "-uno", "src", "cli"], capture_output=True, text=True).stdout.strip()
    return "%s, %s, %d cores, Linux %s, revision %s%s: %s, load %.1f at the end. `bench/stores/run.py BUILD --part %s`." % (
        datetime.date.today(), cpu, os.cpu_count(), platform.release(), head, " with changes" if dirty else "", what, os.getloadavg()[0], args.now)


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def verdict(good):
    return "met" if good else "**missed**"
