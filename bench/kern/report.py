#!/usr/bin/env python3
"""report.py - results.json of run.py as bench/results/kernels.md and img/kernels.svg there, and pointers in README.md there.

    report.py [RESULTS.json ..] [--out bench/results/kernels-NAME.md]     formats every row; measures nothing

Rows of a later file (run.py --only) replace those of an earlier one, which the page states.
A page holds one machine: --out keeps that of another one.  Pages name each other; their pictures are img/kernels[-NAME].svg."""
import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "kern")]
import cases  # noqa: E402
import draw  # noqa: E402
import results  # noqa: E402

FEW = 3  # fewer quiet samples give no figure
FULL = 9  # with fewer than these a row says so

METHOD = """## How it is measured

- A figure counts only where the check passed on this build and this shape: y and every gradient (weights, biases) against PyTorch in float64 with
  the same weights and inputs; fp32: largest difference over the largest entry <= 5e-6; bf16: cosine >= 0.999 and relative L2 <= 2e-2 for every
  tensor; a full step: the gradient of the first step and the losses of ten. `checked` shows what came out.
- One sample is one step: forward, backward and weight gradients, the packing of transposed weights included; no gradient of the input, which is
  data. Implementations take turns, a few samples each. Before and after every sample two calibration loops (multiply-adds in registers, then products
  of the kernels from L1, which a busy sibling thread slows down; for bf16 AMX tiles where there are any; ~150 us each, the median of seven bursts) run on the same
  threads of the same process, PyTorch's OpenMP threads included.
- Quiet: both loops at 90 % or more of what they usually reach for this implementation in this row, and the threads waited for a processor during less
  than 2 % of the step. Times are `median (first quarter, median of all samples)` in ms over all processes; a row with fewer than {full} quiet
  samples of an implementation says so, with fewer than {few} it has no figure. Every implementation ran in {generations} processes, one after another.
- Work is true work: dX of the first layer is left out (nominal work counts it; oneDNN, so PyTorch, computes it anyway). % of peak = true work over
  the rate of the calibration loop in the same moments, all threads: multiply-adds of the instruction set, for bf16 AMX tiles.
- `kept`: PyTorch with a malloc that keeps memory ({keep}); `stock`: as it comes. Ratios are
  PyTorch's time over ours; `best` is over the better of the two. Allocations of ours inside a step are counted; a row that has any says so.
- Pinning: thread i on processor i, one thread on the last processor; PyTorch by `GOMP_CPU_AFFINITY`, `OMP_NUM_THREADS`, all else as it comes
  (libgomp spins). Variables of the session that begin with OMP, GOMP, MKL, MALLOC, ONEDNN are removed.{realtime}
"""


def kernels(info):
    """The instruction set of our kernels in a run."""
    return next((v.split()[2].rstrip(",") for k, v in info.items() if k.startswith("ours") and v.startswith("stretto kernels ")), "")


# AVX2 has bars of its own, for processors without AVX-512: % of the multiply-add peak, and times PyTorch, at the five shapes.
AVX2_PEAK = (78, 82, 84, 42, 86)
AVX2_RATIO = {("lstm", 1): (2.2, 1.9, 1.6, 2, 1.4), ("lstm", 2): (2.5, 2, 1.6, 3, 1.3), ("gru", 1): (8, 3, 2.3, 30, 1.8)}


def avx2_bars(row):
    shape, alike = int(row["shape"][1]) - 1, (row["group"], row["threads"])
    if row["layers"] == 1 and alike in AVX2_RATIO:
        row["bar"] = AVX2_RATIO[alike][shape]
        row["bar_peak"] = AVX2_PEAK[shape] if alike == ("lstm", 1) else 0


def judge(row, isa):
    """The bars of a row, those of the issue, on kernels of this instruction set: bf16 is held against PyTorch on AMX, else against our own fp32."""
    row["amx"] = isa == "amx"
    case = next((c for c in cases.rows() if c.key == "/".join(filter(None, [row["group"], row["variant"], row["shape"], f"{row['layers']}L",
                                                                           f"{row['threads']}t"]))), None)
    if case:
        row["bar"], row["bar_peak"], row["bar_over_fp32"] = case.bar, case.peak, case.over_fp32
    if isa == "avx2":
        avx2_bars(row)
    row["bar_own"] = 0
    if row["group"] == "bf16" and isa != "amx":
        row["bar_own"] = case.own if case and isa == "avx512_bf16" else 0
        row["bar_over_fp32"] = 0
        row["bar"] = row["bar"] if row["shape"] == "S4" else 0
    return row


def ms(c):
    return f"{c['ms']:.3g} ({c['p25']:.3g}, {c['raw']:.3g})" if c["ms"] < 100 else f"{c['ms']:.0f} ({c['p25']:.0f}, {c['raw']:.0f})"


def sure(*implementations):
    return all(c and c["quiet"] >= FEW for c in implementations)


def ratios(row):
    """{"best", "kept", "stock", "fp32", "own"} where both sides have a figure."""
    got, out = row["got"], {}
    mine = got.get("ours")
    if not row["good"] or not mine:
        return out
    for name, key in (("kept", "kept"), ("stock", "stock"), ("kept fp32", "fp32"), ("ours fp32", "own")):
        if sure(mine, got.get(name)):
            out[key] = got[name]["ms"] / mine["ms"]
    if "kept" in out and "stock" in out:
        out["best"] = min(out["kept"], out["stock"])
    if row["group"] == "bf16" and row["shape"] == "S4" and sure(mine, *(got.get(n) for n in ("ours fp32", "kept", "stock", "kept fp32"))):
        out["either"] = min(got[n]["ms"] for n in ("kept", "stock", "kept fp32")) / min(mine["ms"], got["ours fp32"]["ms"])
    return out


def against(value, bar, unit=""):
    """A value beside its bar."""
    if value is None:
        return f"- (bar {bar:g}{unit})" if bar else "-"
    text = f"{value:.2f}" if not unit else f"{value:.0f}{unit}"
    if not bar:
        return text
    return f"**{text}** (bar {bar:g}{unit}, {'met' if value >= bar else 'missed'})"


def nominal(row):
    """Nominal over true work of the row's layers: what dX of the first one adds."""
    T, B, I, H = row["size"]
    word = {"gru": 3, "rnn": 1}.get(row["group"], 3 if row["variant"] == "GRU" else 4)
    dirs = 2 if row["group"] == "bidir" else 1
    return 2.0 * T * B * word * H * I * dirs


def peak(row):
    mine = row["got"].get("ours")
    if not mine or not row["good"] or row["group"] == "step":
        return "-"
    if row["group"] == "bf16" and not row["amx"]:
        return "-"
    share = mine["tile_peak"] if row["group"] == "bf16" else mine["peak"]
    return against(share, row["bar_peak"], " %") if share else "-"


def table(rows):
    bf16 = rows[0]["group"] == "bf16"
    alone = rows[0]["group"] == "avx2"
    head = ["(T, B, I, H)", "", "layers", "threads", "ours, ms", "GF/s true / nominal", "% of peak"]
    if not alone:
        head += ["kept, ms", "stock, ms", "best / ours", "stock / ours"]
    if bf16:
        head += ["own fp32, ms", "PyTorch fp32, ms", "own fp32 / bf16", "PyTorch fp32 / ours"]
    head += ["quiet of all", "checked"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for r in rows:
        got, q = r["got"], ratios(r)
        mine = got.get("ours")
        cells = [f"({', '.join(map(str, r['size']))})", r["variant"], str(r["layers"]), str(r["threads"])]
        if not mine:
            why = f"not here: {r['absent']}" if r["absent"] else "; ".join(r["trouble"].values()) or r["checked"]
            lines.append("| " + " | ".join(cells + [why] + [""] * (len(head) - 5)) + " |")
            continue
        extra = nominal(r) / mine["ms"] * 1e-6 if r["group"] not in ("ragged", "step") else 0
        work = "-" if r["group"] == "step" else f"{mine['gflops']:.0f}" + (f" / {mine['gflops'] + extra:.0f}" if extra else "")
        cells += [ms(mine), work, peak(r)]
        if not alone:
            cells += [ms(got[n]) if n in got else "-" for n in ("kept", "stock")]
            bar = 0 if r["group"] == "bf16" and r["shape"] == "S4" else r["bar"]
            cells += [against(q.get("best"), bar), against(q.get("stock"), 0)]
        if bf16:
            cells += [ms(got[n]) if n in got else "-" for n in ("ours fp32", "kept fp32")]
            cells += [against(q.get("own"), r["bar_own"]), against(q.get("fp32"), r["bar_over_fp32"])]
        few = min(c["quiet"] for c in got.values())
        cells += [" ".join(f"{c['quiet']}/{c['all']}" for c in got.values()) + (" (few)" if few < FULL else ""),
                  "; ".join([r["checked"] + ("" if r["good"] else " does not count"), *r["trouble"].values()])]
        lines.append("| " + " | ".join(cells) + " |")
    either = [r for r in rows if bf16 and r["shape"] == "S4" and r["threads"] == 1 and "either" in ratios(r)]
    for r in either:
        lines += ["", f"({', '.join(map(str, r['size']))}), one thread, the better of our two precisions over PyTorch's better: {against(ratios(r)['either'], r['bar'])}."]
    return lines


def bars(rows):
    """Met and missed bars, and those without a figure."""
    met, missed, open_ = [], [], []
    for r in rows.values():
        q, name = ratios(r), f"{r['group']} {r['variant']} {r['shape']} {r['layers']}L {r['threads']}t".replace("  ", " ")
        mine = r["got"].get("ours", {})
        either = r["group"] == "bf16" and r["shape"] == "S4"
        for bar, value, what in ((r["bar"], q.get("either" if either else "best"), "x"), (r["bar_over_fp32"], q.get("fp32"), "x over PyTorch's fp32"),
                                 (r["bar_own"], q.get("own"), "x own fp32"),
                                 (r["bar_peak"], mine.get("peak") if r["good"] and sure(mine) else None, " % of peak")):
            if bar:
                text = f"{name}: {value:.3g}{what}, bar {bar:g}" if value is not None else f"{name}: bar {bar:g}{what}"
                if what == "x" and value is not None and value < bar and mine.get("peak"):
                    text += f" ({mine['peak']:.0f} % of peak; at 100 % it would be {value * 100 / mine['peak']:.3g}x)"
                (open_ if value is None else met if value >= bar else missed).append(text)
    return met, missed, open_


def slow(rows):
    """Processes whose undisturbed median differs much from others of the same implementation."""
    out = []
    for key, r in rows.items():
        for name, c in r["got"].items():
            if len(c["processes"]) > 1 and max(c["processes"]) > 1.25 * min(c["processes"]):
                out.append(f"{key}, {name}: {', '.join(f'{v:.3g}' for v in c['processes'])} ms")
    return out


def compiler():
    for cache in sorted((ROOT / "build").glob("*/CMakeCache.txt")):
        for line in cache.read_text().splitlines():
            if line.startswith("CMAKE_C_COMPILER:"):
                got = subprocess.run([line.split("=", 1)[1], "--version"], capture_output=True, text=True).stdout
                return got.splitlines()[0] if got else "unknown"
    return "unknown"


def pages():
    """bench/results/kernels*.md, each with its line about the machine and its count of bars."""
    out = {}
    for page in sorted(results.FOLDER.glob("kernels*.md")):
        text = page.read_text()
        out[page.name] = (re.search(r"^\d{4}-\d\d-\d\d, .*", text, re.M)[0], re.search(r"^\*\*(\d+ bars met.*?)\.?\*\*", text, re.M)[1])
    return out


def link():
    """Every page names the others; README.md names all of them."""
    found = pages()
    for name in found:
        others = "; ".join(f"[{n}]({n}): {', '.join(line.split(', ')[:2])}" for n, (line, _) in found.items() if n != name)
        page = results.FOLDER / name
        page.write_text(re.sub(r"^Other machines:.*\n\n", "", page.read_text(), flags=re.M).replace("\n## How", (f"\nOther machines: {others}.\n" if others else "") + "\n## How", 1))
    results.write("kernels", "## Kernels\n\n" + "\n\n".join(f"{line.split(' Compiler ')[0]} {count}: [{n}]({n})." for n, (line, count) in found.items()))


def machine(record):
    """The line about the machine and the revision, as they were at the run."""
    return record.get("machine") or results.machine("1 and 2", record["load"])


def kept(record):
    return f" All implementations were kept to {record['isa']} (`--isa {record['isa']}`)." if record.get("isa") else ""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("results", nargs="*", default=[str(ROOT / "out" / "kernels" / "results.json")])
    p.add_argument("--out", default="bench/results/kernels.md")
    args = p.parse_args()
    page = (ROOT / args.out).resolve()
    image = page.stem + ".svg"
    record, *later = [json.loads(pathlib.Path(f).read_text()) for f in args.results]
    isa, again = kernels(record["info"]), []
    for run in later:
        record["rows"] |= run["rows"]
        again += [f"Rows of {', '.join(dict.fromkeys(r['group'] for r in run['rows'].values()))} ({len(run['rows'])}) are of a later run, {run['seconds'] / 60:.0f} minutes: {machine(run)}", ""]
    rows = {k: judge(r, isa) for k, r in record["rows"].items()}
    met, missed, open_ = bars(rows)
    peers = next((json.loads(v) for k, v in record["info"].items() if k.startswith("kept")), {})
    ours = next((v for k, v in record["info"].items() if k.startswith("ours")), "")
    realtime = " Every implementation alike ran before the other programs of the machine (SCHED_RR)." if record["realtime"] else ""
    keep = "`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_` 16 GiB, `MALLOC_TOP_PAD_` 256 MiB"
    text = ["# Results: kernels", "", "`make bench-kernels` writes this page; every row, good or bad, as it came out.", "",
            machine(record) + f" {ours}. Compiler {compiler()}, glibc {platform.libc_ver()[1]}. PyTorch {peers.get('torch')}, {peers.get('onednn')}, "
            f"{peers.get('cpu')}. {record['seconds'] / 60:.0f} minutes.{kept(record)}", "", *again,
            f"**{len(met)} bars met, {len(missed)} missed, {len(open_)} without a figure.** Bars are those of the issues, over PyTorch's best setting.", "",
            f"![ratios over PyTorch](img/{image})", ""]
    for title, found in (("Missed", missed), ("Without a figure", open_)):
        if found:
            text += [f"{title}: " + "; ".join(found) + ".", ""]
    text += [METHOD.format(full=FULL, few=FEW, generations=record["generations"], keep=keep, realtime=realtime)]
    for group, title in cases.GROUPS.items():
        mine = [r for r in rows.values() if r["group"] == group]
        if mine:
            text += [f"## {title}", "", *([cases.NOTES[group], ""] if group in cases.NOTES else []), *table(mine), ""]
    odd = slow(rows)
    if odd:
        text += ["## Processes that were slow for life", "", "Quiet medians of the processes of one implementation that lie more than a quarter apart; the median over all counts.", "",
                 *(f"- {line}" for line in odd), ""]
    page.write_text("\n".join(text).rstrip() + "\n")
    (results.FOLDER / "img").mkdir(exist_ok=True)
    (results.FOLDER / "img" / image).write_text(draw.chart(rows, ratios))
    link()
    print(f"{len(met)} bars met, {len(missed)} missed, {len(open_)} without a figure: {page.relative_to(ROOT)}")
    for line in missed + open_:
        print("  " + line)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
