"""base.py - what the estimators share: parameters become options, classes become words of the label column, and back.

    fit       X, y -> columns by name -> stretto.train -> model_
    predict   X    -> the same columns -> model_.predict -> labels
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Optional

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..arrow_c import Array
from ..forecast import Forecast
from ..model import Model
from ..training import train

PLAIN = re.compile(r"\w[\w .+-]*")  # a word that a file holds without quotes
MISSING = {"na", "n/a", "nan", "null", "none"}


def seed_of(random_state: Any) -> int:
    """An int as it is; a seed drawn from a RandomState, or from that of NumPy for None."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(1, 2**31 - 1))


def threads_of(n_jobs: Any) -> int:
    """n_jobs as joblib reads it: None = 1, or what a parallel_config() says; -1 = all cores."""
    return int(effective_n_jobs(n_jobs))


class Estimator(BaseEstimator):
    """The base of all; a subclass names its task and the options of its parameters."""

    _task = ""
    _names: Mapping[str, str] = {}  # parameter: option, where the names differ
    _own = ("n_jobs", "random_state", "options")
    n_jobs: Optional[int]
    random_state: Any
    options: Optional[dict[str, Any]]
    n_features_in_: int
    model_: Model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._task != "kmeans"
        return tags

    def _options(self) -> dict[str, Any]:
        """The parameters as options of train(); those of None keep the default of the library."""
        given = {self._names.get(n, n): v for n, v in self.get_params(deep=False).items() if n not in self._own}
        return {**given, "seed": seed_of(self.random_state), "threads": threads_of(self.n_jobs), "task": self._task, **(self.options or {})}

    def _train(self, data: Mapping[str, Any], rows: int, **given: Any) -> None:
        if rows < 2:
            raise ValueError("%s needs 2 samples or more to train: n_samples=%d" % (type(self).__name__, rows))
        self.model_ = train(data, **given, **self._options())

    def _forecast(self, data: Mapping[str, Any]) -> Forecast:
        return self.model_.predict(data, threads=threads_of(self.n_jobs))

    def _predict(self, X: Any) -> Forecast:
        raise NotImplementedError

    def _encoded(self, y: Any) -> Array:
        raise NotImplementedError

    def _ready(self) -> None:
        check_is_fitted(self, "model_")


def vector_of(y: Any, dtype: Any) -> Array:
    """Labels as a vector without NaN and infinity."""
    check: Any = check_array
    return np.asarray(check(column_or_1d(y, warn=True), ensure_2d=False, dtype=dtype, input_name="y"))


def words_of(classes: Array) -> list[str]:
    """The classes as words of the label column: as they are printed, or by number where a file could not hold them so."""
    texts = [str(c) for c in classes]
    plain = all(PLAIN.fullmatch(t) and t == t.strip() and t.lower() not in MISSING for t in texts)
    return texts if plain and len(set(texts)) == len(texts) else ["class %d" % k for k in range(len(texts))]


class Classes(ClassifierMixin):
    """A classifier: `classes_` holds the classes in the order of the columns of predict_proba()."""

    classes_: Array
    _predict: Callable[[Any], Forecast]

    def _encoded(self, y: Any) -> Array:
        """The words of the labels; sets classes_."""
        y = vector_of(y, None)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("a classifier cannot train with one class: all labels are %r" % (self.classes_[0],))
        return np.asarray(words_of(self.classes_), object)[codes]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities [n][classes]."""
        found = self._predict(X)
        return np.column_stack([found["p_" + w] if "p_" + w in found else np.zeros(found.rows) for w in words_of(self.classes_)])

    def predict(self, X: Any) -> Array:
        """The class of each row of X."""
        found = self._predict(X)
        index = {w: k for k, w in enumerate(words_of(self.classes_))}
        return self.classes_[np.fromiter((index[w] for w in found["class"]), np.intp, found.rows)]


class Numbers(RegressorMixin):
    """A regressor: y is one number for each row."""

    _predict: Callable[[Any], Forecast]

    def _encoded(self, y: Any) -> Array:
        return vector_of(y, np.float64)

    def predict(self, X: Any) -> Array:
        """The number of each row of X."""
        return np.asarray(self._predict(X)["value"])


def target_name(names: "list[str]") -> str:
    """A name for the label column that no feature has."""
    name = "label"
    while name in names:
        name = "_" + name
    return name


def feature_names(estimator: Any) -> "list[str]":
    """The names of the columns of fit(): those of a data frame, or x0, x1, .."""
    found: Optional[Array] = getattr(estimator, "feature_names_in_", None)
    return [str(n) for n in found] if found is not None else ["x%d" % k for k in range(estimator.n_features_in_)]
