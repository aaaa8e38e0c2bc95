"""rows.py - rows a second from a Spark DataFrame into the trainer, beside the program that reads the same rows as CSV.

    build/spark-venv/bin/python bench/spark/rows.py build/release [ROWS]        tools/spark_venv.sh makes the interpreter

Table: a timestamp and two numbers.  Spark: local-cluster[2,1,1024], the DataFrame made by the executors, shuffled, sorted and
written as two Arrow parts: wall seconds.  Reader: bench_reader on these parts and on a CSV file of the same rows, one thread, the
two by turns, medians of five: wall and processor seconds, since the machine may be shared.
"""
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
BUILD, ROWS = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000000


def session(home):
    from pyspark.sql import SparkSession
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_DIRS=home)
    build = SparkSession.builder.master("local-cluster[2,1,1024]")
    for key, value in {"spark.executor.memory": "768m", "spark.driver.memory": "768m", "spark.ui.enabled": "false",
                       "spark.driver.host": "127.0.0.1", "spark.ui.showConsoleProgress": "false",
                       "spark.driver.bindAddress": "127.0.0.1", "spark.sql.session.timeZone": "UTC"}.items():
        build = build.config(key, value)
    spark = build.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def stage(spark, folder):
    """The first half of fit(): seconds of the whole, and of the slowest task."""
    from pyspark.sql import functions as F
    from stretto.spark import ranks  # pickled by value: executors need no package

    def write(batches):
        import pyarrow
        from pyspark import TaskContext
        began = time.monotonic()
        path = "%s/part-%05d.arrows" % (folder, TaskContext.get().partitionId())
        rows = ranks.write_part(path, batches)
        yield pyarrow.RecordBatch.from_pydict({"rows": pyarrow.array([rows], pyarrow.int64()),
                                               "seconds": pyarrow.array([time.monotonic() - began])})
    time_of = F.timestamp_seconds(F.col("id") * 60)
    df = spark.range(0, ROWS, 1, 2).select(time_of.alias("ds"), F.rand(1).alias("y"), F.rand(2).alias("x"))
    began = time.monotonic()
    ordered = df.repartitionByRange(2, "ds").sortWithinPartitions("ds")
    told = ordered.mapInArrow(write, "rows long, seconds double", barrier=True).collect()
    assert sum(r["rows"] for r in told) == ROWS, told
    return time.monotonic() - began, max(r["seconds"] for r in told)


def to_csv(folder, path):
    import pyarrow.csv
    import pyarrow.ipc
    with open(path, "wb") as out:
        for k, part in enumerate(sorted(glob.glob(folder + "/*.arrows"))):
            with open(part, "rb") as f:
                pyarrow.csv.write_csv(pyarrow.ipc.open_stream(f).read_all(), out, pyarrow.csv.WriteOptions(include_header=k == 0))


def read_seconds(path):
    """(wall, processor)"""
    reader = os.path.join(BUILD, "bench", "reader", "bench_reader")
    told = subprocess.run([reader, "read", "1", path], capture_output=True, text=True, check=True).stdout.split()
    return float(told[0]), float(told[1])


def main():
    home = tempfile.mkdtemp(prefix="stretto-bench-spark-")
    try:
        data, csv = home + "/data", home + "/rows.csv"
        os.mkdir(data)
        spark = session(home)
        stage(spark, data)  # the first run compiles
        whole, slowest = stage(spark, data)
        spark.stop()
        to_csv(data, csv)
        times = {data: [], csv: []}
        for _ in range(5):
            for path in times:
                times[path].append(read_seconds(path))
        print("load %.1f" % os.getloadavg()[0])
        print("| Spark: shuffle, sort, write 2 parts | %.2f | | %.2f |" % (whole, ROWS / whole / 1e6))
        print("| of which the slowest task, from its first batch | %.2f | | %.2f |" % (slowest, ROWS / slowest / 1e6))
        for name, path in (("read the parts", data), ("read the CSV file", csv)):
            wall, cpu = (statistics.median(t[i] for t in times[path]) for i in (0, 1))
            print("| %s | %.2f | %.3f | %.2f |" % (name, wall, cpu, ROWS / cpu / 1e6))
    finally:
        shutil.rmtree(home, ignore_errors=True)


main()
