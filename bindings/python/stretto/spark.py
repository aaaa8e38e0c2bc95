"""spark.py - StrettoForecaster and StrettoForecasterModel: an estimator and a model of pyspark.ml.

    est = StrettoForecaster(label_col="y", time_col="ds", horizon=24, num_workers=4)
    model = est.fit(df)              a barrier stage of 4 tasks, each of which runs a rank of one training (ranks.py)
    model.transform(df).show()       ds, origin, step, prediction, y, q0.1, ..

Parameters have MLlib's names (labelCol); keyword arguments may be spelt label_col.  Those of the table OPTIONS are options of
`stretto train`; any other option goes into options={"segment": 4}.
"""
import json
import time as clock
import uuid
import warnings

from pyspark import cloudpickle
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import vector_to_array
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol
from pyspark.ml.util import (DefaultParamsReadable, DefaultParamsReader, DefaultParamsWritable, DefaultParamsWriter, MLReadable,
                             MLReader, MLWritable, MLWriter)
from pyspark.sql import functions as F
from pyspark.sql import types
from pyspark.sql.types import ArrayType, NumericType, StringType, TimestampType

from stretto import children, forecasts, ranks, runs, talk

__all__ = ["StrettoForecaster", "StrettoForecasterModel", "StrettoError"]

SLOTS_S = 30.0  # how long fit() waits for executors that are still starting
ROW = "name string, seq int, bytes binary"
COMPARED = (types.ByteType, types.ShortType, types.IntegerType, types.LongType, types.FloatType, types.DoubleType, types.DateType,
            types.TimestampType, types.TimestampNTZType, types.StringType)  # times and series that runs.py compares as Spark does

for module in (children, forecasts, ranks, runs, talk):  # executors need the program, but not this package
    cloudpickle.register_pickle_by_value(module)


class StrettoError(RuntimeError):
    """The program refused the data or the options; the text is its message."""


def to_options(value):
    if not isinstance(value, dict):
        raise TypeError("options is a dict of options of `stretto train`, as {\"segment\": 4}")
    return {str(k): v for k, v in value.items()}


# Parameter, option of `stretto train`, type, meaning.
OPTIONS = (
    ("horizon", "--horizon", TypeConverters.toInt, "forecast horizon, in time steps"),
    ("context", "--context", TypeConverters.toInt, "lookback window, in time steps"),
    ("cell", "--cell", TypeConverters.toString, "recurrent cell: lstm, gru, rnn, .."),
    ("hidden", "--hidden", TypeConverters.toInt, "hidden size of each recurrent layer"),
    ("layers", "--layers", TypeConverters.toInt, "number of recurrent layers"),
    ("base", "--base", TypeConverters.toString, "base forecast that the network corrects"),
    ("steps", "--steps", TypeConverters.toInt, "number of training steps"),
    ("maxSteps", "--max-steps", TypeConverters.toInt, "budget: steps are doubled up to it while the validation loss falls"),
    ("batch", "--batch", TypeConverters.toInt, "batch size, in windows"),
    ("learningRate", "--lr", TypeConverters.toFloat, "learning rate"),
    ("dropout", "--dropout", TypeConverters.toFloat, "dropout probability"),
    ("seed", "--seed", TypeConverters.toInt, "random seed"),
    ("freq", "--freq", TypeConverters.toString, "sampling interval, as 1h, 15min, 1d"),
    ("season", "--season", TypeConverters.toString, "rows of a season"),
    ("gaps", "--gaps", TypeConverters.toString, "missing time steps and targets: error, mask, interpolate, zero"),
    ("optimizer", "--optim", TypeConverters.toString, "optimizer: adam, adamw, sgd, .."),
    ("store", "--store", TypeConverters.toString, "parameter store: sync, ssp:3, asp, local:64, .."),
    ("granularity", "--granularity", TypeConverters.toString, "when a worker pushes, in which pieces: 8steps*tensor"),
    ("servers", "--servers", TypeConverters.toInt, "ranks that only serve, beside the workers; 0 = a shard on every worker"),
    ("workerOptimizer", "--worker-optim", TypeConverters.toString, "optimizer of the workers' local steps"),
    ("serverOptimizer", "--server-optim", TypeConverters.toString, "optimizer of the servers"),
    ("codec", "--codec", TypeConverters.toString, "compression of messages: fp16, int8, topk:0.01, .."),
    ("checkpointEvery", "--checkpoint-every", TypeConverters.toString, "time between checkpoints, as 10m"),
)

OTHERS = (
    ("timeCol", TypeConverters.toString, "column of times"),
    ("idCol", TypeConverters.toString, "column that names the series of each row: a panel, of which one model is made"),
    ("pastCols", TypeConverters.toListString, "covariates known only in the past"),
    ("knownCols", TypeConverters.toListString, "covariates known in the future too"),
    ("catCols", TypeConverters.toListString, "covariates that are categories"),
    ("numWorkers", TypeConverters.toInt, "ranks that train, each a task of the barrier stage"),
    ("useGpu", TypeConverters.toBoolean, "each task trains on the GPU that Spark gives it"),
    ("threads", TypeConverters.toInt, "threads of a rank; 0 = spark.task.cpus"),
    ("rolling", TypeConverters.toBoolean, "transform() forecasts inside the data, every `horizon` rows, not behind their end"),
    ("options", to_options, "further options of `stretto train`"),
    ("program", TypeConverters.toString, "the program on the executors"),
    ("mpiexec", TypeConverters.toString, "the launcher of MPICH on the executors"),
    ("interface", TypeConverters.toString, "network interface of the launcher"),
    ("workDir", TypeConverters.toString, "folder that all executors share; empty = a local one, for executors of one host"),
    ("runName", TypeConverters.toString, "name of the run in workDir: a driver that starts again goes on from its checkpoint"),
    ("deadline", TypeConverters.toFloat, "seconds after which a training is ended; 0 = none"),
)


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


class ForecasterParams(HasFeaturesCol, HasLabelCol, HasPredictionCol):
    """The parameters of estimator and model."""

    def __init__(self):
        super().__init__()
        self._setDefault(labelCol="y", timeCol="ds", idCol="", pastCols=[], knownCols=[], catCols=[], horizon=1, numWorkers=1,
                         threads=0, servers=0, useGpu=False, rolling=False, options={}, program="stretto",
                         mpiexec="mpiexec.mpich", interface="", workDir="", runName="", deadline=0.0)

    def take(self, given):
        """Sets parameters from keyword arguments in MLlib's spelling or Python's."""
        for name, value in given.items():
            name = camel(name)
            if not self.hasParam(name):
                raise TypeError("no parameter \"%s\"; other options of `stretto train` go into options={..}" % name)
            if value is not None:
                self._set(**{name: value})
        return self

    def setParams(self, **given):
        """Sets parameters; returns self."""
        return self.take(given)

    def arguments(self, features):
        """The options of `stretto train`."""
        words = ["--target", escape([self.getLabelCol()]), "--time", escape([self.getOrDefault("timeCol")])]
        if self.getOrDefault("idCol"):
            words += ["--id", escape([self.getOrDefault("idCol")])]
        for flag, names in (("--past", self.getOrDefault("pastCols") + features), ("--known", self.getOrDefault("knownCols")),
                            ("--cat", self.getOrDefault("catCols"))):
            if names:
                words += [flag, escape(names)]
        for name, flag, _, _ in OPTIONS:
            if self.isDefined(name) and (name != "servers" or self.getOrDefault(name)):
                words += [flag, str(self.getOrDefault(name))]
        if self.getOrDefault("useGpu"):
            words += ["--device", "cuda:0"]
        for name, value in sorted(self.getOrDefault("options").items()):
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else ["--no-" + flag[2:]] if value is False else [flag, str(value)]
        return words


for _name, _convert, _doc in [(n, c, d) for n, _, c, d in OPTIONS] + list(OTHERS):
    setattr(ForecasterParams, _name, Param(Params._dummy(), _name, _doc, typeConverter=_convert))


def escape(names):
    return ",".join(name.replace(",", "\\,") for name in names)


# ---------------------------------------------------------------------------------------------- the table -------------------

def need_column(df, name, what):
    if name not in df.columns:
        raise ValueError("%s=\"%s\": the DataFrame has no such column; it has %s" % (what, name, ", ".join(df.columns)))
    return df.schema[name].dataType


def quoted(name):
    return F.col("`%s`" % name.replace("`", "``"))


def feature_columns(df, params):
    """featuresCol as columns of numbers: (names, expressions)."""
    name = params.getFeaturesCol()
    if not params.isSet("featuresCol") and name not in df.columns:
        return [], []
    kind = need_column(df, name, "features_col")
    if isinstance(kind, NumericType):
        return [name], [quoted(name)]
    array = quoted(name) if isinstance(kind, ArrayType) else vector_to_array(quoted(name))
    first = df.where(quoted(name).isNotNull()).select(F.size(array)).head()
    size = first[0] if first else 0
    names = ["%s_%d" % (name, i) for i in range(size)]
    return names, [array.getItem(i).alias(n) for i, n in enumerate(names)]


def series_of(df, params):
    """The columns that the program reads, and the names of the features."""
    need_column(df, params.getOrDefault("timeCol"), "time_col")
    need_column(df, params.getLabelCol(), "label_col")
    for what in ("pastCols", "knownCols", "catCols"):
        for name in params.getOrDefault(what):
            need_column(df, name, what)
    if params.getOrDefault("idCol"):
        need_column(df, params.getOrDefault("idCol"), "id_col")
    names, features = feature_columns(df, params)
    listed = [params.getOrDefault("timeCol"), params.getLabelCol()] + [params.getOrDefault("idCol")] * bool(params.getOrDefault("idCol"))
    for what in ("pastCols", "knownCols", "catCols"):
        listed += [name for name in params.getOrDefault(what) if name not in listed]
    return df.select(*[quoted(name) for name in listed], *features), names


def order_of(params):
    """The order of rows: by time, and the series of a time by their names."""
    names = [params.getOrDefault("timeCol")] + [params.getOrDefault("idCol")] * bool(params.getOrDefault("idCol"))
    return [quoted(name) for name in names]


def keys_in_arrow(table, params):
    """Where order_of() is in the columns of series_of(); None if their order in Spark is not that of their bytes and numbers."""
    columns = [0, 2] if params.getOrDefault("idCol") else [0]
    for kind in (table.schema[c].dataType for c in columns):
        if not isinstance(kind, COMPARED) or getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
            return None
    return columns


# ---------------------------------------------------------------------------------------------- the stages ------------------

def need_workers(params):
    for name, text, least in (("numWorkers", "num_workers", 1), ("servers", "servers", 0)):
        if params.getOrDefault(name) < least:
            raise ValueError("%s=%d: a training has at least one task that trains, and no fewer than 0 that only serve" % (text, params.getOrDefault(name)))


def need_slots(spark, tasks):
    """A barrier stage needs all of its tasks at once."""
    context = spark.sparkContext
    if context.getConf().get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        raise ValueError("spark.dynamicAllocation.enabled is true: all ranks of a training start at once, so the executors must "
                         "be there; set it to false and ask for executors with spark.executor.instances")
    limit = clock.monotonic() + SLOTS_S
    while True:
        scala = context._jsc.sc()
        slots = scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile())
        if slots >= tasks:
            return
        if clock.monotonic() > limit:
            raise ValueError("num_workers and servers need %d task slots at the same time, the cluster has %d: executors times "
                             "spark.executor.cores / spark.task.cpus" % (tasks, slots))
        clock.sleep(0.2)


def one_folder(spark, job):
    """All executors write to the same folder: a shared one, or that of the only host."""
    if job["work_dir"]:
        return True
    told = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    found = [told.apply(k) for k in range(told.size())]
    return len({e.hostPort().rsplit(":", 1)[0] for e in found if e.id() != "driver"}) <= 1


def write_in_order(spark, table, columns, job):
    """Has the partitions written as they are.  Returns the parts of a table in order, None of another one, without its files."""
    parts = None
    try:
        parts = runs.arrange([row.asDict() for row in table.mapInArrow(runs.Write(job, columns), runs.ROW).collect()])
    except talk.Refused as e:
        raise StrettoError(str(e)) from None
    finally:
        if parts is None:
            sweep(spark, job)
    return parts


def sweep(spark, job):
    """Removes the files that write_in_order() has left, on all hosts that Spark gives the tasks to."""
    tasks = spark.sparkContext.defaultParallelism
    try:
        spark.range(0, tasks, 1, tasks).mapInArrow(runs.Sweep(job), "id long").collect()
    except Exception as e:  # the error that led here says more
        warnings.warn("files of the folder %s of this run may be left on the executors: %s" % (job["name"], e))


def failure_of(error):
    """The text of the task that failed, out of the traces of Spark."""
    text = str(error)
    at = text.find("Interrupted: ")
    return text[at + len("Interrupted: "):].split("\n\n\tat ")[0].strip() if at >= 0 else None


def run_stage(rows, job):
    """Runs the barrier stage on partitions of rows, one a task; returns what task 0 yields, {name: bytes}."""
    try:
        stage = rows.mapInArrow(ranks.Stage(job), ROW, barrier=True)
        told = stage.repartition(1).collect()  # a barrier stage in front of a shuffle can be repeated, one of results cannot
    except Exception as e:
        text = failure_of(e)
        if text is None:
            raise
        raise StrettoError("no attempt of the stage came to its end: " + text) from e
    return ranks.collect([row.asDict() for row in told])


class StrettoForecaster(Estimator, ForecasterParams, DefaultParamsWritable, DefaultParamsReadable):
    """Trains a forecaster of a series, or of a panel of series, on the tasks of a barrier stage."""

    def __init__(self, **given):
        super().__init__()
        self.take(given)

    def tasks(self):
        return self.getOrDefault("numWorkers") + self.getOrDefault("servers")

    def job(self, features):
        return {"program": self.getOrDefault("program"), "mpiexec": self.getOrDefault("mpiexec"),
                "interface": self.getOrDefault("interface"), "work_dir": self.getOrDefault("workDir"),
                "name": "stretto-" + (self.getOrDefault("runName") or uuid.uuid4().hex[:12]), "token": uuid.uuid4().hex[:12],
                "keep": bool(self.getOrDefault("runName")), "threads": self.getOrDefault("threads"), "gpu": self.getOrDefault("useGpu"),
                "deadline": self.getOrDefault("deadline"), "argv": self.arguments(features)}

    def _fit(self, dataset):
        spark = dataset.sparkSession
        need_workers(self)
        table, features = series_of(dataset, self)
        need_slots(spark, self.tasks())
        job, columns = self.job(features), keys_in_arrow(table, self)
        parts = write_in_order(spark, table, columns, job) if columns and one_folder(spark, job) else None
        found = run_stage(spark.range(0, self.tasks(), 1, self.tasks()), dict(job, parts=parts)) if parts else None
        if found and "absent" in found:
            sweep(spark, job)
        if found is None or "absent" in found:
            time = quoted(self.getOrDefault("timeCol"))
            found = run_stage(table.repartitionByRange(self.tasks(), time).sortWithinPartitions(*order_of(self)), job)
        if "refused" in found:
            raise StrettoError(found["refused"].decode())
        return self._copyValues(StrettoForecasterModel(found))


# ---------------------------------------------------------------------------------------------- the model -------------------

class StrettoForecasterModel(Model, ForecasterParams, MLWritable, MLReadable):
    """A trained forecaster: a model file of the program, with its report and scores."""

    def __init__(self, files=None):
        super().__init__()
        self.files = files or {}

    @property
    def scores(self):
        """Scores on the test split, as `stretto train --json` prints them."""
        return json.loads(self.files.get("scores", b"{}"))

    @property
    def part_rows(self):
        """Rows of each part of the table as it was written for the ranks."""
        return json.loads(self.files.get("parts", b"[]"))

    @property
    def shuffled(self):
        """True if Spark shuffled and sorted the rows; False if the table was in order of time already."""
        return json.loads(self.files.get("shuffled", b"true"))

    @property
    def report(self):
        """The HTML report of the training."""
        return self.files.get("report", b"").decode()

    def write_file(self, path):
        """Writes the model file for the program: stretto predict PATH data.csv."""
        with open(path, "wb") as f:
            f.write(self.files["model"])

    def _transform(self, dataset):
        table, _ = series_of(dataset, self)
        time, label = self.getOrDefault("timeCol"), self.getLabelCol()
        job = {"program": self.getOrDefault("program"), "model": self.files["model"], "threads": self.getOrDefault("threads"),
               "time": time, "label": label, "id": self.getOrDefault("idCol"), "horizon": self.getOrDefault("horizon"), "rolling": self.getOrDefault("rolling"),
               "text": isinstance(dataset.schema[time].dataType, StringType),
               "gaps": self.getOrDefault("gaps") if self.isDefined("gaps") else ""}
        quantiles = forecasts.quantile_names(self.files["model"])
        fields = ["id string", "time string", "origin string", "step int", "mean double", "label double"]
        fields += ["`%s` double" % q for q in quantiles]
        ordered = table.repartition(1).sortWithinPartitions(*order_of(self))
        made = ordered.mapInArrow(forecasts.Predict(job, quantiles), ", ".join(fields))
        kind = dataset.schema[time].dataType
        name = self.getOrDefault("idCol")
        series = [F.col("id").cast(dataset.schema[name].dataType).alias(name)] if name else []
        return made.select(*series, as_time(F.col("time"), kind).alias(time), as_time(F.col("origin"), kind).alias("origin"), "step",
                           F.col("mean").alias(self.getPredictionCol()), F.col("label").alias(label),
                           *[F.col("`%s`" % q) for q in quantiles])

    def write(self):
        return ForecasterWriter(self)

    @classmethod
    def read(cls):
        return ForecasterReader(cls)


def as_time(column, kind):
    """Times as the program prints them, in the type that the column of the DataFrame has."""
    if isinstance(kind, StringType):
        return column
    if isinstance(kind, NumericType):
        return column.cast(TimestampType()).cast("long").cast(kind)
    return column.cast(kind)


class ForecasterWriter(MLWriter):
    """Metadata as every stage of MLlib has, and the files as rows: any file system of Spark will do."""

    def __init__(self, instance):
        super().__init__()
        self.instance = instance

    def saveImpl(self, path):
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sc)
        pieces = [r for name, data in self.instance.files.items() for r in ranks.rows_of(name, data)]
        rows = [(r["name"], r["seq"], bytearray(r["bytes"])) for r in pieces]
        self.sparkSession.createDataFrame(rows, ROW).coalesce(1).write.parquet(path + "/data")


class ForecasterReader(MLReader):
    def __init__(self, cls):
        super().__init__()
        self.cls = cls

    def load(self, path):
        metadata = DefaultParamsReader.loadMetadata(path, self.sc)
        rows = self.sparkSession.read.parquet(path + "/data").collect()
        model = self.cls(ranks.collect([row.asDict() for row in rows]))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
