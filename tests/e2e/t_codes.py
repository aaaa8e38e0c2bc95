"""t_codes.py - every error code has a test that provokes it: a golden case of tests/cli, an end-to-end test, or a test in C.

What no run from outside can provoke (or only by chance) is listed with the reason.
"""
import glob
import os
import re

import e2e
from e2e import ROOT, Case

NOT_FROM_OUTSIDE = {
    "E001": "a bug of ours, by definition",
    "E802": "a stop by signal is told in its own words (exit status 75: t_resume.py)",
}


class Codes(Case):
    def test_every_code_is_provoked_somewhere(self):
        with open(os.path.join(ROOT, "src", "base", "errors.def"), encoding="utf-8") as f:
            codes = ["E%03d" % int(n) for n in re.findall(r"(?m)^E\((\d+),", f.read())]
        self.assertGreater(len(codes), 30)
        seen = set()
        for pattern in ("tests/cli/cases/*.case", "tests/*/*.c", "tests/e2e/*.py"):
            for path in glob.glob(os.path.join(ROOT, pattern)):
                if os.path.basename(path) == "t_codes.py":
                    continue
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read()
                if path.endswith(".case"):
                    text = text.partition("\n==== ")[2]  # what the script prints, not the script
                seen.update("E%03d" % int(n) for n in re.findall(r"\bE(\d{1,4})\b", text))
        self.assertEqual([c for c in codes if c not in seen and c not in NOT_FROM_OUTSIDE], [])

    def test_every_code_is_explained(self):
        with open(os.path.join(ROOT, "src", "base", "errors.def"), encoding="utf-8") as f:
            rows = re.findall(r'(?m)^E\((\d+), (\d+), "([^"]*)"', f.read())
        for number, status, title in rows:
            out = self.stretto("explain", "E%03d" % int(number)).out
            self.assertTrue(out.startswith("E%03d %s   (exit status %s" % (int(number), title, status)), out[:80])


if __name__ == "__main__":
    e2e.main()
