"""runs.py - a table that is in order of time already needs no shuffle and no sort: its partitions are cut into ascending runs.

    partition 0    1 2 3 | 7 8 9        two runs: the partition holds pieces of two files
    partition 1    4 5 6                one run
    driver         1..3, 4..6, 7..9     the runs do not overlap, so they are the parts of the table, in this order

A stage without a barrier writes each run as a file of FOLDER/loose-TOKEN; task 0 of the barrier stage moves the files to FOLDER/data.
A key is (time), or (time, series) in a panel, and compares as Spark sorts it.  A partition whose rows cannot be the runs of such a
table stops at the batch that shows it, and stops the others by a mark in the folder.  Pickled by value, as ranks.py.
"""
import json
import os
import shutil
import socket
import time
import uuid

from stretto.talk import Refused, folder_of

MOST = 64       # runs of a partition; Spark packs at most 32 small files into one (maxPartitionBytes / openCostInBytes)
SEEN_S = 10.0   # how long a file written on another host may take to appear on a shared file system
ROW = "part int, seq int, name string, rows long, size long, first string, last string, failed string"


class Disorder(Exception):
    """The rows are not those of a table in order."""


class Absent(Refused):
    """A task does not see a part: Spark must move the rows."""


def loose_of(job):
    return os.path.join(folder_of(job), "loose-" + job["token"])


# ---------------------------------------------------------------------------------------------- the runs of a partition ----------

def keys_of(batch, columns):
    """The key columns as numbers or bytes, without nulls and NaN: those sort in ways of their own."""
    import pyarrow
    import pyarrow.compute as compute
    as_bytes = {pyarrow.string(): pyarrow.binary(), pyarrow.large_string(): pyarrow.large_binary()}
    found = []
    for array in map(batch.column, columns):
        if array.null_count or pyarrow.types.is_floating(array.type) and compute.any(compute.is_nan(array)).as_py():
            raise Disorder
        if pyarrow.types.is_timestamp(array.type):
            array = array.view(pyarrow.int64())
        elif pyarrow.types.is_date32(array.type):
            array = array.view(pyarrow.int32())
        found.append(array.cast(as_bytes.get(array.type, array.type)))
    return found


def key_at(keys, row):
    """A key as values that JSON has and that compare as the key does."""
    values = [array[row].as_py() for array in keys]
    return [v.hex() if isinstance(v, bytes) else v for v in values]


def falls(keys):
    """Rows whose key is less than that of the row above."""
    import pyarrow.compute as compute
    less = None
    for array in reversed(keys):
        above, own = array.slice(0, len(array) - 1), array.slice(1)
        below = compute.less(own, above)
        less = below if less is None else compute.or_(below, compute.and_(compute.equal(own, above), less))
    return [row + 1 for row in compute.indices_nonzero(less).to_pylist()]


class Run:
    """Ascending rows in a file of their own; Spark may run a task twice, so the name is that of the attempt."""

    def __init__(self, folder, schema, first):
        import pyarrow
        self.name, self.rows, self.first, self.last = uuid.uuid4().hex, 0, first, first
        self.path = os.path.join(folder, self.name)
        self.out = pyarrow.OSFile(self.path, "wb")
        self.writer = pyarrow.ipc.new_stream(self.out, schema)

    def add(self, batch, last):
        self.writer.write_batch(batch)
        self.rows, self.last = self.rows + batch.num_rows, last

    def close(self):
        if not self.out.closed:
            self.writer.close()
            self.out.close()


def begin(folder, runs, schema, first):
    """Ends the last run and begins the next, which may lie in a gap of those before it but not inside one."""
    if runs:
        runs[-1].close()
    if len(runs) == MOST or any(r.first <= first < r.last for r in runs):
        raise Disorder
    runs.append(Run(folder, schema, first))


def add_batch(folder, runs, batch, columns):
    keys = keys_of(batch, columns)
    cuts = [0] + falls(keys) + [batch.num_rows]
    for start, end in zip(cuts, cuts[1:]):
        first = key_at(keys, start)
        if not runs or first < runs[-1].last:
            begin(folder, runs, batch.schema, first)
        runs[-1].add(batch.slice(start, end - start), key_at(keys, end - 1))


def write_runs(folder, columns, batches):
    """The runs of a partition; None if the table is not in order."""
    runs, mark = [], os.path.join(folder, "disorder")
    try:
        for batch in batches:
            if os.path.exists(mark):
                raise Disorder
            if batch.num_rows:
                add_batch(folder, runs, batch, columns)
    except Disorder:
        with open(mark, "w", encoding="ascii"):
            pass
        for run in runs:
            run.close()
            os.unlink(run.path)
        return None
    finally:
        for run in runs:
            run.close()
    return runs


def rows_of(job, part, columns, batches):
    """What the task of a partition reports: a row for each run; a single row that fails where there is disorder or no room."""
    row = {"part": part, "seq": 0, "name": "", "rows": 0, "size": 0, "first": "", "last": "", "failed": ""}
    folder = loose_of(job)
    try:
        os.makedirs(folder, exist_ok=True)
        runs = write_runs(folder, columns, batches)
        if runs is None:
            return [dict(row, failed="disorder")]
        return [dict(row, seq=k, name=r.name, rows=r.rows, size=os.path.getsize(r.path), first=json.dumps(r.first), last=json.dumps(r.last))
                for k, r in enumerate(runs)]
    except OSError as e:
        return [dict(row, failed="the partition cannot be written on %s: %s: give work_dir a folder with room for the table, which "
                     "the executors may write" % (socket.gethostname(), e))]


class Write:
    """What mapInArrow calls on an executor."""

    def __init__(self, job, columns):
        self.job, self.columns = job, columns

    def __call__(self, batches):
        import pyarrow
        from pyspark import TaskContext
        rows = rows_of(self.job, TaskContext.get().partitionId(), self.columns, batches)
        kinds = {"int": pyarrow.int32(), "long": pyarrow.int64(), "string": pyarrow.string()}
        fields = [(name, kinds[kind]) for name, kind in (field.split() for field in ROW.split(", "))]
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([r[name] for r in rows], kind) for name, kind in fields], [n for n, _ in fields])


def sweep(job):
    """Removes the files of runs that nobody will read, and a folder that they leave empty."""
    shutil.rmtree(loose_of(job), ignore_errors=True)
    try:
        os.rmdir(folder_of(job))
    except OSError:  # it holds the checkpoint of an earlier attempt, or another task has removed it
        pass


class Sweep:
    """What mapInArrow calls on an executor."""

    def __init__(self, job):
        self.job = job

    def __call__(self, batches):
        sweep(self.job)
        return iter(())


# ---------------------------------------------------------------------------------------------- the order of the runs ------------

def arrange(told):
    """The parts of the table in order, (name, rows, size), of the rows of all partitions; None if they are not in order."""
    for row in told:
        if row["failed"] == "disorder":
            return None
        if row["failed"]:
            raise Refused(row["failed"])
    keyed = sorted((json.loads(r["first"]), json.loads(r["last"]), r["part"], r["seq"], r["name"], r["rows"], r["size"]) for r in told)
    for above, own in zip(keyed, keyed[1:]):
        if own[0] < above[1] or own[0] == above[1] and own[2:4] < above[2:4]:  # equal keys stay in the order of the table
            return None
    return [run[4:] for run in keyed] or None


# ---------------------------------------------------------------------------------------------- the barrier stage ----------------

def part_of(folder, k):
    return os.path.join(folder, "data", "part-%05d.arrows" % k)


def place(folder, job):
    """Moves the runs to where the program reads parts.  A further attempt of the stage finds them there."""
    os.makedirs(os.path.join(folder, "data"), exist_ok=True)
    keep = set()
    for k, (name, _, _) in enumerate(job["parts"]):
        keep.add(os.path.basename(part_of(folder, k)))
        if os.path.exists(os.path.join(loose_of(job), name)):
            os.replace(os.path.join(loose_of(job), name), part_of(folder, k))
    for name in set(os.listdir(os.path.join(folder, "data"))) - keep:
        os.unlink(os.path.join(folder, "data", name))


def absent(folder, parts):
    """The first part that this task does not see as it was written."""
    for k, (_, _, size) in enumerate(parts):
        try:
            if os.path.getsize(part_of(folder, k)) == size:
                continue
        except OSError:
            pass
        return part_of(folder, k)
    return ""


def placed(talk, parts):
    """Every task sees every part; returns the rows of the parts."""
    limit = time.monotonic() + SEEN_S
    while absent(talk.folder, parts) and time.monotonic() < limit:
        time.sleep(0.2)
    for told in talk.exchange(absent=absent(talk.folder, parts)):
        if told["absent"]:
            raise Absent("a task does not see " + told["absent"])
    return [rows for _, rows, _ in parts]
