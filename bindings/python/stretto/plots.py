"""plots.py - pictures of forecasts: Matplotlib where it is installed, else the SVG of the library."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _lib
from .forecast import Forecast
from .frames import opened
from .handles import open_for

MOST = 6       # series in one picture
HISTORY = 4    # horizons of history before the forecast


class Picture:
    """An SVG picture: shown by notebooks, written by save()."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.svg)


def _bands(forecast: Forecast) -> list[tuple[str, str]]:
    """Pairs of quantile columns, the outer first."""
    names = [n for n in forecast if n.startswith("q")]
    return [(names[k], names[-1 - k]) for k in range(len(names) // 2)]


def _last_values(handle: int, data: int, column: int, count: int) -> list[float]:
    """The last `count` values of a series; rows after its last observation, which hold covariates alone, are left out."""
    value, row = _lib.library().stretto_data_value, _lib.library().stretto_data_rows(data)
    found: list[float] = []
    while row > 0 and len(found) < count:
        row -= 1
        cell = value(data, column, row)
        if found or cell == cell:
            found.append(cell)
    return found[::-1]


def _histories(forecast: Forecast, names: list[str]) -> dict[str, list[float]]:
    """What was observed before the forecast, by the name of the series."""
    if forecast.source is None:
        return {}
    model, table, options = forecast.source
    with opened(table) as path, model._handle(options) as handle, open_for(handle, path) as data:
        count = HISTORY * _lib.library().stretto_model_horizon(handle)
        columns = {_lib.string("data_column", data, k): k for k in range(_lib.library().stretto_data_targets(data))}
        return {n: _last_values(handle, data, columns[n], count) for n in names if n in columns}


def _draw_history(ax: Any, forecast: Forecast, rows: Any, values: list[float]) -> None:
    """Values at the steps up to the origin of the forecast; the distance of steps is that of the first two forecasts."""
    back = np.arange(len(values))[::-1]
    if "time" in forecast:
        times = forecast["time"][rows]
        step = times[1] - times[0] if len(times) > 1 else times[0] - forecast["origin"][rows][0]
        ax.plot(forecast["origin"][rows][0] - back * step, values, color="0.4", linewidth=1)
    else:
        ax.plot(-back, values, color="0.4", linewidth=1)


def _draw(ax: Any, forecast: Forecast, rows: Any, label: str) -> None:
    x = forecast["time"][rows] if "time" in forecast else forecast["step"][rows]
    line, = ax.plot(x, forecast["mean"][rows], label=label)
    for low, high in _bands(forecast):
        ax.fill_between(x, forecast[low][rows], forecast[high][rows], color=line.get_color(), alpha=0.15, linewidth=0)


def plot(forecast: Forecast, ax: Any = None) -> Any:
    """Draws the first series, with their history, on Matplotlib axes, which it returns; without Matplotlib returns the picture of the library."""
    if "mean" not in forecast:
        raise ValueError("these predictions are no forecasts with columns step and mean: %s" % ", ".join(forecast))
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        if ax is not None:
            raise
        return Picture(forecast.svg())
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 4))
    ids = forecast["id"] if "id" in forecast else np.zeros(forecast.rows)
    names = [str(n) for n in dict.fromkeys(ids.tolist())][:MOST]
    histories = _histories(forecast, names)
    for name in names:
        rows = ids.astype(str) == name
        if histories.get(name):
            _draw_history(ax, forecast, rows, histories[name])
        _draw(ax, forecast, rows, name)
    ax.legend(loc="upper left", frameon=False)
    ax.margins(x=0)
    return ax
