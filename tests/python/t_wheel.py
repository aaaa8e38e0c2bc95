"""t_wheel.py - the wheel: built from this tree, small, installed beside nothing but NumPy, and it brings the program."""
import glob
import os
import subprocess
import sys
import zipfile

from common import AIR, Case, e2e

LIMIT = 6e6  # bytes


class Wheel(Case):
    @classmethod
    def setUpClass(cls):
        out = os.path.join(e2e.ROOT, "build", "wheel")
        done = subprocess.run(["sh", os.path.join(e2e.ROOT, "tools", "wheel.sh"), out], capture_output=True, text=True, check=False,
                              env=dict(os.environ, CMAKE_BUILD_PARALLEL_LEVEL="2"))
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.wheel, = glob.glob(os.path.join(out, "*.whl"))

    def test_size_tag_and_contents(self):
        self.assertLess(os.path.getsize(self.wheel), LIMIT)
        self.assertRegex(os.path.basename(self.wheel), r"^stretto-[\d.]+-py3-none-manylinux_\d+_\d+_\w+\.whl$")
        names = zipfile.ZipFile(self.wheel).namelist()
        for name in ("stretto/py.typed", "stretto/lib/libstretto.so.1", "stretto/bin/stretto", "stretto/spark.py"):
            self.assertIn(name, names)
        self.assertEqual([n for n in names if "__pycache__" in n or n.endswith((".c", ".h"))], [])
        for library in ("jansson", "yaml", "zstd", "hwloc"):
            self.assertTrue(any(n.startswith("stretto.libs/lib" + library) for n in names), library)

    def test_an_installed_wheel_trains_and_runs_the_program(self):
        target = self.path("site")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", target,
                        self.wheel], check=True)
        env = {k: v for k, v in os.environ.items() if k not in ("STRETTO_LIBRARY", "PYTHONPATH")}
        env["PYTHONPATH"] = target

        def python(*arguments):
            done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=self.dir, env=env, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        code = ("import stretto; m = stretto.train(%r, target='Passengers', horizon=12, steps=20, members=1); print(m.predict(%r).rows);"
                "print(stretto.__file__); print([l for l in open('/proc/self/maps') if 'libstretto' in l][0])")
        rows, place, mapped, *_ = python("-c", code % (AIR, AIR)).splitlines()
        self.assertEqual(rows, "12")
        self.assertTrue(place.startswith(target) and target in mapped, (place, mapped))
        self.assertEqual(python("-m", "stretto", "version"), self.stretto("version").out)
        done = subprocess.run([os.path.join(target, "bin", "stretto"), "version"], capture_output=True, text=True, env=env, check=True)
        self.assertEqual(done.stdout, self.stretto("version").out)


if __name__ == "__main__":
    e2e.main()
