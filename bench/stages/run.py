#!/usr/bin/env python3
"""run.py BUILD [--turns N] [--realtime] [--part bubble|peer|memory]... [--out FILE]: pipelines of layers on ranks.

bubble  how long two stages wait for each other, from traces and step times, against (P - 1) / (M + P - 1)
peer    a training step beside torch.distributed.pipelining over Gloo (peer.py), same network, stages and micro-batches
memory  peak resident memory of each rank of `pipeline:4` against one rank that has the whole network

Implementations are interleaved; a value is the median of the turns.  Writes bench/results/stages.md; with --part the other parts
of the page stay as they are.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import peers  # noqa: E402
import results  # noqa: E402

BATCH, T, MICRO, HORIZON = 128, 24, 8, 24
BUBBLE = 1 / (MICRO + 1)  # (P - 1) / (M + P - 1)
DEEP = {"layers": 8, "hidden": 128, "steps": 16}  # of the part bubble
SHAPES = [(2, 128, 40), (8, 128, 16), (4, 256, 10), (2, 512, 8), (8, 512, 4)]  # layers, hidden size, training steps
ORDERS = ("1f1b", "gpipe")
MEMORY = {"--context": 96, "--layers": 8, "--hidden": 512, "--batch": 64, "--steps": 4, "--max-steps": 4}
MEMORY_RANKS = 4
ROWS, ROWS_LONG = 3000, 6500  # records; the contexts of the part bubble are long, T patches of H records
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
       "STRETTO_WISDOM": "off"}
MPIRUN = ["mpirun.openmpi", "--oversubscribe", "-n"]
PIPELINE = ["--parallel", "pipeline:2", "--micro-batches", str(MICRO), "--grains", str(MICRO)]
ALONE = ["--parallel", "pipeline:1", "--micro-batches", str(MICRO), "--grains", str(MICRO), "--threads", "1"]
WAYS = {"2 threads": ([], [*PIPELINE, "--threads", "2"]), "2 ranks": ([], [*PIPELINE, "--threads", "1", "--ranks", "2"]),
        "2 ranks, Open MPI": ([*MPIRUN, "2"], [*PIPELINE, "--threads", "1"])}
HEADS = {"bubble": "## How long stages wait", "peer": "## A step beside PyTorch", "memory": "## Memory of a rank"}


def options(data, layers, hidden, steps, segment=1):
    return ["train", data, "--target", "height", "--preset", "short", "--horizon", str(HORIZON), "--context", str(T * segment),
            "--segment", str(segment), "--decoder", "direct", "--layers", str(layers), "--hidden", str(hidden),
            "--batch", str(BATCH), "--steps", str(steps), "--max-steps", "0", "--calendar", "no", "--base", "last", "--no-guard",
            "--members", "1", "--dropout", "0", "--clip", "0", "--validate-every", str(steps), "--progress", "none", "--verbose"]


def there(launch):
    return not launch or shutil.which(launch[0])


def train(args, launch, words):
    """One run: milliseconds of a step (mean of the run but for its first step), and the events of its trace."""
    with tempfile.TemporaryDirectory() as folder:
        trace = folder + "/trace.json"
        command = [*args.front, *launch, str(args.program), *words, "-o", folder + "/m.model", "--trace", trace]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **MPI))
        took = re.search(r"and took ([0-9.]+) ms", done.stderr)
        if done.returncode or not took:
            sys.exit("%s:\n%s" % (" ".join(command), done.stderr))
        with open(trace) as f:
            return float(took.group(1)), json.load(f)["traceEvents"]


def idle(events):
    """Of the last step in a trace: share of the time from the first forward to the last backward task in which a thread runs
    neither, and the milliseconds in which it runs one, by thread."""
    work = [e for e in events if e.get("cat") in ("fwd", "bwd")]
    begin = max(e["ts"] for e in work if re.match(r"fwd \S+\.0 b\[0,", e["name"]))
    busy = collections.Counter()
    for e in work:
        if e["ts"] >= begin:
            busy[e["tid"]] += e["dur"]
    took = max(e["ts"] + e["dur"] for e in work) - begin
    return {tid: 1 - us / took for tid, us in busy.items()}, {tid: 1e-3 * us for tid, us in busy.items()}


def unequal(busy):
    """Idle share of two stages that take what was measured for each and do not wait for anything else: the longer one works all
    the time but for the first forward and the last backward of the other."""
    short, long = sorted(busy.values())
    return 1 - (short + long) / (2 * (long + short / MICRO))


def bubble_turn(args, words, got):
    got["alone"].append(train(args, [], [*words, *ALONE])[0])
    for order in ORDERS:
        for way, (launch, more) in WAYS.items():
            if there(launch):
                ms, events = train(args, launch, [*words, *more, "--stage-order", order])
                got[way, order].append((ms, *idle(events)))


def bubble_row(way, order, one, runs):
    ms = statistics.median(r[0] for r in runs)
    traced = [statistics.median(r[1][tid] for r in runs) for tid in sorted(runs[0][1])]
    foreseen = "%.1f" % (100 * statistics.median(unequal(r[2]) for r in runs)) if len(traced) == 2 else "-"
    return "| %s | %s | %.1f | %.1f | %s | %s | %.1f | %.3f |" % (
        way, order, ms, 100 * (1 - one / (2 * ms)), ", ".join("%.1f" % (100 * v) for v in traced), foreseen, 100 * BUBBLE,
        ms / (one / 2 / (1 - BUBBLE)))


def bubble_part(args, data):
    words, got = options(data, **DEEP, segment=DEEP["hidden"]), collections.defaultdict(list)
    for turn in range(args.turns):
        bubble_turn(args, words, got)
        report(args, "bubble, turn %d" % (turn + 1))
    one = statistics.median(got.pop("alone"))
    return [
        made(args, "bubble") + " `pipeline:2` with M = %d micro-batches: LSTM of %d layers of %d units, T = %d, B = %d. The "
        "first layer has as many inputs as the others (`--segment`), but it computes no gradient of them: stage 0 is about 5 %% "
        "shorter. One thread takes %.1f ms for a step of the same micro-batches (`pipeline:1`)."
        % (MICRO, DEEP["layers"], DEEP["hidden"], T, BATCH, one), "",
        "*By step times*: 1 - one thread / (2 x step); it includes copies of weights, merges and the update. *By trace*: share "
        "of the time from the first forward to the last backward task in which a thread runs neither, for stage 0 and stage 1; a "
        "trace has the threads of one rank. *Of these stages*: the least for two stages of the traced lengths. *Step / ideal*: "
        "the ideal is half of one thread / (1 - (P - 1) / (M + P - 1)); the bar is 1.05.", "",
        "| stages on | order | step, ms | idle by step times, % | idle by trace, % | of these stages, % | "
        "(P - 1) / (M + P - 1), % | step / ideal |",
        "|" + " --- |" * 8, *(bubble_row(*key, one, runs) for key, runs in got.items())]


def peer(args, order, shape):
    """Milliseconds of a step of PyTorch."""
    layers, hidden, steps = shape
    with socket.socket() as s:  # a free port
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [*args.front, str(peers.PYTHON), str(ROOT / "bench" / "stages" / "peer.py"),
               *map(str, (order, steps, BATCH, T, 1, layers, hidden, HORIZON, MICRO, port))]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **peers.KEEP))
    if done.returncode or not done.stdout.split():
        sys.exit("%s:\n%s" % (" ".join(command), done.stderr))
    return float(done.stdout.split()[-1])


def peer_turn(args, data, shape, got):
    layers, hidden, steps = shape
    words = options(data, layers, hidden, steps)
    for way in ("2 ranks", "2 ranks, Open MPI"):
        launch, more = WAYS[way]
        if there(launch):
            got[way].append(train(args, launch, [*words, *more])[0])
    for order in ORDERS:
        got[order].append(peer(args, order, shape))


def peer_row(shape, got):
    ms = {name: statistics.median(v) for name, v in got.items()}
    best = [min(pair) for pair in zip(got["gpipe"], got["1f1b"])]
    ratios = ["%.2f" % statistics.median(b / o for b, o in zip(best, got[way])) if way in got else "-"
              for way in ("2 ranks", "2 ranks, Open MPI")]
    cells = ["%.1f" % ms[name] if name in ms else "-" for name in ("2 ranks", "2 ranks, Open MPI", "gpipe", "1f1b")]
    return "| %d, %d | %s |" % (*shape[:2], " | ".join([*cells, *ratios]))


def peer_part(args, data):
    if not peers.PYTHON.exists():
        sys.exit("there is no PyTorch to measure against: bench/peers.sh installs it")
    rows = []
    for shape in SHAPES:
        got = collections.defaultdict(list)
        for turn in range(args.turns):
            peer_turn(args, data, shape, got)
            report(args, "peer, %d layers of %d units, %s, turn %d" % (*shape[:2], {k: v[-1] for k, v in got.items()}, turn + 1))
        rows.append(peer_row(shape, got))
    return [
        made(args, "peer") + " Milliseconds of a training step: LSTM with one input, a head of %d values at its end, MSE, Adam, "
        "no clipping, T = %d, B = %d, %d micro-batches, the first half of the layers on one rank and the rest on the other, one "
        "thread each. Ours is the mean of a run with `--parallel pipeline:2` but for its first step, PyTorch %s the median of its last three quarters, "
        "with denormals flushed, memory kept and fused Adam; its processes exchange tensors by Gloo, our ranks are threads of a "
        "process or processes under Open MPI. The ratio is the faster of PyTorch's schedules over ours, median of the "
        "turns; the bar is 1.3."
        % (HORIZON, T, BATCH, MICRO, torch_version()), "",
        "| layers, H | ours, threads | ours, Open MPI | ScheduleGPipe | Schedule1F1B | PyTorch / ours, threads | "
        "PyTorch / ours, Open MPI |",
        "|" + " --- |" * 7, *rows]


def torch_version():
    code = "import importlib.metadata as m; print(m.version('torch').split('+')[0])"
    return subprocess.run([str(peers.PYTHON), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def resident(pid):
    """Peak resident set of the processes of our program below pid, in MiB by process."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in entry.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if fields["Name"].strip() == "stretto" and "VmHWM" in fields and int(fields["PPid"]) in (pid, os.getpid()):
            found[int(fields["Pid"])] = int(fields["VmHWM"].split()[0]) / 1024
    return found


def peaks(args, launch, words):
    """Peak resident memory of every rank, MiB, in order of rank."""
    with tempfile.TemporaryDirectory() as folder, open(folder + "/log", "w+") as log:
        command = [*launch, str(args.program), *words, "-o", folder + "/m.model"]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ, **MPI))
        got = {}
        while process.poll() is None:
            got.update(resident(process.pid))
            time.sleep(0.02)
        if process.returncode or not got:
            log.seek(0)
            sys.exit("%s:\n%s" % (" ".join(command), log.read()))
    return [got[pid] for pid in sorted(got)]


def memory_part(args, data):
    words = ["train", data, "--target", "height", "--horizon", str(HORIZON), "--members", "1", "--progress", "none",
             *(str(word) for pair in MEMORY.items() for word in pair)]
    whole, ranks = [], []
    for turn in range(args.turns):
        whole.append(peaks(args, [], [*words, "--parallel", "serial", "--threads", "1"])[0])
        pipeline = [*words, "--parallel", "pipeline:%d" % MEMORY_RANKS, "--threads", "1"]
        ranks.append(peaks(args, [*MPIRUN, str(MEMORY_RANKS)], pipeline))
        report(args, "memory, %s MiB, turn %d" % ([whole[-1], *ranks[-1]], turn + 1))
    one = statistics.median(whole)
    each = [statistics.median(r[k] for r in ranks) for k in range(MEMORY_RANKS)]
    return [
        made(args, "memory") + " Peak resident memory (VmHWM) of a run with `%s`, from the file to the scored model. One rank "
        "has the whole network; `pipeline:%d` runs on %d processes under Open MPI, whose libraries and shared memory are in the "
        "figures. Rank 0 also scores the model. The bar is 35 %%."
        % (" ".join("%s %s" % pair for pair in MEMORY.items()), MEMORY_RANKS, MEMORY_RANKS), "",
        "| | MiB | of one rank |", "| --- | --- | --- |", "| one rank | %.0f | 100 %% |" % one,
        *("| rank %d of %d | %.0f | %.0f %% |" % (k, MEMORY_RANKS, mb, 100 * mb / one) for k, mb in enumerate(each))]


def made(args, part):
    return "`make bench-stages` (`--part %s`), %s Medians of %d turns%s." % (
        part, results.machine("1 to 2"), args.turns,
        ", before other programs (SCHED_RR)" if args.realtime and part != "memory" else "")


def report(args, what):
    print("load %.1f; %s of %d" % (os.getloadavg()[0], what, args.turns), file=sys.stderr, flush=True)


def sections(path):
    """The parts of an earlier page by name; by their heads those of other machines, which were added by hand."""
    found = re.split(r"(?m)^(?=## )", path.read_text() if path.exists() else "")
    names = {head: name for name, head in HEADS.items()}
    heads = [(text.partition("\n")[0], text.strip()) for text in found if text.startswith("## ")]
    return {names.get(head, head): text for head, text in heads}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--realtime", action="store_true")
    p.add_argument("--part", action="append", choices=list(HEADS), help="only this one; may be given more than once")
    p.add_argument("--out", default=str(ROOT / "bench" / "results" / "stages.md"))
    args = p.parse_args()
    os.environ["STRETTO_BUILD"] = args.build  # results.machine() asks the program for its version
    args.front = ["chrt", "-r", "20"] if args.realtime else []
    args.program = pathlib.Path(args.build).resolve() / "cli" / "stretto"
    out = pathlib.Path(args.out)
    parts = sections(out)
    with tempfile.TemporaryDirectory() as folder:
        for name, make, rows in (("bubble", bubble_part, ROWS_LONG), ("peer", peer_part, ROWS), ("memory", memory_part, ROWS)):
            if args.part and name not in args.part:
                continue
            data = "%s/%d.csv" % (folder, rows)
            sample = [str(args.program), "sample", "tides", "--rows", str(rows), "-o", data]
            subprocess.run(sample, check=True, capture_output=True)
            parts[name] = "\n".join([HEADS[name], "", *make(args, data)])
            page = ["# Pipelines of layers", *(parts[n] for n in HEADS if n in parts), *(parts[n] for n in parts if n not in HEADS)]
            out.write_text("\n\n".join(page) + "\n")  # after each part, so that what is measured is kept
    print(out.read_text())


if __name__ == "__main__":
    main()
