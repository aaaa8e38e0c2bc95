"""forecasts.py - forecasts of a partition by `stretto predict`; like ranks.py it is pickled by value and imports no Spark.

    end        rows with a label, then rows of the future without one -> `horizon` forecasts behind the last label
    rolling    rows | forecast | forecast | ..    an origin every `horizon` rows: a forecast for every row with history before it

A rolling forecast runs the program once for each origin, on the rows up to it; the label of a forecast row is that of the data.
"""
import csv
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

TOO_SHORT = ("E301",)


def metadata_of(model):
    (n,) = struct.unpack("<Q", model[:8])
    return json.loads(model[8:8 + n].decode("utf-8")).get("__metadata__", {})


def quantile_names(model):
    """Columns q0.1, q0.9, .. of the forecasts of a model file."""
    options = json.loads(metadata_of(model)["stretto.options"])
    return ["q%g" % q for q in options["quantiles"]]


def whole_clock(text):
    """2011-01-26 05:00Z with its seconds: Spark reads no time without them."""
    return re.sub(r"( \d\d:\d\d)(?=$|Z|[+-])", r"\1:00", text)


def table_of(batches):
    import pyarrow
    batches = list(batches)
    return pyarrow.Table.from_batches(batches) if batches else None


def write_stream(path, table):
    import pyarrow
    with pyarrow.OSFile(path, "wb") as out, pyarrow.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)


class Failed(RuntimeError):
    """The program refused the data."""


class Predict:
    """What mapInArrow calls on an executor: all series in one partition, in order of time."""

    def __init__(self, job, quantiles):
        self.job, self.quantiles = job, quantiles

    def __call__(self, batches):
        table = table_of(batches)
        if table is None:
            return
        folder = tempfile.mkdtemp(prefix="stretto-predict-")
        try:
            with open(os.path.join(folder, "model"), "wb") as f:
                f.write(self.job["model"])
            rows = [r for part in self.series(table) for r in self.rolling(folder, part)] if self.job["rolling"] else \
                self.predict(folder, table)
            yield self.to_batch(rows)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def predict(self, folder, table):
        data, out = os.path.join(folder, "data.arrows"), os.path.join(folder, "out.csv")
        write_stream(data, table)
        argv = [self.job["program"], "predict", os.path.join(folder, "model"), data, "-o", out, "--quiet", "--color", "never"]
        if self.job["threads"]:
            argv += ["--threads", str(self.job["threads"])]
        if self.job["gaps"]:
            argv += ["--gaps", self.job["gaps"]]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except OSError as e:
            raise Failed("the executor has no program \"%s\": install it there, or give its path by program=.. (%s)"
                         % (self.job["program"], e)) from None
        if done.returncode:
            raise Failed(done.stderr.strip())
        with open(out, encoding="utf-8", newline="") as f:
            return list(csv.DictReader(f))

    def series(self, table):
        """The rows of each series of a panel."""
        if not self.job["id"]:
            return [table]
        import pyarrow.compute as compute
        ids = table.column(self.job["id"])
        return [table.filter(compute.equal(ids, one)) for one in compute.unique(ids)]

    def rolling(self, folder, table):
        """Origins every `horizon` rows; the rows behind an origin keep their covariates and lose their label."""
        import pyarrow
        rows, step = [], self.job["horizon"]
        at = table.column_names.index(self.job["label"])
        label = table.column(at)
        for origin in range(step, table.num_rows - step + 1, step):
            part = table.slice(0, origin + step)
            known = pyarrow.chunked_array([*label.slice(0, origin).chunks, pyarrow.nulls(step, label.type)], label.type)
            try:
                made = self.predict(folder, part.set_column(at, table.schema.field(at), known))
            except Failed as e:
                if any(code in str(e) for code in TOO_SHORT):
                    continue  # not enough history yet
                raise
            for k, row in enumerate(made):
                row["label"] = label[origin + k].as_py()
            rows += made
        return rows

    def to_batch(self, rows):
        import pyarrow

        def numbers(name):
            return pyarrow.array([float(r[name]) if r.get(name) not in (None, "") else None for r in rows], pyarrow.float64())
        def times(name):
            return pyarrow.array([r[name] if self.job["text"] else whole_clock(r[name]) for r in rows], pyarrow.string())
        steps = pyarrow.array([int(r["step"]) for r in rows], pyarrow.int32())
        arrays = [pyarrow.array([r["id"] for r in rows], pyarrow.string()), times("time"), times("origin"), steps, numbers("mean"), numbers("label")]
        names = ["id", "time", "origin", "step", "mean", "label"] + self.quantiles
        return pyarrow.RecordBatch.from_arrays(arrays + [numbers(q) for q in self.quantiles], names)
