"""t_spark.py - the Spark estimator (bindings/python/stretto): bits of an MPI run, restarts, refusals.

Class Shim runs the tasks as threads under a stand-in of BarrierTaskContext, with real Arrow streams, launch lines and MPI ranks;
it needs pyarrow and MPICH.  Class Spark runs them on local-cluster[2,1,1024]; it needs pyspark and Java too.  tools/spark_venv.sh
gets them; without them the test says what it skips.
"""
import glob
import importlib.util
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import e2e
from e2e import Case

VENV = os.path.join(e2e.ROOT, "build", "spark-venv", "bin", "python")
PYTHON = os.path.join(e2e.ROOT, "bindings", "python")
MPIEXEC = shutil.which("mpiexec.mpich")
FIT = ("--target", "y", "--time", "ds", "--past", "temp", "--horizon", "4", "--steps", "20", "--hidden", "8", "--batch", "32")
LONG = ("--target", "y", "--time", "ds", "--past", "temp", "--horizon", "4", "--steps", "4000", "--hidden", "8", "--batch", "32",
        "--checkpoint-every", "0.05")


def have(module):
    return importlib.util.find_spec(module) is not None


if not have("pyarrow") and os.access(VENV, os.X_OK) and os.path.abspath(sys.executable) != VENV:
    os.execv(VENV, [VENV] + sys.argv)
sys.path.insert(0, PYTHON)
if have("pyarrow"):
    import pyarrow
    from stretto import ranks, runs, talk


def values(rows):
    """(day and hour, y, temp) of hours since 2011-01-01; y is smooth, with noise that every machine computes alike."""
    x, out = 7, []
    for i in range(rows):
        x = (x * 1103515245 + 12345) % 2147483648
        out.append((i * 3600, round(10 * math.sin(i * math.pi / 12), 3) + x // 65536 % 1000 / 500, x // 4096 % 100 / 10))
    return out


def text_of(rows):
    base = 1293840000
    return "ds,y,temp\n" + "".join("%s,%r,%r\n" % (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(base + t)), y, x)
                                  for t, y, x in rows)


def batches_of(rows, size=100):
    """Arrow batches as Spark hands them over."""
    base = 1293840000
    for at in range(0, len(rows), size):
        some = rows[at:at + size]
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([(base + t) * 1000000 for t, _, _ in some], pyarrow.timestamp("us")),
                                               pyarrow.array([y for _, y, _ in some]), pyarrow.array([x for _, _, x in some])],
                                              ["ds", "y", "temp"])


class Gathering:
    """allGather of tasks that are threads."""

    def __init__(self, size):
        self.size, self.said = size, [""] * size
        self.barrier = threading.Barrier(size)

    def gather(self, me, text):
        self.said[me] = text
        self.barrier.wait(120)
        told = list(self.said)
        self.barrier.wait(120)
        return told


class Context:
    def __init__(self, gathering, me, gpus):
        self.gathering, self.me, self.gpus = gathering, me, gpus

    def partitionId(self):
        return self.me

    def getTaskInfos(self):
        return [None] * self.gathering.size

    def allGather(self, text):
        return self.gathering.gather(self.me, text)

    def resources(self):
        class Gpu:
            addresses = self.gpus
        return {"gpu": Gpu} if self.gpus else {}


def processes(word):
    """Processes with the word in their command line."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                if word.encode() in f.read():
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


class Ranks(Case):
    """What both classes compare with."""

    def by_hand(self, text, fit, n=2, name="hand"):
        data = self.write(name + ".csv", text)
        argv = [MPIEXEC, "-n", str(n), e2e.PROGRAM, "train", data, "-o", self.path(name), "--quiet", "--threads", "1", *fit]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120 * e2e.SLOW, env=self.environment(),
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def same_bits(self, data):
        with open(self.path("spark"), "wb") as f:
            f.write(data)
        self.assertEqual(e2e.model(self.path("hand"))[1], e2e.model(self.path("spark"))[1])

    def none_left(self, word):
        limit = time.monotonic() + 10 * e2e.SLOW
        while processes(word) and time.monotonic() < limit:
            time.sleep(0.1)
        self.assertEqual(processes(word), [], "processes with %s are left" % word)

    def kill_when_saved(self, run, choose):
        """Kills what choose() names once the run has a checkpoint; returns the thread and what it killed."""
        killed = []

        def work():
            limit = time.monotonic() + 100 * e2e.SLOW
            while not glob.glob(run + "/checkpoints/*.ckpt") and time.monotonic() < limit:
                time.sleep(0.02)
            for pid in choose():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        thread = threading.Thread(target=work)
        thread.start()
        return thread, killed


@unittest.skipUnless(have("pyarrow"), "skipped: pyarrow is not importable (tools/spark_venv.sh gets it)")
@unittest.skipUnless(MPIEXEC, "skipped: mpiexec.mpich is not here (Debian package mpich)")
class Shim(Ranks):
    def run_stage(self, partitions, gpus=(), folders=None, columns=None, programs=None, **more):
        """Runs the tasks; returns what they yield, and the exceptions.  columns: names for each partition, all by default; folders and
        programs: of each task."""
        job = {"program": e2e.PROGRAM, "mpiexec": MPIEXEC, "interface": "", "work_dir": self.dir, "name": "run", "keep": False,
               "threads": 1, "gpu": False, "deadline": 0, "argv": list(FIT), "env": {"STRETTO_WISDOM": "off"}}
        job.update(more)
        gathering, rows, failures = Gathering(len(partitions)), [], []

        def task(me, part):
            own = dict(job, work_dir=folders[me] if folders else job["work_dir"], program=programs[me] if programs else job["program"])
            batches = (b.select(columns[me]) if columns else b for b in batches_of(part))
            try:
                rows.extend(ranks.train(Context(gathering, me, list(gpus[me]) if gpus else []), own, batches))
            except Exception as e:  # as Spark: the stage fails with the first
                failures.append(e)
                gathering.barrier.abort()
        threads = [threading.Thread(target=task, args=pair) for pair in enumerate(partitions)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.none_left(self.dir)
        return ranks.collect(rows), failures

    def refused(self, partitions, *words, **more):
        found, failures = self.run_stage(partitions, **more)
        self.assertEqual(failures, [])
        text = found["refused"].decode()
        for word in words:
            self.assertIn(word, text)
        self.assertFalse(os.path.exists(self.path("run")), "a run that is refused leaves its folder")

    def test_uneven_and_empty_partitions_have_the_bits_of_mpiexec(self):
        rows = values(600)
        self.by_hand(text_of(rows), FIT, n=3)
        found, failures = self.run_stage([rows[:450], [], rows[450:]])
        self.assertEqual(failures, [])
        self.same_bits(found["model"])
        self.assertEqual(json.loads(found["parts"]), [450, 0, 150])
        self.assertEqual(json.loads(found["scores"])["rows"][0]["name"], "model")
        self.assertFalse(os.path.exists(self.path("run")))

    def test_killed_rank_interrupts_and_the_next_attempt_goes_on(self):
        rows = values(600)
        parts = [rows[:300], rows[300:]]
        self.by_hand(text_of(rows), LONG)
        run = self.path("run/model.run")
        thread, killed = self.kill_when_saved(run, lambda: [p for p in processes("--run-dir") if p in processes(self.dir)
                                                            and e2e.PROGRAM in os.readlink("/proc/%d/exe" % p)][-1:])
        found, failures = self.run_stage(parts, argv=list(LONG))
        thread.join()
        self.assertEqual(len(killed), 1)
        self.assertTrue(any(isinstance(e, talk.Interrupted) for e in failures), failures)
        self.assertTrue(glob.glob(run + "/checkpoints/*.ckpt"))
        self.assertEqual(found, {})
        found, failures = self.run_stage(parts, argv=list(LONG))
        self.assertEqual(failures, [])
        self.same_bits(found["model"])

    def written(self, partitions, columns=(0,)):
        """What the stage without a barrier reports of partitions, each a list of batches; the parts of the table, if it is in order."""
        job = {"work_dir": self.dir, "name": "run", "token": "t"}
        told = [row for me, batches in enumerate(partitions) for row in runs.rows_of(job, me, list(columns), iter(batches))]
        return told, runs.arrange(told)

    def in_order(self, *partitions):
        return self.written([list(batches_of(p)) for p in partitions])[1]

    def test_runs_of_a_table_in_order_have_the_bits_of_mpiexec(self):
        rows = values(600)
        self.by_hand(text_of(rows), FIT, n=3)
        parts = self.in_order(rows[300:450] + rows[:130], rows[130:300], [], rows[450:])  # a fall inside a batch
        self.assertEqual([p[1] for p in parts], [130, 170, 150, 150])
        found, failures = self.run_stage([[], [], []], token="t", parts=parts)
        self.assertEqual(failures, [])
        self.same_bits(found["model"])
        self.assertEqual((json.loads(found["parts"]), json.loads(found["shuffled"])), ([130, 170, 150, 150], False))
        self.assertFalse(os.path.exists(self.path("run")))

    def test_next_attempt_finds_the_runs_where_the_first_has_moved_them(self):
        rows = values(600)
        self.by_hand(text_of(rows), LONG)
        parts, run = self.in_order(rows[:100], rows[100:]), self.path("run/model.run")
        thread, killed = self.kill_when_saved(run, lambda: [p for p in processes("--run-dir") if p in processes(self.dir)
                                                            and e2e.PROGRAM in os.readlink("/proc/%d/exe" % p)][-1:])
        found, failures = self.run_stage([[], []], argv=list(LONG), token="t", parts=parts)
        thread.join()
        self.assertEqual((len(killed), found), (1, {}))
        self.assertTrue(any(isinstance(e, talk.Interrupted) for e in failures), failures)
        found, failures = self.run_stage([[], []], argv=list(LONG), token="t", parts=parts)
        self.assertEqual(failures, [])
        self.same_bits(found["model"])

    def test_a_part_that_a_task_does_not_see_sends_the_rows_through_spark(self):
        rows = values(200)
        parts = self.in_order(rows[:100], rows[100:])
        os.unlink(self.path("run/loose-t/" + parts[1][0]))
        with unittest.mock.patch.object(runs, "SEEN_S", 0.3):
            found, failures = self.run_stage([[], []], token="t", parts=parts)
        self.assertEqual((failures, list(found)), ([], ["absent"]))
        self.assertIn(b"data/part-00001.arrows", found["absent"])
        self.assertFalse(os.path.exists(self.path("run")))

    def test_no_files_of_a_named_run_are_left_loose(self):
        rows = values(200)
        os.makedirs(self.path("run/loose-of-a-driver-that-died"))
        parts = self.in_order(rows[:100], rows[100:])
        found, _ = self.run_stage([[], []], token="t", parts=parts, keep=True, program="strettissimo")
        self.assertIn(b"strettissimo", found["refused"])
        self.assertEqual(os.listdir(self.path("run")), ["loose-of-a-driver-that-died"])
        found, _ = self.run_stage([rows[:100], rows[100:]], token="t", keep=True, argv=["--target", "load"])
        self.assertIn(b"E102", found["refused"])
        self.assertEqual((glob.glob(self.path("run/loose-*")), len(os.listdir(self.path("run/data")))), ([], 2))

    def test_rows_out_of_order_are_found_and_leave_no_files(self):
        rows = values(2000)
        late = rows[:1990] + rows[1995:] + rows[1990:1995]
        for partitions in ([rows[::-1]], [rows[:50] + rows[20:]], [rows[:500] + rows[499:]],  # falls; a repeated time does not fall
                           [late], [rows[:1000] + rows[500:600]], [rows[:1000], rows[900:]], [rows[::2], rows[1::2]]):
            equal = partitions == [rows[:500] + rows[499:]]
            self.assertEqual(self.in_order(*partitions) is not None, equal, len(partitions))
            shutil.rmtree(self.path("run"))
        told, parts = self.written([list(batches_of(late)), list(batches_of(values(10)))])
        self.assertEqual(([row["failed"] for row in told], parts), (["disorder", "disorder"], None))
        self.assertEqual(os.listdir(self.path("run/loose-t")), ["disorder"])

    def test_a_partition_out_of_order_is_not_read_to_its_end(self):
        read, rows = [], values(1000)

        def batches():
            for batch in batches_of(rows[300:500] + rows[:300] + rows[100:200] + rows[500:]):
                read.append(batch.num_rows)
                yield batch
        self.assertIsNone(self.written([batches()])[1])
        self.assertEqual(len(read), 6)

    def keyed(self, *columns):
        return [pyarrow.RecordBatch.from_arrays([pyarrow.array(c) for c in columns], [str(k) for k in range(len(columns))])]

    def test_keys_compare_as_spark_sorts_them(self):
        for values_of, good in (([1, 2, 2], True), ([1.5, math.nan], False), ([None, 1], False), ([-1, 1], True),
                                (["2011-01-02", "2011-01-10"], True), (["9", "10"], True), (["z", "\xe9", "\uffee", "\U00010000"], True),
                                ([-0.0, 0.0, -0.0], True), ([1e300, math.inf], True)):
            self.assertEqual(self.written([self.keyed(values_of)])[1] is not None, good, values_of)
            told, parts = self.written([self.keyed([v]) for v in values_of])  # the driver compares
            self.assertEqual(parts is not None, good, values_of)
            if good and values_of != ["9", "10"]:
                self.assertEqual([p[0] for p in parts], [row["name"] for row in told], values_of)
            shutil.rmtree(self.path("run"))
        for times, names, good in (([1, 1, 2], ["a", "b", "a"], True), ([1, 1, 2, 2], ["a", "b", "b", "a"], False), ([1, 2, 1, 2], [1, 1, 2, 2], False),
                                   ([1, 1, 1], ["a", "a", "b"], True), ([1, 2], ["a", None], False)):
            self.assertEqual(self.written([self.keyed(times, names)], (0, 1))[1] is not None, good, (times, names))
            shutil.rmtree(self.path("run"))

    def test_equal_keys_of_two_partitions_stay_in_the_order_of_the_table(self):
        one, border = self.keyed([1, 2, 2]), self.keyed([2, 2, 3])
        told, parts = self.written([one, border])
        self.assertEqual([p[0] for p in parts], [told[0]["name"], told[1]["name"]])
        self.assertIsNone(self.written([border, one])[1])
        told, parts = self.written([self.keyed([1, 2]), self.keyed([2]), self.keyed([2]), self.keyed([2, 3])])
        self.assertEqual([p[0] for p in parts], [row["name"] for row in told])

    def test_a_folder_that_cannot_be_written_is_one_sentence(self):
        self.write("run", "a file")
        with self.assertRaisesRegex(talk.Refused, "the partition cannot be written on .*: give work_dir a folder with room"):
            self.in_order(values(10))

    def test_errors_of_the_program_reach_the_driver(self):
        rows = values(200)
        self.refused([rows[:100], rows[100:]], "status 2", "E102", "\"load\"", argv=["--target", "load"])
        self.refused([[], []], "the DataFrame has no rows")
        self.refused([rows[:100], rows[100:]], "E202", "part-00001.arrows: 2 columns, but", "part-00000.arrows has 3",
                     columns=[["ds", "y", "temp"], ["ds", "y"]])
        self.refused([rows[100:], rows[:100]], "E209", "part-00001.arrows:1")

    def test_wrong_set_up_is_one_sentence(self):
        rows = values(200)
        parts = [rows[:100], rows[100:]]
        self.refused(parts, "has no program \"strettissimo\"", program="strettissimo")
        self.refused(parts, "has no program \"mpiexec.none\"", mpiexec="mpiexec.none")
        self.refused(parts, "gave 0 launch lines for 2 tasks", mpiexec="/bin/true")
        self.refused(parts, "use_gpu: the task on", gpu=True)
        with unittest.mock.patch.object(ranks, "find_program", lambda name: "/absent" + name), \
                unittest.mock.patch.object(ranks, "version_of", lambda _: "stretto 1"):  # found in task 0's host alone
            self.refused(parts, "has no program /absent" + e2e.PROGRAM + ", which is that of task 0: install it at the same path on every host")
        other = self.path("other")
        os.mkdir(other)
        self.refused(parts, "give work_dir a folder on a file system that all executors share", folders=[self.dir, other])
        written = [self.in_order(rows)[0], ("on another host", 1, 1)]
        os.makedirs(other + "/run/loose-t")
        self.refused([[], []], "give work_dir a folder on a file system", folders=[self.dir, other], token="t", parts=written)
        self.assertEqual(os.listdir(other), [], "a host that task 0 does not see keeps its part")
        self.refused(parts, "longer than deadline=1 s", deadline=1.0, argv=[*LONG, "--steps", "100000000"])

    def stub(self, script, version="stretto 0.1.0", name="stub"):
        """A program that knows its version and otherwise runs a script."""
        path = self.write(name, "#!/bin/sh\n[ \"$1\" = --version ] && echo '%s' && exit\n%s\n" % (version, script))
        os.chmod(path, 0o755)
        return path

    def test_versions_that_differ_are_refused_before_a_rank_starts(self):
        rows, started = values(20), self.path("started")
        programs = [self.stub("touch " + started, "stretto 0.1.%d" % k, "stub%d" % k) for k in (0, 1)]
        self.refused([rows[:10], rows[10:]], "the executor on ", " has stretto 0.1.1, that of task 0 on ", "has stretto 0.1.0: install the same version",
                     programs=programs)
        self.assertFalse(os.path.exists(started))
        broken = self.write("broken", "not a program of this machine")
        os.chmod(broken, 0o755)
        self.refused([rows[:10], rows[10:]], "the program %s does not run on " % broken, "install one that is built for this host", program=broken)

    def test_ranks_that_differ_are_not_tried_again(self):
        rows = values(20)
        lost = self.stub("echo '{\"error\": \"E803\", \"where\": \"\", \"text\": \"rank 1 is lost\", \"fix\": \"\"}' >&2\nexit 8")
        found, failures = self.run_stage([rows[:10], rows[10:]], program=lost)
        self.assertEqual(found, {})
        self.assertTrue(any(isinstance(e, talk.Interrupted) for e in failures), failures)
        shutil.rmtree(self.path("run"))
        differ = self.stub("echo '{\"error\": \"E804\", \"where\": \"\", \"text\": \"rank 1 has other options\", \"fix\": \"\"}' >&2\nexit 8")
        self.refused([rows[:10], rows[10:]], "status 8", "error[E804] rank 1 has other options", program=differ)

    def test_gpus_of_a_task_reach_its_rank(self):
        stub = self.stub("echo \"$CUDA_VISIBLE_DEVICES\" >\"%s/gpu.$PMI_RANK\"\nexit 3" % self.dir)
        rows = values(20)
        self.refused([rows[:10], rows[10:]], "status 3", gpus=[["5"], ["2", "7"]], gpu=True, program=stub)
        self.assertEqual([self.read("gpu.0"), self.read("gpu.1")], [b"5\n", b"2,7\n"])

    def test_processes_end_with_the_worker_that_started_them(self):
        mark = self.path("mark")
        sleeper = "sh -c \"sleep 1000\" " + mark
        code = ("import sys, time; sys.path.insert(0, %r); from stretto import children; children.Child(['sh', '-c', %r]); "
                "print('up', flush=True); time.sleep(1000)" % (PYTHON, "setsid %s & %s" % (sleeper, sleeper)))
        worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        self.addCleanup(worker.kill)
        self.assertEqual(worker.stdout.readline(), b"up\n")
        limit = time.monotonic() + 10 * e2e.SLOW
        while len(processes(mark)) < 4 and time.monotonic() < limit:
            time.sleep(0.05)
        worker.kill()
        worker.wait()
        worker.stdout.close()
        self.none_left(mark)


def skip_without_spark():
    if not have("pyspark"):
        return "skipped: pyspark is not importable (tools/spark_venv.sh gets it)"
    return None if shutil.which("java") else "skipped: there is no java"


@unittest.skipIf(skip_without_spark(), skip_without_spark())
@unittest.skipUnless(MPIEXEC, "skipped: mpiexec.mpich is not here (Debian package mpich)")
class Spark(Ranks):
    @classmethod
    def setUpClass(cls):
        import tempfile
        from pyspark.sql import SparkSession
        cls.home = tempfile.mkdtemp(prefix="stretto-spark-")
        cls.addClassCleanup(shutil.rmtree, cls.home, True)
        os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", STRETTO_WISDOM="off",
                          SPARK_LOCAL_DIRS=cls.home + "/local")
        jvm = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.level=ERROR -Dderby.system.home=" + cls.home
        settings = {"spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.ui.enabled": "false",
                    "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1",
                    "spark.driver.host": "127.0.0.1", "spark.executor.extraJavaOptions": jvm,
                    "spark.driver.extraJavaOptions": jvm,
                    "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2",
                    "spark.sql.warehouse.dir": cls.home + "/warehouse"}
        build = SparkSession.builder.master("local-cluster[2,1,1024]")
        for key, value in settings.items():
            build = build.config(key, value)
        cls.spark = build.getOrCreate()
        cls.spark.sparkContext.setLogLevel("OFF")
        cls.addClassCleanup(cls.spark.stop)

    def table(self, text, name="table.csv"):
        return self.spark.read.csv(self.write(name, text), header=True, schema="ds timestamp_ntz, y double, temp double")

    def estimator(self, **more):
        from stretto.spark import StrettoForecaster
        given = dict(time_col="ds", label_col="y", past_cols=["temp"], horizon=4, steps=20, hidden=8, batch=32, num_workers=2,
                     threads=1, program=e2e.PROGRAM, mpiexec=MPIEXEC, work_dir=self.dir)
        given.update(more)
        return StrettoForecaster(**given)

    def test_fit_transform_save_load_in_a_pipeline(self):
        from pyspark.ml import Pipeline, PipelineModel
        from pyspark.ml.feature import SQLTransformer
        rows = values(600)
        self.by_hand(text_of(rows), FIT)
        self.stretto("predict", "hand", "hand.csv", "-o", "hand.out")
        shuffled = self.table(text_of(rows)).orderBy("temp", "y")
        pipeline = Pipeline(stages=[SQLTransformer(statement="SELECT ds, y, temp FROM __THIS__"), self.estimator()])
        fitted = pipeline.fit(shuffled)
        self.same_bits(fitted.stages[1].files["model"])
        self.assertEqual(sum(fitted.stages[1].part_rows), 600)
        self.assertTrue(fitted.stages[1].shuffled)
        self.assertEqual(glob.glob(self.path("stretto-*")), [])
        fitted.write().overwrite().save(self.path("saved"))
        again = PipelineModel.load(self.path("saved"))
        self.assertEqual(again.stages[1].files, fitted.stages[1].files)
        made = again.transform(shuffled).orderBy("step").collect()
        hand = [line.split(",") for line in self.read("hand.out").decode().split("\n")[1:] if line]
        self.assertEqual([r["prediction"] for r in made], [float(h[4]) for h in hand])
        self.assertEqual([r["ds"].strftime("%Y-%m-%d %H:%M") for r in made], [h[2] for h in hand])
        self.assertEqual([r["q0.9"] for r in made], [float(h[7]) for h in hand])

    def test_a_table_in_order_is_neither_shuffled_nor_sorted(self):
        rows = values(600)
        self.by_hand(text_of(rows), FIT)
        for k, (first, end) in enumerate(((0, 100), (100, 250), (250, 600))):  # Spark reads the largest file first, and packs files
            self.table(text_of(rows[first:end]), "part%d.csv" % k).coalesce(1).write.mode("append").parquet(self.path("parts"))
        table = self.spark.read.parquet(self.path("parts"))
        model = self.estimator().fit(table)
        self.same_bits(model.files["model"])
        self.assertEqual((model.shuffled, model.part_rows), (False, [100, 150, 350]))
        self.assertEqual(glob.glob(self.path("stretto-*")), [])
        local = self.estimator(work_dir="").fit(table)
        self.assertFalse(local.shuffled)
        self.same_bits(local.files["model"])

    def test_a_panel_has_the_bits_of_one_command(self):
        lines = text_of(values(300)).split("\n")
        long = [lines[0] + ",shop"]
        for line in lines[1:-1]:  # in order of time, then of name: as the program numbers the series
            ds, y, temp = line.split(",")
            long += ["%s,%r,%s,%s" % (ds, float(y) * k, temp, shop) for k, shop in enumerate(("east", "west"), 1)]
        text = "\n".join(long) + "\n"
        self.by_hand(text, (*FIT, "--id", "shop"))
        self.stretto("predict", "hand", "hand.csv", "-o", "hand.out")
        table = self.spark.read.csv(self.write("panel.csv", text), header=True,
                                    schema="ds timestamp_ntz, y double, temp double, shop string").orderBy("temp", "y")
        model = self.estimator(id_col="shop").fit(table)
        self.same_bits(model.files["model"])
        ordered = self.estimator(id_col="shop").fit(table.orderBy("ds", "shop"))
        self.same_bits(ordered.files["model"])
        self.assertEqual((model.shuffled, ordered.shuffled), (True, False))
        made = model.transform(table).orderBy("shop", "step").collect()
        hand = [line.split(",") for line in self.read("hand.out").decode().split("\n")[1:] if line]
        self.assertEqual([(r["shop"], r["prediction"]) for r in made], [(h[0], float(h[4])) for h in hand])
        parts = self.estimator(id_col="shop", rolling=True, horizon=24, context=24).fit(table).transform(table)
        self.assertEqual({r["shop"] for r in parts.select("shop").distinct().collect()}, {"east", "west"})

    def test_killed_worker_is_tried_again_and_resumes(self):
        rows = values(600)
        self.by_hand(text_of(rows), LONG)

        def worker():  # rank, proxy, guard, worker of Spark
            pid = [p for p in processes(self.dir) if os.readlink("/proc/%d/exe" % p) == e2e.PROGRAM][-1]
            for _ in range(3):
                with open("/proc/%d/stat" % pid, encoding="ascii") as f:
                    pid = int(f.read().rsplit(")", 1)[1].split()[1])
            return [pid]
        thread, killed = self.kill_when_saved(self.path("stretto-night/model.run"), worker)
        model = self.estimator(steps=4000, checkpoint_every="0.05", run_name="night").fit(self.table(text_of(rows)))
        thread.join()
        self.assertEqual(len(killed), 1)
        self.same_bits(model.files["model"])
        self.none_left(self.dir)

    def test_cross_validation_over_blocks_of_time(self):
        from pyspark.ml.evaluation import RegressionEvaluator
        from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
        from pyspark.sql import functions as F
        table = self.table(text_of(values(240))).withColumn("block", F.when(F.col("ds") < "2011-01-06", 0).otherwise(1))
        est = self.estimator(num_workers=1, rolling=True, gaps="mask", horizon=24, context=24)
        grid = ParamGridBuilder().addGrid(est.hidden, [4, 8]).build()
        judge = RegressionEvaluator(labelCol="y", predictionCol="prediction", metricName="mae")
        best = CrossValidator(estimator=est, estimatorParamMaps=grid[:1], evaluator=judge, numFolds=2, foldCol="block").fit(table)
        self.assertTrue(0 < best.avgMetrics[0] < 20, best.avgMetrics)
        self.assertEqual(best.bestModel.getOrDefault("hidden"), 4)

    def test_wrong_data_are_one_sentence_on_the_driver(self):
        from pyspark.sql import functions as F
        from stretto.spark import StrettoError
        table = self.table(text_of(values(60)))
        with self.assertRaisesRegex(ValueError, "label_col=\"load\": the DataFrame has no such column; it has ds, y, temp"):
            self.estimator(label_col="load").fit(table)
        with self.assertRaisesRegex(ValueError, "id_col=\"shop\": the DataFrame has no such column"):
            self.estimator(id_col="shop").fit(table)
        with self.assertRaisesRegex(ValueError, "num_workers=0: a training has at least one task that trains"):
            self.estimator(num_workers=0).fit(table)
        with self.assertRaisesRegex(ValueError, "servers=-1: "):
            self.estimator(servers=-1).fit(table)
        with self.assertRaisesRegex(ValueError, "need 3 task slots at the same time, the cluster has [12]"):
            from stretto import spark
            spark.SLOTS_S = 0.5
            self.estimator(num_workers=3).fit(table)
        with self.assertRaisesRegex(StrettoError, "has no program \"strettissimo\""):
            self.estimator(program="strettissimo").fit(table)
        with self.assertRaisesRegex(StrettoError, "the partition cannot be written on .*: give work_dir a folder with room"):
            self.estimator(work_dir=self.write("file", "")).fit(table)
        with self.assertRaisesRegex(StrettoError, "E301"):
            self.estimator(horizon=1000).fit(table)

    def test_only_executors_of_one_host_write_without_a_shared_folder(self):
        from stretto.spark import one_folder
        for hosts, shared, good in ((["driver=a:1", "0=b:2", "1=b:3"], "", True), (["driver=a:1", "0=b:2", "1=c:2"], "", False),
                                    (["driver=a:1", "0=b:2", "1=c:2"], "/shared", True), (["driver=a:1"], "", True)):
            told = [unittest.mock.Mock(**{"id.return_value": h.split("=")[0], "hostPort.return_value": h.split("=")[1]}) for h in hosts]
            stub = unittest.mock.MagicMock()
            store = stub.sparkContext._jsc.sc().statusStore().executorList.return_value
            store.size.return_value, store.apply.side_effect = len(told), told.__getitem__
            self.assertEqual(one_folder(stub, {"work_dir": shared}), good, hosts)

    def test_dynamic_allocation_is_refused(self):
        from stretto.spark import need_slots

        class Stub:
            class sparkContext:
                @staticmethod
                def getConf():
                    return {"spark.dynamicAllocation.enabled": "true"}
        with self.assertRaisesRegex(ValueError, "spark.dynamicAllocation.enabled is true: .* set it to false"):
            need_slots(Stub, 2)


if __name__ == "__main__":
    if not have("pyarrow"):
        print("skipped: pyarrow is not importable (tools/spark_venv.sh gets it with pyspark)")
        sys.exit(77)
    sys.warnoptions.append("default")  # keeps unittest from showing the warnings of other packages
    e2e.main()
