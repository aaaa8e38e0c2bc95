"""series_table.py - long tables (unique_id, ds, y, ..) of pandas and polars as sorted arrays, and results in the same library.

    id  ds  y  price            sorted by id and time; `left` counts the rows of the same series behind each row:
    a   1   .  .     left 2     the rows up to a cutoff are those with left >= k
    a   2   .  .     left 1
    a   3   .  .     left 0
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np

from .arrow_c import Array
from .columns import bad_column
from .errors import DataError
from .forecast import Forecast


def is_polars(frame: Any) -> bool:
    return type(frame).__module__.split(".")[0] == "polars"


def made_like(frame: Any, columns: Mapping[str, Array]) -> Any:
    """A frame of polars if `frame` is one, else of pandas."""
    if is_polars(frame):
        import polars
        return polars.DataFrame(dict(columns))
    import pandas
    return pandas.DataFrame(dict(columns))


def column(frame: Any, name: str, what: str) -> Array:
    if name not in list(frame.columns):
        raise DataError("%s has no column \"%s\"" % (what, name), "E202", what, "one of: " + ", ".join(map(str, frame.columns)))
    return np.asarray(frame[name].to_numpy())


def times_of(values: Array, name: str) -> Array:
    """Times as datetime64 or integers; texts are read as ISO dates."""
    if values.dtype.kind in "Miu":
        return values
    try:
        return values.astype("datetime64[s]")
    except ValueError as e:
        raise bad_column(name, "holds no times: %s" % e, "df[\"%s\"] = pd.to_datetime(df[\"%s\"])" % (name, name)) from e


class SeriesTable:
    """The rows of a long table, sorted.  `ids`: text of the series of each row; `names`: the values of the id column by text."""

    def __init__(self, frame: Any, id_col: str, time_col: str, wanted: Sequence[str], target: Optional[str]) -> None:
        keys = column(frame, id_col, "df")
        texts = keys.astype(str).astype(object)
        times = times_of(column(frame, time_col, "df"), time_col)
        order = np.lexsort((times, texts))
        self.frame, self.target, self.wanted = frame, target, list(wanted)
        self.ids, self.times = texts[order], times[order]
        self.names = dict(zip(texts, keys))
        self.values = {n: column(frame, n, "df")[order] for n in self.wanted}
        if target is not None:
            self.values[target] = column(frame, target, "df")[order].astype(np.float64)
        self._count()

    def _count(self) -> None:
        _, first, sizes = np.unique(self.ids, return_index=True, return_counts=True)
        ends = np.repeat(first + sizes, sizes)
        self.left = ends - 1 - np.arange(len(self.ids))

    def chosen(self, rows: Array) -> "SeriesTable":
        """Some rows, in their order."""
        found = object.__new__(SeriesTable)
        found.frame, found.target, found.wanted, found.names = self.frame, self.target, self.wanted, self.names
        found.ids, found.times, found.values = self.ids[rows], self.times[rows], {n: v[rows] for n, v in self.values.items()}
        found._count()
        return found

    def behind(self, future: "SeriesTable", missing: Sequence[str]) -> "SeriesTable":
        """These rows and those of the future, whose target and `missing` columns are empty."""
        both = object.__new__(SeriesTable)
        both.frame, both.target, both.wanted, both.names = self.frame, self.target, self.wanted, self.names
        empty = {n: np.full(len(future.ids), np.nan) for n in [*missing, *([self.target] if self.target else [])]}
        joined = {n: np.concatenate([v, empty[n] if n in empty else future.values[n]]) for n, v in self.values.items()}
        ids, times = np.concatenate([self.ids, future.ids]), np.concatenate([self.times, future.times.astype(self.times.dtype)])
        order = np.lexsort((times, ids))
        both.ids, both.times, both.values = ids[order], times[order], {n: v[order] for n, v in joined.items()}
        both._count()
        return both

    def lasts(self) -> "dict[str, Any]":
        """The time of the last row of each series."""
        return dict(zip(self.ids[self.left == 0], self.times[self.left == 0]))

    def deviations(self) -> "dict[str, float]":
        """The deviation of the steps of the target of each series: the spread of a random walk."""
        ends = np.flatnonzero(self.left == 0) + 1
        found = {}
        for name, y in zip(self.ids[ends - 1], np.split(self.values[str(self.target)], ends[:-1])):
            steps = np.diff(y)
            found[str(name)] = float(np.nanstd(steps)) if np.isfinite(steps).any() else 0.0
        return found


def statics_of(frame: Any, id_col: str, names: Sequence[str], ids: Array) -> "dict[str, Array]":
    """The columns of a table with one row for each series, repeated for the rows of `ids`."""
    keys = column(frame, id_col, "static_df").astype(str)
    at = {k: i for i, k in enumerate(keys)}
    absent = sorted({str(k) for k in ids if k not in at})
    if absent:
        raise DataError("static_df has no row of the series %s" % ", ".join(absent[:5]), "E214", "static_df", "one row for each series")
    rows = np.fromiter((at[k] for k in ids), np.intp, len(ids))
    return {n: column(frame, n, "static_df")[rows] for n in names}


def future_times(found: Forecast, lasts: "Mapping[str, Any]", freq: Any) -> Array:
    """The times of forecasts that the library counted by rows: freq is an integer, or a name of pandas such as B."""
    if isinstance(freq, (int, np.integer)):
        return np.array([lasts[str(n)] for n in found["id"]]) + int(freq) * found["step"].astype(np.int64)
    import pandas
    offset = pandas.tseries.frequencies.to_offset(freq)
    steps = int(found["step"].max())
    ahead = {n: pandas.date_range(t, periods=steps + 1, freq=offset).to_numpy() for n, t in lasts.items()}
    return np.array([ahead[str(n)][int(k)] for n, k in zip(found["id"], found["step"])])
