"""levels.py - quantiles at any level from those that a model forecasts.

Between two levels the quantile function is linear in the score of a normal distribution, and goes on so beyond the outer ones, as
sample paths of the library do: exact for a normal distribution, and exact at the levels of the model.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np

from .arrow_c import Array


def scores_of(levels: Sequence[float]) -> Array:
    """The quantiles of a standard normal distribution at these levels."""
    return np.array([NormalDist().inv_cdf(a) for a in levels])


def known_levels(forecast: Mapping[str, Array]) -> list[float]:
    """The levels of the columns q0.1, q0.9, .. of a forecast, rising."""
    return sorted(float(n[1:]) for n in forecast if n[0] == "q" and n[1:2].isdigit())


def quantiles_at(forecast: Mapping[str, Array], wanted: Sequence[float], spread: Callable[[], Array]) -> Array:
    """Quantiles [rows][wanted].  `spread()` [rows]: the deviation around the mean that serves where the forecast has fewer than two
    quantiles, because its training had too few windows to measure errors."""
    have, z = known_levels(forecast), scores_of(wanted)
    if len(have) < 2:
        return np.asarray(forecast["mean"][:, None] + spread()[:, None] * z)
    x = scores_of(have)
    q = np.column_stack([forecast["q%g" % a] for a in have])
    left = np.clip(np.searchsorted(x, z, "right") - 1, 0, len(have) - 2)
    share = (z - x[left]) / (x[left + 1] - x[left])
    found = q[:, left] + share * (q[:, left + 1] - q[:, left])
    for k, level in enumerate(wanted):
        if level in have:
            found[:, k] = q[:, have.index(level)]
    return np.asarray(found)
