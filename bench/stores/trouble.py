"""trouble.py - asynchronous runs repeated to the bit, and runs whose ranks are killed at random: parts `replay` and `kills`."""
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from common import DATA, MPI, Failed, machine, run, say, table, train, verdict
from timing import sample, shape

PATIENCE = 180


def tensors(path):
    """Hash of all tensors of a model."""
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        head = json.loads(f.read(size).decode())
        head.pop("__metadata__", None)
        return hashlib.sha256(json.dumps(head, sort_keys=True).encode() + f.read()).hexdigest()[:16]


def replay_part(args):
    data, rows = DATA / "ett" / "ETTh1.csv", []
    words = ["-c", "bench/protocols/etth1-96.yaml", "--preset", "long", "--base", "none", "--no-guard", "--threads", "1", "--steps", "300", "--validate-every", "100"]
    ways = [("again, no replay", [], False, False), ("one core (taskset)", ["taskset", "-c", "0"], False, True), ("two cores", [], False, True),
            ("two processes (Open MPI), one core", ["taskset", "-c", "1"], True, True), ("low priority (nice 19), beside other programs", ["nice", "-n", "19"], False, True)]
    for store, ranks, more in (("asp", 2, []), ("ssp:3", 3, []), ("asp", 3, ["--servers", "1"]), ("asp", 2, ["--codec", "int8"]), ("easgd:4", 2, [])):
        folder = tempfile.mkdtemp(prefix="stretto-stores-")
        try:
            train(args, data, [*words, "--store", store, *more], ranks, keep=folder)
            want, equal = tensors(folder + "/m.model"), []
            for name, front, mpi, replays in ways:
                other = tempfile.mkdtemp(prefix="stretto-stores-")
                try:
                    train(args, data, [*words, "--store", store, *more, *(["--replay", folder + "/m.model.run/order.txt"] if replays else [])], ranks, mpi,
                          front, keep=other)
                    equal.append("equal" if tensors(other + "/m.model") == want else "others")
                except Failed as why:
                    say(why)
                    equal.append("failed")
                finally:
                    shutil.rmtree(other, True)
            rows.append([" ".join(["--store", store, *more]), ranks, *equal, verdict(all(e == "equal" for e in equal[1:]))])
            say("replay", rows[-1])
        finally:
            shutil.rmtree(folder, True)
    return "\n".join(["## Replays", "", machine(args, "each way once") + " ETTh1, 300 steps on the ranks of the second column (threads), recorded; then "
                      "with `--replay RUN/order.txt`. Bits of all tensors of the model against those of the recorded run.", "",
                      table(["store", "ranks", *(w[0] for w in ways), "equal bits"], rows), ""])


# ------------------------------------------------------------------ kills ---------------------------------------------------------

STORES = [("sync, codec int8", ["--store", "sync", "--codec", "int8"]), ("ssp:2", ["--store", "ssp:2"]), ("asp", ["--store", "asp"]),
          ("asp, 1 server", ["--store", "asp", "--servers", "1"]), ("local:16", ["--store", "local:16"]), ("easgd:4", ["--store", "easgd:4"])]
RANKS, CALM = 3, 40  # seeds of undisturbed runs: 12 show too narrow a spread


class Run:
    """A training on processes, in a folder of its own; ranks may be killed while it runs."""

    def __init__(self, args, data, more, seed, heal):
        self.folder, self.killed, self.began = tempfile.mkdtemp(prefix="stretto-stores-"), [], time.monotonic()
        words = ["train", data, *shape(48, 24, 32, 1500, 250), "--schedule", "constant", "--seed", str(seed), *more, "--progress", "none", "--checkpoint-every",
                 "0.3s", "-o", self.folder + "/m.model"]
        command = (["mpirun.openmpi", "--oversubscribe", "--enable-recovery", "-n", str(RANKS), args.program, *words, "--heal"] if heal else
                   [args.program, "submit", "--on", "local", "--mpi", "openmpi", "--ranks", str(RANKS), "--max-restarts", "20", "--", *words])
        self.said = open(self.folder + "/said", "wb")
        self.child = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said,
                                      env=dict(os.environ, **MPI, OMPI_MCA_btl="self,vader,tcp"), start_new_session=True)

    def record(self, rank):
        try:
            with open(self.folder + "/m.model.run/status/rank-%d.json" % rank, encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}

    def kill_one(self):
        """A rank that trains, at a random moment."""
        limit, rank, pause = time.monotonic() + 60, random.randrange(RANKS), random.uniform(0, 0.8)
        old = {pid for _, pid in self.killed}
        while time.monotonic() < limit and self.child.poll() is None:
            r = self.record(rank)
            if r.get("phase") == "train" and r.get("pid", 0) > 0 and r["pid"] not in old and os.path.exists("/proc/%d" % r["pid"]):
                time.sleep(pause)
                try:
                    if self.child.poll() is None:
                        os.kill(r["pid"], signal.SIGKILL)
                        self.killed.append((rank, r["pid"]))
                except OSError:
                    pass
                return
            time.sleep(0.01)

    def ask_for_stacks(self):
        """Into the run folder, which stays."""
        for rank in range(RANKS):
            pid = self.record(rank).get("pid", 0)
            if pid > 0 and os.path.exists("/proc/%d" % pid):
                os.kill(pid, signal.SIGUSR1)
        time.sleep(2)

    def end(self):
        """(what went wrong or "", lowest loss on the validation split)"""
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.ask_for_stacks()
            return "not over after %d s" % PATIENCE, None
        if self.child.returncode:
            return "status %d" % self.child.returncode, None
        if not os.path.exists(self.folder + "/m.model"):
            return "no model", None
        with open(self.folder + "/m.model.run/metrics.jsonl", encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        return "", min(line["valid"] for line in lines if line.get("split") == "valid")

    def close(self, keep):
        """Ends what is left; the folder stays where something went wrong."""
        for pid in [self.child.pid] if self.child.poll() is None else []:
            os.killpg(pid, signal.SIGKILL)
        self.child.wait()
        self.said.close()
        left = [p for k in range(RANKS) for p in [self.record(k).get("pid", 0)] if p > 0 and os.path.exists("/proc/%d" % p)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        if keep:
            say("kept: " + self.folder)
        else:
            shutil.rmtree(self.folder, True)
        return left


def disturbed(args, data, more, seed, heal, kills):
    r = Run(args, data, more, seed, heal)
    try:
        for _ in range(kills):
            r.kill_one()
        why, loss = r.end()
    except BaseException:
        r.close(False)
        raise
    left = r.close(bool(why))
    return why or ("processes left" if left else ""), loss, [rank for rank, _ in r.killed], time.monotonic() - r.began


def of_servers(name, servers, calm, done):
    """Losses after the death of a rank that only serves, beside those after the death of a worker."""
    losses = {"nobody": calm, "a worker": [], "a server": []}
    for why, loss, dead, _ in done:
        if not why and len(dead) == 1:
            losses["a server" if dead[0] < servers else "a worker"].append(loss)
    return "`%s` with `--heal`, median loss where nobody / a worker / a server died: %s." % (
        name, " / ".join("%.5f (%d runs)" % (statistics.median(v), len(v)) if v else "-" for v in losses.values()))


def kills_part(args):
    rows, more_lines, groups, begin = [], [], 0, time.monotonic()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        data = sample(args, folder)
        for name, more in STORES:
            calm = [disturbed(args, data, more, seed, False, 0) for seed in range(1, CALM + 1)]
            losses = [loss for _, loss, *_ in calm if loss]
            mean, sd = statistics.mean(losses), statistics.stdev(losses)
            for heal in (True, False):
                done, groups = [], groups + 1
                while len(done) < args.kills and (not done or time.monotonic() < begin + 60 * args.minutes * groups / (2 * len(STORES))):
                    done.append(disturbed(args, data, more, 1 + len(done) % CALM, heal, 1 if heal else random.choice((1, 1, 2))))
                ended = [loss for why, loss, *_ in done if not why]
                within = sum(abs(loss - mean) <= 3 * sd or loss <= max(losses) for loss in ended)
                wrong = sorted({why for why, *_ in done if why})
                rows.append([name, "--heal" if heal else "submit", len(done), sum(len(dead) for _, _, dead, _ in done), len(ended), "%.0f" % max(seconds for *_, seconds in done),
                             "%.5f .. %.5f" % (min(losses), max(losses)),
                             "%.5f .. %.5f" % (min(ended), max(ended)) if ended else "-", within, "; ".join(wrong) or "-",
                             verdict(len(ended) == len(done) == within)])
                say("kills", rows[-1])
                if heal and "--servers" in more:
                    more_lines += [of_servers(name, int(more[-1]), losses, done), ""]
    return "\n".join(["## Kills", "", machine(args, "seed 1 of the moments") + " %d ranks, processes of Open MPI; sample tides, 1500 steps. kill -9 of a random "
                      "rank (worker or server) up to 0.8 s after it trains: once with `--heal` under `mpirun --enable-recovery`, once or twice with "
                      "`submit`, which restarts the job from its last checkpoint (every 0.3 s). Undisturbed: %d seeds. A loss is within the spread if it is not "
                      "above the largest undisturbed one, or within three standard deviations of their mean." % (RANKS, CALM), "",
                      table(["store", "how it goes on", "runs", "kills", "ended with a model", "longest, s", "loss undisturbed", "loss with kills", "within the spread", "else", "bar"], rows), "", *more_lines])
