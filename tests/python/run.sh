#!/bin/sh
# run.sh TEST PROGRAM [Class.test] - runs a test of the Python package in the interpreter of tools/python_venv.sh.
here=$(cd "$(dirname "$0")" && pwd)
py=$here/../../build/python-venv/bin/python
"$py" -c 'import numpy, pandas, polars, pyarrow' 2>/dev/null || { echo "skipped: no Python with pandas, polars and pyarrow (tools/python_venv.sh)"; exit 77; }
test=$1; shift
exec "$py" -W error::RuntimeWarning "$here/$test" "$@"
