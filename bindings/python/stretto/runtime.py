"""runtime.py - where ONNX Runtime is: the library looks for it in the system and in $VIRTUAL_ENV, this package in the interpreter's packages."""
from __future__ import annotations

import glob
import importlib.util
import os


def find_onnx_runtime() -> None:
    """Sets STRETTO_ONNXRUNTIME to the library of the installed package onnxruntime, unless it is set or there is none."""
    if os.environ.get("STRETTO_ONNXRUNTIME"):
        return
    spec = importlib.util.find_spec("onnxruntime")  # nothing is imported
    if spec is None or not spec.origin:
        return
    found = sorted(glob.glob(os.path.join(os.path.dirname(spec.origin), "capi", "libonnxruntime.so*")))
    if found:
        os.environ["STRETTO_ONNXRUNTIME"] = found[0]
