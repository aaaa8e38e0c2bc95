#!/usr/bin/env python3
"""run.py - training steps on a device beside PyTorch on the same device: bench/results/devices.md.  `make bench-devices` calls it.

    run.py BUILD [--device cuda|opencl|cpu] [--seconds S] [--limit S] [--rounds N] [--only REGEX] [--out FILE]
    run.py BUILD --uneven [--out FILE]      partitions of uneven size on several devices (uneven.c): adds its tables to the page
    run.py --take PAGE [--out FILE]         adds the parts of a page that was measured elsewhere

BUILD: a build folder, or any folder with bench_devices in it.  --device: a device as in --device of stretto; cuda:1, opencl:0*2, cpu*2.
--seconds: of each measurement.  --limit: seconds of the whole run, started rows end.  PyTorch is that of $PEER_PYTHON, else of python3;
where it is not installed, or sees no GPU, the page has our column alone and says so.

    round 1..N      rows in turn: every row has one measurement before any has two
      row           bench_devices: loss and gradient norm of the first step against the host's kernels, then its time; PyTorch (peer.py)

A row counts only where loss and norm differ by less than 1e-5.  A figure is the median of the rounds."""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import select
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHAPES = {"S1": (100, 32, 8, 64), "S2": (100, 64, 16, 128), "S3": (168, 64, 32, 256), "S4": (512, 1, 8, 128), "S5": (50, 256, 64, 512)}
TWO_LAYERS = ("S2", "S5")
CLOSE = 1e-5
FIRST = 5  # seconds that must be left for a row of unknown length
VARIANTS = ("fp32", "tf32", "graph", "graph tf32")
EXACT = ("fp32", "graph")
LINE = re.compile(r": ([0-9.]+) ms a step by (\S+), loss off by (\S+), norm by (\S+); one core ([0-9.]+) ms")
HEAD = """# Results: devices

`make bench-devices` writes this page; every row, good or bad, as it came out. What devices do, and how they are used: [docs/devices.md](../../docs/devices.md).

Several GPUs in one machine were never measured: none was available. What stands in for them is several PoCL devices, which share the cores of one host.
"""
ORDER = ["steps-cuda", "steps-opencl", "steps-cpu", "roofline", "groups", "failures", "uneven"]


class Failed(Exception):
    pass


# ---------------------------------------------------------------------- the page

def write(path, parts):
    """Replaces these parts of the page and leaves the others."""
    old = path.read_text() if path.exists() else ""
    all_parts = read(old) | {name: text.strip() + "\n" for name, text in parts.items()}
    names = sorted(all_parts, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))
    body = "\n".join(f"<!-- begin {n} -->\n{all_parts[n]}<!-- end {n} -->\n" for n in names)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_text(HEAD + "\n" + body)
    scratch.replace(path)


def read(text):
    return dict(re.findall(r"<!-- begin ([\w-]+) -->\n(.*?)<!-- end \1 -->", text, re.S))


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *("| " + " | ".join(r) + " |" for r in rows)]


# ---------------------------------------------------------------------- what runs here

def output(*command, seconds=60):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find(build, name, folder="bench/devices"):
    for path in (build / folder / name, build / name):
        if path.is_file():
            return path.resolve()
    return None


def cpu():
    for line in open("/proc/cpuinfo") if os.path.exists("/proc/cpuinfo") else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def revision():
    git = ["git", "-C", ROOT]
    commit = output(*git, "rev-parse", "--short", "HEAD")
    if not commit:
        return os.environ.get("STRETTO_REVISION", "")
    return f"revision {commit}" + (" with changes" if output(*git, "status", "--porcelain", "-uno") else "")


def device_words(build, machine):
    """The device and its driver in words."""
    kind, card = re.match(r"([a-z]+):?(\d*)", machine).groups()
    card = int(card or 0)
    if kind == "cpu":
        return cpu()
    if kind == "cuda":
        lines = output("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader").splitlines()
        if card < len(lines):
            name, memory, driver = (w.strip() for w in lines[card].split(","))
            return f"{name}, {memory}, driver {driver}"
    program = find(build, "stretto", "cli")
    said = output(program, "info", "--probe") if program else ""
    found = re.search(rf"--device {kind}:{card}: (.*)", said)
    return found.group(1) if found else f"{kind}:{card} (nothing here says its name)"


def where(build, machine):
    program = find(build, "stretto", "cli")
    version = (output(program, "--version").splitlines() or [""])[0] if program else ""
    words = [str(datetime.date.today()), device_words(build, machine), f"host {cpu()}, {os.cpu_count()} processors (load {os.getloadavg()[0]:.1f})",
             f"{platform.system()} {platform.release()}", version, revision()]
    return ", ".join(w for w in words if w)


# ---------------------------------------------------------------------- PyTorch

class Peer:
    """peer.py as a process.  `why`: the sentence for the page where there is none."""

    def __init__(self, device, seconds):
        self.process, self.why, self.info = None, "", {}
        python = os.environ.get("PEER_PYTHON") or shutil.which("python3") or sys.executable
        gpu = device.startswith("cuda")
        test = "import torch; print(torch.cuda.is_available())"
        said = output(python, "-c", test, seconds=seconds)
        if said not in ("True", "False"):
            self.why = f"PyTorch was not measured: `import torch` fails with {python}"
        elif gpu and said == "False":
            self.why = f"PyTorch was not measured: the one of {python} sees no GPU"
        if self.why:
            return
        lanes = re.search(r"\*(\d+)", device)
        threads = int(lanes.group(1)) if lanes and device.startswith("cpu") else 1 if device.startswith("cpu") else os.cpu_count() or 1
        self.process = subprocess.Popen([python, str(HERE / "peer.py"), "cuda" if gpu else "cpu", str(threads)], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.info = json.loads(self.ask("info", 60))
        except Failed as e:
            self.give_up(f"PyTorch was not measured: {e}")

    def give_up(self, why):
        self.why = why
        self.process.kill()
        self.process.wait()
        self.process = None

    def ask(self, order, seconds):
        try:
            self.process.stdin.write(order + "\n")
            self.process.stdin.flush()
        except OSError:
            raise Failed("its process has ended") from None
        ready, _, _ = select.select([self.process.stdout], [], [], max(1, seconds))
        if not ready:
            raise Failed(f"no answer to \"{order}\" within {seconds:.0f} s")
        word, _, rest = self.process.stdout.readline().strip().partition(" ")
        if word != "ok":
            raise Failed(rest or "its process has ended")
        return rest

    def sample(self, words, measure, seconds):
        """{variant: [ms, ms] or why not}; after a failure of the process, no more."""
        if not self.process:
            return {}
        end = time.monotonic() + seconds
        try:
            self.ask(f"case {words}", seconds)
            return json.loads(self.ask(f"sample {measure}", end - time.monotonic()))
        except Failed as e:
            self.give_up(f"PyTorch stopped at `{words}`: {e}")
            return {}

    def close(self):
        if not self.process:
            return
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()

    def words(self):
        if not self.info:
            return self.why + "."
        i = self.info
        more = f" with CUDA {i['cuda']}, cuDNN {i['cudnn']}" if "cuda" in i else f" on the host's cores, {i['threads']} threads"
        return f"PyTorch {i['torch']}{more}." + (f" {self.why}." if self.why else "")


# ---------------------------------------------------------------------- rows

class Row:
    def __init__(self, name, cell, shape, layers):
        self.name, self.cell, self.shape, self.layers = name, cell, shape, layers
        self.ours, self.core, self.strategy, self.off, self.why = [], [], "", (0.0, 0.0), ""
        self.peer, self.refused, self.cost = {}, {}, 0.0

    def title(self):
        return f"{self.cell} {self.name} {self.layers}L"

    def words(self):
        return " ".join(map(str, (self.cell, *self.shape, self.layers)))

    def run_ours(self, program, machine, measure, seconds):
        command = [str(program), machine, *self.words().split(), str(measure)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, seconds))
        except subprocess.TimeoutExpired:
            return f"not done in the {seconds:.0f} s that were left"
        found = LINE.search(done.stdout)
        if done.returncode or not found:
            return f"bench_devices failed (status {done.returncode}): {' '.join(done.stderr.split())[:200]}"
        ms, self.strategy, loss, norm, core = found.groups()
        self.off = tuple(max(a, b) if not math.isnan(b) else b for a, b in zip(self.off, (float(loss), float(norm))))
        if not all(v < CLOSE for v in self.off):
            return f"wrong: loss off by {self.off[0]:.1e}, norm by {self.off[1]:.1e}"
        self.ours.append(float(ms))
        self.core.append(float(core))
        return ""

    def round(self, program, machine, peer, args, end):
        begin = time.monotonic()
        why = self.run_ours(program, machine, args.seconds, end - begin)
        if why:
            self.why, self.ours = why if "wrong" in why or not self.ours else self.why, [] if "wrong" in why else self.ours
            return
        for variant, got in peer.sample(self.words(), args.seconds, end - time.monotonic()).items():
            if isinstance(got, str):
                self.refused[variant] = got
            else:
                self.peer.setdefault(variant, []).append(got)
        self.cost = max(self.cost, time.monotonic() - begin)

    def theirs(self, variant, mode):
        got = self.peer.get(variant)
        return statistics.median(v[mode] for v in got) if got else None

    def best(self, variants, mode):
        got = [v for v in (self.theirs(name, mode) for name in variants) if v]
        return min(got) if got else None


def rows(only):
    out = []
    for name, shape in SHAPES.items():
        for layers in (1, 2) if name in TWO_LAYERS else (1,):
            out += [Row(name, cell, shape, layers) for cell in ("lstm", "gru")]
    return [r for r in out if re.search(only, r.title())]


def measure(args, program, machine, peer, begin):
    """Rounds over all rows until the time is over.  A row begins only where its last time still fits."""
    end, every = begin + args.limit, rows(args.only)
    for number in range(args.rounds):
        for r in every:
            left = end - time.monotonic()
            if r.why or left < (1.1 * r.cost or FIRST):
                r.why = r.why or ("" if r.ours else "no time was left")
                continue
            r.round(program, machine, peer, args, end)
            print(f"round {number + 1}  {time.monotonic() - begin:5.1f} s  {say(r)}", flush=True)
    return every


def ms(v):
    return "-" if v is None else f"{v:.3f}" if v < 10 else f"{v:.1f}"


def ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if theirs else "-"


def say(r):
    if not r.ours:
        return f"{r.title():12} {r.why}"
    words = [f"{name} {ms(r.theirs(name, 0))} ({ms(r.theirs(name, 1))})" for name in VARIANTS if name in r.peer]
    ours = statistics.median(r.ours)
    return (f"{r.title():12} ours {ms(ours)} ms, one core {ms(statistics.median(r.core))}"
            + ("; PyTorch " + ", ".join(words) + f"; ours / best {ratio(ours, r.best(VARIANTS, 0))}" if words else "")
            + "".join(f"; {name}: {text}" for name, text in r.refused.items()))


def cells(r, have):
    front = [f"{r.cell} {r.name}", f"({', '.join(map(str, r.shape))})", str(r.layers)]
    if not r.ours:
        return [*front, r.why, *["-"] * (len(head(have)) - 4)]
    ours = statistics.median(r.ours)
    checked = f"{max(r.off):.0e}"
    row = [*front, f"**{ms(ours)}**", ms(statistics.median(r.core))]
    for name in have:
        row.append(f"{ms(r.theirs(name, 0))} ({ms(r.theirs(name, 1))})" if name in r.peer else "-")
    if have:
        row.append(f"**{ratio(ours, r.best(EXACT, 0))}**")
        if len(have) > 1:
            row += [ratio(ours, r.best(VARIANTS, 0)), ratio(ours, r.best(VARIANTS, 1))]
    return [*row, str(len(r.ours)), checked]


def head(have):
    names = {"fp32": "PyTorch fp32", "tf32": "TF32", "graph": "graph, fp32", "graph tf32": "graph, TF32"}
    out = ["cell, shape", "(T, B, I, H)", "layers", "ours, ms", "one core, ms", *(names[v] for v in have)]
    if have:
        out.append("ours / best fp32")
        if len(have) > 1:
            out += ["ours / best", "ours / best, loss not read"]
    return [*out, "rounds", "off by"]


def section(args, machine, peer, every, place, took):
    have = [v for v in VARIANTS if any(v in r.peer for r in every)]
    good = [r for r in every if r.ours]
    ratios = [statistics.median(r.ours) / r.best(EXACT, 0) for r in good if r.best(EXACT, 0)]
    mean = math.exp(statistics.mean(map(math.log, ratios))) if ratios else 0
    lines = [
        f"## Training steps on `{machine}`", "",
        f"{place}. {peer.words()} {args.seconds:g} s for each measurement, {took:.0f} s in all.", "",
        "Measured: a training step of recurrent layers, a linear head on every step of time, mean squared error, gradient norm clipped at 1, Adam; inputs "
        "and targets go from the host to the device in every step; fp32, loss and norms read after every step. *One core*: the same step by the host's "
        "kernels on one core of the host, few steps. *Off by*: loss and gradient norm of the first step against the host's kernels, the larger relative "
        "difference; a row counts below 1e-5."]
    if have:
        lines += ["", "PyTorch: nn.LSTM or nn.GRU and nn.Linear, clip_grad_norm_, fused Adam; inputs from pinned memory. Median time of a step that reads its "
                  "loss, as ours does; in brackets the time of a step in a queue of steps that do not. *TF32*: allowed in place of fp32. *Graph*: a captured "
                  "CUDA graph of all but the upload." if len(have) > 1 else
                  "PyTorch on the host's cores: nn.LSTM or nn.GRU and nn.Linear, clip_grad_norm_, fused Adam. In brackets: loss not read.",
                  "", f"Ours / best fp32: above 1, PyTorch is faster. Geometric mean of {len(ratios)} rows: **{mean:.2f}**." if ratios else ""]
    lines += ["", "Not measured: several GPUs, more than one lane of a device, bf16, nets with other layers, the input pipeline and validation of a whole "
              "training, energy.", "", *table(head(have), [cells(r, have) for r in every])]
    refused = [f"- {r.title()}, {name}: {text}" for r in every for name, text in r.refused.items()]
    if refused:
        lines += ["", "Variants of PyTorch that failed:", "", *refused]
    return "\n".join(lines)


# ---------------------------------------------------------------------- parts

def steps(args):
    begin = time.monotonic()
    machine = args.device if "*" in args.device else args.device + "*1"
    program = find(args.build, "bench_devices")
    if not program:
        sys.exit(f"{args.build} has no bench_devices: cmake --build {args.build} --target bench_devices")
    place, peer = where(args.build, machine), Peer(args.device, 60)
    print(place, peer.words(), sep="\n", flush=True)
    every = measure(args, program, machine, peer, begin)
    peer.close()
    took = time.monotonic() - begin
    write(args.out, {"steps-" + re.match("[a-z]+", args.device).group(): section(args, machine, peer, every, place, took)})
    print(f"{sum(bool(r.ours) for r in every)} of {len(every)} rows have a figure; {took:.0f} s; {args.out}")
    return 0 if all(r.ours or "wrong" not in r.why for r in every) else 1


def uneven(args):
    program = find(args.build, "bench_uneven")
    if not program:
        sys.exit(f"{args.build} has no bench_uneven: cmake --build {args.build} --target bench_uneven")
    library = find(args.build, "libfaulty_opencl.so", "tests/gpu")
    if not library:
        sys.exit(f"{args.build} has no tests/gpu/libfaulty_opencl.so (it needs the headers of OpenCL)")
    text = ""
    for part in ("partitions", "lanes"):
        done = subprocess.run([str(program), part, *args.more], stdout=subprocess.PIPE, text=True, env=os.environ | {"STRETTO_OPENCL": str(library)})
        print(done.stdout, end="", flush=True)
        if done.returncode:
            return done.returncode
        text += done.stdout + "\n"
    write(args.out, {"uneven": f"## Uneven partitions on several devices\n\n{where(args.build, 'opencl:0')}.\n\n{text}"})
    return 0


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0], usage=__doc__[__doc__.index("\n\n"):__doc__.index("BUILD:")].strip())
    words.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    words.add_argument("--device", default="cuda")
    words.add_argument("--seconds", type=float, default=0.25)
    words.add_argument("--limit", type=float, default=140)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--only", default="")
    words.add_argument("--uneven", action="store_true")
    words.add_argument("--more", nargs="*", default=[], help="arguments of bench_uneven")
    words.add_argument("--take", type=pathlib.Path)
    folder = ROOT / "bench" / "results"
    words.add_argument("--out", type=pathlib.Path, default=(folder if folder.exists() else pathlib.Path.cwd()) / "devices.md")
    args = words.parse_args()
    if args.take:
        write(args.out, read(args.take.read_text()))
        return 0
    return uneven(args) if args.uneven else steps(args)


if __name__ == "__main__":
    sys.exit(main())
