#!/usr/bin/env python3
"""testcost.py BUILD [REGEX]: processor seconds of each test of CTest in a build folder, the dearest last.

Processor seconds (user + system of the test and its children) depend little on what else the machine does; wall time does.
A stage of ./check on n cores takes about their sum divided by n."""
import json
import os
import re
import resource
import subprocess
import sys


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    listed = subprocess.run(["ctest", "--test-dir", sys.argv[1], "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
    costs, begin = [], 0.0
    for test in json.loads(listed.stdout)["tests"]:
        if not re.search(sys.argv[2] if len(sys.argv) > 2 else "", test["name"]):
            continue
        own = {p["name"]: p["value"] for p in test["properties"]}
        more = dict(e.split("=", 1) for e in own.get("ENVIRONMENT", []))
        done = subprocess.run(test["command"], cwd=own["WORKING_DIRECTORY"], env={**os.environ, **more}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        now = used.ru_utime + used.ru_stime
        costs.append((now - begin, test["name"], done.returncode))
        print("%8.1f s  %s%s" % (*costs[-1][:2], "" if done.returncode in (0, 77) else "  FAILED"), flush=True)
        begin = now
    print("--\n" + "".join("%8.1f s  %s\n" % c[:2] for c in sorted(costs)[-30:]) + "%8.1f s  in all" % sum(c[0] for c in costs))


if __name__ == "__main__":
    main()
