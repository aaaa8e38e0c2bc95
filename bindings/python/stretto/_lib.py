"""_lib.py - finds and loads libstretto, and declares the functions of stretto.h for ctypes.

The library is looked for in this order: $STRETTO_LIBRARY (a file, or a folder that holds it), the folder of this package (the
wheel), the build folders of the source tree that this package is part of, and the path of the dynamic linker.  It is loaded at
the first call, not by `import stretto`.
"""
from __future__ import annotations

import ctypes
import os
import threading
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_int64, c_longlong, c_size_t, c_void_p
from typing import Any, Optional

from .errors import StrettoError

ABI = 1
NAME = "libstretto.so.1"


class CEvent(ctypes.Structure):
    """struct stretto_event of stretto.h."""

    _fields_ = [("kind", c_int), ("text", c_char_p), ("step", c_int64), ("steps", c_int64), ("member", c_int), ("members", c_int),
                ("epoch", c_double), ("seconds", c_double), ("left", c_double), ("train", c_double), ("valid", c_double),
                ("lr", c_double), ("grad_norm", c_double), ("windows_per_s", c_double), ("best", c_int), ("best_step", c_int64),
                ("slices", c_int), ("rounds", c_double), ("forgets", c_double), ("useful", c_double)]


EVENT_FN = CFUNCTYPE(None, c_void_p, POINTER(CEvent))

H = c_void_p              # a handle, or the address of a structure
OUT = POINTER(c_void_p)   # receives a handle or a text
S = c_char_p

# Name: type of the result (None = void), types of the arguments, in the order of stretto.h.
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "version": (S,),
    "abi": (c_int,),
    "build_info": (c_int, OUT),
    "errcode": (c_int,),
    "errmsg": (S,),
    "errwhere": (S,),
    "errfix": (S,),
    "text_free": (None, c_void_p),
    "config_new": (H,),
    "config_free": (None, H),
    "config_set": (c_int, H, S, S),
    "config_flag": (c_int, H, S, S),
    "config_load": (c_int, H, S),
    "config_get": (S, H, S),
    "config_check": (c_int, H),
    "option_count": (c_int,),
    "option": (c_int, c_int, POINTER(S), POINTER(S), POINTER(S)),
    "data_open": (c_int, H, S, OUT),
    "frame_new": (c_int, c_void_p, S, OUT),
    "frame_path": (S, H),
    "frame_free": (None, H),
    "data_free": (None, H),
    "data_rows": (c_int64, H),
    "data_targets": (c_int, H),
    "data_column": (S, H, c_int),
    "data_value": (c_double, H, c_int, c_int64),
    "data_summary": (S, H),
    "check": (c_int, H, S, c_int, OUT, OUT),
    "sample": (c_int, S, c_int64, ctypes.c_uint64, OUT),
    "trainer_new": (c_int, H, H, OUT),
    "trainer_config": (c_int, H, OUT),
    "trainer_on_event": (None, H, EVENT_FN, c_void_p),
    "trainer_run_dir": (c_int, H, S, c_int),
    "run_paths": (c_int, S, OUT, OUT),
    "trainer_target": (c_int, H, S),
    "trainer_run": (c_int, H),
    "trainer_stop": (None, H),
    "trainer_scores": (S, H, c_int),
    "trainer_skill": (c_double, H),
    "trainer_save": (c_int, H, S),
    "trainer_report": (c_int, H, S),
    "trainer_model": (H, H),
    "trainer_free": (None, H),
    "backtest": (c_int, H, H, EVENT_FN, c_void_p, c_int, OUT),
    "backtest_stop": (None, H),
    "tune": (c_int, H, H, EVENT_FN, c_void_p, c_int, OUT, OUT),
    "tune_stop": (None,),
    "model_load": (c_int, S, OUT),
    "model_save": (c_int, H, S),
    "model_to_bytes": (c_int, H, OUT, POINTER(c_size_t)),
    "bytes_free": (None, c_void_p),
    "model_from_bytes": (c_int, c_void_p, c_size_t, OUT),
    "model_free": (None, H),
    "model_horizon": (c_int, H),
    "model_context": (c_int, H),
    "model_targets": (c_int, H),
    "model_target": (S, H, c_int),
    "model_quantiles": (c_int, H),
    "model_quantile": (c_double, H, c_int),
    "model_parameters": (c_int64, H),
    "model_info": (c_int, H, c_int, OUT),
    "model_config": (H, H),
    "model_open": (c_int, H, S, OUT),
    "predict_file": (c_int, H, H, S, c_int, OUT),
    "marginals_file": (c_int, H, H, S, OUT),
    "sample_file": (c_int, H, H, S, c_int, c_longlong, OUT),
    "predict_arrow": (c_int, H, H, c_int, c_longlong, c_void_p, c_void_p),
    "eval": (c_int, H, H, H, c_int, OUT, POINTER(c_double)),
    "model_plot": (c_int, H, H, S),
    "model_export_onnx": (c_int, H, S, c_int),
    "model_check_onnx": (c_int, H, H, S, c_int, POINTER(c_double), OUT),
    "decode_file": (c_int, H, S, S, EVENT_FN, c_void_p, OUT),
    "model_note": (S, H),
    "model_warnings": (S, H),
    "plan_new": (c_int, H, H, OUT),
    "plan_print": (c_int, H, OUT),
    "plan_summary": (c_int, H, c_int, OUT),
    "plan_compare": (c_int, H, OUT),
    "plan_draw": (c_int, H, c_int, OUT),
    "plan_save": (c_int, H, S),
    "plan_free": (None, H),
}

_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def candidates() -> list[str]:
    """Paths of libstretto that may exist, the preferred first."""
    here = os.path.dirname(os.path.abspath(__file__))
    source = os.path.abspath(os.path.join(here, "..", "..", ".."))
    asked = os.environ.get("STRETTO_LIBRARY")
    folders = [asked] if asked else [os.path.join(here, "lib"), *(os.path.join(source, "build", b) for b in ("release", "dev")), ""]
    return [f if os.path.isfile(f) else os.path.join(f, NAME) for f in folders]


def _declare(library: ctypes.CDLL) -> None:
    for name, (result, *arguments) in PROTOTYPES.items():
        function = getattr(library, "stretto_" + name)
        function.restype, function.argtypes = result, arguments


def _load() -> ctypes.CDLL:
    tried = candidates()
    for path in tried:
        if os.path.isabs(path) and not os.path.exists(path):
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError as e:
            raise StrettoError("%s cannot be loaded: %s" % (path, e), fix="pip install --force-reinstall stretto") from e
        if library.stretto_abi() != ABI:
            raise StrettoError("%s has version %d of the interface, this package needs %d" % (path, library.stretto_abi(), ABI),
                               fix="install library and package of one version")
        _declare(library)
        return library
    raise StrettoError("no libstretto was found in " + ", ".join(tried), fix="set STRETTO_LIBRARY to the file or its folder")


def library() -> ctypes.CDLL:
    """The loaded library."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def call(name: str, *arguments: Any) -> int:
    """Calls stretto_NAME and raises the error of this thread if it fails; returns its result, >= 0."""
    code: int = getattr(library(), "stretto_" + name)(*arguments)
    if code < 0:
        raise last_error()
    return code


def last_error() -> StrettoError:
    """The last error of this thread as an exception of the class of its code."""
    c = library()
    texts = [(f() or b"").decode("utf-8", "replace") for f in (c.stretto_errmsg, c.stretto_errwhere, c.stretto_errfix)]
    return StrettoError.of(c.stretto_errcode(), *texts)


def new(name: str, *arguments: Any) -> int:
    """Calls stretto_NAME, whose last argument receives a handle; returns the handle."""
    out = c_void_p()
    call(name, *arguments, ctypes.byref(out))
    return out.value or 0


def take_text(out: c_void_p) -> str:
    """The text that a call has stored, which is freed."""
    text = ctypes.cast(out, c_char_p).value or b""
    library().stretto_text_free(out)
    return text.decode("utf-8", "replace")


def text(name: str, *arguments: Any) -> str:
    """Calls stretto_NAME, whose last argument receives a text; returns the text."""
    out = c_void_p()
    call(name, *arguments, ctypes.byref(out))
    return take_text(out)


def string(name: str, *arguments: Any) -> str:
    """Calls stretto_NAME, which returns a text of its handle."""
    value: Optional[bytes] = getattr(library(), "stretto_" + name)(*arguments)
    return (value or b"").decode("utf-8", "replace")
