#!/usr/bin/env python3
"""run.py - compares our kernels with PyTorch's: verifies results, then times them interleaved, using undisturbed samples.  `make bench-kernels` calls it.

    run.py BUILD [--quick] [--only REGEX] [--minutes M] [--generations N] [--realtime] [--isa avx2] [--out DIR] [--list]

    generation 1..N   new processes (a process can be slow for its lifetime)
      row             one shape, variant, number of threads
        check         first: y and all gradients against PyTorch in float64; required for a result
        round         a few samples of each implementation; until all have enough undisturbed ones, or the row's time is over

A sample = one step, between two runs of a calibration loop on the same threads (calib.c).  Undisturbed (quiet) = both at 90 % or more of what this
implementation's loops usually reach in the row, and less than 2 % of the step spent waiting for a processor.  Result: median of the undisturbed
samples of all generations; also first quartile and median of all samples.

--realtime: all implementations run with real-time priority.  --isa avx2: all implementations, PyTorch too, stay with AVX2, for a processor without
AVX-512 where none is at hand.  --quick: only the checks, one tiny shape, a minute: the test `kernels_peer`.  Exit status 77 where .peers/ is missing (bench/peers.sh)."""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
from peers import NARROW, ROOT, enter  # noqa: E402

if __name__ == "__main__":
    enter()

import cases  # noqa: E402
import report  # noqa: E402
import results as pages  # noqa: E402
import workers  # noqa: E402

FP32_LARGEST = 5e-6            # largest difference over the largest entry, fp32 against float64
BF16_L2, BF16_COSINE = 2e-2, 0.999
QUIET, WAITED = 0.9, 0.02      # of the usual rate; of the step
TURN = 0.02                    # seconds of samples a turn
ENOUGH = 9                     # quiet samples an implementation
SHORT = 0.4                    # seconds a row gets at least in a generation


# ---------------------------------------------------------------------- correctness

def verdict(error, bf16):
    if bf16:
        good = error["l2"] <= BF16_L2 and error["cosine"] >= BF16_COSINE
        return good, f"cosine {error['cosine']:.5f}, L2 {error['l2']:.1e}"
    return error["largest"] <= FP32_LARGEST, f"{error['largest']:.1e}"


def check(team, row, folder, name="ours"):
    """Our numbers for this row against float64.  Returns (good, text)."""
    who, words = row.implementations[name]
    referee = max((w for w in team.worker if w[0] == "kept"), key=lambda w: w[1])
    team.ask((who, row.threads), f"case dir={folder} {words}")
    team.ask((who, row.threads), "check")
    reply = team.ask(referee, f"compare dir={folder} {row.implementations['kept'][1] if 'kept' in row.implementations else row.data()}", 600)
    error = json.loads(reply)
    good, text = verdict(error, "prec=bf16" in words)
    return good, text if good else f"WRONG: {text} at {error['where']}"


# ---------------------------------------------------------------------- one row in one generation

def take(reply, generation):
    out = []
    for word in reply.split():
        if "=" in word:
            continue
        ms, fma0, fma1, tile0, tile1, waited = map(float, word.split(","))
        out.append({"ms": ms, "low": min(fma0, fma1), "fma": (fma0 + fma1) / 2, "tile_low": min(tile0, tile1), "tile": (tile0 + tile1) / 2,
                    "waited": waited, "g": generation})
    return out


def quiet(samples):
    """The undisturbed samples of one implementation in one row."""
    if not samples:
        return []

    def usual(key):
        v = sorted(s[key] for s in samples)
        return v[len(v) * 3 // 4]
    low, tile = usual("low"), usual("tile_low")
    return [s for s in samples if s["low"] >= QUIET * low and s["tile_low"] >= QUIET * tile and s["waited"] <= WAITED * s["ms"]]


def prepare(team, row, folder, result, generation):
    """Prepares every implementation's case in its process, in a separate slot; {name: (who, place, seconds a step)}."""
    ready, used = {}, {}
    for name, (kind, words) in row.implementations.items():
        who = (kind, row.threads)
        place = used[who] = used.get(who, -1) + 1
        try:
            team.ask(who, f"use {place}")
            answer = team.ask(who, f"case dir={folder} {words}")
            if kind == "ours":
                result.setdefault("flop", {})[name] = float(answer)
            seconds = take(team.ask(who, "sample 1 0"), generation)[0]["ms"] / 1e3  # touches all memory for the first time
            if seconds < 0.1:
                seconds = statistics.median(s["ms"] for s in take(team.ask(who, "sample 3 0"), generation)) / 1e3
            ready[name] = (who, place, seconds)
        except workers.Failed as e:
            result["trouble"][name] = str(e)
    return ready


def weight(row):
    """Share of the time for a row: long steps need more."""
    T, B, I, H = row.size
    return 1 + T * B * H * (I + H) * row.layers * (2 if row.group == "bidir" else 1) * len(row.implementations) / row.threads / 4e8


def measure(team, row, folder, result, generation, generations, allowance):
    """Runs interleaved rounds; adds samples to result["samples"][name]."""
    samples, ready, begin = result["samples"], prepare(team, row, folder, result, generation), time.monotonic()
    wanted = -(-ENOUGH // generations)
    most = min(allowance, max(2 * SHORT, 2.5 * wanted * sum(r[2] for r in ready.values()) + 1))
    while ready:
        for name, (who, place, seconds) in ready.items():
            n = max(1, min(16, int(TURN / seconds)))
            team.ask(who, f"use {place}")
            reply = team.ask(who, f"sample {n} {1 if seconds < 0.1 else 0}")
            samples.setdefault(name, []).extend(take(reply, generation))
            allocations = int((re.search(r"allocations=(\d+)", reply) or [0, 0])[1])
            if allocations:
                result["trouble"]["allocations"] = f"{allocations} allocations in {n} steps"
        spent = time.monotonic() - begin
        enough = all(len([s for s in quiet(samples[n]) if s["g"] == generation]) >= wanted for n in ready)
        if (enough and spent > SHORT) or spent > most:
            break
    for who in {r[0] for r in ready.values()}:
        team.ask(who, "drop")


# ---------------------------------------------------------------------- what came out

def summary(row, result):
    """Medians per implementation, ratios over PyTorch, share of the peak."""
    out = {}
    for name, samples in result["samples"].items():
        good = quiet(samples)
        by_process = [statistics.median(s["ms"] for s in good if s["g"] == g) for g in sorted({s["g"] for s in good})]
        ms = sorted(s["ms"] for s in good or samples)
        out[name] = {"ms": statistics.median(ms), "p25": ms[len(ms) // 4], "raw": statistics.median(s["ms"] for s in samples),
                     "quiet": len(good), "all": len(samples), "processes": by_process,
                     "fma": statistics.mean(s["fma"] for s in good or samples) * row.threads,
                     "tile": statistics.mean(s["tile"] for s in good or samples) * row.threads}
        if name in result.get("flop", {}):
            rate = result["flop"][name] / out[name]["ms"] * 1e-6
            out[name] |= {"gflops": rate, "peak": 100 * rate / out[name]["fma"] if out[name]["fma"] else 0,
                          "tile_peak": 100 * rate / out[name]["tile"] if out[name]["tile"] else 0}
    return out


def record(row, result):
    """One row of results.json."""
    return {"group": row.group, "variant": row.variant, "shape": row.shape, "size": row.size, "threads": row.threads, "layers": row.layers,
            "bar": row.bar, "bar_peak": row.peak, "bar_over_fp32": row.over_fp32, "good": result["good"], "checked": result["checked"],
            "absent": result.get("absent", ""), "trouble": result["trouble"], "got": summary(row, result)}


def say(row, result, isa):
    """One line of the terminal."""
    line, r = f"{row.key:32}", report.judge(record(row, result), isa)
    mine, q = r["got"].get("ours"), report.ratios(r)
    if r["absent"]:
        return f"{line} not here: {r['absent']}"
    if not mine:
        return f"{line} {'; '.join([r['checked'], *r['trouble'].values()])}"
    line += f" {mine['ms']:9.3f} ms {report.peak(r).replace('*', ''):24}"
    if "kept" in r["got"]:
        either = row.group == "bf16" and row.shape == "S4"
        line += f"  {report.against(q.get('best'), 0 if either else r['bar']).replace('*', ''):28} stock {report.against(q.get('stock'), 0):6}"
        if either and r["bar"]:
            line += f" better of two: {report.against(q.get('either'), r['bar']).replace('*', '')}"
        if r["bar_own"]:
            line += f" own fp32: {report.against(q.get('own'), r['bar_own']).replace('*', '')}"
    line += f" {min(c['quiet'] for c in r['got'].values())} quiet"
    if "allocations" in r["trouble"]:
        line += f"  {r['trouble']['allocations']}"
    return line + ("" if r["good"] else f"  DOES NOT COUNT, {r['checked']}")


def run(args, rows, build):
    results = {r.key: {"samples": {}, "trouble": {}, "good": False, "checked": ""} for r in rows}
    wanted = {(who, r.threads) for r in rows for who, _ in r.implementations.values()} | {("kept", max(r.threads for r in rows))}
    begin, info, spent = time.monotonic(), {}, {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        data = workers.Data(scratch)
        for g in range(args.generations):
            team = workers.Team(build, wanted, args.realtime, args.isa)
            try:
                info = {f"{k[0]} {k[1]}": v for k, v in team.start().items()}
                for i, row in enumerate(rows):
                    result, folder, t = results[row.key], data.folder(row), time.monotonic()
                    try:
                        if g == 0:
                            result["good"], result["checked"] = check(team, row, folder)
                        if result["good"] and not args.quick:
                            left = begin + 60 * args.minutes * (g + 1) / args.generations - time.monotonic()
                            measure(team, row, folder, result, g, args.generations, 1.3 * left * weight(row) / sum(map(weight, rows[i:])))
                    except workers.Failed as e:
                        reason = str(e)
                        if reason.startswith("absent: "):
                            result["absent"] = reason[8:]
                        else:
                            result["trouble"]["ours"] = reason
                        team.revive()
                    spent[g, row.key] = time.monotonic() - t
                    progress(args, rows, g, i, spent, begin)
                    if args.quick or g == args.generations - 1:
                        print(f"{row.key:32} checked {result['checked']}" if args.quick and result["good"] else say(row, result, report.kernels(info)), flush=True)
            finally:
                team.close()
    return results, info, time.monotonic() - begin


def progress(args, rows, g, i, spent, begin):
    """Time left on stderr, from what the same rows took before."""
    if args.quick or not sys.stderr.isatty():
        if args.quick or i % 10:
            return
    per = statistics.mean(spent.values())
    left = sum(spent.get((g - 1, r.key), per) for r in rows[i + 1:]) + (args.generations - 1 - g) * sum(spent.get((g, r.key), per) for r in rows)
    print(f"\r  generation {g + 1} of {args.generations}, row {i + 1} of {len(rows)}, {(time.monotonic() - begin) / 60:.1f} minutes, "
          f"about {left / 60:.1f} left   ", end="\n" if not sys.stderr.isatty() else "", file=sys.stderr, flush=True)


def build_folder(given):
    folder = pathlib.Path(given)
    for path in (folder, folder / "bench" / "kern"):
        if (path / "bench_step").exists() and (path / "bench_calib.so").exists():
            return path
    sys.exit(f"run.py: no bench_step and bench_calib.so in {given}: cmake --build {given} --target bench_step bench_calib")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--minutes", type=float, default=15)
    p.add_argument("--generations", type=int, default=3)
    p.add_argument("--out", default=str(ROOT / "out" / "kernels"))
    p.add_argument("--realtime", action="store_true")
    p.add_argument("--isa", default="", choices=sorted(NARROW))
    p.add_argument("--list", action="store_true")
    args = p.parse_args()
    build = build_folder(args.build)
    rows = cases.tiny() if args.quick else cases.rows()
    rows = [r for r in rows if re.search(args.only, r.key) and r.threads <= (os.cpu_count() or 1)]
    if args.list or not rows:
        print("\n".join(r.key for r in rows) or "no such row")
        return 0
    args.generations = 1 if args.quick else args.generations
    load = os.getloadavg()[0]
    machine = pages.machine("1 and 2", load)
    results, info, seconds = run(args, rows, build)
    wrong = [k for k, r in results.items() if not r["good"] and not r.get("absent")]
    if args.quick:
        print(f"{sum(r['good'] for r in results.values())} variants agree with PyTorch in float64, "
              f"{sum(bool(r.get('absent')) for r in results.values())} not here, {len(wrong)} wrong, {seconds:.0f} s")
        return 1 if wrong else 0
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    page = {"machine": machine, "info": info, "seconds": seconds, "load": load, "generations": args.generations, "realtime": args.realtime, "isa": args.isa,
            "rows": {row.key: record(row, results[row.key]) for row in rows}}
    (out / "results.json").write_text(json.dumps(page, indent=1))
    print(f"{len(rows)} rows in {seconds / 60:.1f} minutes: {out / 'results.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
