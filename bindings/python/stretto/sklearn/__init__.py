"""Estimators for scikit-learn (1.6 or later): pipelines, cross-validation and searches take them as they take its own.

    StrettoForestClassifier, StrettoForestRegressor, StrettoKMeans      X: a table of numbers, one record a row
    StrettoClassifier, StrettoRegressor                                 X: a sequence a row, or arrays [n][steps][channels]

`model_` is the stretto.Model: `model_.save(path)` writes the file that `stretto predict` reads.
"""
from .records import StrettoForestClassifier, StrettoForestRegressor, StrettoKMeans
from .sequences import StrettoClassifier, StrettoRegressor

__all__ = ["StrettoClassifier", "StrettoForestClassifier", "StrettoForestRegressor", "StrettoKMeans", "StrettoRegressor"]
