#!/usr/bin/env python3
"""failures.py PROGRAM [N] [SEED] [ONLY]: trainings on one device that fails at N random moments in each way, and on two devices of which one
fails so: writes the section `failures` of bench/results/devices.md.  ONLY: a regular expression, as "opencl:1 hang": only rows whose devices and
kind match it, which are printed and not written.

    how       a launch refused, memory refused, the device lost, work that fails, a hang     tests/gpu/faulty_opencl.c
    when      any of the calls of an undisturbed training that can fail this way and follow the opening of the device
    must hold exit status 0; one warning if a device was lost, and it is in the middle of the training that it was; the weights are those of the
              undisturbed run (one of two equal devices: every bit); metrics.jsonl has each step once; no file but those that a run leaves"""
import os
import pathlib
import re
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
N = int(sys.argv[2]) if len(sys.argv) > 2 else 100
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ONLY = sys.argv[4] if len(sys.argv) > 4 else ""
sys.argv = [sys.argv[0], *(sys.argv[1:2] or ["build/release/cli/stretto"])]
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "e2e")]
import run  # noqa: E402
import t_devices  # noqa: E402  (e2e reads the program's name from sys.argv)

KINDS = {"launch": "launch refused", "memory": "memory refused", "lost": "lost", "work": "work fails", "hang": "hangs"}
OPENING = 3000  # calls of OpenCL before the first launch: these failures are those of a device that never worked


class Draw(t_devices.Failures):
    def runTest(self):
        pass

    def undisturbed(self, device, more, suffixes):
        self.device = device
        tiny = [o for o in t_devices.TINY if o != "--quiet"]  # says which passes it takes
        self.args = ["train", t_devices.AIR, *tiny, "--members", "1", *more, "--device", device, "-o", "m.model", "--checkpoint-every", "0.01s"]
        self.n = {s: self.counts(*self.args, suffix=s) for s in suffixes}
        self.stretto(*self.args)
        os.rename(self.path("m.model"), self.path("whole.model"))

    def moment(self, kind, n):
        first = OPENING if kind == "lost" else 1
        return "%s:%d" % (kind, self.random.randint(first, max(first, n[kind])))

    def one(self, kind, suffix):
        fault = self.moment(kind, self.n[suffix]) + suffix
        shutil.rmtree(self.path("m.model.run"), True)
        if os.path.exists(self.path("m.model")):
            os.unlink(self.path("m.model"))
        r = self.faulty(fault, *self.args)
        self.assertEqual(r.status, 0, fault + "\n" + r.err)
        lost = self.went_on(r, self.device, fault, kind != "hang")
        self.clean(fault)
        return "went on" if lost else "not reached"


def rows(device, more, suffixes, most):
    kinds = {k: name for k, name in KINDS.items() if re.search(ONLY, "%s %s" % (device, k))}
    if not kinds:
        return
    t = Draw()
    t.setUp()
    t.random.seed(SEED)
    t.undisturbed(device, more, suffixes)
    for kind, name in kinds.items():
        seen, wrong, tries = {"went on": 0, "not reached": 0}, [], 0
        while seen["went on"] + len(wrong) < most and tries < 4 * most:
            try:
                seen[t.one(kind, suffixes[tries % len(suffixes)])] += 1
            except (AssertionError, OSError) as e:
                wrong.append(str(e))
                print(e, flush=True)
            tries += 1
        print(device, name, seen, len(wrong), flush=True)
        yield ["`%s`" % device, name, str(seen["went on"]), str(len(wrong)), str(seen["not reached"])]
    t.doCleanups()


def main():
    t_devices.Failures.setUpClass()
    begin = time.monotonic()
    body = list(rows("opencl:0", [], [""], N))
    body += rows("opencl:0,opencl:1", ["--rank-shares", "even", "--parallel", "data"], [",device=0", ",device=1"], N)
    head = ["devices", "failure", "went on, as it must", "went wrong", "moment not reached"]
    took = time.monotonic() - begin
    if ONLY:
        print("%.0f s, seed %d\n%s" % (took, SEED, "\n".join(run.table(head, body))))
        return 1 if any(int(r[3]) for r in body) else 0
    text = ("## Injected failures in training\n\n%s, %s, revision %s; %.0f s in all, seed %d.\n\n"
            "`bench/devices/failures.py`: a failure at a random moment of a training of 20 steps (memory: at a random one of its "
            "allocations), until each kind has hit %d times, or four times as many trainings have run. *As it must*: exit status 0, one warning, the weights of the undisturbed run "
            "(on two equal devices every bit, on the cores to 1e-3 of the largest weight of a tensor; after a hang, where the kernels are those "
            "of a GPU, finite ones), metrics.jsonl with each step once, no stray file. *Not reached*: the run ended before that call.\n\n%s\n"
            % (time.strftime("%Y-%m-%d"), run.cpu(), run.revision(), took, SEED, N, "\n".join(run.table(head, body))))
    run.write(pathlib.Path(ROOT, "bench", "results", "devices.md"), {"failures": text})
    return 1 if any(int(r[3]) for r in body) else 0


if __name__ == "__main__":
    sys.exit(main())
