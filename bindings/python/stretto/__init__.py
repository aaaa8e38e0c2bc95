"""Stretto: forecasts of time series, and the learners around them.

    import stretto
    model = stretto.train(df, time="ds", id="unique_id", target="y", horizon=24)
    model.predict(df).plot()

`stretto.spark` trains on the executors of a Spark cluster.
"""
from .config import Option, options
from .errors import (ClusterError, DataError, DivergedError, FileError, ModelError, OutOfMemory, PlanError, StopTraining, StrettoError,
                     TooShortError, UsageError)
from .facts import build_info, sample
from .forecast import Forecast
from .jobs import Event
from .model import Model, from_bytes, load
from .plans import Findings, Plan, check, plan
from .rolling import Backtest, backtest
from .scores import Scores
from .training import resume, train
from .tuning import Tuning, tune

__version__ = "0.1.0"
__all__ = ["Backtest", "ClusterError", "DataError", "DivergedError", "Event", "FileError", "Findings", "Forecast", "Model",
           "ModelError", "Option", "OutOfMemory", "Plan", "PlanError", "Scores", "StopTraining", "StrettoError", "TooShortError",
           "Tuning", "UsageError", "backtest", "build_info", "check", "from_bytes", "load", "options", "plan", "resume", "sample", "train",
           "tune"]
