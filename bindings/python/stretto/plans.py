"""plans.py - check(): what a training would refuse; plan(): how a training step is cut for a machine."""
from __future__ import annotations

import ctypes
import json
import os
import threading
from contextlib import ExitStack
from typing import Any, Optional

from . import _lib
from .errors import UsageError
from .frames import Data, opened
from .handles import open_data
from .config import Config, PathLike, Source


class Findings(dict[str, Any]):
    """What check() found: rows, columns, roles, findings.  `text` is what the program prints, `code` that of the first error
    ("" = none), `yaml` a proposal of options, which train(data,
    config=found) takes."""

    text: str = ""
    code: str = ""

    @property
    def yaml(self) -> str:
        return str(self.get("config") or "")

    def __str__(self) -> str:
        return self.text


def check(data: Data, *, config: Source = None, **options: Any) -> Findings:
    """Lists all problems of the data: errors, what a training would refuse, leaks, constant runs."""
    found = Findings()
    with Config(options, config) as opts, opened(data) as path:
        for as_json in (1, 0):
            out = ctypes.c_void_p()
            code: int = _lib.library().stretto_check(opts.handle, path, as_json, ctypes.byref(out), None)
            if not out.value:
                raise _lib.last_error()
            text = _lib.take_text(out)
            if as_json:
                found.update(json.loads(text))
            else:
                found.text, found.code = text, "E%03d" % -code if code < 0 else ""
    return found


class Plan:
    """The parallel plan of one training step."""

    def __init__(self, handle: int) -> None:
        self._handle, self._pid, self._lock = handle, os.getpid(), threading.Lock()

    def _use(self) -> int:
        if os.getpid() != self._pid:
            raise UsageError("this plan was made before a fork, in another process", "E105", "plan", "make it again: stretto.plan(..)")
        return self._handle

    def summary(self) -> dict[str, Any]:
        """Strategy, predicted milliseconds of a step, bytes, exactness."""
        with self._lock:
            found: dict[str, Any] = json.loads(_lib.text("plan_summary", self._use(), 1))
            return found

    def compare(self) -> str:
        """Table of all strategies."""
        with self._lock:
            return _lib.text("plan_compare", self._use())

    def tasks(self) -> str:
        """The plan task by task."""
        with self._lock:
            return _lib.text("plan_print", self._use())

    def svg(self) -> str:
        """Devices against time."""
        with self._lock:
            return _lib.text("plan_draw", self._use(), 1)

    _repr_svg_ = svg

    def save(self, path: PathLike) -> None:
        """Writes a file for option plan."""
        with self._lock:
            _lib.call("plan_save", self._use(), os.fsencode(path))

    def __str__(self) -> str:
        with self._lock:
            return _lib.text("plan_summary", self._use(), 0)

    def __del__(self) -> None:
        if self.__dict__.get("_pid") == os.getpid():
            _lib.library().stretto_plan_free(self._handle)


def plan(data: Data = None, *, config: Source = None, **options: Any) -> Plan:
    """The plan of one training step; without data, for options columns, horizon and context."""
    with ExitStack() as stack:
        opts = stack.enter_context(Config(options, config))
        rows = 0
        if data is not None:
            rows = stack.enter_context(open_data(opts, stack.enter_context(opened(data, options.get("id")))))
        return Plan(_lib.new("plan_new", opts.handle, rows))
