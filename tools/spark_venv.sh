#!/bin/sh
# spark_venv.sh - pyspark, pyarrow and pandas for tests/e2e/t_spark.py and bench/spark: build/spark-venv.  Java 17 is needed to run it.
#
#     tools/spark_venv.sh          what the tests need
#     tools/spark_venv.sh torch    PyTorch too, for bench/spark/{rows,torch_distributor}.py: that of .peers (bench/peers.sh), if it is there
set -eu
. "$(dirname "$0")/venv.sh"
venv spark "pyspark, pyarrow, pandas" 'pyspark==4.3.0' 'pyarrow==26.0.1' 'pandas<3' numpy
"$py" -c 'import pyspark, pyarrow; print("pyspark", pyspark.__version__, "pyarrow", pyarrow.__version__)'
[ "${1:-}" = torch ] || exit 0
if [ -x "$root/.peers/bin/python" ]; then  # behind the packages above
    "$root/.peers/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
        >"$("$py" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/peers.pth"
fi
venv spark torch torch
"$py" -c 'import torch; print("torch", torch.__version__)'
