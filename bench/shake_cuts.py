"""shake_cuts.py - random products of cuts for shake.py --cuts: over threads, ranks as threads and ranks as processes.

    a configuration    options that decide the bits, and the way to train: product of cuts, placement, micro-batches, order
    it trains          to the bits of one thread and one rank (with time:N: of the same slices there)
    or is refused      status 2, one error, whose first fix is pasted, at most four times: that trains to those bits, too
    nothing else       no signal, no other status, no run above PATIENCE seconds"""
import re
import shlex
import subprocess

import e2e
from e2e import AIR
from t_ranks import LAUNCHERS, has

PATIENCE, FIXES = 30, 4
WAY = ["--threads", "--ranks", "--parallel", "--place", "--micro-batches", "--stage-order", "--recompute", "--pipeline",
       "--balance", "--rank-shares", "--mpi"]
METHODS = ["best", "random:1", "random-layer:3", "single", "blocks", "cyclic", "hybrid", "greedy", "heft", "affinity", "anneal"]


def maybe(rng, share, flag, *values):
    """A flag and one of its values, or nothing."""
    return {flag: rng.choice(values) if values else None} if rng.random() < share else {}


def draw_net(rng):
    """Options that decide the bits."""
    data = rng.choice(["airline", "airline", "tides", "long"])
    target = {"airline": "Passengers", "tides": "height", "long": "y"}[data]
    o = {"DATA": data, "--target": target, "--horizon": rng.choice([1, 4, 12]), "--members": rng.choice([1, 1, 1, 2]),
         "--cell": rng.choice(["lstm", "lstm", "lstm", "gru", "rnn", "paragru", "paralstm", "minlstm"]),
         "--layers": rng.randint(1, 4), "--hidden": rng.randint(1, 40), "--batch": rng.randint(1, 20),
         "--steps": rng.choice([3, 6, 12]), "--seed": rng.randrange(1000),
         "--validate-every": rng.choice([2, 5, 50]), "--base": rng.choice(["last", "last", "none", "ridge"])}
    o.update(maybe(rng, 0.5, "--optim", "sgd", "adam", "adamw", "rmsprop", "adagrad"))
    o.update(maybe(rng, 0.2, "--accumulate", 2, 3, 4))
    o.update(maybe(rng, 0.3, "--grains", 1, 2, 3, 5, 8, 16, 40))
    o.update(maybe(rng, 0.25, "--dropout", 0.1, 0.5))
    o.update(maybe(rng, 0.15, "--precision", "bf16"))
    o.update(maybe(rng, 0.4, "--decoder", "direct", "direct", "parallel", "autoregressive"))
    o.update(maybe(rng, 0.15, "--bidirectional"))
    o.update(maybe(rng, 0.1, "--projection", 3, 8, 17))
    o.update(maybe(rng, 0.15, "--head", "quantile", "normal", "student-t"))
    o.update(maybe(rng, 0.1, "--norm"))
    o.update(maybe(rng, 0.3, "--context", 8, 24, 48, 96 if data != "airline" else 36))
    o.update(maybe(rng, 0.3, "--segment", 1, 2, 5))
    o.update(maybe(rng, 0.1, "--loss-steps", "all"))
    o.update(maybe(rng, 0.1, "--clip", 0))
    o.update(maybe(rng, 0.1, "--combine", "average"))
    o.update(maybe(rng, 0.1, "--refit-all"))
    o.update(maybe(rng, 0.1, "--max-steps", 16))
    return o


def draw_product(rng):
    count = rng.choice([1, 1, 1, 2, 2, 2, 3])
    cuts = rng.sample(["data", "data", "pipeline", "pipeline", "unit", "unit", "wave", "time"], count)
    return "*".join(c + rng.choice(["", ":1", ":2", ":2", ":2", ":3", ":4"]) for c in cuts)


def draw_way(rng):
    """Options that must not."""
    parallel = rng.choice(["auto"] + 14 * [draw_product(rng)])
    w = {"--threads": rng.randint(1, 3), "--ranks": rng.randint(1, 4), "--parallel": parallel}
    w.update(maybe(rng, 0.6 if "pipeline" in w["--parallel"] else 0.05, "--place", *METHODS))
    w.update(maybe(rng, 0.4, "--micro-batches", 1, 2, 3, 4, 5, 8))
    w.update(maybe(rng, 0.3, "--stage-order", "gpipe", "1f1b"))
    w.update(maybe(rng, 0.2, "--recompute"))
    w.update(maybe(rng, 0.2, "--pipeline", "linear"))
    w.update(maybe(rng, 0.2, "--balance", "off"))
    w.update(maybe(rng, 0.1, "--rank-shares", ",".join(rng.choice(["1", "0.3", "0.05"]) for _ in range(w["--ranks"]))))
    w.update(maybe(rng, 0.12, "--mpi", *LAUNCHERS))
    return w


def slices(parallel):
    """The cut time:N of a product, which decides the bits; else serial."""
    found = [c for c in parallel.split("*") if c.split(":")[0] == "time"]
    return found[0] if found else "serial"


class Cuts:
    """One configuration; case: a Shake, whose folder and program it uses."""
    def __init__(self, case, rng):
        self.case, self.rng = case, rng
        self.references = {}
        case.stretto("sample", "tides", "--rows", "600", "-o", "tides.csv")
        case.stretto("sample", "long-memory", "--rows", "700", "-o", "long.csv")

    def words(self, options):
        out = [{"airline": AIR, "tides": "tides.csv", "long": "long.csv"}[options["DATA"]]]
        for flag, value in options.items():
            if flag not in ("DATA", "--mpi") and not (flag == "--ranks" and options.get("--mpi")):
                out += [flag] if value is None else [flag, str(value)]
        return out

    def run(self, options, name):
        """(status or None if it did not end, stderr)"""
        front = []
        if options.get("--mpi"):
            front = [*LAUNCHERS[options["--mpi"]], "-n", str(options.get("--ranks", 1))]
        command = [*front, e2e.PROGRAM, "train", *self.words(options), "-o", name, "--quiet", "--progress", "none"]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        child = subprocess.Popen(command, cwd=self.case.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, env=self.case.environment(**root))
        try:
            err = child.communicate(timeout=PATIENCE)[1]
        except subprocess.TimeoutExpired:
            child.terminate()  # a launcher ends its ranks and removes its files
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
            return None, child.communicate()[1].decode("utf-8", "replace")
        return child.returncode, err.decode("utf-8", "replace")

    def reference(self, options):
        """Name of the model that one thread of one rank trains, or None where that is refused."""
        sliced = slices(options.get("--parallel", "auto")) != "serial"
        alone = {k: v for k, v in options.items() if k not in WAY or (sliced and k == "--recompute")}
        alone.update({"--threads": 1, "--parallel": slices(options.get("--parallel", "auto"))})
        key = shlex.join(self.words(alone))
        if key not in self.references:
            name = "whole%d.model" % len(self.references)
            status, err = self.run(alone, name)
            self.references[key] = (name if status == 0 else None, status, err)
        return self.references[key]

    def refusal(self, status, err, mpi):
        """Why this is no proper refusal, or None.  Under a launcher every rank says the same, until it is ended."""
        errors = re.findall(r"^(?:rank \d+: )?(error\[E\d+\].*)", err, re.M)
        if mpi:
            errors, status = list(set(errors)), 2 if status in (1, 9, 15) else status
        if status is None:
            return "no end within %d s: %s" % (PATIENCE, err[-300:])
        if status < 0 or status > 127:
            return "signal: status %d: %s" % (status, err[-300:])
        if len(errors) != 1 or status not in (2, 4, 6):
            return "status %d with %d errors: %s" % (status, len(errors), err[-400:])
        if "  fix: " not in err:
            return "no fix: " + err[-300:]
        return None

    def fixed(self, options, err, k):
        """The options with alternative k of the fix pasted; None if it is words."""
        line = re.search(r"^\s*fix: (.*)$", err, re.M).group(1)
        choices = [re.sub(r"   \(.*$", "", c).strip() for c in line.split("   or   ")]
        choice = choices[k % len(choices)]
        if not choice.startswith("--"):
            return None
        words, new = shlex.split(choice), dict(options)
        while words:
            flag, equals, value = words.pop(0).partition("=")
            if not flag.startswith("--"):
                return None
            if flag.startswith("--no-"):
                if new.pop("--" + flag[5:], "absent") == "absent":
                    new[flag] = None
                continue
            if not equals:
                value = words.pop(0) if words and not words[0].startswith("--") else None
            if value in ("N", "..", "FILE", "METHOD"):
                return None
            new.pop(flag, None)
            new[flag] = value
        return new

    def one(self):
        """(verdict, options)"""
        options = {**draw_net(self.rng), **draw_way(self.rng)}
        if options.get("--mpi") and not has(options["--mpi"]):
            del options["--mpi"]
        said, pasted = [], 0
        while True:
            status, err = self.run(options, "way.model")
            at = shlex.join(self.words(options))
            if options.get("--mpi"):
                at += " under %s, %d ranks" % (options["--mpi"], int(options.get("--ranks", 1)))
            if status == 0:
                name, alone, why = self.reference(options)
                if name is None:
                    return "TRAINS, but not alone (%s): %s" % (alone, why[-300:]), at
                try:
                    self.case.same_model(name, "way.model")
                except AssertionError as other:
                    return "OTHER BITS: " + str(other).splitlines()[0], at
                return "same bits" + (" after %d fixes: %s" % (pasted, " | ".join(said)) if pasted else ""), at
            bad = self.refusal(status, err, options.get("--mpi"))
            if bad:
                return "BAD: " + bad, at
            line = re.search(r"error\[.*", err).group(0) + " -> " + re.search(r"fix: .*", err).group(0)
            if line in said or pasted >= FIXES:
                return "FIX DOES NOT WORK: " + " | ".join([*said, line]), at
            said.append(line)
            options = self.fixed(options, err, self.rng.randrange(3))
            if options is None:
                return "refused in words: " + line, at
            pasted += 1
