#!/usr/bin/env python3
"""stale.py BUILD [--write PAGE]

Does a limit of rounds pay (--slice-rounds)?  The nets of run.py, some steps of training in every mode: ms of a step while the weights
move, and how far its gradient is from that of the series without slices at the same weights.  Beside it what another stretch of the
same series would change of the gradient: the noise that a step has anyway.  Before the other programs of the machine (SCHED_RR).

    memory                weights that forget after about T/256, T/64, T/16 steps
      P, mode             trained by itself; ends of the step before, so the error is that of training
        gradient          of the next step, against the serial one at these weights
"""
import argparse
import pathlib
import re
import shutil
import statistics
import sys
import tempfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
from peers import enter  # noqa: E402

if __name__ == "__main__":
    enter()

import cases  # noqa: E402
import run  # noqa: E402
import workers  # noqa: E402

SLICES, MODES, THREADS = (8, 16, 32), (0, 1, 2), (1, 2)
WARM, TURNS, RATE = 10, 5, 1e-3


def case(worker, folder, P, threads, stale):
    n = worker.ask(f"case T={cases.T} B=1 I={cases.I} H={cases.H} P={P} threads={threads} prec=fp32 stale={stale}")[0]
    worker.ask(f"load {n} {folder}")
    return n


def apart(worker, n, serial, there):
    """Relative L2 distance of the worst tensor between the next step of n and the serial run at the same weights."""
    worker.ask(f"save {n} {there}")
    worker.ask(f"step {n} 1 0")
    worker.ask(f"load {serial} {there}")
    worker.ask(f"step {serial} 1 0")
    return float(worker.ask(f"grads {n} {serial}")[0])


def noise(worker, serial, folder, there):
    """The same between this stretch of the series and another one, of one of them: their difference has the noise of both."""
    other = case(worker, there, 1, 1, 0)
    cases.series(folder, cases.T, cases.I, seed=3)
    for name in ("x", "y"):
        shutil.copy(folder / f"{name}.f32", there)
    worker.ask(f"load {other} {there}")
    worker.ask(f"step {other} 1 0")
    cases.series(folder, cases.T, cases.I)
    return float(worker.ask(f"grads {other} {serial}")[0]) / 2 ** 0.5


def rows(build, memory, folder, there):
    """(P, mode, {threads: ms}, error, rounds, noise or None)"""
    cases.weights(folder, cases.I, cases.H, spread=memory.spread, forget=memory.forget)
    for P in SLICES:
        for file in folder.glob("*.f32"):
            shutil.copy(file, there)
        worker = workers.ours(build, realtime=True)
        serial = case(worker, folder, 1, 1, 0)
        ready = {(k, t): case(worker, folder, P, t, k) for k in MODES for t in THREADS}
        ms = {key: [] for key in ready}
        for n in ready.values():
            worker.ask(f"step {n} {WARM} {RATE}")
        for _ in range(TURNS):
            for key, n in ready.items():
                ms[key].append(float(worker.ask(f"step {n} 1 {RATE}")[0]))
        for k in MODES:
            n = ready[k, THREADS[-1]]
            error = apart(worker, n, serial, there)
            chain = run.chain(worker.ask(f"chain {n}"))[0]
            extra = noise(worker, serial, folder, there) if k == 0 and P == SLICES[0] else None
            yield P, k, {t: statistics.median(ms[k, t]) for t in THREADS}, error, chain, extra
            for name in ("x", "y"):
                shutil.copy(folder / f"{name}.f32", there)
        worker.close()


def verdict(name, found, level):
    """The fastest exact step, and the fastest whose error is below the noise."""
    out = []
    for t in THREADS:
        exact, P = min((ms[t], P) for P, k, ms, *_ in found if k == 0)
        good = [(ms[t], P, k) for P, k, ms, error, *_ in found if k > 0 and error <= level]
        said = f"the fastest in so many rounds whose error is below it {min(good)[0]:.0f} (P={min(good)[1]}, {min(good)[2]} round{'s' if min(good)[2] > 1 else ''}): {exact / min(good)[0]:.2f}x" if good else "no other is below it"
        out.append(f"- {name}, {t} thread{'s' if t > 1 else ''}: noise {level:.2f}; the fastest exact step {exact:.0f} ms (P={P}), {said}")
    return out


def table(found, noises):
    out = [line for name, list_ in found.items() for line in verdict(name, list_, noises[name])]
    out += ["", "| w about | P | rounds a step | ms, 1 thread | 2 threads | rounds forward / backward | error of the gradient |",
            "| --- | ---: | --- | ---: | ---: | --- | ---: |"]
    for name, list_ in found.items():
        for P, k, ms, error, chain, _ in list_:
            ways = f"{chain['forward']['rounds']:.0f} / {chain['backward']['rounds']:.0f}"
            out.append(f"| {name} | {P} | {k or 'until they fit'} | {ms[1]:.0f} | {ms[2]:.0f} | {ways} | {error:.1e} |")
    return "\n".join(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=run.build_folder)
    p.add_argument("--write", type=pathlib.Path, metavar="PAGE", help="put the table between the marks of this page")
    o = p.parse_args()
    found, noises = {}, {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None) as scratch:
        folder, there = pathlib.Path(scratch) / "a", pathlib.Path(scratch) / "b"
        folder.mkdir(), there.mkdir()
        cases.series(folder, cases.T, cases.I)
        for memory in cases.MEMORIES:
            for row in rows(o.build, memory, folder, there):
                print(memory.name, *row[:4], row[5], flush=True)
                found.setdefault(memory.name, []).append(row)
                noises[memory.name] = row[5] or noises[memory.name]
    text = table(found, noises)
    print(text)
    if o.write:
        page = re.sub(r"(<!-- begin limit -->\n).*?(<!-- end limit -->)", lambda m: m.group(1) + text + "\n" + m.group(2), o.write.read_text(), flags=re.S)
        scratch = o.write.with_suffix(".tmp")
        scratch.write_text(page)
        scratch.replace(o.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
