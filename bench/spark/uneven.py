"""uneven.py - busy max/mean of the tasks of a training on partitions as a join leaves them, beside one task per partition.

    build/spark-venv/bin/python bench/spark/uneven.py build/release [ROWS]        tools/spark_venv.sh makes the interpreter

Session: local-cluster[2,2,1024].  The table is joined with four keys; partition i of the join has a share of i^-1.5 of the rows.
  one task per partition   each task trains on the rows of its own partition for an epoch (`stretto train`), as data-parallel
                           programs do that feed a process from its partition
  StrettoForecaster        four ranks train for an epoch of all rows, with --balance off and as by default
Busy is the processor time of the program in a task (user and system), which the load of the machine hardly changes; it contains
what a rank computes while it waits for messages.  Reading, validation and scores, which are rank 0's in part, are in the busy
seconds of a run; a run of three epochs less one of one epoch leaves the steps with their validations.
"""
import os
import shutil
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
BUILD, ROWS = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100000
PROGRAM, TASKS = os.path.join(BUILD, "cli", "stretto"), 4
NET = {"context": 48, "horizon": 12, "hidden": 32, "batch": 64, "seed": 1}
MORE = {"preset": "none", "segment": 1, "decoder": "direct", "calendar": "no", "base": "none", "guard": False, "members": 1, "loss": "mse"}
WRAPPER = """#!%s
import os, resource, subprocess, sys
status = subprocess.call([%r] + sys.argv[1:], close_fds=False)  # PMI has a descriptor
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(%r + os.environ.get("PMI_RANK", "0"), "w") as f:
    f.write(str(used.ru_utime + used.ru_stime))
sys.exit(status if status >= 0 else 128 - status)
"""


def session(home):
    from pyspark.sql import SparkSession
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_DIRS=home, STRETTO_WISDOM="off")
    build = SparkSession.builder.master("local-cluster[2,2,1024]")
    for key, value in {"spark.executor.memory": "768m", "spark.driver.memory": "768m", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
                       "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.session.timeZone": "UTC",
                       "spark.sql.shuffle.partitions": str(TASKS), "spark.sql.adaptive.enabled": "false",
                       "spark.sql.autoBroadcastJoinThreshold": "-1"}.items():
        build = build.config(key, value)
    spark = build.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def joined(spark):
    """Hours with a daily wave, joined with a key each, whose numbers of rows fall as i^-1.5."""
    from pyspark.sql import functions as F
    keys = {}  # a key for each partition
    for row in spark.range(1000).select("id", F.expr("pmod(hash(id), %d)" % TASKS).alias("part")).collect():
        keys.setdefault(row["part"], row["id"])
    keys = [keys[k] for k in sorted(keys)]
    sizes = [i ** -1.5 for i in range(1, TASKS + 1)]
    share, key = F.col("id") * 2654435761 % (1 << 32) / float(1 << 32), F.lit(keys[-1])
    for i in reversed(range(TASKS - 1)):
        key = F.when(share < sum(sizes[:i + 1]) / sum(sizes), keys[i]).otherwise(key)
    y = F.sin(F.col("id") * 0.2617993878) + F.sin(F.col("id") * 0.0373999125) + 0.2 * F.rand(1)
    hours = spark.range(0, ROWS, 1, 2).select(F.timestamp_seconds(F.col("id") * 3600).alias("ds"), y.alias("y"), key.cast("long").alias("key"))
    return hours.join(spark.createDataFrame([(k, 1.0) for k in keys], "key long, weight double"), "key").select("ds", "y")


def per_partition(table, home, epochs):
    """[(rows, busy seconds)] of one task for each partition."""
    words = [w for k, v in {**NET, **MORE, "epochs": epochs}.items() for w in (["--no-" + k] if v is False else ["--" + k, str(v)])]

    def work(batches):
        import resource
        import subprocess
        import pyarrow
        from pyspark import TaskContext
        path = "%s/own-%d.arrows" % (home, TaskContext.get().partitionId())
        some = pyarrow.Table.from_batches(batches).sort_by("ds").select(["y"])
        with pyarrow.OSFile(path, "wb") as f, pyarrow.ipc.new_stream(f, some.schema) as out:
            out.write_table(some)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([PROGRAM, "train", path, "-o", path + ".model", "--target", "y", "--threads", "1", "--quiet", *words],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        yield pyarrow.RecordBatch.from_pydict({"rows": pyarrow.array([some.num_rows], pyarrow.int64()), "busy": pyarrow.array([busy])})
    return [(r["rows"], r["busy"]) for r in table.mapInArrow(work, "rows long, busy double").collect()]


def sliced(table, home, epochs, balance):
    """[(rows, busy seconds)] of the ranks of a fit."""
    from stretto.spark import StrettoForecaster
    program = home + "/stretto"
    with open(program, "w", encoding="utf-8") as f:
        f.write(WRAPPER % (sys.executable, PROGRAM, home + "/busy."))
    os.chmod(program, 0o755)
    model = StrettoForecaster(num_workers=TASKS, threads=1, program=program, mpiexec="mpiexec.mpich", work_dir=home, **NET,
                              options={**MORE, "parallel": "data_sync", "balance": balance, "epochs": epochs}).fit(table)
    busy = [float(open("%s/busy.%d" % (home, k), encoding="ascii").read()) for k in range(TASKS)]
    return list(zip(model.part_rows, busy))


def main():
    home = tempfile.mkdtemp(prefix="stretto-bench-uneven-")
    try:
        spark = session(home)
        table = joined(spark)
        ways = (("one task per partition", per_partition), ("StrettoForecaster, --balance off", lambda *a: sliced(*a, "off")),
                ("StrettoForecaster", lambda *a: sliced(*a, "auto")))
        print("| | rows of the tasks | busy in a run of one epoch, s | max / mean | busy in two further epochs, s | max / mean |\n|---|---|---|---|---|---|", flush=True)
        for name, run in ways:
            one, three = run(table, home, 1), run(table, home, 3)
            busy = [b for _, b in one]
            steps = [b - a for (_, a), (_, b) in zip(one, three)]
            print("| %s | %s | %s | %s |" % (name, ", ".join(str(r) for r, _ in one), *(
                "%s | **%.2f**" % (", ".join("%.2f" % b for b in some), max(some) * len(some) / sum(some)) for some in (busy, steps))), flush=True)
        print("load %.1f at the end" % os.getloadavg()[0])
        spark.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


main()
