"""rolling.py - rolling origins: scores of consecutive parts of the test split."""
from __future__ import annotations

import json
from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Any, Optional

from . import _lib
from .config import Source
from .errors import StrettoError
from .frames import Data
from .handles import open_config_and_data
from .jobs import Job
from .progress import run_with_listeners
from .scores import Scores
from .training import Callbacks, Names

ROWS = ("MAE", "RMSE", "MASE", "ND", "wQL", "skill")


def _table(fold: dict[str, Any]) -> str:
    """The rows of a fold as the program prints them, in fewer words."""
    names = [n for n in ROWS if any(row.get(n) is not None for row in fold["rows"])]
    lines = ["%-28s" % fold["title"] + "".join("%10s" % n for n in names)]
    for row in fold["rows"]:
        cells = ["%10.4g" % row[n] if row.get(n) is not None else "%10s" % "-" for n in names]
        lines.append("  %-26s" % row["name"] + "".join(cells))
    return "\n".join(lines)


class Backtest(Sequence[Scores]):
    """The scores of each fold; `text` shows all of them."""

    def __init__(self, folds: list[dict[str, Any]]) -> None:
        self.folds = []
        for fold in folds:
            scores = Scores(fold)
            scores.text = _table(fold)
            skills = [row["skill"] for row in fold["rows"] if row["name"] == "model" and row.get("skill") is not None]
            scores.skill = float(skills[0]) if skills else float("nan")
            self.folds.append(scores)
        self.text = "\n".join(s.text for s in self.folds)

    def __getitem__(self, k: Any) -> Any:
        return self.folds[k]

    def __len__(self) -> int:
        return len(self.folds)

    def __str__(self) -> str:
        return self.text

    def to_pandas(self) -> Any:
        """One row for each fold and forecast: fold, title, name, MAE, .."""
        import pandas
        rows = [{"fold": k, "title": s["title"], **row} for k, s in enumerate(self.folds) for row in s["rows"]]
        return pandas.DataFrame(rows)


def backtest(data: Data, *, time: Names = None, id: Names = None, target: Names = None, horizon: Optional[int] = None,
             folds: Optional[int] = None, refit: Optional[str] = None, config: Source = None, callback: Callbacks = None,
             progress: bool = False, **options: Any) -> Backtest:
    """Scores `folds` consecutive parts of the test split beside naive forecasts.

    refit      "never": one model for all folds, "each": another training before every fold
    callback   hears of the trainings; one that ends them leaves no scores: StrettoError E802
    Other parameters are those of train().
    """
    given = dict(options, time=time, id=id, target=target, horizon=horizon, folds=folds, refit=refit)

    def work(job: "Job[Backtest]") -> Backtest:
        with open_config_and_data(data, given, config) as (opts, rows):
            out = c_void_p()
            job.stop_with(lambda: _lib.library().stretto_backtest_stop(opts.handle))
            try:
                _lib.call("backtest", opts.handle, rows, job.event_fn, None, 1, byref(out))
            finally:
                job.stop_with(None)
            if not out.value:
                raise StrettoError("the backtest was stopped", "E802")
            return Backtest(json.loads(_lib.take_text(out)))

    return run_with_listeners(work, callback, progress)
