"""model.py - a trained model: bytes of a model file, and handles made from them.

A handle of the library serves one thread at a time, so a model keeps a few and makes another when all are in use.
"""
from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Optional

from . import _lib
from .forecast import Forecast, forecast
from .frames import Data, opened, zone_of_times
from .handles import model_bytes, model_from, open_for
from .jobs import Job, run
from .errors import UsageError
from .config import Config, PathLike, set_flags
from .progress import log_lines
from .runtime import find_onnx_runtime
from .scores import Scores
from .weights import Weights, read_weights

IDLE = 16  # handles that a model keeps
SAMPLES_MOST = 100000


class Model:
    """A trained model.  All methods may be called from several threads at the same time."""

    def __init__(self, content: bytes) -> None:
        self._bytes = content
        self._idle: list[tuple[int, Mapping[str, Any]]] = []
        self._lock = threading.Lock()
        self.scores: Optional[Scores] = None  # on the test split of its training
        _models.add(self)
        with self._handle({}):  # refuses what is no model
            pass

    # --- handles ---

    @contextmanager
    def _handle(self, options: Mapping[str, Any]) -> Iterator[int]:
        """A handle that no other thread uses, with these options set."""
        with self._lock:
            at = next((k for k, (_, had) in enumerate(self._idle) if had == options), None)
            handle = self._idle.pop(at)[0] if at is not None else 0
        if not handle:
            handle = model_from(self._bytes)
            try:
                set_flags(_lib.library().stretto_model_config(handle), options)
            except BaseException:
                _lib.library().stretto_model_free(handle)
                raise
        try:
            yield handle
        finally:
            with self._lock:
                self._idle.append((handle, dict(options)))
                spare = self._idle.pop(0)[0] if len(self._idle) > IDLE else 0
            _lib.library().stretto_model_free(spare)

    def _forget(self) -> None:
        """In the child of a fork: threads and locks of the parent's handles are not there, so new ones are made."""
        self._idle, self._lock = [], threading.Lock()

    def __del__(self) -> None:
        for handle, _ in self.__dict__.get("_idle", ()):
            _lib.library().stretto_model_free(handle)

    # --- copies ---

    def __getstate__(self) -> dict[str, Any]:
        return {"bytes": self._bytes, "scores": self.scores}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["bytes"])  # type: ignore[misc]
        self.scores = state["scores"]

    def __deepcopy__(self, _memo: Any) -> "Model":
        copy = Model(self._bytes)
        copy.scores = self.scores
        return copy

    def to_bytes(self) -> bytes:
        """The bytes of the model file."""
        return self._bytes

    def save(self, path: PathLike) -> None:
        """Writes the model file, atomically; `stretto predict` and C programs read it."""
        with self._handle({}) as handle:
            _lib.call("model_save", handle, os.fsencode(path))

    # --- facts ---

    @property
    def horizon(self) -> int:
        """Forecast horizon in time steps; 0 for a learner without one."""
        with self._handle({}) as handle:
            return int(_lib.library().stretto_model_horizon(handle))

    @property
    def context(self) -> int:
        """Lookback window in time steps."""
        with self._handle({}) as handle:
            return int(_lib.library().stretto_model_context(handle))

    @property
    def targets(self) -> list[str]:
        """Names of the target columns."""
        with self._handle({}) as handle:
            return [_lib.string("model_target", handle, k) for k in range(_lib.library().stretto_model_targets(handle))]

    @property
    def quantiles(self) -> list[float]:
        """Levels of the quantiles that it forecasts."""
        with self._handle({}) as handle:
            count: int = _lib.library().stretto_model_quantiles(handle)
            return [float(_lib.library().stretto_model_quantile(handle, k)) for k in range(count)]

    @property
    def weights(self) -> Weights:
        """The tensors of the model file by their names: read-only NumPy views, no copies."""
        return read_weights(self._bytes)

    def info(self) -> dict[str, Any]:
        """Schema, layers, training record and options."""
        with self._handle({}) as handle:
            found: dict[str, Any] = json.loads(_lib.text("model_info", handle, 1))
            return found

    def option(self, name: str) -> str:
        """The value of an option of its training, as text."""
        with self._handle({}) as handle:
            config = _lib.library().stretto_model_config(handle)
            return _lib.string("config_get", config, name.replace("_", "-").encode())

    def __repr__(self) -> str:
        names = self.targets
        what = self.option("task") if not names else ", ".join(names[:4]) + (" .. (%d in all)" % len(names) if len(names) > 4 else "")
        return "<stretto.Model of %s, horizon %d>" % (what, self.horizon)

    def _repr_html_(self) -> str:
        return self.scores._repr_html_() if self.scores else repr(self)

    # --- forecasts ---

    def predict(self, data: Data, *, samples: int = 0, seed: int = 1, **options: Any) -> Forecast:
        """Forecasts beyond the last record of each series; for other learners, predictions of each record.

        samples    number of possible courses of each series instead of mean and quantiles; the same seed, the same courses
        options    threads, device, kernel, memory, until, gaps, dups, na
        """
        if not 0 <= samples <= SAMPLES_MOST:
            raise UsageError("samples=%d: 0 to %d are possible" % (samples, SAMPLES_MOST), "E103", "samples", "samples=100")
        with opened(data) as path, self._handle(options) as handle, open_for(handle, path) as rows:
            log_lines(_lib.string("model_warnings", handle))
            found = forecast(handle, rows, samples, seed)
            log_lines(_lib.string("model_note", handle), 20)
        found.take_zone(zone_of_times(data))
        found.source = (self, data, options)
        return found

    def evaluate(self, data: Data, **options: Any) -> Scores:
        """Scores on records that the model has not seen, or on all if it has seen them all.

        options    stride, score_scale, score_steps, scores, by; and those of predict()
        """
        own = {k: v for k, v in options.items() if k in OWN}
        others = {k: v for k, v in options.items() if k not in OWN}

        def work(_job: "Job[Scores]") -> Scores:
            with opened(data) as path, self._handle(own) as handle, Config(others) as config, open_for(handle, path) as rows:
                log_lines(_lib.string("model_warnings", handle))
                skill = ctypes.c_double()
                texts = []
                for as_json in (1, 0):
                    out = ctypes.c_void_p()
                    _lib.call("eval", handle, rows, config.handle, as_json, ctypes.byref(out), ctypes.byref(skill))
                    texts.append(_lib.take_text(out))
            return Scores.parse(texts[0], texts[1], skill.value)

        return run(work)

    def export_onnx(self, path: PathLike, *, mean_only: bool = False, check: Data = None) -> float:
        """Writes the model as an ONNX graph.  With a table in `check`, runs it in ONNX Runtime and returns the largest difference in
        standard deviations of the column; else NaN.  E904 names all parts that ONNX cannot express; E907: the graph differs, or
        there is no ONNX Runtime to check it with."""
        worst = ctypes.c_double(float("nan"))
        if check is not None:
            find_onnx_runtime()
        with self._handle({}) as handle:
            _lib.call("model_export_onnx", handle, os.fsencode(path), int(mean_only))
            if check is not None:
                with opened(check) as table, open_for(handle, table) as rows:
                    _lib.call("model_check_onnx", handle, rows, os.fsencode(path), int(mean_only), ctypes.byref(worst), None)
        return worst.value

    def plot(self, data: Data, **options: Any) -> Any:
        """Draws the forecast beyond the last record: see Forecast.plot()."""
        return self.predict(data, **options).plot()


OWN = ("threads", "device", "kernel", "memory", "until", "gaps", "dups", "na", "sep", "decimal")


def load(path: PathLike) -> Model:
    """Loads a model file.  E901: not a model.  E902: written by a newer version."""
    handle = _lib.new("model_load", os.fsencode(path))
    try:
        return Model(model_bytes(handle))
    finally:
        _lib.library().stretto_model_free(handle)


def from_bytes(content: bytes) -> Model:
    """A model from the bytes of a model file."""
    return Model(bytes(content))


import weakref  # noqa: E402

_models: "weakref.WeakSet[Model]" = weakref.WeakSet()


def _after_fork() -> None:
    for model in _models:
        model._forget()


os.register_at_fork(after_in_child=_after_fork)
