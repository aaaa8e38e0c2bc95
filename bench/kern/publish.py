#!/usr/bin/env python3
"""publish.py: passes the table of run.sh through and puts it into docs/RESULTS.md.  usage: bench/kern/run.sh BUILD | bench/kern/publish.py"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import results  # noqa: E402

SHAPE = {"S1": "(100, 32, 8, 64)", "S2": "(100, 64, 16, 128)", "S3": "(168, 64, 32, 256)", "S4": "(512, 1, 8, 128)", "S5": "(50, 256, 64, 512)"}

rows = []
for line in sys.stdin:
    print(line, end="")
    cells = line.split()
    if cells and re.fullmatch(r"S\d", cells[0]) and len(cells) >= 7:
        rows.append(cells)
if not rows:
    sys.exit("publish: no table came in")
table = ["| (T, B, I, H) | threads | ours, ms | PyTorch kept memory, ms | PyTorch stock, ms | kept / ours | stock / ours |",
         "| --- | --- | --- | --- | --- | --- | --- |"]
table += [f"| {SHAPE.get(r[0], r[0])} | {' | '.join(r[1:5])} | **{r[5]}** | {r[6]} |" for r in rows]
worst = min(float(r[5]) for r in rows)
results.write("kernels", "## Kernels\n\n" + results.machine("1 and 2") + " One LSTM layer in fp32: forward, backward and weight gradients of a batch; "
              "interleaved with PyTorch (`torch.nn.LSTM`, oneDNN; as it comes, and with a malloc that keeps memory), an FMA loop around every "
              "sample, disturbed samples dropped, medians. (512, 1, 8, 128) runs on one thread in both columns of ours.\n\n" + "\n".join(table) +
              f"\n\nThe smallest ratio to PyTorch's best setting is {worst:.2f} (bar: 1).")
