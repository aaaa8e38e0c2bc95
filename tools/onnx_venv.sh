#!/bin/sh
# onnx_venv.sh - onnx, onnxruntime and tensorboard for tests/e2e/t_onnx.py: build/onnx-venv.
set -eu
. "$(dirname "$0")/venv.sh"
venv onnx "onnx, onnxruntime, tensorboard" 'onnx<2' 'onnxruntime<2' 'tensorboard<3' numpy
"$py" -c 'import onnx, onnxruntime; print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)'
