"""draw.py - bench/results/img/time-slices.svg: how many times as fast as one after another (fp32, one thread), over the number of slices.

    w = T/256          w = T/64           w = T/16        a panel for each memory, a line for each precision and number of threads;
      o--o--o            o--o               o             hollow = the gradient was off, does not count
    o                  o     o--o         o  o--o"""
import math

WIDE, HIGH, TOP, LEFT, GAP, PLOT = 860, 330, 74, 46, 26, 186
COLOURS = {("fp32", 1): "#90a4b8", ("fp32", 2): "#2b6cb0", ("bf16", 1): "#dd9a6b", ("bf16", 2): "#c05621"}


def chart(memories):
    width = (WIDE - LEFT - 12 - GAP * (len(memories) - 1)) / len(memories)
    ratios = {name: lines(part) for name, part in memories.items()}
    values = [v for part in ratios.values() for line in part.values() for _, v, _ in line]
    low, high = min([0.5, *values]), max([2, *values]) * 1.1
    ticks = [t for t in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16) if low <= t <= high]
    cuts = sorted({P for part in ratios.values() for line in part.values() for P, _, _ in line})

    def y_of(v):
        return TOP + PLOT * (1 - math.log(v / low) / math.log(high / low))

    def x_of(panel, P):
        at = math.log(P / cuts[0]) / math.log(cuts[-1] / cuts[0]) if len(cuts) > 1 else 0.5
        return LEFT + panel * (width + GAP) + 8 + at * (width - 16)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" font-family="system-ui, sans-serif" font-size="11">',
           f'<rect width="{WIDE}" height="{HIGH}" fill="#ffffff"/>',
           '<text x="12" y="22" font-size="15" font-weight="600" fill="#1a202c">A training step in P slices of time, over the same step without slices (fp32, 1 thread)</text>']
    for i, ((prec, threads), colour) in enumerate(COLOURS.items()):
        svg += [f'<line x1="{12 + 130 * i}" x2="{36 + 130 * i}" y1="38" y2="38" stroke="{colour}" stroke-width="2.5"/>',
                f'<text x="{41 + 130 * i}" y="42" fill="#4a5568">{prec}, {threads} thread{"s" if threads > 1 else ""}</text>']
    for panel, (name, part) in enumerate(memories.items()):
        x0 = LEFT + panel * (width + GAP)
        svg.append(f'<text x="{x0}" y="{TOP - 10}" fill="#1a202c">forgets in {part["w"] or "more than L"} steps ({name})</text>')
        for tick in ticks:
            svg.append(f'<line x1="{x0}" x2="{x0 + width:.1f}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}" stroke="{"#4a5568" if tick == 1 else "#e2e8f0"}"/>')
            if panel == 0:
                svg.append(f'<text x="{x0 - 6}" y="{y_of(tick) + 4:.1f}" text-anchor="end" fill="#4a5568">{tick:g}x</text>')
        svg += [f'<text x="{x_of(panel, P):.1f}" y="{TOP + PLOT + 18}" text-anchor="middle" fill="#4a5568">{P}</text>' for P in cuts]
        svg.append(f'<text x="{x0 + width / 2:.1f}" y="{TOP + PLOT + 36}" text-anchor="middle" fill="#4a5568">slices P</text>')
        for kind, line in ratios[name].items():
            points = " ".join(f"{x_of(panel, P):.1f},{y_of(v):.1f}" for P, v, _ in line)
            svg.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[kind]}" stroke-width="2.5"/>')
            svg += [f'<circle cx="{x_of(panel, P):.1f}" cy="{y_of(v):.1f}" r="3" fill="{COLOURS[kind] if good else "#ffffff"}" stroke="{COLOURS[kind]}"/>'
                    for P, v, good in line]
    return "\n".join(svg + ["</svg>"]) + "\n"


def lines(part):
    """{(prec, threads): [(P, speed-up, counted)]}."""
    base, out = part["rows"]["serial fp32 1t"]["median"], {}
    for r in part["rows"].values():
        if r["P"] > 1 and r["median"]:
            out.setdefault((r["prec"], r["threads"]), []).append((r["P"], base / r["median"], r["good"]))
    return {k: sorted(v) for k, v in out.items()}
