#!/usr/bin/env python3
"""roofline.py [--write]: for each kernel of devices, what bounds it on an H100 and an H200, and the share of that bound it is predicted to
reach; nothing is measured.  --write: the section `roofline` of bench/results/devices.md.

    intensity     floating-point operations for a byte that a work group reads or writes outside of its multiprocessor, from the text of the
                  kernels: a product of a tile R x C reads R + C values for 2 R C operations, an element-wise kernel what its formula names
    bound         the lower of peak x 1 and bandwidth x intensity (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009)
    share         of that bound, the lower of two rates.  Memory: bytes in flight, of the threads that registers and shared memory let live
                  (cuda_kernels.py), over the latency (Little's law), at most ATTAINED of the bandwidth; times the intensity.  Compute:
                  multiply-adds over all instructions of the inner loop, at most ATTAINED, of the peak
Operands count as read from memory once for each tile; those that come from the L2 cache make a kernel faster than its row says."""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench" / "devices")]
import cuda_kernels  # noqa: E402

# fp32 without tensor cores (TFLOP/s), memory (TB/s), multiprocessors: NVIDIA's data sheets of H100 SXM and H200 SXM.
CARDS = {"H100": (66.9, 3.35, 132), "H200": (66.9, 4.8, 132)}
LATENCY, ATTAINED = 650e-9, 0.9  # of a load from memory; the share of a peak that copies and products reach on these cards
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
STATE = {"lstm": 2, "gru": 1, "rnn": 1}  # values of a unit that a step reads and writes beside the gates: c and h


def tile(rows, columns, loads, adds, flight):
    """A tile of a product, for each value of the sum: `adds` multiply-adds of an item for `loads` loads from shared memory, while
    `flight` bytes of the next values are on their way to it."""
    return {"per": f"value of the sum, tile {rows} x {columns}", "flops": 2 * rows * columns, "bytes": 4 * (rows + columns),
            "flight": flight, "issue": adds / (adds + loads + 1)}


def flat(per, flops, floats, loads):
    """An element-wise kernel: `floats` read and written for each element, `loads` of them in flight in an item."""
    return {"per": per, "flops": flops, "bytes": 4 * floats, "flight": 4 * loads, "issue": 0.5}


def cell(name):
    kind, way = name.split("_")[:2]
    gates, size = GATES[kind], re.search(r"_(\d+)$", name)
    if way == "steps":
        units = int(size.group(1))
        return {"per": f"row and step, {units} units", "flops": 2 * gates * units * units,
                "bytes": 4 * units * (2 * max(gates, 4 if gates > 1 else 1) + 2 * STATE[kind]), "flight": 16, "issue": gates / (gates + 1)}
    if way == "fwd":
        rows = int(size.group(1)) if size else 16
        return tile(rows, 16 * gates, 1 + rows // 16, rows // 4 * gates, 80 if rows == 16 else 64)
    rows, units = {None: (16, 16), "32": (32, 16), "64": (32, 32)}[size and size.group(1)]
    return tile(rows, units, (rows + units) // 16, rows * units // 16, 64)


KINDS = {
    r"product(_n[nt]|_tn)?$": lambda n: tile(64, 64, 2, 16, 32),
    r"product(_nt|_tn)?_128$": lambda n: tile(128, 128, 4, 64, 64),
    r"product_tn_sum": lambda n: flat("value, 4 partial sums", 4, 6, 4),
    r"(lstm|gru|rnn)_": cell,
    r"column_sum": lambda n: flat("value", 1, 1, 1),
    r"copy_rows|transpose": lambda n: flat("value", 0, 2, 4),
    r"elementwise": lambda n: flat("value, y += x", 1, 3, 8),
    r"sum_squares": lambda n: flat("value", 2, 1, 1),
    r"loss_sum": lambda n: flat("value, mse", 3, 2, 2),
    r"loss_slope": lambda n: flat("value, mse", 3, 3, 2),
    r"dropout": lambda n: flat("value, mask kept", 1, 2 + 1 / 16, 4),
    r"optimise": lambda n: flat("parameter, adam", 12, 7, 16),
    r"embed_fwd": lambda n: flat("value", 0, 2, 1),
    r"embed_bwd": lambda n: flat("value", 1, 3, 1),
    r"norm_fwd": lambda n: flat("value", 6, 3, 2),
    r"norm_bwd": lambda n: flat("value", 9, 4, 3),
    r"norm_grad": lambda n: flat("value", 3, 2, 2),
    # 16 centers at a time: a row's value from memory, the centers for 256 rows; five loads from shared memory for 16 multiply-adds
    r"nearest": lambda n: {"per": "value of a row, 16 centers", "flops": 32, "bytes": 4 + 16 * 4 / 256, "flight": 64, "issue": 16 / 22},
    # 8 bytes of an entry, then the byte of its bin; additions in shared memory are not counted
    r"histogram": lambda n: {"per": "entry, one input", "flops": 0, "bytes": 9, "flight": 8, "issue": 0},
    # integers: an addition and a maximum for each label before it, two instructions where a multiply-add is one
    r"viterbi": lambda n: {"per": "label and step, 16 labels", "flops": 2 * 16, "bytes": 4 + 1 + 4 / 16, "flight": 4, "issue": 0.2},
    # of a CRF with 22 labels.  An addition for each attribute of a token, whose number all its labels share
    r"chain_score": lambda n: {"per": "attribute of a token, one of 22 labels", "flops": 1, "bytes": 4 + 4 / 22, "flight": 4, "issue": 0.25},
    # 22 multiply-adds forward and as many back, each with two loads from shared memory, and 22 additions of a sum that each item makes
    r"chain_pass": lambda n: {"per": "label and step, 22 labels", "flops": 4 * 22, "bytes": 24 + 4 / 22, "flight": 4, "issue": 44 / 176},
    # 256 pairs of a group read 12 labels of one step and 22 of the next
    r"chain_pairs": lambda n: {"per": "pair of labels and step", "flops": 2, "bytes": 4 * (12 + 22) / 256, "flight": 8, "issue": 1 / 3},
    r"chain_paths": lambda n: {"per": "label and step, 22 labels", "flops": 2 * 22, "bytes": 4 + 1 + 4 / 22, "flight": 4, "issue": 0.2},
}


def work_of(name):
    for pattern, make in KINDS.items():
        if re.match(pattern, name):
            return make(name)
    sys.exit(f"roofline.py: KINDS has no operations and bytes of the kernel {name} of src/gpu/kernels.def")


def predict(work, live, card):
    """(what bounds it, TFLOP/s or TB/s of the bound, share)."""
    peak, band, processors = CARDS[card]
    intensity = work["flops"] / work["bytes"]
    by_memory = band * min(ATTAINED, live * work["flight"] * processors / (band * 1e12 * LATENCY))  # TB/s
    if work["flops"] == 0:
        return "memory", 0, by_memory / band
    by_compute, roof = peak * min(ATTAINED, work["issue"]), min(peak, band * intensity)
    return "memory" if roof < peak else "compute", roof, min(by_memory * intensity, by_compute) / roof


def rows(used):
    out = []
    for name in cuda_kernels.kernel_names():
        if name not in used:
            continue
        work, (registers, _, shared) = work_of(name), used[name]
        live, most = cuda_kernels.occupancy("sm_90", cuda_kernels.ITEMS_OF.get(name, cuda_kernels.ITEMS), registers, shared)
        row = [f"`{name}`", work["per"], f"{work['flops']:g}", f"{work['bytes']:g}", f"{work['flops'] / work['bytes']:.2f}",
               f"{registers}", f"{100 * live // most} %"]
        for card in CARDS:
            bound, level, share = predict(work, live, card)
            row += [bound, f"{level:.1f}" if work["flops"] else "-", f"{100 * share:.0f} %"]
        out.append(row)
    return out


def section(used):
    import run
    head = ["kernel", "per", "flops", "bytes", "flops / byte", "registers", "threads live"]
    for card in CARDS:
        head += [f"{card}: bound", "TFLOP/s", "predicted share"]
    return ("## Predicted share of the roofline\n\n**Predicted, not measured**: `tools/roofline.py`, from the text of the kernels and what ptxas "
            "reports for sm_90 (registers, shared memory). The head of that file has the formulas. Bound: memory or compute; TFLOP/s: "
            "the level of the roof at that intensity; share: of that level. Operands count as read from memory once for each tile of a "
            "work group. The kernels of whole sequences (`_steps_`) wait for a step before the next one: their share holds where the "
            "batch has enough rows to fill all multiprocessors. To compare with: the step of lstm S5 above has 87 GFLOP of products and took "
            "4.586 ms on the H200, 19 TFLOP/s in all, 28 % of the peak, with its steps one after another.\n\n"
            f"Peaks: {', '.join(f'{c} {p} TFLOP/s fp32, {b} TB/s' for c, (p, b, _) in CARDS.items())}.\n\n" + "\n".join(run.table(head, rows(used))))


def read_usage(path):
    lines = re.findall(r"^(\w+) +sm_90 +(\d+) +(\d+) +(\d+)", pathlib.Path(path).read_text(encoding="utf-8"), re.M)
    return {name: (int(registers), int(spilled), int(shared)) for name, registers, spilled, shared in lines}


def compiled():
    path, why = cuda_kernels.find_nvrtc()
    if path is None:
        print(f"skipped: {why}")
        return None
    status, log = cuda_kernels.compile_for(cuda_kernels.open_nvrtc(path), cuda_kernels.kernel_text(), "sm_90")
    if status != 0:
        sys.exit(log)
    return cuda_kernels.usage(log)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--usage", help="what `cuda_kernels.py sm_90` has printed, in place of compiling")
    wish = parser.parse_args()
    used = read_usage(wish.usage) if wish.usage else compiled()
    if used is None:
        return 77
    text = section(used)
    print(text)
    if wish.write:
        import run
        run.write(ROOT / "bench" / "results" / "devices.md", {"roofline": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
