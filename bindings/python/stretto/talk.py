"""talk.py - what the tasks of a barrier stage say to each other: once by allGather, then by files of the folder that they share.

Pickled by value, as ranks.py.
"""
import json
import os
import tempfile
import threading
import time

START_S = 120.0             # until all tasks have started
BEAT_S, GONE_S = 1.0, 60.0  # a sign of life of a task; silence after which it is taken for dead
LEAVE_S = 5.0               # how long task 0 waits for the others at the end


class Refused(Exception):
    """Another attempt would fail in the same way: the text goes to the driver."""


class Interrupted(Exception):
    """Another attempt goes on from the checkpoint: Spark repeats the stage."""


def folder_of(job):
    """The folder of a run, on the host of a task."""
    return os.path.join(job["work_dir"] or tempfile.gettempdir(), job["name"])


def answers(texts):
    """What the tasks say; an error of one is the error of all."""
    told = [json.loads(text) for text in texts]
    for kind, failure in (("refused", Refused), ("interrupted", Interrupted)):
        found = [t[kind] for t in told if t.get(kind)]
        if found:
            raise failure(found[0])
    return told


def gather(ctx, **mine):
    """allGather with a time limit: if a task cannot fetch its rows, Spark lets the others wait for ever."""
    told = []
    thread = threading.Thread(target=lambda: told.append(ctx.allGather(json.dumps(mine))), daemon=True)
    thread.start()
    thread.join(START_S)
    if not told:
        raise Interrupted("the tasks of the stage did not start together within %g s" % START_S)
    return answers(told[0])


class Talk:
    """Later exchanges go through files of the folder: a task that waits in allGather when Spark cancels its stage takes its
    executor with it (Spark 4.3).  Every task counts in a file, so that the others see when it is gone."""

    def __init__(self, folder, token, me, size):
        self.folder, self.token, self.me, self.size, self.round = folder, token, me, size, 0
        self.seen, self.over = {}, threading.Event()
        os.makedirs(self.path("").rsplit("/", 1)[0], exist_ok=True)
        threading.Thread(target=self.beat, daemon=True).start()

    def path(self, name):
        return os.path.join(self.folder, "talk", self.token + name)

    def put(self, name, text):
        try:
            with open(self.path(name) + ".tmp", "w", encoding="utf-8") as f:
                f.write(text)
            os.rename(self.path(name) + ".tmp", self.path(name))
        except FileNotFoundError:
            self.over.set()  # task 0 has removed the folder: the run is over

    def get(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as f:
                return f.read()
        except OSError:
            return None

    def beat(self):
        count = 0
        while not self.over.is_set():
            self.put(".alive.%d" % self.me, str(count))
            count += 1
            self.over.wait(BEAT_S)

    def gone(self, k):
        now, count = time.monotonic(), self.get(".alive.%d" % k)
        if k not in self.seen or self.seen[k][0] != count:
            self.seen[k] = (count, now)
        return now - self.seen[k][1] > GONE_S

    def leave(self):
        """The last word: task 0 waits for the others, since it removes the folder."""
        limit = time.monotonic() + LEAVE_S
        self.put(".left.%d" % self.me, "")
        while self.me == 0 and time.monotonic() < limit and None in [self.get(".left.%d" % k) for k in range(self.size)]:
            time.sleep(0.02)

    def exchange(self, **mine):
        """Every task learns what all tasks say."""
        self.round += 1
        self.put(".%d.%d" % (self.round, self.me), json.dumps(mine))
        while True:
            told = [self.get(".%d.%d" % (self.round, k)) for k in range(self.size)]
            if None not in told:
                return answers(told)
            for k in range(self.size):
                if told[k] is None and self.gone(k):
                    raise Interrupted("task %d has given no sign of life for %g s" % (k, GONE_S))
            time.sleep(0.05)
