#!/bin/sh
# peers.sh - the programs Stretto is measured against, in an ignored folder of the checkout (.peers/): nothing of them is ever
# linked or shipped.  Run once; later runs only check.
#
#     bench/peers.sh            makes .peers/ with current torch (CPU), numpy, pandas, pyarrow
#     bench/peers.sh learners   also scikit-learn, scipy, networkx, hmmlearn, python-crfsuite: the peers of bench/learners
#     TORCH_INDEX=URL bench/peers.sh     takes torch from a package index that has CPU-only builds (smaller)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
py=$root/.peers/bin/python
[ -x "$py" ] || python3 -m venv "$root/.peers"
if ! "$py" -c 'import torch, numpy, pandas, pyarrow' 2>/dev/null; then
    "$py" -m pip install --quiet ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch
    "$py" -m pip install --quiet numpy pandas pyarrow
fi
if [ "${1:-}" = learners ] && ! "$py" -c 'import sklearn, scipy, networkx, hmmlearn, pycrfsuite' 2>/dev/null; then
    "$py" -m pip install --quiet scikit-learn scipy networkx hmmlearn python-crfsuite
fi
"$py" - <<'PY'
import torch, numpy, pandas, pyarrow
print("torch", torch.__version__, "numpy", numpy.__version__, "pandas", pandas.__version__, "pyarrow", pyarrow.__version__)
PY
