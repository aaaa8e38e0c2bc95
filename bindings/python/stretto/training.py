"""training.py - train() and resume(): a table and options become a Model."""
from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Optional, Union

from . import _lib
from .errors import StrettoError, UsageError
from .frames import Data
from .handles import model_bytes, open_config_and_data, open_trainer
from .jobs import Job, run
from .model import Model
from .config import Config, PathLike, Source
from .progress import Callback, Listeners, log_lines
from .scores import Scores

STOPPED = 3              # STRETTO_STOP_SIGNAL
MODEL_NAME = "model.safetensors"
Names = Union[str, Sequence[str], None]
Callbacks = Union[Callback, Iterable[Callback], None]


class _Run:
    """One training: where it keeps its checkpoints, and what it is made of."""

    def __init__(self, data: Data, given: dict[str, Any], config: Source, run_dir: Optional[PathLike], resume: bool,
                 model_path: Optional[str] = None) -> None:
        self.data, self.given, self.config, self.resume = data, given, config, resume
        self.run_dir = os.fspath(run_dir) if run_dir is not None else None
        self.kept = run_dir is not None
        self.model_path = model_path or (os.path.join(self.run_dir, MODEL_NAME) if self.run_dir else None)

    def _fit(self, job: "Job[Model]", trainer: int, resume: bool) -> int:
        if self.model_path and self.kept:
            _lib.call("trainer_target", trainer, os.fsencode(self.model_path))
        if self.run_dir:
            _lib.call("trainer_run_dir", trainer, os.fsencode(self.run_dir), int(resume))
        return _lib.call("trainer_run", trainer)

    def _result(self, trainer: int) -> Model:
        scores = Scores.parse(_lib.string("trainer_scores", trainer, 1), _lib.string("trainer_scores", trainer, 0),
                              _lib.library().stretto_trainer_skill(trainer))
        if self.kept and self.run_dir and self.model_path:
            _lib.call("trainer_report", trainer, os.fsencode(os.path.join(self.run_dir, "report.html")))
            _lib.call("trainer_save", trainer, os.fsencode(self.model_path))
        model = Model(model_bytes(_lib.library().stretto_trainer_model(trainer)))
        model.scores = scores
        return model

    def _ended(self, data: int, config: Config) -> Model:
        """After a callback has stopped the training: goes on from the checkpoint with no time left, which makes the model."""
        config.set({"time_limit": "1ms"})
        with open_trainer(config, data) as trainer:
            job: "Job[Model]" = Job(lambda _: self._result(trainer), None)
            self._fit(job, trainer, True)
            return self._result(trainer)

    def work(self, job: "Job[Model]") -> Model:
        """On the worker thread."""
        with open_config_and_data(self.data, self.given, self.config) as (config, data):
            log_lines(_lib.string("data_summary", data), 20)
            with open_trainer(config, data) as trainer:
                _lib.library().stretto_trainer_on_event(trainer, job.event_fn, None)
                job.stop_with(lambda: _lib.library().stretto_trainer_stop(trainer))
                try:
                    reason = self._fit(job, trainer, self.resume)
                except StrettoError as e:
                    if e.code == "E806" and job.asked == "callback":
                        raise UsageError("the callback ended the training before its first step: there is no model yet", "E806", "callback",
                                         "end it at an event whose step is above 0") from None
                    raise
                finally:
                    job.stop_with(None)
                if reason != STOPPED:
                    return self._result(trainer)
            if job.asked == "callback" and self.run_dir:
                return self._ended(data, config)
        raise StrettoError("the training was stopped; a checkpoint is in %s" % self.run_dir, "E802", "",
                           "stretto.resume(%r)" % self.run_dir)


def _run(work: _Run, callback: Callbacks, progress: bool) -> Model:
    listeners = Listeners(callback, progress)
    with ExitStack() as stack:
        stack.callback(listeners.close)
        if listeners.asks and not work.run_dir:
            work.run_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="stretto-"))
        try:
            return run(work.work, listeners)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("a checkpoint is in %s: stretto.resume(%r, data)" % (work.run_dir, work.run_dir) if work.kept else
                                    "nothing was kept; with run_dir=.. a training goes on after an interrupt") from None


def train(data: Data, *, time: Names = None, id: Names = None, target: Names = None, horizon: Optional[int] = None,
          known: Names = None, past: Names = None, static: Names = None, cat: Names = None,
          quantiles: Optional[Sequence[float]] = None, config: Source = None, callback: Callbacks = None,
          progress: bool = False, run_dir: Optional[PathLike] = None, **options: Any) -> Model:
    """Trains a model and scores it on the test split.

    data       a path, or a table: pandas, polars, Arrow, NumPy, a dict of arrays, a list of dicts, tensors
    time, id, target, known, past, static, cat     columns; `time` is detected if omitted
    config     a YAML or JSON file of options, or what tune() or check() returned; keywords take precedence
    callback   callable(s) of an Event, on the calling thread; one that returns True or raises StopTraining ends the training
    run_dir    folder of checkpoints, metrics and report; after an interrupt, resume(run_dir) continues
    options    any option of `stretto train`, `_` for `-` (stretto.options() lists them)
    """
    given = dict(options, time=time, id=id, target=target, horizon=horizon, known=known, past=past, static=static, cat=cat,
                 quantiles=quantiles)
    return _run(_Run(data, given, config, run_dir, False), callback, progress)


def _paths(run_dir: PathLike) -> tuple[str, str]:
    data, model = ctypes.c_void_p(), ctypes.c_void_p()
    _lib.call("run_paths", os.fsencode(run_dir), ctypes.byref(data), ctypes.byref(model))
    return _lib.take_text(data), _lib.take_text(model)


def resume(run_dir: PathLike, data: Data = None, *, callback: Callbacks = None, progress: bool = False, **options: Any) -> Model:
    """Continues a training that was interrupted, from its newest checkpoint, with the result of one that was not.

    data       the same table, if the run began with a table in memory; a file is found by itself
    """
    path, model_path = _paths(run_dir)
    if data is None and path.split(":")[0] == "memory":
        raise UsageError("the run %s began with a table in memory" % os.fspath(run_dir), "E105", "data",
                         "stretto.resume(%r, data=df)   with the same table" % os.fspath(run_dir))
    config = os.path.join(os.fspath(run_dir), "config.json")
    work = _Run(path if data is None else data, options, config, run_dir, True, model_path or None)
    return _run(work, callback, progress)
