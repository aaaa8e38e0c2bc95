#!/usr/bin/env python3
"""report.py - series.json and nets.json of run.py as the tables of bench/results/time.md (between its markers) and img/time-slices.svg there.

    report.py [DIR]                                     every row as it came out; nothing is measured and nothing typed here
    report.py DIR --out bench/results/time-NAME.md       the page of another machine, with its picture img/time-slices-NAME.svg
    report.py DIR --simulated                           only what the simulator says, and how far it is off"""
import argparse
import json
import math
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "time")]
import draw  # noqa: E402
import results  # noqa: E402

PAGE = results.FOLDER / "time.md"
KINDS = [("fp32", 1), ("fp32", 2), ("bf16", 1), ("bf16", 2)]
CUTS = (8, 16, 32, 64)


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *("| " + " | ".join(map(str, r)) + " |" for r in rows)]


# ---------------------------------------------------------------------- the long series

def forgets(rows, T):
    """w where slices are at least half as long again, or it is cut off; of these the shortest, whose marks lie closest.  None = nowhere."""
    for r in sorted((r for r in rows.values() if r["chain"] and r["prec"] == "fp32"), key=lambda r: -r["P"]):
        w = r["chain"][0]["forward"]["w"]
        if 0 < 1.5 * w <= T / r["P"]:
            return int(w)
    return None


class Part:
    """One memory's rows and what their times are compared with."""

    def __init__(self, page, part):
        self.T, self.rows, self.part = page["T"], part["rows"], part
        self.w = part["w"] = forgets(self.rows, self.T)
        self.torch = min(r["median"] for r in self.rows.values() if r["P"] == 0)

    def serial(self, threads, prec="fp32"):
        """Our best without slices with at most so many threads."""
        return min(r["median"] for r in self.rows.values() if r["P"] == 1 and r["threads"] <= threads and r["prec"] == prec)

    def over_own(self, r):
        return self.serial(r["threads"]) / r["median"]

    def efficiency(self, r):
        return self.serial(1, r["prec"]) / r["median"] / r["threads"]

    def why(self, r):
        """Why a row does not count."""
        whole = next(v for v in self.rows.values() if v["P"] == 1 and v["prec"] == r["prec"])
        return "its gradient is off" if whole["good"] else f"in {r['prec']} the gradient is off without slices too"

    def best(self, prec, threads):
        good = [r for r in self.rows.values() if r["P"] > 1 and r["good"] and (r["prec"], r["threads"]) == (prec, threads)]
        return min(good, key=lambda r: r["median"], default=None)


def rounds(r):
    """forward / backward; how many of them ran one after another."""
    if not r["chain"]:
        return "-"
    return " / ".join(f"{w['rounds']:.0f}" + (f" ({w['serial']:.0f} serial)" if w["serial"] else "") for w in (r["chain"][0]["forward"], r["chain"][0]["backward"]))


def cells(part, r):
    what = "PyTorch" if r["P"] == 0 else "no slices" if r["P"] == 1 else str(r["P"])
    quarter = sorted(r["ms"])[len(r["ms"]) // 4]
    own = part.over_own(r)
    counts = r["good"]
    return [what, str(math.ceil(part.T / r["P"])) if r["P"] > 1 else "-", r["prec"], r["threads"], f"{r['median']:.0f} ({quarter:.0f})",
            f"{1e3 * r['median'] / part.T:.2f}", f"{own:.2f}" if counts else "-", f"{part.torch / r['median']:.2f}" if counts else "-", rounds(r),
            f"{100 * part.efficiency(r):.0f} %" if r["P"] > 1 and counts else "-",
            ("-" if r["grads"] is None else f"{r['grads']:.1e}") + ("" if counts else f" **not counted: {part.why(r)}**")]


def summary(parts):
    head = ["w (share of T)", "", "P", "ms", "us a step", "over own without slices, fp32, same threads", "over own bf16 without slices", "over PyTorch's best",
            "rounds forward / backward", "efficiency"]
    rows = []
    for name, part in parts.items():
        for prec, threads in KINDS:
            r = part.best(prec, threads)
            if r:
                rows.append([f"{part.w or '?'} ({name})", f"{prec}, {threads} thread{'s' if threads > 1 else ''}", r["P"], f"{r['median']:.0f}", f"{1e3 * r['median'] / part.T:.2f}",
                             f"**{part.over_own(r):.2f}**", f"{part.serial(1, 'bf16') / r['median']:.2f}" if prec == "bf16" else "-", f"**{part.torch / r['median']:.1f}**",
                             rounds(r), f"{100 * part.efficiency(r):.0f} %"])
            else:
                some = next(r for r in part.rows.values() if r["P"] > 1 and r["prec"] == prec)
                rows.append([f"{part.w or '?'} ({name})", f"{prec}, {threads} thread{'s' if threads > 1 else ''}", f"not counted: {part.why(some)}", *["-"] * 7])
    return table(head, rows)


def series(page, parts, picture):
    text = [results.machine("1 and 2", page["load"]) + f" Measured: revision {page['revision']}, PyTorch {page['torch']}. T={page['T']:,}, B=1, I={page['I']}, H={page['H']}, loss at every step, forward, backward and Adam; "
            f"medians of {page['rounds']} turns (PyTorch {(page['rounds'] + 1) // 2}), every implementation one step a turn"
            + (", all alike before the other programs of the machine (SCHED_RR)" if page["realtime"] else "") + ".", "", "The best P of each kind:", "", *summary(parts), "",
            f"![speed-up over the number of slices](img/{picture})", ""]
    head = ["P", "L", "", "threads", "ms (first quarter)", "us a step", "over own without slices", "over PyTorch's best", "rounds", "efficiency", "gradient"]
    for name, part in parts.items():
        p = part.part
        text += [f"<details><summary>w = {part.w} of T = {part.T} ({name}): recurrent weights x {p['spread']:g}, forget bias + {p['forget']:g}</summary>", "",
                 *table(head, [cells(part, r) for r in sorted(part.rows.values(), key=lambda r: (r["prec"] == "bf16", r["threads"], r["P"]))]), ""]
        text += [f"Not here: {key}: {why}" for key, why in p["why"].items()] + ["</details>", ""]
    return text


# ---------------------------------------------------------------------- simulated

LIMIT = 10  # % that the simulator may be off


def percent(off):
    return f"{100 * off:+.0f} %"


def against(part, P, prec):
    """[(threads, measured, simulated, the planner's, the fastest measured)] ms where a step was both measured and simulated."""
    rows = {r["threads"]: r for r in part.rows.values() if (r["P"], r["prec"]) == (P, prec)}
    sim = rows.get(1, {}).get("simulated", {})
    return [(n, r["median"], sim[str(n)]["ms"], float(r["plan"]), min(r["ms"])) for n, r in sorted(rows.items()) if str(n) in sim]


def sliced(parts):
    """(part, P, precision, what was simulated of it by number of devices)."""
    return [(part, r["P"], r["prec"], r["simulated"]) for part in parts.values() for r in part.rows.values() if "simulated" in r]


def simulated_bars(parts):
    """[(met, text)]: the simulator against the clock; the planner's own figures beside it; efficiency where there are more cores."""
    out, both = [], [(n, m, s, fast, f"P={P}, {prec}, w={part.w}") for part, P, prec, _ in sliced(parts) for n, m, s, _, fast in against(part, P, prec)]
    for threads in sorted({n for n, *_ in both}):
        offs = sorted(((s / m - 1, where) for n, m, s, _, where in both if n == threads), key=lambda o: abs(o[0]))
        inside = sum(abs(o) <= LIMIT / 100 for o, _ in offs)
        out.append((inside == len(offs), f"simulated step (fed with task times of one thread) against measured, {threads} thread{'s' if threads > 1 else ''}: {inside} of {len(offs)} "
                    f"within {LIMIT} %, off by {100 * abs(offs[len(offs) // 2][0]):.1f} % (median), {percent(offs[-1][0])} at worst ({offs[-1][1]}); of the fastest turns "
                    f"{sum(abs(s / fast - 1) <= LIMIT / 100 for n, _, s, fast, _ in both if n == threads)}"))
    every = [(plan, r["median"]) for p in parts.values() for r in p.rows.values() if r["good"] and "plan" in r for plan in [float(r["plan"])]]
    if every:
        off = max(abs(plan / m - 1) for plan, m in every)
        out.append((None if both else off <= LIMIT / 100, f"the planner's own figures, without measured task times, against measured: off by up to {100 * off:.0f} %"))
    for devices in ("4", "8", "16"):
        for prec in ("fp32", "bf16"):
            rows = [(part.serial(1, prec) / s[devices]["ms"] / int(devices), f"P={P}, w={part.w}", s[devices]["busy"]) for part, P, q, s in sliced(parts)
                    if q == prec and part.w and part.T / P >= 4 * part.w and P >= int(devices)]
            if rows:
                (low, where, busy), (high, best, _) = min(rows), max(rows)
                out.append((low >= 0.8, f"efficiency where L >= 4w and P >= {devices}, {prec}, {devices} cores, simulated: {100 * low:.0f} % ({where}, {busy} of them at work) to "
                            f"{100 * high:.0f} % ({best}), bar 80 %"))
    return out


def simulated(page, parts):
    """Tables: where both exist, and beyond the cores of this machine."""
    if not sliced(parts):
        return ["Not simulated yet."]
    words = {True: "met", False: "**missed**", None: "not judged"}
    text = [results.machine("1 and 2", page["load"]) + f" Measured: revision {page['revision']}. T={page['T']:,}, B=1, I={page['I']}, H={page['H']}; medians of {page['rounds']} turns, every implementation "
            "and every part that is sampled one step a turn.", "", *(f"- {words[met]}: {line}" for met, line in simulated_bars(parts)), ""]
    rows = []
    for part, P, prec, _ in sliced(parts):
        cells = [[f"{m:.0f}", f"{s:.0f}", f"{s / m:.2f}", f"{plan / m:.2f}"] for _, m, s, plan, _ in against(part, P, prec)]
        rows.append([part.w, prec, P, *(c for four in (cells + [["-"] * 4] * 2)[:2] for c in four)])
    text += ["Simulated against measured:", "",
             *table(["w", "", "P", "1 thread, ms", "simulated", "ratio", "planner's ratio", "2 threads, ms", "simulated", "ratio", "planner's ratio"], rows), ""]
    rows = []
    for part, P, prec, sim in sliced(parts):
        whole = part.serial(1, prec)
        rows.append([part.w, prec, P, f"{part.T / P / part.w:.1f}" if part.w else "-",
                     *(f"{sim[d]['ms']:.1f} ({100 * whole / sim[d]['ms'] / int(d):.0f} %)" + ("" if sim[d]["busy"] == int(d) else f" {sim[d]['busy']} at work") for d in sim)])
    text += ["Beyond this machine: simulated ms, and efficiency (our time without slices on one thread in the same precision, over time x cores):", "",
             *table(["w", "", "P", "L/w", *(f"{d} core{'s' if d != '1' else ''}" for d in sliced(parts)[0][3])], rows)]
    return text


# ---------------------------------------------------------------------- rounds of trained nets

def bound(r, layer, tol, P):
    """1 + ceil(w/L) + 2, no more than the slices; None where w is longer than what was looked at."""
    w = r["w"][layer][tol]
    return min(P, 3 + math.ceil(w / math.ceil(r["T"] / P))) if w else P


def judge(nets):
    """(cases within the bound, [violation], [refused])."""
    good, over, refused = 0, [], {}
    for r in nets:
        for key, layers in r.get("rounds", {}).items():
            tol, P = key.split()
            if isinstance(layers, str):
                refused.setdefault((r["task"], layers), []).append(P)
                continue
            for k, layer in enumerate(layers):
                for way, n, serial in (("forward", layer[0], layer[1]), ("backward", layer[2], layer[3])):
                    most = bound(r, k, tol, int(P))
                    if n <= most:
                        good += 1
                    else:
                        over.append(f"{r['task']} H={r['H']}, {r['layers']} layer{'s' if r['layers'] > 1 else ''}, seed {r['seed']}, layer {k + 1}, P={P}, tol {tol}, {way}: "
                                    f"{n} rounds" + (f", {serial} of them one slice after another" if serial else "") + f", bound {most} (w {r['w'][k][tol]})")
    return good, over, [f"{task} at P={', '.join(dict.fromkeys(P))}: {why}" for (task, why), P in refused.items()]


def worst(group, tol, way):
    """rounds at P = 8 / 16 / 32 / 64, the worst of seeds and layers; * = over the bound."""
    out = []
    for P in CUTS:
        got = [(layer[way], layer[way] > bound(r, k, tol, P)) for r in group for k, layer in enumerate(r["rounds"][f"{tol} {P}"]) if not isinstance(r["rounds"][f"{tol} {P}"], str)]
        out.append(f"{max(n for n, _ in got)}{'*' if any(o for _, o in got) else ''}" if got else "-")
    return " / ".join(out)


def memory(group, tol):
    """The largest w of each layer over the seeds."""
    out = []
    for k in range(group[0]["layers"]):
        found = [r["w"][k][tol] for r in group]
        out.append(f"> {group[0]['T'] if len(group) > 1 else group[0]['T'] // 2}" if None in found else str(max(found)))
    return ", ".join(out)


def nets(found):
    groups = {}
    for r in (r for r in found if "rounds" in r):
        groups.setdefault((r["task"], r["H"], r["layers"]), []).append(r)
    good, over, refused = judge(found)
    head = ["net", "H", "layers", "loss before, after", "w(1e-4)", "w(1e-6)", "forward, tol 1e-4", "1e-6", "backward, tol 1e-4", "1e-6", "gradient at 1e-6: cut to uncut", "uncut to float64", "cut to float64"]
    rows = []
    for (task, H, layers), g in groups.items():
        losses = f"{max(r['loss'][0] for r in g):.2g}, " + " ".join(f"{r['loss'][1]:.2g}" for r in g)
        grads = [max((v for r in g for k, v in r[kind].items() if k.startswith(which)), default=float("nan"))
                 for kind, which in (("grads", "1e-06"), ("true", "serial"), ("true", "1e-06"))]
        rows.append([task, H, layers, losses, memory(g, "0.0001"), memory(g, "1e-06"), worst(g, "0.0001", 0), worst(g, "1e-06", 0), worst(g, "0.0001", 2), worst(g, "1e-06", 2), *(f"{v:.0e}" for v in grads)])
    text = ["Rounds at P = 8 / 16 / 32 / 64, the worst of three seeds and of all layers (streams: one net); w of each layer, the worst of the seeds; `*`: over the bound "
            f"1 + ceil(w/L) + 2. **{good} chains within the bound, {len(over)} over it.**", "", *table(head, rows), ""]
    if over:
        text += ["Over the bound:", "", *(f"- {line}" for line in over), ""]
    text += [f"Refused: {line}" for line in refused]
    there = {(r["task"], r["H"], r["layers"], r["seed"]) for r in found}
    missing = [f"{t} H={H} layers={n} seed={s}" for H in (32, 128, 256) for n in (1, 2) for t in "ABCD" for s in (1, 2, 3) if (t, H, n, s) not in there]
    text += [f"Not measured (stopped before its turn): {'; '.join(missing)}."] if missing else []
    text += [f"Not trained: {r['task']} H={r['H']} layers={r['layers']} seed={r['seed']}: {r['trouble']}" for r in found if "trouble" in r]
    return text


# ---------------------------------------------------------------------- bars

def bars(parts, found):
    """[(met, text)] of the fifth issue; None = no figure here."""
    short, out = parts["T/256"], []

    def bar(text, value, wanted, unit="x"):
        out.append((None if value is None else value >= wanted, f"{text}: {'-' if value is None else f'{value:.2f}{unit}'}, bar {wanted:g}{unit}"))

    def value(prec, threads, how):
        r = short.best(prec, threads)
        return how(r) if r else None
    bar("fp32, 2 threads, over own best without slices with 2 threads", value("fp32", 2, short.over_own), 1.7)
    bar("the same, stretch", value("fp32", 2, short.over_own), 2)
    bar("fp32, 2 threads, over PyTorch's best", value("fp32", 2, lambda r: short.torch / r["median"]), 5)
    bar("fp32, 1 thread, over own without slices", value("fp32", 1, short.over_own), 1.4)
    bar("bf16, 1 thread, over own fp32 without slices", value("bf16", 1, short.over_own), 5)
    bar("bf16, 1 thread, over PyTorch's best", value("bf16", 1, lambda r: short.torch / r["median"]), 10)
    for prec, threads in KINDS:
        rows = [(p.efficiency(r), f"P={r['P']}, w={p.w}") for p in parts.values() for r in p.rows.values()
                if r["P"] > 1 and r["good"] and p.w and p.T / r["P"] >= 4 * p.w and (r["prec"], r["threads"]) == (prec, threads)]
        if rows:
            e, where = min(rows)
            bar(f"efficiency where L >= 4w, {prec}, {threads} thread{'s' if threads > 1 else ''}, the worst of {len(rows)} ({where})", 100 * e, 80, " %")
    for prec, most in (("fp32", 1e-5), ("bf16", 2e-2)):
        rows = [(r["grads"], f"{key}, {name}") for name, p in parts.items() for key, r in p.rows.items() if r["prec"] == prec and r["grads"] is not None]
        e, where = max(rows)
        out.append((e <= most, f"every gradient, {prec}, relative L2: {e:.1e} ({where}), bar {most:g}"))
    out += simulated_bars(parts)
    if found:
        for title, some in (("nets A-D", [r for r in found if r["task"] in "ABCD"]), ("streams", [r for r in found if r["task"] not in "ABCD"])):
            good, over, _ = judge(some)
            early = sum("one slice after another" in line for line in over)
            out.append((not over if good + len(over) else None, f"rounds of {title} <= 1 + ceil(w/L) + 2: {good} of {good + len(over)}"
                        + (f"; of those over it {early} fell back to one slice after another" if early else "")))
            cuts = [(r["grads"][k], r["true"][k], r["true"]["serial"]) for r in some if "true" in r for k in r["grads"] if k.startswith("1e-06")]
            if cuts:
                near, own = sum(cut <= 1e-5 for cut, _, _ in cuts), sum(cut > 1e-5 and true <= max(1e-5, 2 * serial) for cut, true, serial in cuts)
                out.append((near == len(cuts), f"gradients of {title} at tolerance 1e-6, cut to uncut, the worst tensor: {near} of {len(cuts)} within 1e-5; of the others {own} are no "
                            "further from float64 than twice the uncut fp32 run is itself"))
    return out


def write(path, parts):
    """Puts every part in its place on the page."""
    text = path.read_text()
    for name, lines in parts.items():
        text, n = re.subn(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", lambda m: m.group(1) + "\n".join(lines).strip() + "\n" + m.group(2), text, flags=re.S)
        if n != 1:
            sys.exit(f"{path}: no place for {name}")
    scratch = path.with_suffix(".tmp")
    scratch.write_text(text)
    scratch.replace(path)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", nargs="?", type=pathlib.Path, default=ROOT / "out" / "time")
    p.add_argument("--out", type=pathlib.Path, default=PAGE)
    p.add_argument("--simulated", action="store_true")
    return p.parse_args()


def main():
    a = arguments()
    page = json.loads((a.dir / "series.json").read_text())
    found = json.loads((a.dir / "nets.json").read_text()) if (a.dir / "nets.json").exists() else []
    parts = {name: Part(page, part) for name, part in page["memories"].items()}
    if a.simulated:
        return write(a.out, {"simulated": simulated(page, parts)})
    judged = bars(parts, found)
    words = {True: "met", False: "**missed**", None: "not judged"}
    picture = f"time-slices{a.out.stem.removeprefix('time')}.svg"
    write(a.out, {"bars": [f"{sum(m is True for m, _ in judged)} met, {sum(m is False for m, _ in judged)} missed.", "", *(f"- {words[m]}: {t}" for m, t in judged)],
                  "series": series(page, parts, picture), "nets": nets(found) if found else ["Not measured yet."],
                  "simulated": simulated(page, parts)})
    (results.FOLDER / "img").mkdir(exist_ok=True)
    (results.FOLDER / "img" / picture).write_text(draw.chart(page["memories"]))
    for met, text in judged:
        print(f"{words[met].strip('*'):9} {text}")
    print(a.out)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
