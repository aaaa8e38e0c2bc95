"""records.py - forests and k-means over tables of numbers, one record a row."""
from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import validate_data

from ..arrow_c import Array
from ..forecast import Forecast
from .base import Classes, Estimator, Numbers, feature_names, target_name

Seed = Union[int, np.random.RandomState, None]
Options = Optional[dict[str, Any]]


class _Forest(Estimator):
    """A random forest; missing cells are a value of their own."""

    _task = "forest"
    _names = {"n_estimators": "trees", "max_depth": "depth", "min_samples_leaf": "min_leaf", "max_features": "mtry"}

    def _options(self) -> dict[str, Any]:
        found = super()._options()
        if isinstance(found["mtry"], float):  # a share of the columns
            found["mtry"] = max(1, round(found["mtry"] * self.n_features_in_))
        return found

    def _table(self, X: Array) -> dict[str, Array]:
        return dict(zip(feature_names(self), np.asfortranarray(X).T))

    def fit(self, X: Any, y: Any) -> Any:
        """Trains on the rows of a table X and their labels y."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=isinstance(self, Numbers))
        label = target_name(feature_names(self))
        self._train({**self._table(X), label: self._encoded(y)}, len(X), target=label)
        facts = self.model_.info()
        self.feature_importances_ = np.array([facts["importance"].get(n, 0.0) for n in feature_names(self)])
        self.oob_score_ = facts["out_of_bag"].get("accuracy", facts["out_of_bag"].get("R2"))
        return self

    def _predict(self, X: Any) -> Forecast:
        self._ready()
        found: Any = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return self._forecast(self._table(found))


class StrettoForestClassifier(Classes, _Forest):
    """A random forest of classes.

    n_estimators, max_depth, min_samples_leaf     size of the forest
    max_features     columns drawn at a split: a number, a share, None = the root of all
    criterion        "gini", "entropy", "gain-ratio"
    class_weights    "balanced": a class weighs as much as any other
    n_jobs           threads, which do not change the result; None = 1, -1 = all
    random_state     None, a seed or a RandomState; an int is the --seed of the program
    options          a dict of further options of stretto.train()
    """

    def __init__(self, n_estimators: int = 100, *, criterion: str = "gini", max_depth: Optional[int] = None, min_samples_leaf: int = 1,
                 max_features: Union[int, float, None] = None, class_weights: Optional[str] = None, n_jobs: Optional[int] = None,
                 random_state: Seed = None, options: Options = None) -> None:
        self.n_estimators, self.criterion, self.max_depth, self.min_samples_leaf = n_estimators, criterion, max_depth, min_samples_leaf
        self.max_features, self.class_weights, self.n_jobs = max_features, class_weights, n_jobs
        self.random_state, self.options = random_state, options


class StrettoForestRegressor(Numbers, _Forest):
    """A random forest of numbers; parameters as those of StrettoForestClassifier, max_features=None = a third of the columns."""

    def __init__(self, n_estimators: int = 100, *, max_depth: Optional[int] = None, min_samples_leaf: int = 1,
                 max_features: Union[int, float, None] = None, n_jobs: Optional[int] = None, random_state: Seed = None,
                 options: Options = None) -> None:
        self.n_estimators, self.max_depth, self.min_samples_leaf = n_estimators, max_depth, min_samples_leaf
        self.max_features, self.n_jobs, self.random_state, self.options = max_features, n_jobs, random_state, options


class StrettoKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Clusters of the rows of a table by Lloyd's algorithm in float64.

    n_clusters       number of clusters
    init             "k-means++", "k-means||", "random"
    n_init           runs from different first centers; the least inertia wins
    max_iter         most iterations
    n_jobs, random_state, options     as those of StrettoForestClassifier
    """

    _task = "kmeans"
    _names = {"n_clusters": "clusters", "init": "seeding", "n_init": "restarts", "max_iter": "lloyd_iterations"}
    _inits = {"k-means++": "plusplus", "k-means||": "parallel"}

    def __init__(self, n_clusters: int = 8, *, init: str = "k-means++", n_init: int = 1, max_iter: int = 300,
                 n_jobs: Optional[int] = None, random_state: Seed = None, options: Options = None) -> None:
        self.n_clusters, self.init, self.n_init, self.max_iter = n_clusters, init, n_init, max_iter
        self.n_jobs, self.random_state, self.options = n_jobs, random_state, options

    def _options(self) -> dict[str, Any]:
        found = super()._options()
        found["seeding"] = self._inits.get(self.init, self.init)
        return found

    def _table(self, X: Array) -> dict[str, Array]:
        return dict(zip(feature_names(self), np.asfortranarray(X).T))

    def fit(self, X: Any, y: Any = None) -> "StrettoKMeans":
        """Finds the centers; y is not used."""
        X = validate_data(self, X, dtype=np.float64)
        self._train(self._table(X), len(X))
        facts, tensors = self.model_.info(), self.model_.weights
        self._spread = tensors["scale.spread"]
        self.cluster_centers_ = tensors["kmeans.center"] * self._spread + tensors["scale.center"]
        self.inertia_, self.n_iter_ = float(facts["inertia"]), int(facts["iterations"])
        self.labels_ = self._labels(X)
        self._n_features_out = len(self.cluster_centers_)
        return self

    def _labels(self, X: Array) -> Array:
        return np.asarray(self._forecast(self._table(X))["cluster"]).astype(np.int32) - 1

    def _checked(self, X: Any) -> Array:
        self._ready()
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def predict(self, X: Any) -> Array:
        """The cluster of each row, from 0."""
        return self._labels(self._checked(X))

    def transform(self, X: Any) -> Array:
        """The distances [n][clusters] of each row to the centers; with option standardize, in deviations of the columns."""
        middle = self.cluster_centers_.mean(axis=0)  # distances of points far from 0 would lose digits
        near = [(values - middle) / self._spread for values in (self._checked(X), self.cluster_centers_)]
        return np.asarray(euclidean_distances(*near))

    def score(self, X: Any, y: Any = None) -> float:
        """The negative inertia: minus the sum of squared distances to the nearest centers."""
        return -float(np.sum(self.transform(X).min(axis=1) ** 2))
