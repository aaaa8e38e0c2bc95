#!/bin/sh
# onnx_venv.sh - onnx, onnxruntime and tensorboard for tests/e2e/t_onnx.py, in an ignored folder: build/onnx-venv.
# Run once; later runs only check.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
py=$root/build/onnx-venv/bin/python
mkdir -p "$root/build"
[ -x "$py" ] || python3 -m venv "$root/build/onnx-venv"
"$py" -c 'import onnx, onnxruntime, tensorboard' 2>/dev/null || "$py" -m pip install --quiet 'onnx<2' 'onnxruntime<2' 'tensorboard<3' numpy
"$py" -c 'import onnx, onnxruntime; print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)'
