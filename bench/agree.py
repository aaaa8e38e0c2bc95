#!/usr/bin/env python3
"""agree.py PROGRAM N [--seed S] [--keep FOLDER] [-v]: `stretto check` against `stretto train` on N generated files.

    generated: rows, columns, times in several forms, gaps, repeated times, empty and odd cells, separators, options
    check passes              train with the same options passes
    check passes with W036    train asks for --target (E105), and passes with the config that check proposes
    check refuses             train refuses with an error that check lists; a proposed command and config pass
Exit status: 0 they agree, 1 they do not, 2 wrong usage."""
import argparse
import collections
import datetime
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile

SHORT = ["--steps", "2", "--members", "1", "--hidden", "4", "--batch", "8", "--quiet", "--threads", "1", "-o", "m"]
TIMES = ["iso", "iso", "minute", "dmy", "month", "year", "compact", "epoch", "none", "clock", "t"]


def cell_time(form, t):
    return {"iso": "%Y-%m-%d", "minute": "%Y-%m-%d %H:%M", "dmy": "%d.%m.%Y %H:%M", "month": "%Y-%m", "year": "%Y", "compact": "%Y%m%d",
            "clock": "%Y-%m-%d,%H:%M", "t": "%Y-%m-%dT%H:%M:%SZ"}.get(form) and t.strftime(
                {"iso": "%Y-%m-%d", "minute": "%Y-%m-%d %H:%M", "dmy": "%d.%m.%Y %H:%M", "month": "%Y-%m", "year": "%Y",
                 "compact": "%Y%m%d", "clock": "%Y-%m-%d,%H:%M", "t": "%Y-%m-%dT%H:%M:%SZ"}[form]) or str(int(t.timestamp()))


def steps(form, r):
    if form in ("minute", "dmy", "epoch", "clock", "t"):
        return datetime.timedelta(minutes=r.choice([15, 30, 60, 60, 1440]))
    return datetime.timedelta(days=r.choice([1, 1, 7]))


def times(form, n, r):
    t = datetime.datetime(r.randrange(1990, 2024), 1, 1, tzinfo=datetime.timezone.utc)
    step = steps(form, r)
    for k in range(n):
        if form == "year":
            yield t.replace(year=1700 + k % 300)
        elif form == "month":
            yield t.replace(year=t.year + k // 12, month=1 + k % 12)
        else:
            yield t + k * step


def column(kind, n, r):
    level, season = r.choice([0, 10, 1000, 1e6]), r.choice([7, 12, 24])
    if kind == "constant":
        return ["7"] * n
    if kind == "words":
        return [r.choice(["red", "green", "blue"]) for _ in range(n)]
    if kind == "switch":
        return [str(r.randrange(2)) for _ in range(n)]
    walk, out = 0.0, []
    for k in range(n):
        walk += r.gauss(0, 1)
        out.append("%.*f" % (r.choice([0, 2]) if kind == "mixed" else 2, level + walk + 10 * ((k % season) / season)))
    return out


def spoil(cells, r):
    """Some cells become empty or odd."""
    kind = r.choice(["none"] * 18 + ["empty", "na", "odd", "tail", "huge", "head"])
    for k in range(len(cells)):
        if kind in ("empty", "na", "odd") and r.random() < 0.03:
            cells[k] = {"empty": "", "na": "NA", "odd": r.choice(["x", "n.v."])}[kind]
    if kind == "tail":
        for k in range(r.randrange(1, 6)):
            cells[-1 - k % len(cells)] = ""
    if kind == "head":
        for k in range(min(len(cells), r.randrange(1, 9))):
            cells[k] = ""
    if kind == "huge":
        cells[r.randrange(len(cells))] = "1e30"
    return cells


def generate(r):
    """The text of a file, and options."""
    n, ncol, form = r.choice([1, 3, 8, 20, 40, 60, 100, 150, 200, 300, 400]), r.randrange(1, 5), r.choice(TIMES)
    names = r.sample(["y", "sales", "load", "value", "temp", "a b", "plan", "x,y", "Target"], ncol)
    kinds = [r.choice(["walk"] * 8 + ["mixed", "mixed", "constant", "switch", "words"]) for _ in range(ncol)]
    columns = [spoil(column(k, n, r), r) for k in kinds]
    stamps = [cell_time(form, t) for t in times(form, n, r)] if form != "none" else None
    rows = [[*([stamps[k]] if stamps else []), *(c[k] for c in columns)] for k in range(n)]
    if r.random() < 0.15:
        rows = [row for k, row in enumerate(rows) if k == 0 or r.random() > 0.04]
    if r.random() < 0.12:
        rows = [again for row in rows for again in [row] * (2 if r.random() < 0.05 else 1)]
    if r.random() < 0.06:
        r.shuffle(rows)
    if r.random() < 0.06:
        rows.reverse()
    if r.random() < 0.04:
        rows[r.randrange(len(rows))].pop()
    sep = r.choice([",", ",", ";", "\t"])
    quote = lambda c: '"%s"' % c if sep in c and form != "clock" or sep in c and c in names else c  # noqa: E731
    head = [*(["date" if form != "clock" else "date,time"] if stamps else []), *names]
    if form == "clock":
        sep = ","
    lines = [sep.join('"%s"' % h if sep in h and h in names else h for h in head)] + [sep.join(map(quote, row)) for row in rows]
    text = r.choice(["\n", "\n", "\r\n"]).join(lines) + r.choice(["\n", ""])
    return ("\ufeff" if r.random() < 0.05 else "") + text, options(r, names)


def options(r, names):
    out = []
    if r.random() < 0.6:
        out += ["--target", r.choice(names + [names[0].upper()]).replace(",", "\\,")]
    if r.random() < 0.15:
        out += ["--target", "all"] if not out else []
    if r.random() < 0.5:
        out += ["--horizon", str(r.choice([1, 3, 6, 24]))]
    if r.random() < 0.2:
        out += ["--context", str(r.choice([1, 5, 24, 48]))]
    for flag, values in (("--gaps", ["mask", "zero", "interpolate"]), ("--dups", ["mean", "first"]), ("--test", ["0", "5", "20%", "2040-01-01"]),
                         ("--validation", ["0", "3", "10%"]), ("--season", ["7", "12,24", "1"]), ("--time-format", ["row"]), ("--na", ["x"]),
                         ("--since", ["2000-01-01", "3"])):
        if r.random() < 0.05:
            out += [flag, r.choice(values)]
    return out


def run(program, args, folder):
    done = subprocess.run([program, *args], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                          env=dict(os.environ, NO_COLOR="1", LC_ALL="C", STRETTO_WISDOM="off"))
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def codes(text):
    return {w[6:10] for w in text.split() if w.startswith("error[E")}


def disagreement(program, folder, given, seen):
    """What check and train do not agree on about a.csv; None = nothing. seen: counts of what came of files."""
    status, out, err = run(program, ["check", "a.csv", *given, "--json", "--write-config", "c.yaml"], folder)
    trained, _, said = run(program, ["train", "a.csv", *given, *SHORT], folder)
    if status < 0 or trained < 0:
        return "killed by a signal: check %d, train %d" % (status, trained)
    try:
        report = json.loads(out)
    except ValueError:
        report = {"findings": [], "config": ""}
    listed = {f["code"] for f in report["findings"]} | codes(err)
    if err.startswith("{"):  # an error before there was anything to list
        listed.add(json.loads(err)["error"])
    seen["pass"] += status == 0 and "W036" not in listed
    seen["target guessed"] += status == 0 and "W036" in listed
    seen["refused"] += status != 0
    seen["refused, with a config that trains"] += status != 0 and bool(report.get("config"))
    if status == 0 and "W036" not in listed and trained != 0:
        return "check passes, train says:\n" + said
    if status == 0 and "W036" in listed and codes(said) != {"E105"}:
        return "check warns of a missing target (W036), train says:\n" + said
    if status != 0 and trained == 0:
        return "check refuses (%s), train passes" % ", ".join(sorted(listed))
    if status != 0 and not codes(said) & listed and "E105" not in codes(said) and report["findings"]:
        return "check lists %s, train says:\n%s" % (", ".join(sorted(listed)), said)
    if report.get("config"):
        ended, _, said = run(program, ["train", "a.csv", "--config", "c.yaml", *SHORT], folder)
        if ended != 0:
            return "the config of check is refused:\n%s\n%s" % (report["config"], said)
    if report.get("command"):
        ended, _, said = run(program, [*shlex.split(report["command"])[1:], *SHORT], folder)
        if ended != 0:
            return "the command of check is refused: %s%s" % (report["command"], said)
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("n", type=int)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", help="folder for the files of a disagreement")
    p.add_argument("-v", action="store_true", help="name every file")
    args = p.parse_args()
    program, bad, seen = os.path.abspath(args.program), 0, collections.Counter()
    for k in range(args.n):
        r = random.Random(args.seed * 1000003 + k)
        folder = tempfile.mkdtemp(prefix="stretto-agree-")
        try:
            text, given = generate(r)
            with open(os.path.join(folder, "a.csv"), "w", encoding="utf-8", newline="") as f:
                f.write(text)
            why = disagreement(program, folder, given, seen)
            if args.v:
                print(k, shlex.join(given), "agree" if not why else "DISAGREE", flush=True)
            if why:
                bad += 1
                print("--- file %d of seed %d: stretto check a.csv %s\n%s" % (k, args.seed, shlex.join(given), why), flush=True)
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    shutil.copy(os.path.join(folder, "a.csv"), os.path.join(args.keep, "%d.csv" % k))
        finally:
            shutil.rmtree(folder, True)
    print("check against train: %d files, %d disagree; %s" % (args.n, bad, ", ".join("%s %d" % i for i in seen.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
