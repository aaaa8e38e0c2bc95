#!/usr/bin/env python3
"""remedies.py PROGRAM [CASE...]: runs the remedies that the program's messages give, in the place where each was given.

    the cases of cases/*.case run with a `stretto` that, after each call, takes every "fix:" line of its output, of errors and
    warnings, and the command that check offers as "all of it in one command":
        --gaps mask   (why)   or   ...    options: the same call with them must not fail with the same code again, or warn the same
        awk .. a.csv > b.csv              a command: it must succeed; with > FILE the same call on FILE must not fail with that code
        stretto ...                       a command: it must succeed
        another --target                  words, or a pattern with words in capitals (FILE, N): for people
    the commands in backquotes of docs/ERRORS.md name verbs and options that exist

Exit status: 0 all work, 1 one does not, 77 no case could run."""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COMMANDS = ("awk", "sed", "(head", "tail", "head", "cat", "sort", "iconv", "gzip", "grep", "tr", "cut", "printf", "stretto")
# A remedy that cannot be run where a case gives it, with the reason.
ELSEWHERE = [
    (r"stretto (submit|gpuload|doctor|top|resume)", "needs a cluster, a device or a run that goes on"),
    (r"--(nodes|gpus-per-node|mpi|on|ranks|rank-shares|heal|state|recorded|once)\b", "needs a cluster or a device"),
]
# Verbs that read with a model, or go on with a run: remedies must not name options of train that these do not take.
OTHERS = ("resume", "predict", "eval", "decode", "export")
WITHIN = 300


def alternatives(line):
    """The remedies of a line, without their reasons."""
    for one in re.split(r"   or   ", line):
        if re.search(r"\((spelt like the cells|did you mean this\?)\)", one):
            continue  # an example, a name
        yield re.sub(r"   \(.*$", "", one).strip()


def is_pattern(words):
    """Words in capitals stand for something: FILE, COLUMN, NAME."""
    return any(re.fullmatch(r"(.*[=,/.])?[A-Z]{3,}(\.[a-z]+)?|N|..|\.\.\.", w) and w not in ("NULL",) for w in words) or \
        any(w in ("..", "...") for w in words)


def option_words(text):
    """The options of a remedy, or None if it is something else."""
    if not text.startswith("--"):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    k = 0
    while k < len(words):
        if not words[k].startswith("--") or is_pattern(words):
            return None
        k += 1 if k + 1 == len(words) or words[k + 1].startswith("--") or words[k].startswith("--no-") else 2
    return words


def run(args, cwd, shell=False):
    done = subprocess.run(args, cwd=cwd, shell=shell, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN,
                          executable="/bin/bash" if shell else None)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def copy_of(folder):
    to = tempfile.mkdtemp(prefix="stretto-remedy-")
    shutil.copytree(folder, os.path.join(to, "run"), symlinks=True)
    return to, os.path.join(to, "run")


def without(args, flags):
    """Arguments without the options that a remedy sets anew."""
    out, k = [], 0
    names = {f.split("=")[0] for f in flags if f.startswith("--")}
    while k < len(args):
        name = args[k].split("=")[0]
        if name in names or ("--no-" + name[2:]) in names or name == "--no-" + "".join(n[2:] for n in names):
            k += 1 if "=" in args[k] or k + 1 == len(args) or args[k + 1].startswith("-") else 2
            continue
        out.append(args[k])
        k += 1
    return out


LISTS = ("--na", "--ignore", "--cat")  # a remedy adds to what was given


def joined(args, options):
    """The options of a remedy, with the items that a list had before."""
    out = list(options)
    for k, word in enumerate(out[:-1]):
        had = [args[i + 1] for i, a in enumerate(args[:-1]) if a == word] if word in LISTS else []
        out[k + 1] = ",".join([*had, out[k + 1]])
    return out


def same_error(args, error, text):
    """True if the error comes again: of its code, or for check, which lists all it finds, and for a warning, the very same."""
    code = re.match(r"(error|warning)\[[EW]\d+\]|warning|", error).group()
    only = args[:1] == ["check"] or code.startswith("warning")
    return any(line == error or (not only and line.startswith(code)) for line in text.split("\n"))


def try_one(program, args, error, fix, cwd, report):
    if any(re.search(p, fix) for p, _ in ELSEWHERE):
        report["elsewhere"] += 1
        return
    options = option_words(fix)
    command = not options and fix.split(" ")[0] in COMMANDS
    if re.fullmatch(r"stretto [a-z]+", fix) or (not options and not command):
        report["words"] += 1
        return
    if command and is_pattern(re.split(r"[\s'\"]+", fix)):
        report["words"] += 1
        return
    to, folder = copy_of(cwd)
    try:
        if options:
            few = ["--steps", "5"] if args[:1] == ["train"] and not {"--steps", "--epochs"} & {a.split("=")[0] for a in args + options} else []
            status, text = run([program, *without(args, options), *joined(args, options), *few], folder)
            bad = same_error(args, error, text) or (args[:1] and args[0] in OTHERS and "error[E101]" in text)
        else:
            before = set(os.listdir(folder))
            status, text = run(fix, folder, shell=True)
            bad = status != 0
            made = sorted(set(os.listdir(folder)) - before)
            target = re.search(r"> (\S+)$", fix)
            if not bad and target and len(made) == 1:
                named = re.split(r"[\s'\"<]+", fix.split(" > ")[0])
                read = [k for k, a in enumerate(args) if a in named and os.path.isfile(os.path.join(folder, a))]
                at = read[0] if read else first_file(args, folder)
                again = [made[0] if k == at else a for k, a in enumerate(args)]
                status, text = run([program, *again], folder)
                bad = same_error(args, error, text)
        report["run"] += 1
        if bad:
            report["bad"].append("%s\n    fix: %s\n    gives %s" % (shlex.join(["stretto", *args]), fix, text.strip()[:500]))
    except subprocess.TimeoutExpired:
        report["bad"].append("%s\n    fix: %s\n    takes more than %d s" % (shlex.join(args), fix, WITHIN))
    finally:
        shutil.rmtree(to, True)


def first_file(args, folder):
    for k, a in enumerate(args):
        if k > 0 and not a.startswith("-") and not args[k - 1].startswith("-") and os.path.isfile(os.path.join(folder, a)):
            return k
    return -1


def wrapped():
    """What the cases call in place of the program: the program, and then its remedies."""
    program, log, args = os.environ["REMEDIES_PROGRAM"], os.environ["REMEDIES_LOG"], sys.argv[2:]
    done = subprocess.run([program, *args], capture_output=True)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(done.stderr)
    sys.stderr.buffer.flush()
    if done.returncode < 0 or done.returncode == 77:
        return done.returncode
    report = {"run": 0, "words": 0, "elsewhere": 0, "bad": []}
    given, in_one = None, False
    for line in (done.stdout + done.stderr).decode("utf-8", "replace").split("\n"):
        if in_one:
            try_one(program, args, "", line.strip() + (" --steps 5" if " --task" not in line else ""), os.getcwd(), report)
        in_one = line == "all of it in one command:"
        given = line if re.match(r"error\[E\d+\]|warning", line) else given
        if given and line.startswith("  fix: "):
            for fix in alternatives(line[7:]):
                try_one(program, args, given, fix, os.getcwd(), report)
    with open(log, "a", encoding="utf-8") as f:
        f.write(json.dumps(report) + "\n")
    return done.returncode


def run_case(name, program):
    with open(os.path.join(HERE, "cases", name + ".case"), encoding="utf-8") as f:
        script = f.read().split("\n====")[0]
    work = tempfile.mkdtemp(prefix="stretto-case-")
    total = {"run": 0, "words": 0, "elsewhere": 0, "bad": []}
    try:
        os.makedirs(os.path.join(work, "bin"))
        os.makedirs(os.path.join(work, "run"))
        with open(os.path.join(work, "bin", "stretto"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec %s %s --wrapped \"$@\"\n" % (shlex.quote(sys.executable), shlex.quote(os.path.abspath(__file__))))
        os.chmod(os.path.join(work, "bin", "stretto"), 0o755)
        log = os.path.join(work, "log")
        env = dict(os.environ, PATH=os.path.join(work, "bin") + ":" + os.environ["PATH"], NO_COLOR="1", LC_ALL="C", STRETTO_WISDOM="off",
                   DATA=os.path.join(HERE, "data"), EXAMPLES=os.path.join(ROOT, "examples"), REMEDIES_PROGRAM=program, REMEDIES_LOG=log,
                   SHARED=os.environ.get("STRETTO_SHARED") or os.path.join(ROOT, "..", "shared"))
        subprocess.run(["sh", "-c", script], cwd=os.path.join(work, "run"), env=env, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=600)
        if os.path.exists(log):
            with open(log, encoding="utf-8") as f:
                for line in f:
                    one = json.loads(line)
                    for key in total:
                        total[key] += one[key]
    finally:
        subprocess.run(["chmod", "-R", "u+w", work], check=False)
        shutil.rmtree(work, True)
    return name, total


def table_remedies(program):
    """Commands and options in the texts of the error table must exist."""
    bad = []
    with open(os.path.join(ROOT, "docs", "ERRORS.md"), encoding="utf-8") as f:
        text = f.read()
    _, known = run([program, "help", "options"], ROOT)
    for flag in sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--help"}):
        name = flag if flag in known else flag.replace("--no-", "--")
        if name not in known:
            bad.append("docs/ERRORS.md: there is no option %s" % flag)
    for verb in sorted(set(re.findall(r"`stretto ([a-z]+)", text))):
        status, said = run([program, verb, "--help"], ROOT)
        if status != 0:
            bad.append("docs/ERRORS.md: there is no verb %s: %s" % (verb, said[:100]))
    return bad


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--wrapped":
        return wrapped()
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    program = os.path.abspath(sys.argv[1])
    names = sys.argv[2:] or sorted(f[:-5] for f in os.listdir(os.path.join(HERE, "cases")) if f.endswith(".case"))
    bad, ran, words, elsewhere = table_remedies(program), 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, total in pool.map(lambda n: run_case(n, program), names):
            ran, words, elsewhere = ran + total["run"], words + total["words"], elsewhere + total["elsewhere"]
            bad += ["%s: %s" % (name, text) for text in total["bad"]]
    for text in bad:
        print("---", text)
    print("remedies: %d run, %d are words or patterns, %d need a cluster or a device, %d do not work" % (ran, words, elsewhere, len(bad)))
    return 1 if bad else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
