"""results.py - bench/results/README.md in parts: each benchmark replaces its own part and leaves the others as they are.

    <!-- begin accuracy -->  ...  <!-- end accuracy -->
"""
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench" / "results"
FILE = FOLDER / "README.md"
ORDER = ["accuracy", "accuracy-bf16", "e2e", "kernels", "reader"]
HEAD = """# Results

Figures of `make accuracy`, `make bench-e2e`, `make bench-kernels` and `make bench-reader`, written by the benchmarks; every row, good or bad, as it came out.
Other pages: kernels ([Zen 5](kernels.md), [AMX](kernels-amx.md), [Zen 4](kernels-zen4.md), [Zen 3, AVX2](kernels-zen3.md)), time slices ([AMX](time.md), [Zen 4](time-zen4.md)), [ranks](ranks.md),
[input and messages during the computation](pipeline.md), [pipelines of layers](stages.md), [training from disk](memory.md), [placement on devices](placement.md), [predicted steps](predict.md), learners ([forest](learners-forest.md), [kmeans](learners-kmeans.md), [crf](learners-crf.md), [tagger](learners-tagger.md), [hmm](learners-hmm.md), [graphs](learners-graph.md)), [runs killed at random](soak.md), [recovery from lost ranks](recovery.md), [Spark](spark.md), [formats of data](readers.md), [heads of distributions](probability.md), [tuned options](tune.md), [default steps](steps.md), [YARN](yarn.md), coverage of the 80 % bands before
and after they follow it ([coverage.tsv](coverage.tsv), `bench/accuracy/coverage.py`).
"""


def build_dir():
    """The folder with the program: $STRETTO_BUILD, or the first of build/* with one that runs here."""
    given = os.environ.get("STRETTO_BUILD")
    for folder in [pathlib.Path(given)] if given else [ROOT / "build", *sorted((ROOT / "build").glob("*"))]:
        if runs(folder / "cli" / "stretto"):
            return folder
    return None


def runs(path):
    """Also false for a program built for another processor."""
    try:
        return subprocess.run([str(path), "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def program():
    folder = build_dir()
    return folder / "cli" / "stretto" if folder else None


def ready(name, data):
    """False, after saying so, without the shared data; ends the benchmark `name` without a program."""
    if not data.is_dir():
        print("skipped: the data sets are not here")
        return False
    if not program():
        sys.exit(f"{name}: build the program first (make), or set STRETTO_BUILD to the build folder")
    return True


def priority():
    """Note that the measurement ran with real-time priority."""
    try:
        nice = int(open("/proc/self/autogroup").read().split()[-1])
    except (OSError, ValueError, IndexError):
        nice = 0
    nice = min(nice, os.nice(0))
    return f", priority before other programs (nice {nice})" if nice < 0 else ""


def machine(threads, load=None):
    """One line: processor, cores, load (given, or now), system, date, revision."""
    model = "unknown processor"
    for line in open("/proc/cpuinfo") if os.path.exists("/proc/cpuinfo") else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    dirty = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True).stdout.strip()
    version = subprocess.run([str(program()), "--version"], capture_output=True, text=True).stdout.strip().splitlines() if program() else []
    return (f"{datetime.date.today()}, {model}, {os.cpu_count()} cores (load {os.getloadavg()[0] if load is None else load:.1f}{priority()}), "
            f"{platform.system()} {platform.release()}, {threads} threads, {version[0] if version else 'stretto'}, "
            f"revision {commit or 'none'}{' with changes' if dirty else ''}.")


def write(part, text):
    """Puts the text of one part in its place."""
    old = FILE.read_text() if FILE.exists() else ""
    parts = dict(re.findall(r"<!-- begin ([\w-]+) -->\n(.*?)<!-- end \1 -->", old, re.S))
    parts[part] = text.strip() + "\n"
    names = sorted(parts, key=lambda n: ORDER.index(n) if n in ORDER else len(ORDER))
    body = "\n".join(f"<!-- begin {n} -->\n{parts[n]}<!-- end {n} -->\n" for n in names)
    scratch = FILE.with_suffix(".tmp")
    scratch.write_text(HEAD + "\n" + body)
    scratch.replace(FILE)
