"""sequences.py - a class or a number of a whole sequence, by recurrent layers.

    X [n][steps]             one sequence of one channel a row: the form of scikit-learn
    X [n][steps][channels]   several channels
    [[steps][channels], ..]  sequences of unlike lengths
"""
from __future__ import annotations

from typing import Any, Optional, cast

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from ..arrow_c import Array
from ..forecast import Forecast
from .base import Classes, Estimator, Numbers
from .records import Options, Seed

LABEL = "label"


def is_plain(X: Any) -> bool:
    """Whether X is what scikit-learn takes for a table (or refuses): not three-dimensional, and no list of unlike arrays."""
    if hasattr(X, "ndim"):
        return X.ndim != 3 and not (X.ndim == 1 and X.dtype == object and len(X) and np.ndim(X[0]) > 0)
    if not isinstance(X, (list, tuple)) or not X or not all(hasattr(x, "__len__") and not isinstance(x, str) for x in X):
        return True
    return np.ndim(X[0]) < 2 and len({len(x) for x in X}) == 1


def checked(x: Any) -> Array:
    """One sequence [steps][channels] of numbers; NaN is a missing value."""
    x, check = np.asarray(x), cast(Any, check_array)
    return np.asarray(check(x[:, None] if x.ndim == 1 else x, dtype=np.float64, ensure_all_finite="allow-nan"))


def long_table(pieces: "list[Array]") -> dict[str, Array]:
    """Sequences as rows: id, t, a column for each channel."""
    lengths = [len(p) for p in pieces]
    values = np.asfortranarray(np.concatenate(pieces))
    table = {"id": np.repeat(np.arange(len(pieces)), lengths), "t": np.concatenate([np.arange(n) for n in lengths])}
    return {**table, **{"c%d" % k: values[:, k] for k in range(values.shape[1])}}


class _Sequences(Estimator):
    """What both share.  A table of two dimensions has n_features_in_ steps; other forms have n_channels_in_ channels."""

    _names = {"batch_size": "batch", "n_members": "members"}

    def _pieces(self, X: Any, reset: bool) -> "list[Array]":
        if is_plain(X) and (reset or hasattr(self, "n_features_in_")):
            X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
            return list(X[:, :, None])
        pieces = [checked(x) for x in (X[:, :, None] if getattr(X, "ndim", 3) == 2 else X)]
        found = {p.shape[1] for p in pieces} | ({self.n_channels_in_} if not reset else set())
        if len(found) != 1:
            raise ValueError("the sequences have unlike numbers of channels: %s" % ", ".join(map(str, sorted(found))))
        return pieces

    def fit(self, X: Any, y: Any) -> Any:
        """Trains on sequences and one label for each."""
        if y is None:
            raise ValueError("%s requires y to be passed, but the target y is None" % type(self).__name__)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        pieces = self._pieces(X, True)
        labels = self._encoded(y)
        check_consistent_length(pieces, labels)
        self.n_channels_in_ = pieces[0].shape[1]
        table = long_table(pieces)
        table[LABEL] = np.repeat(labels, [len(p) for p in pieces])
        self._train(table, len(pieces), id="id", time="t", target=LABEL)
        return self

    def _options(self) -> dict[str, Any]:
        return {"test": "0", **super()._options()}

    def _predict(self, X: Any) -> Forecast:
        self._ready()
        return self._forecast(long_table(self._pieces(X, False)))


class StrettoClassifier(Classes, _Sequences):
    """A class of each sequence.

    cell, hidden, layers, bidirectional     the recurrent layers
    epochs, steps, batch_size, lr, dropout  the training; None = what the library chooses
    validation       number or share ("20%") of sequences that decide when to stop
    n_members        networks with different seeds, averaged
    n_jobs, random_state, options     as those of StrettoForestClassifier; option "callback" hears of the training
    """

    _task = "classify"

    def __init__(self, *, cell: Optional[str] = None, hidden: Optional[int] = None, layers: Optional[int] = None,
                 bidirectional: Optional[bool] = None, epochs: Optional[float] = None, steps: Optional[int] = None,
                 batch_size: Optional[int] = None, lr: Optional[float] = None, dropout: Optional[float] = None,
                 validation: Optional[str] = None, n_members: Optional[int] = None, n_jobs: Optional[int] = None,
                 random_state: Seed = None, options: Options = None) -> None:
        self.cell, self.hidden, self.layers, self.bidirectional = cell, hidden, layers, bidirectional
        self.epochs, self.steps, self.batch_size, self.lr, self.dropout = epochs, steps, batch_size, lr, dropout
        self.validation, self.n_members, self.n_jobs = validation, n_members, n_jobs
        self.random_state, self.options = random_state, options


class StrettoRegressor(Numbers, _Sequences):
    """A number of each sequence; parameters as those of StrettoClassifier, and `loss`: "mse" or "mae"."""

    _task = "regress"

    def __init__(self, *, cell: Optional[str] = None, hidden: Optional[int] = None, layers: Optional[int] = None,
                 bidirectional: Optional[bool] = None, epochs: Optional[float] = None, steps: Optional[int] = None,
                 batch_size: Optional[int] = None, lr: Optional[float] = None, dropout: Optional[float] = None,
                 loss: Optional[str] = None, validation: Optional[str] = None, n_members: Optional[int] = None,
                 n_jobs: Optional[int] = None, random_state: Seed = None, options: Options = None) -> None:
        self.cell, self.hidden, self.layers, self.bidirectional = cell, hidden, layers, bidirectional
        self.epochs, self.steps, self.batch_size, self.lr, self.dropout = epochs, steps, batch_size, lr, dropout
        self.loss, self.validation, self.n_members, self.n_jobs = loss, validation, n_members, n_jobs
        self.random_state, self.options = random_state, options
