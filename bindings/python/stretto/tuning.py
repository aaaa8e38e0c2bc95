"""tuning.py - tune(): a search for better options within a time, by trials scored on validation."""
from __future__ import annotations

import json
import os
from ctypes import byref, c_void_p
from typing import Any, Optional, Union

from . import _lib
from .config import PathLike, Source
from .frames import Data
from .handles import open_config_and_data
from .jobs import Job
from .progress import run_with_listeners
from .training import Callbacks, Names


class Tuning(dict[str, Any]):
    """The trials of a search: chosen, why, gain, trials, importance, ..  `yaml` has the options to train with:

        stretto.train(df, config=found)      or      found.save("best.yaml"); stretto.train(df, config="best.yaml")
    """

    def __init__(self, found: dict[str, Any], yaml: str) -> None:
        super().__init__(found)
        self.yaml = yaml

    @property
    def best(self) -> dict[str, str]:
        """The options that differ from those that were given, as text; {} if the defaults stay."""
        for trial in self["trials"]:
            if trial["trial"] == self["chosen"]:
                return {str(k).replace("-", "_"): str(v) for k, v in trial["options"].items()}
        return {}

    def save(self, path: PathLike) -> None:
        """Writes the config file."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.yaml)

    def to_pandas(self) -> Any:
        """One row for each trial: trial, ratio of its error to that of the defaults, fits, seconds, options."""
        import pandas
        rows = [{**{k: t[k] for k in ("trial", "ratio", "fits", "seconds")}, "failed": t.get("failed"), **t["options"]} for t in self["trials"]]
        frame = pandas.DataFrame(rows)
        return frame.assign(ratio=pandas.to_numeric(frame["ratio"], errors="coerce"))

    def __str__(self) -> str:
        lines = ["%5s %8s %5s  %s" % ("trial", "ratio", "fits", "options")]
        for t in self["trials"]:
            mark = "*" if t["trial"] == self["chosen"] else " "
            options = ", ".join("%s %s" % item for item in t["options"].items()) or "the defaults"
            lines.append("%4d%s %8.4f %5d  %s" % (t["trial"], mark, float(t["ratio"]), t["fits"], options))
        return "\n".join(lines + [str(self["why"])])


def tune(data: Data, *, time: Names = None, id: Names = None, target: Names = None, horizon: Optional[int] = None,
         time_limit: Union[str, float, None] = None, trials: Optional[int] = None, run_dir: Optional[PathLike] = None,
         config: Source = None, callback: Callbacks = None, progress: bool = False, **options: Any) -> Tuning:
    """Searches for better options; the test split is never looked at.

    time_limit   seconds, or a text as "10m"; ten minutes if neither it nor `trials` is given
    trials       number of trials, defaults included
    run_dir      keeps every fit: after an interrupt the same call goes on
    callback     one that returns True or raises StopTraining ends the search with the best so far
    options      what is given does not vary; other parameters are those of train()
    """
    given = dict(options, time=time, id=id, target=target, horizon=horizon, time_limit=time_limit, trials=trials,
                 run_dir=None if run_dir is None else os.fspath(run_dir))

    def work(job: "Job[Tuning]") -> Tuning:
        with open_config_and_data(data, given, config) as (opts, rows):
            out, yaml = c_void_p(), c_void_p()
            job.stop_with(_lib.library().stretto_tune_stop)
            try:
                _lib.call("tune", opts.handle, rows, job.event_fn, None, 1, byref(out), byref(yaml))
            finally:
                job.stop_with(None)
            return Tuning(json.loads(_lib.take_text(out)), _lib.take_text(yaml))

    return run_with_listeners(work, callback, progress)
