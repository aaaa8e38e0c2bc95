"""t_install.py - `make install`: the prefix is in stretto.pc, no test library is needed, the examples compile as README.md says."""
import glob
import os
import re
import shutil
import subprocess

import e2e
from e2e import ROOT, Case
from t_public import LIBRARY, need


class Install(Case):
    def run_in(self, *command, **more):
        done = subprocess.run(command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=300 * e2e.SLOW, env=self.environment(**more))
        self.assertEqual(done.returncode, 0, "%s\n%s" % (" ".join(command), done.stdout.decode()))
        return done.stdout.decode()

    def test_examples_compile_against_what_is_installed(self):
        for program in ("cmake", "pkg-config", "cc"):
            need(program)
        if not os.path.exists(os.path.join(LIBRARY, "libstretto.so")) or not os.path.exists(os.path.join(LIBRARY, "cmake_install.cmake")):
            self.skipTest("libstretto.so is not built")
        prefix = self.path("else where")
        self.run_in("cmake", "--install", LIBRARY, "--prefix", prefix)
        pc = glob.glob(prefix + "/lib*/**/stretto.pc", recursive=True)
        self.assertEqual(len(pc), 1)
        with open(pc[0], encoding="utf-8") as f:
            self.assertIn("prefix=%s\n" % prefix, f.read())
        shutil.rmtree(prefix)
        prefix = self.path("inst")
        self.run_in("cmake", "--install", LIBRARY, "--prefix", prefix)
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
            line = re.search(r"(?m)^cc train_and_predict\.c .*$", f.read()).group(0)
        names = [os.path.basename(p)[:-2] for p in sorted(glob.glob(os.path.join(ROOT, "examples", "*.c")))]
        self.assertEqual(len(names), 5)
        for name in names:
            shutil.copy(os.path.join(ROOT, "examples", name + ".c"), self.dir)
            self.run_in("sh", "-c", line.replace("train_and_predict", name), PKG_CONFIG_PATH=os.path.dirname(glob.glob(prefix + "/lib*/**/stretto.pc",
                                                                                                                      recursive=True)[0]))
        self.assertIn("strategy data:8", self.run_in("./plan_a_step"))

    def test_no_test_library_is_needed(self):
        """The tree of `make install` is configured where pkg-config knows no cmocka."""
        for program in ("cmake", "pkg-config", "ninja", "make"):
            need(program)
        commands = subprocess.run(["make", "-n", "-B", "install", "PREFIX=some/where"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
        configure = re.search(r"(?m)^cmake --preset .*$", commands).group(0)
        self.assertRegex(commands, r"(?m)^cmake --install build/install --prefix /\S*/some/where$")
        with open(self.write("pkg-config", "#!/bin/sh\ncase \"$*\" in *cmocka*) exit 1;; esac\nexec %s \"$@\"\n" % shutil.which("pkg-config"))):
            os.chmod(self.path("pkg-config"), 0o755)
        more = ["-S", ROOT, "-DPKG_CONFIG_EXECUTABLE=" + self.path("pkg-config")]
        out = self.run_in(*configure.replace("build/install", self.path("b")).split(), *more)
        self.assertIn("Build files have been written", out)


if __name__ == "__main__":
    e2e.main()
