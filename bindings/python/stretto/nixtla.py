"""nixtla.py - StrettoForecast: fit, predict and cross_validation on long tables as NeuralForecast and StatsForecast take them.

    unique_id  ds  y  ..   ->  fit  ->  predict  ->  unique_id  ds  Stretto  Stretto-lo-80  Stretto-hi-80

Frames are those of pandas or polars, results those of the same library.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from .arrow_c import Array
from .errors import DataError, UsageError
from .forecast import Forecast
from .levels import quantiles_at
from .model import Model
from .series_table import SeriesTable, future_times, made_like, statics_of
from .training import train

Frame = Any
Level = Optional[Sequence[Union[int, float]]]
Names = Optional[Sequence[str]]


def bands_of(level: Level, quantiles: Optional[Sequence[float]]) -> "dict[float, str]":
    """Quantile: ending of its column, in rising order; as NeuralForecast names them."""
    found = {}
    for at in level or ():
        if not 0 < at < 100:
            raise UsageError("level %r is no share of 100" % at, "E103", "level", "level=[80, 95]")
        found[round(0.5 - at / 200, 6)], found[round(0.5 + at / 200, 6)] = "-lo-%g" % at, "-hi-%g" % at
    for q in quantiles or ():
        found[float(q)] = "-median" if q == 0.5 else "-%s-%s" % (("lo", round(100 - 200 * q, 2)) if q < 0.5 else ("hi", round(200 * q - 100, 2)))
    return dict(sorted(found.items()))


class StrettoForecast:
    """One model of all series, by default; or several side by side.

    h                horizon in time steps
    freq             None = found in the data; an integer, where ds holds integers; "B" and other calendars of business by rows
    models           name of a column: options of stretto.train(), as {"Stretto": {}, "Ridge": {"correction": False}}
    futr_exog_list, hist_exog_list     columns of df known ahead, and known up to the forecast; others are not used
    stat_exog_list   columns of static_df (default: all)
    level            bands that the models are trained for; others are read between and beyond them
    random_seed, threads, options     for all models: the random seed, threads (None = all), further options of stretto.train()
    """

    def __init__(self, h: int, freq: Union[str, int, None] = None, models: Optional[Mapping[str, Mapping[str, Any]]] = None, *,
                 futr_exog_list: Names = None, hist_exog_list: Names = None, stat_exog_list: Names = None,
                 level: Sequence[Union[int, float]] = (80,), random_seed: int = 1, threads: Optional[int] = None, **options: Any) -> None:
        self.h, self.freq, self.models = h, freq, dict(models or {"Stretto": {}})
        self.futr, self.hist, self.stat = list(futr_exog_list or ()), list(hist_exog_list or ()), stat_exog_list
        self.level, self.random_seed, self.threads, self.options = tuple(level), random_seed, threads, options
        self.models_: dict[str, Model] = {}
        self._table: Optional[SeriesTable] = None
        self._static: Frame = None
        self._cols = ("unique_id", "ds", "y")

    # --- tables ---

    @property
    def _by_rows(self) -> bool:
        """Whether the library counts rows, because it cannot read the times or their calendar."""
        return isinstance(self.freq, (int, np.integer)) or (self.freq or "").lstrip("0123456789").startswith(("B", "C", "SM"))

    def _read(self, df: Frame) -> SeriesTable:
        id_col, time_col, target = self._cols
        table = SeriesTable(df, id_col, time_col, [*self.futr, *self.hist], target)
        if table.times.dtype.kind in "iu":
            if not isinstance(self.freq, (int, np.integer)):
                raise UsageError("column \"%s\" holds integers" % time_col, "E105", "freq", "freq=1")
            inside = table.left[:-1] > 0
            if (np.diff(table.times)[inside] != self.freq).any():
                raise UsageError("the integers of \"%s\" are not %d apart everywhere" % (time_col, self.freq), "E210", "df", "a row for each step")
        return table

    def _statics(self) -> "list[str]":
        if self._static is None:
            return []
        return list(self.stat) if self.stat is not None else [str(n) for n in self._static.columns if n != self._cols[0]]

    def _data(self, table: SeriesTable) -> "dict[str, Array]":
        """The columns that the library reads."""
        id_col, time_col, _ = self._cols
        found = {id_col: table.ids, **({} if self._by_rows else {time_col: table.times}), **table.values}
        return {**found, **(statics_of(self._static, id_col, self._statics(), table.ids) if self._statics() else {})}

    # --- fit ---

    def fit(self, df: Frame, static_df: Frame = None, val_size: int = 0, id_col: str = "unique_id", time_col: str = "ds",
            target_col: str = "y") -> "StrettoForecast":
        """Trains on all rows of df; the last val_size rows of each series are the validation (0 = the library chooses)."""
        self._cols, self._static = (id_col, time_col, target_col), static_df
        self._train(self._read(df), val_size)
        return self

    def _train(self, table: SeriesTable, val_size: int) -> None:
        id_col, time_col, target = self._cols
        levels = sorted({*bands_of(self.level, None), 0.5})
        given = {"test": "0", "quantiles": levels, "seed": self.random_seed, "threads": self.threads,
                 "validation": str(val_size) if val_size else None, **({"time_format": "row"} if self._by_rows else {"time": time_col})}
        data = self._data(table)
        self.models_ = {name: train(data, id=id_col, target=target, horizon=self.h, known=self.futr or None, past=self.hist or None,
                                    static=self._statics() or None, **{**given, **self.options, **own})
                        for name, own in self.models.items()}
        self._table = table

    # --- predict ---

    def _future(self, futr_df: Frame) -> SeriesTable:
        if futr_df is None:
            raise UsageError("the models have the columns %s" % ", ".join(self.futr), "E302", "futr_df", "futr_df with these columns, h rows of each series")
        return SeriesTable(futr_df, self._cols[0], self._cols[1], self.futr, None)

    def _forecast(self, past: SeriesTable, future: Optional[SeriesTable], bands: "Mapping[float, str]") -> "dict[str, Array]":
        """Forecasts behind the last row of each series: the columns of the result, with the cutoff."""
        data = self._data(past.behind(future, self.hist) if future is not None else past)
        id_col, time_col, _ = self._cols
        lasts = past.lasts()
        out: dict[str, Array] = {}
        for name, model in self.models_.items():
            found = model.predict(data, threads=self.threads)
            if not out:
                out = {id_col: np.array([past.names[str(n)] for n in found["id"]]), time_col: self._times(found, past),
                       "cutoff": np.array([lasts[str(n)] for n in found["id"]])}
            out[name] = found["mean"]
            for ending, values in zip(bands.values(), self._bands(found, past, list(bands))):
                out[name + ending] = values
        return out

    def _times(self, found: Forecast, past: SeriesTable) -> Array:
        times = future_times(found, past.lasts(), self.freq) if self._by_rows else found["time"]
        return times.astype(past.times.dtype)

    def _bands(self, found: Forecast, past: SeriesTable, levels: "list[float]") -> Any:
        if not levels:
            return ()

        def spread() -> Array:
            deviations = past.deviations()
            return np.array([deviations[str(n)] for n in found["id"]]) * np.sqrt(found["step"])
        return quantiles_at(found, levels, spread).T

    def _fitted(self) -> SeriesTable:
        if self._table is None:
            raise UsageError("this StrettoForecast is not trained yet", "E105", "", "call fit(df) first")
        return self._table

    def predict(self, df: Frame = None, static_df: Frame = None, futr_df: Frame = None, level: Level = None,
                quantiles: Optional[Sequence[float]] = None) -> Frame:
        """Forecasts behind the last row of each series of df, or of the table of fit(): unique_id, ds, and columns for each model.

        futr_df    unique_id, ds and the columns of futr_exog_list for the next h steps
        level      bands in percent (default: those of the constructor); quantiles: levels between 0 and 1 instead
        """
        past = self._fitted()
        kept = self._static
        if static_df is not None:
            self._static = static_df
        try:
            past = past if df is None else self._read(df)
            bands = bands_of(self.level if level is None and quantiles is None else level, quantiles)
            found = self._forecast(past, self._future(futr_df) if self.futr else None, bands)
        finally:
            self._static = kept
        del found["cutoff"]
        return made_like(past.frame, found)

    # --- cross-validation ---

    def cross_validation(self, df: Frame, static_df: Frame = None, n_windows: Optional[int] = 1, step_size: int = 1, val_size: int = 0,
                         test_size: Optional[int] = None, refit: Union[bool, int] = False, level: Level = None,
                         quantiles: Optional[Sequence[float]] = None, id_col: str = "unique_id", time_col: str = "ds",
                         target_col: str = "y") -> Frame:
        """Forecasts from n_windows cutoffs, step_size rows apart, of which the last has h rows behind it: unique_id, ds, cutoff, the
        columns of each model, y.

        refit    False: the models see the rows up to the first cutoff; True: they are trained again at each, N: at every Nth
        """
        if (n_windows is None) == (test_size is None):
            raise UsageError("n_windows and test_size say the same", "E105", "n_windows", "one of them")
        size = test_size if test_size is not None else self.h + step_size * (int(n_windows or 1) - 1)
        if size < self.h or (size - self.h) % step_size:
            raise UsageError("test_size - h is %d, no multiple of step_size %d" % (size - self.h, step_size), "E103", "test_size",
                             "test_size=%d" % (self.h + step_size * max(1, (size - self.h) // step_size)))
        self._cols, self._static = (id_col, time_col, target_col), static_df
        table = self._read(df)
        bands = bands_of(self.level if level is None and quantiles is None else level, quantiles)
        folds = []
        for fold, behind in enumerate(range(size, self.h - 1, -step_size)):
            past = table.chosen(table.left >= behind)
            if fold == 0 or (refit and fold % int(refit) == 0):
                self._train(past, val_size)
            truth = table.chosen((table.left < behind) & (table.left >= behind - self.h))
            found = self._forecast(past, truth if self.futr else None, bands)
            if len(found[id_col]) != len(truth.ids):
                raise DataError("a series has no row before the cutoff of window %d" % (fold + 1), "E301", "df",
                                "a smaller n_windows, or without the series of fewer than %d rows" % (size + 2))
            found[target_col] = truth.values[target_col]
            folds.append(found)
        joined = {n: np.concatenate([f[n] for f in folds]) for n in folds[0]}
        order = np.lexsort((joined[time_col], joined["cutoff"], joined[id_col].astype(str)))
        return made_like(df, {n: v[order] for n, v in joined.items()})
