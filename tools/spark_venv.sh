#!/bin/sh
# spark_venv.sh - pyspark, pyarrow and pandas for tests/e2e/t_spark.py and bench/spark, in an ignored folder: build/spark-venv.
# Java 17 is needed to run it.  Run once; later runs only check.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
py=$root/build/spark-venv/bin/python
mkdir -p "$root/build"
[ -x "$py" ] || python3 -m venv "$root/build/spark-venv"
"$py" -c 'import pyspark, pyarrow, pandas' 2>/dev/null || "$py" -m pip install --quiet 'pyspark==4.3.0' 'pyarrow==26.0.1' 'pandas<3' numpy
"$py" -c 'import pyspark, pyarrow; print("pyspark", pyspark.__version__, "pyarrow", pyarrow.__version__)'
