"""ranks.py - the tasks of a barrier stage run the program `stretto` as ranks of one training; no Spark is imported here.

    every task   partition -> FOLDER/data/part-00003.arrows      Arrow batches as they come, no row is touched in Python; where
                                                                 an earlier stage has written the parts (runs.py), task 0 moves them
    task 0       mpiexec -launcher manual                        prints a launch line for every task
    every task   its launch line -> rank: stretto train FOLDER/data ..    ranks talk by MPI alone
    task 0       the model, scores and report as rows

`ctx` is a BarrierTaskContext, or anything with partitionId(), getTaskInfos() and allGather(text): tests have threads instead.
FOLDER is the same on all hosts: a local folder where all tasks are on one host, else a folder of a shared file system (work_dir).
It outlives a failed stage, so the next attempt goes on from the newest checkpoint.  The module is pickled by value: executors
need pyarrow and the program, but not this package.
"""
import fcntl
import glob
import json
import os
import shlex
import shutil
import socket
import subprocess
import time

from stretto import runs
from stretto.children import Child, launch_lines, tail_of
from stretto.talk import Refused, Talk, folder_of, gather

CHUNK = 8 << 20     # bytes of a file in a row
GRACE = 5.0         # seconds between the end of one process of a job and that of the others
RESTART = (75, 8)   # checkpoint written, or a rank lost: a further attempt goes on
DIFFER = "error[E804]"  # but the ranks would differ again


def find_program(name):
    found = shutil.which(name)
    if not found:
        raise Refused("the executor on %s has no program \"%s\": install it there, or give its path by program=.."
                      % (socket.gethostname(), name))
    return os.path.abspath(found)


def version_of(program):
    """What the program says of itself."""
    try:
        done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        fault = done.returncode and "%s (status %d)" % (done.stderr.strip(), done.returncode)
    except OSError as e:
        fault = e
    if fault:
        raise Refused("the program %s does not run on %s: %s: install one that is built for this host" % (program, socket.gethostname(), fault))
    return done.stdout.strip()


def need_one_version(told):
    """Ranks of different versions do not understand each other."""
    for t in told:
        if t["version"] != told[0]["version"]:
            raise Refused("the executor on %s has %s, that of task 0 on %s has %s: install the same version on every host"
                          % (t["host"], t["version"], told[0]["host"], told[0]["version"]))


def clear(folder, job):
    """Keeps the checkpoints of an earlier attempt, and the parts that an earlier stage has written."""
    for name in ("data", "talk", "end") if not job.get("parts") else ("talk", "end"):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        os.makedirs(os.path.join(folder, name))
    if job.get("parts"):
        runs.place(folder, job)
    for old in glob.glob(os.path.join(glob.escape(folder), "loose-*")):  # of a driver that has died
        shutil.rmtree(old, ignore_errors=True)


def prepare(ctx, job):
    """The programs, and the folder: None where this task does not see that of task 0."""
    me, folder = ctx.partitionId(), folder_of(job)
    token, mine = os.path.join(folder, "token"), {"host": socket.gethostname()}
    try:
        mine["program"] = find_program(job["program"])
        mine["version"] = version_of(mine["program"])
        if me == 0:
            mine["mpiexec"] = find_program(job["mpiexec"])
            clear(folder, job)
            mine["token"] = os.urandom(16).hex()
            with open(token, "w", encoding="ascii") as f:
                f.write(mine["token"])
    except Refused as e:
        mine["refused"] = str(e)
    except OSError as e:
        mine["refused"] = "work_dir: %s" % e
    told = gather(ctx, **mine)
    need_one_version(told)
    try:
        with open(token, encoding="ascii") as f:
            seen = f.read()
    except OSError:
        seen = ""
    return folder if seen == told[0]["token"] else None, told[0], mine


def write_part(path, batches):
    """The Arrow batches of a partition as a stream; returns the number of rows.  An empty partition has no file."""
    import pyarrow
    rows, writer, out = 0, None, None
    try:
        for batch in batches:
            if writer is None:
                out = pyarrow.OSFile(path + ".tmp", "wb")
                writer = pyarrow.ipc.new_stream(out, batch.schema)
            writer.write_batch(batch)
            rows += batch.num_rows
        if writer:
            writer.close()
    finally:
        if out:
            out.close()
    if writer:
        os.rename(path + ".tmp", path)
    return rows


def write_data(talk, batches):
    mine = {}
    try:
        mine["rows"] = write_part(os.path.join(talk.folder, "data", "part-%05d.arrows" % talk.me), batches)
    except OSError as e:
        mine["refused"] = "the partition cannot be written on %s: %s" % (socket.gethostname(), e)
    rows = [t["rows"] for t in talk.exchange(**mine)]
    if sum(rows) == 0:
        raise Refused("the DataFrame has no rows")
    return rows


def wait_for_lock(run_dir):
    """Ranks of an attempt that failed may need a moment to die: until then they hold the lock of the run."""
    limit = time.monotonic() + 20
    while os.path.exists(os.path.join(run_dir, "lock")) and time.monotonic() < limit:
        with open(os.path.join(run_dir, "lock"), "r+b") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                time.sleep(0.2)


def command(job, folder, program):
    """The command line of a rank: a run with a checkpoint goes on."""
    run_dir, model = os.path.join(folder, "model.run"), os.path.join(folder, "model")
    if glob.glob(os.path.join(run_dir, "checkpoints", "*.ckpt")):
        return [program, "resume", run_dir, "--json", "--quiet", "--threads", str(job["threads"])]
    return [program, "train", os.path.join(folder, "data"), "-o", model, "--run-dir", run_dir, "--json", "--quiet",
            "--threads", str(job["threads"])] + job["argv"]


def environment(ctx, job):
    env = dict(os.environ, **job.get("env", {}))
    resources = ctx.resources() if job.get("gpu") else {}
    if job.get("gpu"):
        if "gpu" not in resources:
            raise Refused("use_gpu: the task on %s has no GPU: set spark.task.resource.gpu.amount and "
                          "spark.executor.resource.gpu.amount" % socket.gethostname())
        env["CUDA_VISIBLE_DEVICES"] = ",".join(resources["gpu"].addresses)
    return env


def start_launcher(job, mpiexec, size, argv):
    names = ",".join("task%d" % i for i in range(size))
    line = [mpiexec, "-genvnone", "-launcher", "manual", "-hosts", names, "-n", str(size)]
    if job.get("interface"):
        line += ["-iface", job["interface"]]
    return Child(line + argv, head=launch_lines)


def mark_end(folder, me, text):
    path = os.path.join(folder, "end", "end.%d" % me)
    with open(path + ".tmp", "w", encoding="ascii") as f:
        f.write(text)
    os.rename(path + ".tmp", path)


def others_failed(folder, me):
    """A process of another task has failed, or the launcher has ended."""
    for path in glob.glob(os.path.join(folder, "end", "end.*[0-9]")):
        with open(path, encoding="ascii") as f:
            if not path.endswith(".%d" % me) and (f.read().strip("[]0, ") or path.endswith(".0")):
                return True
    return False


def wait(job, folder, me, children, started):
    """Waits for the processes of this task.  Where one of the job has failed, the others get GRACE seconds: a launcher whose
    proxy is gone would wait for ever.  Task 0 ends a training that takes too long, as it has the launcher: a proxy that is ended
    first makes the launcher fail for a reason that says nothing."""
    limit, too_long = None, job.get("deadline", 0) + (0 if me == 0 else GRACE)
    while any(c.status() is None for c in children):
        now = time.monotonic()
        if job.get("deadline") and now - started > too_long:
            for c in children:
                c.end()
            raise Refused("the training took longer than deadline=%g s and was ended\n%s" % (job["deadline"], tail_of(children)))
        launcher_ended = me == 0 and children[0].status() is not None
        if not limit and (launcher_ended or any(c.status() for c in children) or others_failed(folder, me)):
            limit = now + GRACE
        if limit and now > limit:
            for c in children:
                c.end()
        time.sleep(0.05)
    for c in children:
        c.finish()
    mark_end(folder, me, str([c.status() for c in children]))


def verdict(children):
    """What this task says at the end: task 0 knows the status of the job."""
    status, text = children[0].status(), tail_of(children)
    if status == 0:
        return {}
    what = "stretto ended with status %d; its last lines:\n%s" % (status, text)
    dead = 128 < status < 160 or 0 < status < 32 and status in (4, 6, 9, 11, 15) and "error[E" not in text
    again = (status in RESTART or dead) and DIFFER not in text
    return {"interrupted" if again else "refused": what}


def launch(ctx, job, talk, programs, children):
    """Starts this task's part of the job: the launcher in task 0, then the launch line of every task."""
    mine = {}
    try:
        env = environment(ctx, job)
        if talk.me == 0:
            wait_for_lock(os.path.join(talk.folder, "model.run"))
            children.append(start_launcher(job, programs["mpiexec"], talk.size, command(job, talk.folder, programs["program"])))
            mine["lines"] = children[0].lines
            if len(children[0].lines) != talk.size:
                children[0].end()
                mine["refused"] = "%s gave %d launch lines for %d tasks: is it the mpiexec of MPICH? %s" % (
                    programs["mpiexec"], len(children[0].lines), talk.size, tail_of(children))
    except Refused as e:
        mine["refused"] = str(e)
    lines = talk.exchange(**mine)[0]["lines"]
    children.append(Child(shlex.split(lines[talk.me]), env=env))


def run_job(ctx, job, talk, programs):
    """The training; returns what rank 0 printed, in task 0."""
    started, children, last = time.monotonic(), [], {}
    try:
        launch(ctx, job, talk, programs, children)
        try:
            wait(job, talk.folder, talk.me, children, started)
            last = verdict(children) if talk.me == 0 else {}
        except Refused as e:
            last["refused"] = str(e)
        talk.exchange(**last)
        return children[0].out if talk.me == 0 else []
    finally:
        for c in children:
            c.end()


def rows_of(name, data):
    for seq in range(max(1, (len(data) + CHUNK - 1) // CHUNK)):
        yield {"name": name, "seq": seq, "bytes": data[seq * CHUNK:(seq + 1) * CHUNK]}


def results(folder, job, out, parts):
    """The files of a finished run, as rows."""
    with open(os.path.join(folder, "model"), "rb") as f:
        yield from rows_of("model", f.read())
    for name, path in (("report", "report.html"), ("record", "metrics.jsonl")):
        with open(os.path.join(folder, "model.run", path), "rb") as f:
            yield from rows_of(name, f.read())
    scores = [line for line in out if line.startswith("{")]
    yield from rows_of("scores", (scores[-1] if scores else "{}").encode())
    yield from rows_of("parts", json.dumps(parts).encode())
    yield from rows_of("shuffled", json.dumps(not job.get("parts")).encode())


def attempt(ctx, job, batches):
    """One task of the stage; returns the rows of task 0."""
    me, size = ctx.partitionId(), len(ctx.getTaskInfos())
    folder, first, programs = prepare(ctx, job)
    token = first["token"]
    if not os.access(first["program"], os.X_OK):  # the launch lines of all ranks name the program of task 0
        gather(ctx, refused="the executor on %s has no program %s, which is that of task 0: install it at the same path on every host"
               % (socket.gethostname(), first["program"]))
    if folder is None:
        gather(ctx, refused="%s on host %s is not that of task 0: give work_dir a folder on a file system that all executors "
               "share" % (folder_of(job), socket.gethostname()))
    gather(ctx)
    talk = Talk(folder, token, me, size)
    try:
        parts = runs.placed(talk, job["parts"]) if job.get("parts") else write_data(talk, batches)
        out = run_job(ctx, job, talk, programs)
        talk.leave()
    except Refused:
        talk.leave()
        raise
    finally:
        talk.over.set()
    return list(results(folder, job, out, parts)) if me == 0 else []


def train(ctx, job, batches):
    """One task of the stage; yields rows {name, seq, bytes}, from task 0 alone."""
    try:
        yield from attempt(ctx, job, batches)
    except Refused as e:
        if ctx.partitionId() == 0:
            yield from rows_of("absent" if isinstance(e, runs.Absent) else "refused", str(e).encode())
        if job.get("parts"):
            runs.sweep(job)
        if job["keep"]:
            return
    if ctx.partitionId() == 0:
        shutil.rmtree(folder_of(job), ignore_errors=True)


def to_batch(rows):
    import pyarrow
    types = (("name", pyarrow.string()), ("seq", pyarrow.int32()), ("bytes", pyarrow.binary()))
    arrays = [pyarrow.array([r[name] for r in rows], kind) for name, kind in types]
    return pyarrow.RecordBatch.from_arrays(arrays, [name for name, _ in types])


class Stage:
    """What mapInArrow(barrier=True) calls on an executor."""

    def __init__(self, job):
        self.job = job

    def __call__(self, batches):
        from pyspark import BarrierTaskContext
        ctx = BarrierTaskContext.get()
        job = dict(self.job, threads=self.job["threads"] or ctx.cpus())
        for row in train(ctx, job, batches):
            yield to_batch([row])


def collect(rows):
    """{name: bytes} of the rows of a stage."""
    found = {}
    for row in sorted(rows, key=lambda r: (r["name"], r["seq"])):
        found[row["name"]] = found.get(row["name"], b"") + bytes(row["bytes"])
    return found
