"""rows.py - seconds from a Spark DataFrame into the trainer: StrettoForecaster, a mapInPandas loop that makes tensors, and the CSV file.

    build/spark-venv/bin/python bench/spark/rows.py build/release [--rows N] [--turns N] [--ways REGEX]
                                                                 tools/spark_venv.sh torch makes the interpreter

Session: local-cluster[2,1,2048].  Table: a timestamp and two numbers in Parquet, four files, once in order of time and once shuffled.
  ours, in order    what fit() does until the ranks have the rows: the stage of runs.py, then bench_reader on the parts, one thread
  ours, shuffled    the same table shuffled: the stage that finds the disorder, shuffle and sort, then bench_reader
  torch             mapInPandas: every batch becomes a tensor of float32, at the end one tensor for each partition: with the shuffle
                    and the sort that the order of time needs, and on the table in order without them
  CSV               bench_reader on the CSV file of the same rows, with one and with two threads
Rounds run all ways, forwards and backwards in turn.  A run on a small table precedes every way that uses Spark: its Python workers have
started, and have imported torch.  Printed are medians of the wall seconds, and of the quotient with the first way in the same round,
since the machine may be shared.
"""
import argparse
import glob
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
SMALL = 200000


def session(home):
    from pyspark.sql import SparkSession
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_DIRS=home)
    build = SparkSession.builder.master("local-cluster[2,1,2048]")
    for key, value in {"spark.executor.memory": "1536m", "spark.driver.memory": "1g", "spark.ui.enabled": "false",
                       "spark.driver.host": "127.0.0.1", "spark.ui.showConsoleProgress": "false",
                       "spark.driver.bindAddress": "127.0.0.1", "spark.sql.session.timeZone": "UTC"}.items():
        build = build.config(key, value)
    spark = build.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def tables(spark, home, rows):
    """The table in order and the shuffled one."""
    from pyspark.sql import functions as F
    ordered, shuffled = ("%s/%s-%d.parquet" % (home, name, rows) for name in ("ordered", "shuffled"))
    times = F.timestamp_seconds(F.col("id") * 60).alias("ds")
    spark.range(0, rows, 1, 4).select(times, F.rand(1).alias("y"), F.rand(2).alias("x")).write.parquet(ordered)
    spark.read.parquet(ordered).repartition(4, F.rand(3)).write.parquet(shuffled)
    return spark.read.parquet(ordered), spark.read.parquet(shuffled)


def by_time(table):
    return table.repartitionByRange(2, "ds").sortWithinPartitions("ds")


# ---------------------------------------------------------------------------------------------- the ways --------------------

def reader_seconds(args, path, threads):
    reader = os.path.join(os.path.abspath(args.build), "bench", "reader", "bench_reader")
    return float(subprocess.run([reader, "read", str(threads), path], capture_output=True, text=True, check=True).stdout.split()[0])


def ours(args, spark, home, table, ordered):
    """(seconds until the parts are written, seconds of the reader), as fit() brings the rows to the ranks."""
    from stretto.spark import ranks, runs, write_in_order  # pickled by value: executors need no package
    job = {"work_dir": home, "name": "parts", "token": "t"}
    folder = home + "/parts"

    def write(batches):
        import pyarrow
        from pyspark import TaskContext
        rows = ranks.write_part("%s/data/part-%05d.arrows" % (folder, TaskContext.get().partitionId()), batches)
        yield pyarrow.RecordBatch.from_pydict({"rows": pyarrow.array([rows], pyarrow.int64())})
    began = time.monotonic()
    parts = write_in_order(spark, table, [0], job)
    if (parts is not None) != ordered:
        sys.exit("the order of the table was not found")
    if parts:
        runs.place(folder, dict(job, parts=parts))
    else:
        os.makedirs(folder + "/data")
        by_time(table).mapInArrow(write, "rows long", barrier=True).collect()
    return time.monotonic() - began, reader_seconds(args, folder + "/data", 1)


def torch_seconds(table, rows):
    def tensors(frames):
        import pandas
        import torch
        got = [torch.from_numpy(f[["y", "x"]].to_numpy(dtype="float32")) for f in frames]
        yield pandas.DataFrame({"rows": [len(torch.cat(got)) if got else 0]})
    began = time.monotonic()
    seen = sum(r["rows"] for r in table.mapInPandas(tensors, "rows long").collect())
    if seen != rows:
        sys.exit("the loop has seen %d of %d rows" % (seen, rows))
    return time.monotonic() - began


def to_csv(folder, path):
    import pyarrow.csv
    import pyarrow.ipc
    with open(path, "wb") as out:
        for k, part in enumerate(sorted(glob.glob(folder + "/*.arrows"))):
            with open(part, "rb") as f:
                pyarrow.csv.write_csv(pyarrow.ipc.open_stream(f).read_all(), out, pyarrow.csv.WriteOptions(include_header=k == 0))


def ways(args, spark, home, ordered, shuffled, small):
    """{name: (function that returns the seconds in Spark and of the reader, function that warms up)}"""
    def own(table, in_order):
        try:
            return ours(args, spark, home, table, in_order)
        finally:
            shutil.rmtree(home + "/parts", ignore_errors=True)

    def loop(table, rows=args.rows):
        return torch_seconds(table, rows), 0.0

    def csv(threads):
        return 0.0, reader_seconds(args, home + "/rows.csv", threads)
    warm, torch, none = (lambda: own(small, True)), (lambda: loop(small, SMALL)), (lambda: None)
    return {"ours, table in order": (lambda: own(ordered, True), warm), "ours, shuffled table": (lambda: own(shuffled, False), warm),
            "torch, shuffled table: shuffle, sort": (lambda: loop(by_time(shuffled)), torch),
            "torch, table in order: shuffle, sort": (lambda: loop(by_time(ordered)), torch),
            "torch, table in order: neither": (lambda: loop(ordered), torch),
            "CSV file, 1 thread": (lambda: csv(1), none), "CSV file, 2 threads": (lambda: csv(2), none)}


def measure(args, spark, home, ordered, shuffled, small):
    """{name: [(seconds in Spark, seconds of the reader)]}"""
    ours(args, spark, home, ordered, True)
    to_csv(home + "/parts/data", home + "/rows.csv")
    shutil.rmtree(home + "/parts")
    runs = {name: way for name, way in ways(args, spark, home, ordered, shuffled, small).items() if re.search(args.ways, name)}
    times = {name: [] for name in runs}
    for turn in range(args.turns):
        for name in list(runs) if turn % 2 == 0 else reversed(runs):
            run, warm = runs[name]
            warm()
            times[name].append(run())
            print("turn %d, %s: %.2f + %.2f s, load %.1f" % (turn, name, *times[name][-1], os.getloadavg()[0]), file=sys.stderr, flush=True)
    return times


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rows", type=int, default=20000000)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--ways", default="", help="regular expression: the rows of the table that are measured; the first is what others are compared with")
    args = p.parse_args()
    home = tempfile.mkdtemp(prefix="stretto-bench-spark-")
    try:
        import pyarrow
        import pyspark
        import torch
        spark = session(home)
        small = tables(spark, home, SMALL)[0]
        times = measure(args, spark, home, *tables(spark, home, args.rows), small)
        spark.stop()
        cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
        print("%s, %d cores, Linux %s, pyspark %s, pyarrow %s, torch %s; %d rows, medians of %d turns; load %.1f at the end" % (
            cpu, os.cpu_count(), platform.release(), pyspark.__version__, pyarrow.__version__, torch.__version__, args.rows, args.turns,
            os.getloadavg()[0]))
        print("| | Spark, s | reader, s | both, s | million rows a second | times the first row |\n|---|---|---|---|---|---|")
        first = [a + b for a, b in next(iter(times.values()))]
        for name, pairs in times.items():
            both = [a + b for a, b in pairs]
            middle = statistics.median(both)
            print("| %s | %.1f | %.2f | %.1f | %.2f | %.2f |" % (name, *(statistics.median(t[i] for t in pairs) for i in (0, 1)), middle,
                                                         args.rows / middle / 1e6, statistics.median(b / a for a, b in zip(first, both))))
    finally:
        shutil.rmtree(home, ignore_errors=True)


main()
