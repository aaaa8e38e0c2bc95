"""forecast.py - predictions as columns: NumPy, pandas, polars, Arrow, a picture."""
from __future__ import annotations

import ctypes
import datetime
import os
import tempfile
import zoneinfo
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import numpy as np

from . import _lib
from .arrow_c import Array, ArrayC, Schema, capsule_of, column_to_numpy, text_column, zone_of
from .columns import array_column


class Forecast(Mapping[str, Array]):
    """Predictions: a mapping of column names to NumPy arrays, one row for each series and step.

    id, origin, time, step, mean, q0.1, ..      of a forecaster; with samples, sample.1, sample.2, ..
    Times are datetime64; those of a time zone are in UTC here, and in their zone in the tables that to_pandas() .. make.
    """

    def __init__(self, columns: dict[str, Array], zones: Optional[dict[str, str]] = None) -> None:
        self.columns = columns
        self.zones = zones or {}  # time zones of the columns of times, which are in UTC
        self.source: Optional[tuple[Any, Any, dict[str, Any]]] = None  # model, data and options, for the picture

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "zones": self.zones, "source": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def take_zone(self, zone: str) -> None:
        """Names the zone of the times; the library gives days of a zone without one, as they are written."""
        if not zone:
            return
        for name, values in self.columns.items():
            if name not in self.zones and values.dtype.kind == "M":
                self.columns[name] = _utc_of(values, zone)
        self.zones = {name: zone for name, values in self.columns.items() if values.dtype.kind == "M"}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame."""
        import pandas
        frame = pandas.DataFrame(self.columns)
        for name, zone in self.zones.items():
            frame[name] = frame[name].dt.tz_localize("UTC").dt.tz_convert(zone)
        return frame

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        import polars
        return polars.DataFrame(_Exported(self))

    def to_arrow(self) -> Any:
        """A pyarrow.Table."""
        import pyarrow
        return pyarrow.table(_Exported(self))

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The columns in the Arrow C stream interface, as a capsule."""
        columns = [text_column(n, list(v)) if v.dtype.kind == "O" else array_column(n, v, zone=self.zones.get(n, ""))
                   for n, v in self.columns.items()]
        return capsule_of(columns, self.rows)

    def __repr__(self) -> str:
        return "<stretto.Forecast of %d rows: %s>" % (self.rows, ", ".join(self.columns))

    def svg(self) -> str:
        """The forecast behind its history, drawn by the library."""
        if self.source is None:
            raise ValueError("a forecast that was unpickled has no data to draw; call predict() again")
        model, data, options = self.source
        return draw(model, data, options)

    def _repr_svg_(self) -> Optional[str]:
        return self.svg() if self.source is not None else None

    def plot(self, ax: Any = None) -> Any:
        """Draws the forecast: on Matplotlib axes (`ax`, or new ones), without Matplotlib as an SVG picture."""
        from . import plots
        return plots.plot(self, ax)


def _utc_of(local: Array, zone: str) -> Array:
    """Times of the clocks of a zone as UTC."""
    place = zoneinfo.ZoneInfo(zone)
    each, at = np.unique(local.astype("datetime64[s]"), return_inverse=True)
    utc = [np.datetime64(t.replace(tzinfo=place).astimezone(datetime.timezone.utc).replace(tzinfo=None), "s") for t in each.tolist()]
    return np.array(utc, "datetime64[s]")[at]


class _Exported:
    """A forecast that is no Mapping: polars would read one column by column."""

    def __init__(self, forecast: Forecast) -> None:
        self.__arrow_c_stream__ = forecast.__arrow_c_stream__


def draw(model: Any, data: Any, options: dict[str, Any]) -> str:
    from .frames import opened
    from .handles import open_for
    with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
        name = os.path.join(folder, "plot.svg")
        with opened(data) as path, model._handle(options) as handle, open_for(handle, path) as rows:
            _lib.call("model_plot", handle, rows, os.fsencode(name))
        with open(name, encoding="utf-8") as f:
            return f.read()


def forecast(model: int, data: int, samples: int, seed: int) -> Forecast:
    """The predictions of a model handle for a data handle."""
    array, schema = ArrayC(), Schema()
    _lib.call("predict_arrow", model, data, samples, seed, ctypes.addressof(array), ctypes.addressof(schema))
    try:
        pairs = [(schema.children[k].contents, array.children[k].contents) for k in range(schema.n_children)]
        names = [(s.name or b"").decode() for s, _ in pairs]
        zones = {n: zone_of(s) for n, (s, _) in zip(names, pairs) if zone_of(s)}
        return Forecast({n: column_to_numpy(s, a) for n, (s, a) in zip(names, pairs)}, zones)
    finally:
        for struct in (array, schema):
            if struct.release:
                struct.release(ctypes.pointer(struct))
