"""t_types.py - hints that mypy and pyright accept, prototypes that agree with stretto.h, an import that is quick and light."""
import os
import re
import subprocess
import sys

import common
from common import PACKAGE, Case, e2e
from stretto import _lib

BIN = os.path.dirname(sys.executable)


def declared():
    """name: number of parameters, of every function in stretto.h."""
    with open(os.path.join(e2e.ROOT, "include", "stretto", "stretto.h"), encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    found = {}
    for result, name, parameters in re.findall(r"STRETTO_API ([\w ]+?\*?)\s*\*?stretto_(\w+)\(([^;]*)\);", text):
        found[name] = 0 if parameters.strip() == "void" else parameters.count(",") + 1
    return found


class Types(Case):
    def run_tool(self, name, *arguments):
        if not os.path.exists(os.path.join(BIN, name)):
            self.skipTest("no %s (tools/python_venv.sh)" % name)
        done = subprocess.run([os.path.join(BIN, name), *arguments], capture_output=True, text=True, cwd=PACKAGE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_mypy(self):
        self.run_tool("mypy", "--config-file", "pyproject.toml", "--cache-dir", self.path("cache"), "stretto")

    def test_pyright(self):
        self.run_tool("pyright", "-p", "pyproject.toml", "--pythonpath", sys.executable)

    def test_a_program_of_a_user_is_typed(self):
        with open(self.path("use.py"), "w", encoding="utf-8") as f:
            f.write("import stretto\nm: stretto.Model = stretto.train('a.csv', target='y', horizon=24, known=['price'], quantiles=[.1, .9])\n"
                    "s: float = m.evaluate('b.csv').skill\nx = m.predict('b.csv')['mean'] + 1\n")
        self.run_tool("mypy", "--strict", "--cache-dir", self.path("cache"), self.path("use.py"))


class Face(Case):
    def test_prototypes_are_those_of_the_header(self):
        header = declared()
        self.assertGreater(len(header), 70)
        for name, (_, *arguments) in _lib.PROTOTYPES.items():
            self.assertEqual(header.get(name), len(arguments), "stretto_%s" % name)
            self.assertTrue(hasattr(_lib.library(), "stretto_" + name), name)


class Import(Case):
    def test_it_is_quick_and_loads_no_library_of_tables(self):
        code = ("import time, sys; t = time.process_time(); import stretto; s = time.process_time() - t\n"
                "print(s); print(sorted(set(sys.modules) & {'pandas', 'polars', 'pyarrow', 'matplotlib', 'torch', 'tqdm'}))")
        runs = [common.python(code)[1].splitlines() for _ in range(5)]
        self.assertEqual({r[1] for r in runs}, {"[]"})
        self.assertLess(min(float(r[0]) for r in runs), 0.2 * e2e.SLOW)


if __name__ == "__main__":
    e2e.main()
