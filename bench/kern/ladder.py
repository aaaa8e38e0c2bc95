#!/usr/bin/env python3
"""ladder.py - compares the instruction count of every kernel slot on every instruction set with bench/baseline.tsv.

    ladder.py PROGRAM                 table: ns, GF/s, share of the peak, instructions, change       (make ladder)
    ladder.py PROGRAM --check         instructions only, status 1 if one grew by more than 3 %   (the test `ladder`)
    ladder.py PROGRAM --write         rewrites the baseline                                          (make ladder-baseline)

PROGRAM is bench_step.  Two counters: valgrind's callgrind for ref, base and avx2 (version 3.19 knows neither AVX-512 nor AMX), and the
processor stepping through itself for the sets above and the optimisers (ladder.c).  Counts follow compiler, C library and processor
(which of its copies the library takes), so the check is skipped (status 77) where those differ from the ones in the baseline, and a set that cannot be counted here is left out."""
import pathlib
import re
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path(__file__).resolve().parent.parent / "baseline.tsv"
MARGIN = 0.03
COUNTERS = {"step": "the processor stepping through itself", "callgrind": "valgrind's callgrind"}


def run(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=300)
    except FileNotFoundError:
        return None


def count_steps(program):
    """{(slot, isa): count} and the line that says compiler and library."""
    got = run([program, "--count"])
    lines = got.stdout.splitlines()
    head = next((x for x in lines if x.startswith("# ")), "# ")[2:]
    return {tuple(x.split("\t")[:2]): int(x.split("\t")[2]) for x in lines if x.count("\t") == 2}, head, got.returncode == 0


def count_callgrind(program):
    """The same for the sets that valgrind supports, and valgrind's version; ({}, "") without it."""
    version = run(["valgrind", "--version"])
    if not version or version.returncode:
        return {}, ""
    with tempfile.TemporaryDirectory() as folder:
        run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, "--count"])
        counts = {}
        for path in pathlib.Path(folder).iterdir():
            text = path.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (\S+)/(\S+)$", text, re.M)
            total = re.search(r"^summary: (\d+)", text, re.M)
            if name and total and name[2] != "any":
                counts[name[1], name[2]] = int(total[1])
    return counts, version.stdout.strip()


def processor():
    """Vendor, family and model."""
    text = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    found = [re.search(rf"^{k}\s*: (.*)$", text, re.M) for k in ("vendor_id", "cpu family", "model")]
    return " ".join(m[1] for m in found if m) or "unknown"


def read_baseline():
    """{(slot, isa): (counter, count)} and {what: version}."""
    counts, versions = {}, {}
    for line in BASELINE.read_text().splitlines() if BASELINE.exists() else []:
        if line.startswith("# with "):
            what, _, version = line[7:].partition(": ")
            versions[what] = version
        elif line and not line.startswith("#"):
            slot, isa, counter, count = line.split("\t")
            counts[slot, isa] = (counter, int(count))
    return counts, versions


def write_baseline(now, versions):
    lines = ["# Instructions of one call of every kernel slot (bench/kern/ladder.c); written by `make ladder-baseline`.",
             "# A change that moves a count by more than 3 % writes this file anew, and the diff is part of its review.",
             *(f"# with {k}: {v}" for k, v in sorted(versions.items())),
             "# slot\tset\tcounter\tinstructions"]
    old, _ = read_baseline()
    kept = {k: v for k, v in old.items() if k not in now and k[1] not in {isa for _, isa in now}}  # sets of other machines
    for (slot, isa), (counter, count) in sorted((now | kept).items(), key=lambda x: (x[0][1], x[0][0])):
        lines.append(f"{slot}\t{isa}\t{counter}\t{count}")
    BASELINE.write_text("\n".join(lines) + "\n")
    print(f"{BASELINE}: {len(now)} slots")


def times(program):
    """{(slot, isa): "ns GF/s %"} from bench_step --ladder."""
    out = {}
    for line in run([program, "--ladder"]).stdout.splitlines():
        w = line.split()
        out[w[0], w[1]] = (w[2], w[4], w[6] if len(w) > 6 else w[5])
    return out


def table(now, base, timed):
    print(f"{'slot':22}{'set':13}{'ns':>12}{'GF/s':>10}{'% peak':>8}{'instructions':>14}{'baseline':>12}{'change':>9}")
    for key in timed:
        count, old = now.get(key, ("", 0))[1], base.get(key, ("", 0))[1]
        change = f"{100 * (count / old - 1):+.1f} %" if count and old else "-"
        print(f"{key[0]:22}{key[1]:13}{timed[key][0]:>12}{timed[key][1]:>10}{timed[key][2]:>8}{count or '-':>14}{old or '-':>12}{change:>9}")


def check(now, base, versions, recorded):
    if not base:
        print("skipped: there is no bench/baseline.tsv; make ladder-baseline writes it")
        return 77
    usable = {c for c in COUNTERS if c == "step" or versions.get("callgrind")}
    follows = {"compiler": set(COUNTERS), "callgrind": {"callgrind"}, "cpu": set(COUNTERS)}  # the C library picks by processor
    for what, counters in follows.items():
        if versions.get(what) != recorded.get(what):
            print(f"{what}: this is \"{versions.get(what) or 'none'}\", the baseline was written with \"{recorded.get(what)}\"")
            usable -= counters
    if not usable:
        print("skipped: counts follow the compiler and the C library; make ladder-baseline writes new ones")
        return 77
    slower = faster = compared = 0
    for key, (counter, old) in base.items():
        if key not in now or counter not in usable or now[key][0] != counter:
            continue
        compared += 1
        change = now[key][1] / old - 1
        if abs(change) > MARGIN:
            print(f"{'SLOWER' if change > 0 else 'faster'}  {key[0]:22}{key[1]:13}{old:>12} -> {now[key][1]:>12}  {100 * change:+.1f} %")
        slower, faster = slower + (change > MARGIN), faster + (change < -MARGIN)
    new = [f"{k[0]}/{k[1]}" for k in now if k not in base]
    gone = [f"{k[0]}/{k[1]}" for k in base if k not in now and k[1] in {isa for _, isa in now}]
    print(f"{compared} slots compared, {slower} slower, {faster} faster by more than {100 * MARGIN:.0f} %, {len(new)} new, {len(gone)} gone"
          + ("; make ladder-baseline records what has become faster or new" if faster or new or gone else ""))
    return 1 if slower else 0


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    steps, head, stepped = count_steps(program)
    grind, valgrind = count_callgrind(program)
    now = {k: ("callgrind", v) for k, v in grind.items()} | {k: ("step", v) for k, v in steps.items()}
    versions = {"compiler": head.removeprefix("compiler "), "callgrind": valgrind, "cpu": processor()}
    if not stepped:
        print("this machine does not let a program step through itself: avx512, avx512_bf16 and amx are not counted")
    if not valgrind:
        print("there is no valgrind: ref, base and avx2 are not counted")
    base, recorded = read_baseline()
    if "--write" in sys.argv:
        return write_baseline(now, versions)
    if "--check" in sys.argv:
        return check(now, base, versions, recorded)
    table(now, base, times(program))
    return check(now, base, versions, recorded) % 77


sys.exit(main())
