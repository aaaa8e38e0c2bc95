"""t_public.py - the face for other programs: the header alone in C11 and C++17, the names the library exports, the examples.

The examples see stretto.h and libstretto.so only; STRETTO_LIBRARY is the folder of the library, STRETTO_CC the compiler.
"""
import glob
import os
import re
import shutil
import subprocess
import unittest

import e2e
from e2e import AIR, ROOT, Case

CC = os.environ.get("STRETTO_CC") or "cc"
LIBRARY = os.environ.get("STRETTO_LIBRARY") or os.path.dirname(os.path.dirname(e2e.PROGRAM))
INCLUDE = os.path.join(ROOT, "include")
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-pedantic-errors", "-Werror"]


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest("there is no %s here" % program)
    return program


class Public(Case):
    def build(self, *args):
        done = subprocess.run(args, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120 * e2e.SLOW)
        self.assertEqual(done.returncode, 0, "%s\n%s" % (" ".join(args), done.stdout.decode()))
        return done.stdout.decode()

    def library(self):
        path = os.path.join(LIBRARY, "libstretto.so")
        if not os.path.exists(path):
            self.skipTest("libstretto.so is not built")
        return path

    def test_header_alone_as_c11(self):
        self.write("a.c", '#include "stretto/stretto.h"\nint main(void) { return stretto_abi() < 1; }\n')
        self.build(need(CC), "-std=c11", *STRICT, "-Wstrict-prototypes", "-fsyntax-only", "-I", INCLUDE, "a.c")

    def test_header_alone_as_cpp17(self):
        self.write("a.cpp", '#include "stretto/stretto.h"\nint main() { stretto_event e{}; return e.kind + (stretto_abi() < 1); }\n')
        self.build(need("c++"), "-std=c++17", *STRICT, "-fsyntax-only", "-I", INCLUDE, "a.cpp")

    def declared(self):
        with open(os.path.join(INCLUDE, "stretto", "stretto.h"), encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        return sorted(set(re.findall(r"STRETTO_API[^;(]*?\b(stretto_\w+)\(", text)))

    def test_library_exports_what_the_header_declares(self):
        out = self.build(need("nm"), "-D", "--defined-only", self.library())
        names = sorted(set(line.split()[-1].split("@")[0] for line in out.splitlines() if line.strip()))
        if "asan" in out:  # sanitizers add names of their own
            names = [n for n in names if not re.match(r"_*(asan|ubsan|tsan|sanitizer)|__odr", n)]
        self.assertEqual(names, self.declared())

    def test_static_library_hides_what_is_inside(self):
        path = os.path.join(LIBRARY, "libstretto.a")
        if not os.path.exists(path):
            self.skipTest("libstretto.a is not built")
        out = self.build(need("nm"), "-g", "--defined-only", path)
        names = sorted(set(line.split()[-1] for line in out.splitlines() if len(line.split()) == 3))
        self.assertEqual([n for n in names if not re.match(r"_*(asan|ubsan|tsan|sanitizer)|__odr", n)], self.declared())

    def example(self, name, *args):
        """Compiled against header and library, run in an empty folder."""
        source = os.path.join(ROOT, "examples", name + ".c")
        flags = ["-fsanitize=" + os.environ["STRETTO_SANITIZE"]] if os.environ.get("STRETTO_SANITIZE") else []
        self.build(need(CC), "-std=c11", *STRICT, "-O1", *flags, "-I", INCLUDE, source, self.library(), "-lm", "-pthread", "-Wl,-rpath," + LIBRARY, "-o", name)
        done = subprocess.run(["./" + name, *args], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60 * e2e.SLOW, env=self.environment())
        return e2e.Result(done)

    def test_example_train_and_predict(self):
        r = self.example("train_and_predict", AIR, "Passengers", "12")
        self.assertEqual((r.status, r.err), (0, ""))
        self.assertRegex(r.out, r"(?s)^read airline.*no gaps\nstopped: all steps done\ntest 1960-01\.\.1960-12 .*skill [+-][\d.]+% .*\n")
        self.assertEqual(len(re.findall(r"(?m)^Passengers step \d+: [3-8]\d\d\.\d$", r.out)), 12)
        cli = [float(line.split(",")[4]) for line in self.stretto("predict", "example.model", AIR).out.splitlines()[1:]]
        self.assertEqual(["%.1f" % v for v in cli], re.findall(r"step \d+: ([\d.]+)", r.out))
        r = self.example("train_and_predict", AIR, "Pasengers", "12")
        self.assertEqual(r.status, 2)
        self.assertIn('error[E102]', r.err)
        self.assertIn('"Passengers"', r.err)

    def test_example_forecast_from_memory(self):
        r = self.example("forecast_from_memory")
        self.assertEqual((r.status, r.err), (0, ""))
        self.assertEqual(len(re.findall(r"(?m)^(?:load  |losses) \+ ?\d+h +[\d.]+  q0\.1 +[\d.]+  q0\.5 +[\d.]+  q0\.9 +[\d.]+$", r.out)), 8)

    def test_example_plan_a_step(self):
        r = self.example("plan_a_step")
        self.assertEqual((r.status, r.err), (0, ""))
        self.assertIn("--- host*2(cpu*8)\nstrategy data:8", r.out)
        r = self.example("plan_a_step", "host*(")
        self.assertEqual(r.status, 2)
        self.assertRegex(r.err, r"^error\[E\d+\] ")

    def test_example_watch_events(self):
        r = self.example("watch_events", AIR)
        self.assertEqual((r.status, r.err), (0, ""))
        self.assertIn("asked to stop after ", r.out)
        self.assertIn("- resumed member 1 of 1 at step ", r.out)
        self.assertIn("all steps done after ", r.out)
        self.assertTrue(os.path.getsize(self.path("example.run/report.html")) > 1000)

    def test_example_forecast_under_load(self):
        self.assertEqual(self.stretto("sample", "mackey-glass", "--rows", "600", "-o", "mg.csv").status, 0)
        self.assertEqual(self.stretto("train", "mg.csv", "--target", "x", "--horizon", "12", "--steps", "20", "-o", "mg.model").status, 0)
        r = self.example("forecast_under_load", "mg.model", "mg.csv", "3")
        self.assertEqual((r.status, r.err), (0, ""))
        took = re.findall(r"(?m)^ *(\d+) threads: +\d+ forecasts a second; one takes ([\d.]+) ms, 1 of 100 more than [\d.]+ ms$", r.out)
        self.assertEqual([int(n) for n, _ in took], [1, 3])
        # the median: where others have a higher priority, a few forecasts wait a second for a core
        self.assertLess(max(float(ms) for _, ms in took), 100)
        self.assertIn("E701", self.example("forecast_under_load", "mg.model", "absent.csv").err)
        self.assertIn("usage", self.example("forecast_under_load").err)

    def test_examples_are_short_and_see_only_the_header(self):
        for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*.c"))):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            self.assertLess(text.count("\n"), 150, path)
            self.assertEqual(re.findall(r'#include "([^"]*)"', text), ["stretto/stretto.h"], path)
            self.assertIn("test_example_" + os.path.basename(path)[:-2], dir(self), "an example without a test")


if __name__ == "__main__":
    e2e.main()
