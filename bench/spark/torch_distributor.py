"""torch_distributor.py - seconds until a validation loss: StrettoForecaster beside pyspark's TorchDistributor, the same net on the same rows.

    build/spark-venv/bin/python bench/spark/torch_distributor.py build/release [--turns N] [--hidden N] [--layers N] [--loss X,..]
                                                                 tools/spark_venv.sh torch makes the interpreter

Session: local-cluster[2,1,2048], one table of hours in Parquet.  Both sides: LSTM, a head of HORIZON values at its end, windows of
CONTEXT hours, standardized by the training split, MSE, batches of 64, clipping, Adam, the same rate at every step, the same first
weights (ours), two processes of one thread.  The order of the windows differs.  The opponent is DistributedDataParallel over Gloo under
TorchDistributor: each process reads the Parquet file into tensors once, has half of a batch, fused Adam, gradients as views of the
buckets, denormals flushed, and a malloc that keeps its memory.  Both validate on the same windows every EVERY steps; the opponent
cuts them between its processes.

First a check, which warms up both sides: both give the first weights the same loss on the validation split.  Turns alternate.  Printed:
medians of the seconds from the call of fit() or run() to the first validation with a loss that low, and of those from the validation
before the first step on, which Spark, processes and imports have no part in; of these the processor seconds of both processes too,
since the machine may be shared.  A slash stands between ours and the opponent's.
"""
import argparse
import json
import math
import os
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "bindings", "python"), os.path.join(ROOT, "bench")]
from peers import KEEP  # noqa: E402

ROWS, VALIDATION, TEST = 12000, 1000, 24  # ours validates on all windows of a split as short as this one
CONTEXT, HORIZON, BATCH, RATE, EVERY = 96, 24, 64, 0.003, 50
NAMES = ("ours", "TorchDistributor")


def session(home):
    from pyspark.sql import SparkSession
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_DIRS=home)
    build = SparkSession.builder.master("local-cluster[2,1,2048]")
    settings = {"spark.executor.memory": "1536m", "spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
                "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.session.timeZone": "UTC",
                "spark.executorEnv.OMP_NUM_THREADS": "1", **{"spark.executorEnv." + k: v for k, v in KEEP.items()}}
    for key, value in settings.items():
        build = build.config(key, value)
    spark = build.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


# ---------------------------------------------------------------------------------------------- ours ------------------------

def estimator(args, home, steps, rate):
    from stretto.spark import StrettoForecaster
    return StrettoForecaster(
        time_col="time", label_col="height", horizon=HORIZON, context=CONTEXT, hidden=args.hidden, layers=args.layers, batch=BATCH, steps=steps,
        learning_rate=rate, base="none", num_workers=2, threads=1, program=args.program, mpiexec="mpiexec.mpich", work_dir=home, run_name="bench",
        options={"preset": "none", "segment": 1, "decoder": "direct", "calendar": "no", "guard": False, "scale": "series", "loss": "mse",
                 "loss-steps": "last", "members": 1, "schedule": "constant", "warmup": 0, "validate-every": EVERY, "parallel": "data_sync",
                 "validation": VALIDATION, "test": TEST})


def validations(lines):
    """(seconds since the start of the run, step, loss)"""
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return [(r["seconds"], r["step"], r["valid"]) for r in found if r["split"] == "valid"]


def ranks_of(folder, program):
    """The ranks that train in a folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if folder.encode() in f.read() and os.readlink("/proc/%s/exe" % pid) == program:
                    found.append(pid)
        except OSError:
            pass
    return found


def processor_seconds(pids):
    total = 0
    for pid in pids:
        with open("/proc/%s/stat" % pid, encoding="ascii") as f:
            total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def watch(folder, program, begins, used, over):
    """Finds when the run began, the least of (now - seconds of the last validation), and processor seconds of all ranks by step."""
    pids = []
    while not over.is_set():
        try:
            with open(folder + "/model.run/metrics.jsonl", encoding="ascii") as f:
                found = validations(f.read().split("\n"))
            if found:
                begins.append(time.time() - found[-1][0])
                pids = pids or ranks_of(folder, program)
                if found[-1][1] not in used:
                    used[found[-1][1]] = processor_seconds(pids)
        except OSError:
            pass
        time.sleep(0.01)


def ours(args, home, table):
    begins, used, over = [], {}, threading.Event()
    watcher = threading.Thread(target=watch, args=(home + "/stretto-bench", args.program, begins, used, over))
    watcher.start()
    called = time.time()
    model = estimator(args, home, args.steps, RATE).fit(table)
    whole = time.time() - called
    over.set()
    watcher.join()
    found = validations(model.files["record"].decode().split("\n"))
    return called, whole, [(min(begins) + seconds, step, loss, used.get(step, math.nan)) for seconds, step, loss in found]


def first_weights(args, home, table):
    """The weights with which ours begins, by PyTorch's names, and their loss."""
    model = estimator(args, home, 1, 0.0).fit(table)
    raw = model.files["model"]
    n = struct.unpack("<Q", raw[:8])[0]
    head, body = json.loads(raw[8:8 + n]), raw[8 + n:]
    head.pop("__metadata__")
    weights = {name: (t["shape"], body[t["data_offsets"][0]:t["data_offsets"][1]]) for name, t in head.items()
               if name.startswith(("lstm.", "head."))}
    return weights, validations(model.files["record"].decode().split("\n"))[0][2]


# ---------------------------------------------------------------------------------------------- the opponent ----------------

def train(parquet, weights, args, sizes):
    """Runs in each process of TorchDistributor; returns [(time of day, step, loss, processor seconds of all processes)]."""
    import time
    import pyarrow.compute
    import pyarrow.parquet
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    rows, validation, test, context, horizon, batch, rate, every = sizes

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(1, args["hidden"], args["layers"])
            self.head = torch.nn.Linear(args["hidden"], horizon)

        def forward(self, x):
            return self.head(self.lstm(x)[0][-1])

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo")
    me, n = dist.get_rank(), dist.get_world_size()
    table = pyarrow.parquet.read_table(parquet, columns=["time", "height"]).sort_by("time")
    v = torch.tensor(table["height"].to_numpy(), dtype=torch.float64)
    split = rows - validation - test
    mean, dev = v[:split].mean(), v[:split].std(correction=0)
    wide = ((v - mean) / dev).float().unfold(0, context + horizon, 1)  # row k: the window whose forecast begins at k + context
    bare = Net()
    bare.load_state_dict({name: torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(shape) for name, (shape, data) in weights.items()})
    for name, p in bare.named_parameters():
        p.requires_grad_(".bias_hh" not in name)  # ours has one bias
    net = DistributedDataParallel(bare, gradient_as_bucket_view=True)
    adam = torch.optim.Adam([p for p in bare.parameters() if p.requires_grad], lr=rate, fused=True)
    held = wide[split - context:split + validation - horizon + 1 - context]
    mine, points = torch.tensor_split(held, n)[me], []

    def validate(step):
        with torch.no_grad():
            both = torch.zeros(2, dtype=torch.float64)  # squares, processor seconds
            for part in mine.split(256):
                y = bare(part[:, :context].t().unsqueeze(-1).contiguous())
                both[0] += ((y - part[:, context:]) ** 2).sum()
        both[1] = time.process_time()
        dist.all_reduce(both)
        points.append((time.time(), step, both[0].item() / (len(held) * horizon), both[1].item()))
    order = torch.Generator().manual_seed(1)
    epoch, used = torch.randperm(split - horizon + 1 - context, generator=order), 0
    validate(0)
    for step in range(1, args["steps"] + 1):
        if used + batch > len(epoch):
            epoch, used = torch.randperm(split - horizon + 1 - context, generator=order), 0
        some = wide[epoch[used + me * batch // n:used + (me + 1) * batch // n]]
        used += batch
        adam.zero_grad(set_to_none=False)
        out = net(some[:, :context].t().unsqueeze(-1).contiguous())
        torch.nn.functional.mse_loss(out, some[:, context:]).backward()
        torch.nn.utils.clip_grad_norm_(bare.parameters(), 1.0)
        adam.step()
        if step % every == 0:
            validate(step)
    dist.barrier()
    del net  # before its process group
    dist.destroy_process_group()
    return points


def theirs(args, parquet, weights, steps):
    from pyspark.ml.torch.distributor import TorchDistributor
    sizes = (ROWS, VALIDATION, TEST, CONTEXT, HORIZON, BATCH, RATE, EVERY)
    for _ in range(3):  # some runs end with "terminate called without an active exception" when their process group goes
        called = time.time()
        try:
            points = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False).run(
                train, parquet, weights, {"hidden": args.hidden, "layers": args.layers, "steps": steps}, sizes)
            return called, time.time() - called, points
        except Exception as e:  # counts as no run
            print("TorchDistributor failed and is run again: %s" % str(e).split("\n", 1)[0], file=sys.stderr, flush=True)
    sys.exit("TorchDistributor failed three times")


# ---------------------------------------------------------------------------------------------- the table -------------------

def reached(run, loss):
    """(step, seconds from the call, seconds and processor seconds from the first validation), or None."""
    called, _, points = run
    return next(((step, at - called, at - points[0][0], cpu - points[0][3]) for at, step, valid, cpu in points if valid <= loss), None)


def at_end(run):
    called, _, points = run
    (began, _, _, before), (at, step, _, cpu) = points[0], points[-1]
    return step, at - called, at - began, cpu - before


def row(name, pairs):
    """A line of the table: medians, ours / theirs, and their quotients."""
    if any(r is None for pair in pairs for r in pair):
        return "| %s | not reached by %s |" % (name, " and ".join(who for k, who in enumerate(NAMES) if any(p[k] is None for p in pairs)))
    mine, other = ([statistics.median(pair[k][m] for pair in pairs) for m in range(4)] for k in (0, 1))
    return "| %s | %d / %d | %s |" % (name, mine[0], other[0], " | ".join(
        "%.2f / %.2f | **%.2fx**" % (mine[m], other[m], other[m] / mine[m]) for m in (1, 2, 3)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--layers", type=int, default=1)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--loss", default="0.05,0.02,0.01")
    args = p.parse_args()
    args.program = os.path.join(os.path.abspath(args.build), "cli", "stretto")
    home = tempfile.mkdtemp(prefix="stretto-bench-torch-")
    try:
        import pyspark
        import torch
        subprocess.run([args.program, "sample", "tides", "--rows", str(ROWS), "-o", home + "/t.csv"], check=True, capture_output=True)
        spark = session(home)
        parquet = home + "/t.parquet"
        spark.read.csv(home + "/t.csv", header=True, schema="time timestamp_ntz, height double").coalesce(1).write.parquet(parquet)
        table = spark.read.parquet(parquet)
        weights, loss = first_weights(args, home, table)
        other = theirs(args, parquet, weights, 1)[2][0][2]
        print("loss of the first weights: ours %.7f, PyTorch %.7f" % (loss, other))
        if not math.isclose(loss, other, rel_tol=1e-5):
            sys.exit("the two do not compute the same loss")
        runs = []
        for turn in range(args.turns):
            pair = [None, None]
            for k in (0, 1) if turn % 2 else (1, 0):
                pair[k] = theirs(args, parquet, weights, args.steps) if k else ours(args, home, table)
                points, (_, called, began, cpu) = pair[k][2], at_end(pair[k])
                print("turn %d, %s: whole %.1f s, to the last step %.1f, from step 0 %.2f, processor %.2f, load %.1f; losses %s; processor %s" % (
                    turn, NAMES[k], pair[k][1], called, began, cpu, os.getloadavg()[0], " ".join("%.4f" % p[2] for p in points),
                    " ".join("%.2f" % (p[3] - points[0][3]) for p in points)), file=sys.stderr, flush=True)
            runs.append(pair)
        spark.stop()
        cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
        print("%s, %d cores, Linux %s, pyspark %s, torch %s, LSTM %d x %d, context %d, horizon %d, batch %d, Adam %g; medians of %d turns; load %.1f at the end" % (
            cpu, os.cpu_count(), platform.release(), pyspark.__version__, torch.__version__, args.layers, args.hidden, CONTEXT, HORIZON, BATCH,
            RATE, args.turns, os.getloadavg()[0]))
        print("| validation loss | at step | from the call, s | | from step 0, s | | from step 0, processor s | |")
        print("|---|---|---|---|---|---|---|---|")
        for level in map(float, args.loss.split(",")):
            print(row("%g" % level, [(reached(a, level), reached(b, level)) for a, b in runs]))
        print(row("%d steps" % args.steps, [tuple(at_end(r) for r in pair) for pair in runs]))
        print("whole call: ours %.2f s, TorchDistributor %.2f s" % tuple(statistics.median(pair[k][1] for pair in runs) for k in (0, 1)))
    finally:
        shutil.rmtree(home, ignore_errors=True)


main()
