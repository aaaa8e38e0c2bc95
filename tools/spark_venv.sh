#!/bin/sh
# spark_venv.sh - pyspark, pyarrow and pandas for tests/e2e/t_spark.py and bench/spark: build/spark-venv.  Java 17 is needed to run it.
set -eu
. "$(dirname "$0")/venv.sh"
venv spark "pyspark, pyarrow, pandas" 'pyspark==4.3.0' 'pyarrow==26.0.1' 'pandas<3' numpy
"$py" -c 'import pyspark, pyarrow; print("pyspark", pyspark.__version__, "pyarrow", pyarrow.__version__)'
