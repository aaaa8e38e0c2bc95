"""draw.py - bench/results/img/kernels.svg: for every variant and shape, how many times as long PyTorch's best setting takes.

    LSTM, 1 thread   S1 ======|==== 2.7        bars on a logarithmic axis; | = the bar of the issue; pale = missed or no bar
                     S2 ===|== 1.8"""
import math

WIDE, LEFT, RIGHT, TOP, STEP, GAP = 860, 250, 70, 64, 13, 12
MET, MISSED, PLAIN = "#2b6cb0", "#c05621", "#90a4b8"
LARGEST = 64
NAMES = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN", "bidir": "Bidirectional LSTM", "ragged": "Ragged batch", "decoder": "Decoder", "proj": "Projection", "layer": "Layer of a model",
         "bf16": "bf16", "step": "Full training step"}


def x_of(ratio):
    low = 0.5
    share = math.log(min(max(ratio, low), LARGEST) / low) / math.log(LARGEST / low)
    return LEFT + share * (WIDE - LEFT - RIGHT)


def series(rows, ratios):
    """[(label, [(shape, ratio, bar)])] in the order of the rows."""
    out = {}
    for r in rows.values():
        q = ratios(r)
        if r["group"] not in NAMES or "best" not in q:
            continue
        label = NAMES[r["group"]] + (f", {r['variant']}" if r["variant"] else "")
        label += (f", {r['layers']} layers" if r["layers"] > 1 else "") + f", {r['threads']} thread{'s' if r['threads'] > 1 else ''}"
        either = r["group"] == "bf16" and r["shape"] == "S4"
        out.setdefault(label, []).append((r["shape"], q["best"], 0 if either else r["bar"]))
    return list(out.items())


def chart(rows, ratios):
    groups = series(rows, ratios)
    high = TOP + sum(len(bars) * STEP + GAP for _, bars in groups) + 24
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" font-family="system-ui, sans-serif" font-size="11">',
           f'<rect width="{WIDE}" height="{high}" fill="#ffffff"/>',
           '<text x="12" y="22" font-size="15" font-weight="600" fill="#1a202c">PyTorch\'s time over ours, its best setting</text>',
           f'<text x="12" y="40" fill="#4a5568">forward + backward + weight gradients; longer is better for us; the dark tick is the bar of the issue: '
           f'<tspan fill="{MET}">met</tspan>, <tspan fill="{MISSED}">missed</tspan>, <tspan fill="{PLAIN}">no bar</tspan></text>']
    for tick in (0.5, 1, 2, 4, 8, 16, 32, 64):
        x = x_of(tick)
        svg += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{high - 16}" stroke="{"#4a5568" if tick == 1 else "#e2e8f0"}"/>',
                f'<text x="{x:.1f}" y="{high - 4}" text-anchor="middle" fill="#4a5568">{tick:g}x</text>']
    y = TOP
    for label, bars in groups:
        svg.append(f'<text x="{LEFT - 62}" y="{y + 10}" text-anchor="end" fill="#1a202c">{label}</text>')
        for shape, ratio, bar in bars:
            colour = PLAIN if not bar else MET if ratio >= bar else MISSED
            a, b = sorted((x_of(1), x_of(ratio)))
            svg += [f'<text x="{LEFT - 8}" y="{y + 9.5}" text-anchor="end" fill="#4a5568">{shape}</text>',
                    f'<rect x="{a:.1f}" y="{y + 1}" width="{max(b - a, 1):.1f}" height="{STEP - 3}" fill="{colour}"/>',
                    f'<text x="{max(b, x_of(bar) if bar else 0) + 5:.1f}" y="{y + 9.5}" fill="#1a202c">{ratio:.2f}</text>']
            if bar:
                svg.append(f'<line x1="{x_of(bar):.1f}" x2="{x_of(bar):.1f}" y1="{y - 0.5}" y2="{y + STEP - 0.5}" stroke="#1a202c" stroke-width="2"/>')
            y += STEP
        y += GAP
    return "\n".join(svg + ["</svg>"]) + "\n"
