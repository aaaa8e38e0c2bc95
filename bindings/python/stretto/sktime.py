"""sktime.py - StrettoForecaster, a forecaster of sktime: single series, several columns, panels and hierarchies by one model.

    y (columns, instances)  ->  a long table: id, time, y, covariates  ->  one model of all series  ->  the index that sktime expects

Every column of every instance is a series of one panel, so the network is global; each series keeps its own scale.  A single
series is trained as `stretto train` trains a file with the columns time and y.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster

from .arrow_c import Array
from .forecast import Forecast
from .levels import quantiles_at
from .sklearn.base import seed_of, threads_of
from .training import train

Key = tuple[Any, ...]
OWN = ("id", "time", "y")


def parts_of(frame: Any) -> "Iterator[tuple[Key, Any]]":
    """The instances of a panel or hierarchy in the order of their names, or the one series, with times as their index."""
    if not isinstance(frame.index, pd.MultiIndex):
        yield (), frame
        return
    levels = list(range(frame.index.nlevels - 1))
    for key, part in frame.groupby(level=levels[0] if len(levels) == 1 else levels, sort=True):
        yield (key if isinstance(key, tuple) else (key,)), part.droplevel(levels)


def is_clock(index: Any) -> bool:
    """Whether the library can read the times: dates whose steps are equal, or months, quarters, years; no days of business."""
    if isinstance(index, pd.PeriodIndex):
        name = index.freqstr
    elif isinstance(index, pd.DatetimeIndex):
        name = index.freqstr or (pd.infer_freq(index) if len(index) > 2 else None) or ""
    else:
        return False
    return not name.lstrip("0123456789").startswith(("B", "C", "bh", "cbh"))


def whole(part: Any) -> Any:
    """A series with integer times: rows for the integers that are absent."""
    if part.index.dtype.kind not in "iu" or isinstance(part.index, (pd.PeriodIndex, pd.DatetimeIndex)):
        return part
    return part.reindex(pd.RangeIndex(part.index[0], part.index[-1] + 1))


def trimmed(y: Any) -> Any:
    """A target without missing values before its first one; those after its last one take that, for forecasts to begin behind them."""
    y = y.loc[y.first_valid_index():]
    last = y.last_valid_index()
    return y.where(y.index <= last, y.loc[last]) if last is not None else y


class StrettoForecaster(BaseForecaster):
    """Recurrent networks over guarded base forecasts, trained for the horizon that fit() is given.

    context, hidden, layers, steps, epochs, n_members     the model and its training; None = what the library chooses
    quantiles        levels of the model (default 0.1, 0.5, 0.9); others are read between and beyond them
    n_jobs           threads, which do not change the result; None = 1, -1 = all
    random_state     None, a seed or a RandomState; an int is the --seed of the program
    options          a dict of further options of stretto.train(), as {"head": "student-t", "gaps": "zero"}

    X holds covariates that are known ahead: predict() needs all rows up to the horizon.  `model_` is the stretto.Model.
    update(update_params=True) trains again on all data, False forecasts from the new data with the same weights.  A series too
    short for measured bands has those of a random walk with its steps.

    >>> from sktime.datasets import load_airline
    >>> from stretto.sktime import StrettoForecaster
    >>> y = load_airline()
    >>> forecaster = StrettoForecaster(random_state=1).fit(y, fh=range(1, 13))  # doctest: +SKIP
    >>> bands = forecaster.predict_interval(coverage=0.8)  # doctest: +SKIP
    """

    _tags = {
        "authors": "Stretto",
        "maintainers": "Stretto",
        "y_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:non_contiguous_X": False,
        "capability:categorical_in_X": False,
        "capability:unequal_length": True,
        "capability:update": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
        "requires-fh-in-fit": True,
    }

    def __init__(self, context: Optional[int] = None, hidden: Optional[int] = None, layers: Optional[int] = None,
                 steps: Optional[int] = None, epochs: Optional[float] = None, n_members: Optional[int] = None,
                 quantiles: Optional[Sequence[float]] = None, n_jobs: Optional[int] = None, random_state: Any = None,
                 options: Optional[dict[str, Any]] = None) -> None:
        self.context, self.hidden, self.layers, self.steps, self.epochs = context, hidden, layers, steps, epochs
        self.n_members, self.quantiles, self.n_jobs = n_members, quantiles, n_jobs
        self.random_state, self.options = random_state, options
        super().__init__()

    # --- tables ---

    def _names(self, key: Key, columns: Any) -> "list[str]":
        """The names of the series of an instance: one for each column of y."""
        if not key and len(columns) == 1:
            return ["y"]  # a single series has no column that names it
        return ["/".join(map(str, (*key, c) if len(columns) > 1 else key)) for c in columns]

    def _covariates(self, X: Any) -> "list[str]":
        return [("x_%s" if str(c) in OWN else "%s") % c for c in X.columns] if X is not None else []

    def _rows(self, name: str, y: Any, X: Any) -> Any:
        """One series: its rows, and those behind it for which there are covariates."""
        y = trimmed(whole(y))
        index = y.index if X is None else y.index.append(X.index[X.index > y.index[-1]][:self._horizon])
        found = pd.DataFrame({"id": name, "y": y.reindex(index).to_numpy(np.float64)})
        if self._clock:
            found["time"] = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
        if X is not None:
            for name, column in zip(self._covariates(X), X.columns):
                found[name] = X[column].reindex(index).to_numpy(np.float64)
        return found

    def _table(self, y: Any, X: Any) -> Any:
        covariates = dict(parts_of(X)) if X is not None else {}
        rows = pd.concat([self._rows(name, part[column], covariates.get(key)) for key, part in parts_of(y)
                          for name, column in zip(self._names(key, y.columns), y.columns)], ignore_index=True)
        return rows if self._panel else rows.drop(columns="id")

    def _steps(self, fh: Any, part: Any) -> "list[int]":
        """The horizon of an instance in steps behind its last row."""
        from sktime.datatypes import get_cutoff
        return [int(k) for k in fh.to_relative(get_cutoff(part, return_index=True)).to_numpy()]

    # --- fit ---

    def _options(self) -> "dict[str, Any]":
        given = {n: v for n, v in self.get_params(deep=False).items() if n not in ("n_members", "n_jobs", "random_state", "options")}
        return {"test": "0", "gaps": "mask", **given, "members": self.n_members, "seed": seed_of(self.random_state),
                "threads": threads_of(self.n_jobs), **(self.options or {})}

    def _fit(self, y: Any, X: Any, fh: Any) -> "StrettoForecaster":
        self._past_y, self._past_X = y, X
        self._clock = all(is_clock(part.index) for _, part in parts_of(y))
        self._panel = isinstance(y.index, pd.MultiIndex) or len(y.columns) > 1
        self._horizon = max(max(self._steps(fh, part)) for _, part in parts_of(y))
        table = self._table(y, X)
        times = {"time": "time"} if self._clock else {"time_format": "row"}
        self.model_ = train(table, id="id" if self._panel else None, target="y", known=self._covariates(X) or None, horizon=self._horizon,
                            **{**times, **self._options()})
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> "StrettoForecaster":
        self._past_y = y.combine_first(self._past_y)
        if X is not None:
            self._past_X = X.combine_first(self._past_X)
        return self._fit(self._past_y, self._past_X, self.fh) if update_params else self

    # --- predict ---

    def _forecast(self, X: Any) -> Forecast:
        if self._past_X is not None:
            if X is None:
                raise ValueError("the model has the covariates %s: predict() needs X for the horizon"
                                 % ", ".join(self._covariates(self._past_X)))
            X = X.combine_first(self._past_X)[self._past_X.columns]
        else:
            X = None
        return self.model_.predict(self._table(self._past_y, X), threads=threads_of(self.n_jobs))

    def _arranged(self, fh: Any, found: Forecast, values: Array) -> Array:
        """Rows of the forecast [rows][k] as [instances * steps][columns][k], in the order of sktime."""
        first = {str(name): k for k, name in reversed(list(enumerate(found["id"])))}
        y, blocks = self._past_y, []
        for key, part in parts_of(y):
            steps = np.array(self._steps(fh, part))
            if steps.max() > self._horizon:
                raise ValueError("the model forecasts %d steps, and %d are asked for: fit with this horizon" % (self._horizon, steps.max()))
            blocks.append(np.stack([values[first[name] + steps - 1] for name in self._names(key, y.columns)], axis=1))
        return np.concatenate(blocks)

    def _index(self, fh: Any) -> Any:
        return fh.get_expected_pred_idx(y=self._past_y)  # each instance goes on from its own last row

    def _predict(self, fh: Any, X: Any) -> Any:
        found = self._forecast(X)
        values = self._arranged(fh, found, found["mean"][:, None])
        return pd.DataFrame(values[:, :, 0], index=self._index(fh), columns=self._past_y.columns)

    def _spread(self, found: Forecast) -> Array:
        """The deviation of a random walk with the steps of each series."""
        deviation = {name: float(np.nanstd(np.diff(part[column].to_numpy(np.float64)))) if len(part) > 2 else 0.0
                     for key, part in parts_of(self._past_y)
                     for name, column in zip(self._names(key, self._past_y.columns), self._past_y.columns)}
        return np.array([deviation[str(n)] for n in found["id"]]) * np.sqrt(found["step"])

    def _predict_quantiles(self, fh: Any, X: Any, alpha: Any) -> Any:
        found = self._forecast(X)
        values = self._arranged(fh, found, quantiles_at(found, list(alpha), lambda: self._spread(found)))
        names = self._get_varnames()
        return pd.DataFrame(values.reshape(len(values), -1), index=self._index(fh), columns=pd.MultiIndex.from_product([names, alpha]))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> "list[dict[str, Any]]":
        """Small models for the checks of sktime."""
        return [{"steps": 10, "hidden": 4}, {"steps": 5, "quantiles": [0.05, 0.5, 0.95], "random_state": 3, "options": {"head": "quantile"}}]
