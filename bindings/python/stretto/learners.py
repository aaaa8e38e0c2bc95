"""learners.py - the learners beside the forecaster as small estimators: fit, predict, score, save, load.

    Forest, KMeans                        X: a table, one record a row
    SequenceClassifier, SequenceRegressor X: sequences [n][steps][channels], of any lengths
    CRF, Tagger, HMM                      X: sentences, lists of tokens; y: lists of tags

The constructor takes any option of `stretto train`.  `model_` is the Model, which forecasts from tables, files and threads.
"""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Optional, TypeVar

import numpy as np

from . import _lib
from .arrow_c import Array
from .columns import as_array
from .errors import UsageError
from .frames import Data
from .handles import open_for
from .model import Model, load
from .config import PathLike
from .training import train

Self = TypeVar("Self", bound="Learner")
SelfTags = TypeVar("SelfTags", bound="_Tags")
LABEL = "label"


class Learner:
    """What all learners share."""

    task: ClassVar[str] = ""
    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.model_: Optional[Model] = None

    @property
    def model(self) -> Model:
        """The trained model."""
        if self.model_ is None:
            raise UsageError("this %s is not trained yet" % type(self).__name__, "E105", "", "call fit(X, y) first")
        return self.model_

    def _train(self: Self, data: Data, **options: Any) -> Self:
        self.model_ = train(data, task=self.task, **{**self.defaults, **options, **self.options})
        return self

    def save(self, path: PathLike) -> None:
        """Writes the model file."""
        self.model.save(path)

    @classmethod
    def load(cls: type[Self], path: PathLike) -> Self:
        """An estimator with the model of a file."""
        found = cls()
        found.model_ = load(path)
        if found.model_.option("task") != cls.task:
            raise UsageError("%s holds a model of the task %s" % (os.fspath(path), found.model_.option("task")), "E106", "path",
                             "stretto.load(path)")
        return found

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % item for item in self.options.items()))


# ------------------------------------------------------------------------------------------ records --------------------------

def _columns(X: Data) -> dict[str, Any]:
    """A table as columns by name; those of a matrix are x0, x1, .."""
    if isinstance(X, Mapping):
        return dict(X)
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    if names is not None and not isinstance(X, np.ndarray):
        return {str(n): X[n] for n in names}
    values = as_array(X)
    if values.dtype.names:
        return {n: values[n] for n in values.dtype.names}
    if values.ndim != 2:
        values = np.asarray(X if not isinstance(X, np.ndarray) else X.reshape(len(X), -1))
    return {"x%d" % k: values[:, k] for k in range(values.shape[1])}


def _accuracy(found: Array, y: Any) -> float:
    return float(np.mean(np.asarray(found).astype(str) == np.asarray(list(y)).astype(str)))


def _r2(found: Array, y: Any) -> float:
    truth = np.asarray(y, np.float64)
    return float(1 - np.sum((truth - found) ** 2) / np.sum((truth - truth.mean()) ** 2))


class Forest(Learner):
    """A random forest of classes (y of texts, bools or categories) or of numbers."""

    task = "forest"

    def fit(self, X: Data, y: Any) -> "Forest":
        """Trains on the rows of a table X and their labels y."""
        labels = as_array(y)
        if labels.dtype.kind in "bOUS":
            labels = labels.astype(str)
        return self._train({**_columns(X), LABEL: labels}, target=LABEL)

    @property
    def classes_(self) -> list[str]:
        """The classes, in the order of the columns of predict_proba(); [] for numbers."""
        return self._classes

    _classes: list[str] = []

    def _predict(self, X: Data) -> Any:
        found = self.model.predict(_columns(X))
        self._classes = [n[2:] for n in found if n.startswith("p_")]
        return found

    def predict(self, X: Data) -> Array:
        """The class (text) or the number of each row."""
        found = self._predict(X)
        return np.asarray(found["class"] if "class" in found else found["value"])

    def predict_proba(self, X: Data) -> Array:
        """Probabilities [rows][classes]."""
        found = self._predict(X)
        return np.column_stack([found["p_" + c] for c in self._classes])

    def score(self, X: Data, y: Any) -> float:
        """Accuracy of classes, R2 of numbers."""
        found = self.predict(X)
        return _accuracy(found, y) if found.dtype.kind == "O" else _r2(found, y)


class KMeans(Learner):
    """Clusters of the rows of a table of numbers."""

    task = "kmeans"

    def fit(self, X: Data, y: Any = None) -> "KMeans":
        """Finds the centers; y is not used."""
        return self._train(_columns(X))

    def predict(self, X: Data) -> Array:
        """The cluster of each row, from 0."""
        return np.asarray(self.model.predict(_columns(X))["cluster"]).astype(np.int64) - 1

    def transform(self, X: Data) -> Array:
        """The distance of each row to the center of its cluster."""
        return np.asarray(self.model.predict(_columns(X))["distance"])

    def score(self, X: Data, y: Any = None) -> float:
        """The negative inertia: minus the sum of squared distances."""
        return -float(np.sum(self.transform(X) ** 2))


# ------------------------------------------------------------------------------------------ sequences ------------------------

def _long(X: Any) -> dict[str, Array]:
    """Sequences as a long table: id, t, and a column for each channel."""
    pieces = [np.asarray(x, np.float64).reshape(len(x), -1) for x in X]
    lengths = [len(p) for p in pieces]
    values = np.concatenate(pieces) if pieces else np.empty((0, 1))
    table = {"id": np.repeat(np.arange(len(pieces)), lengths), "t": np.concatenate([np.arange(n) for n in lengths])}
    return {**table, **{"c%d" % k: values[:, k] for k in range(values.shape[1])}}


class _Sequences(Learner):
    def _fit(self: Self, X: Any, labels: Array) -> Self:
        table = _long(X)
        table[LABEL] = np.repeat(labels, [len(x) for x in X])
        return self._train(table, id="id", time="t", target=LABEL)


class SequenceClassifier(_Sequences):
    """A class of each sequence, by recurrent layers."""

    task = "classify"

    def fit(self, X: Any, y: Any) -> "SequenceClassifier":
        """X [n][steps][channels] or a list of [steps][channels]; y: a class for each sequence."""
        return self._fit(X, np.asarray(list(y)).astype(str))

    def predict(self, X: Any) -> Array:
        """The class (text) of each sequence."""
        return np.asarray(self.model.predict(_long(X))["class"])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities [n][classes], classes in the order of their names."""
        found = self.model.predict(_long(X))
        return np.column_stack([found[n] for n in found if n.startswith("p_")])

    def score(self, X: Any, y: Any) -> float:
        """Accuracy."""
        return _accuracy(self.predict(X), y)


class SequenceRegressor(_Sequences):
    """A number of each sequence, by recurrent layers."""

    task = "regress"

    def fit(self, X: Any, y: Any) -> "SequenceRegressor":
        """X [n][steps][channels] or a list of [steps][channels]; y: a number for each sequence."""
        return self._fit(X, np.asarray(y, np.float64))

    def predict(self, X: Any) -> Array:
        """The number of each sequence."""
        return np.asarray(self.model.predict(_long(X))["value"])

    def score(self, X: Any, y: Any) -> float:
        """R2."""
        return _r2(self.predict(X), y)


# ------------------------------------------------------------------------------------------ sentences ------------------------

Token = Any  # a text; a list of texts; a dict of features, as of sklearn-crfsuite
Sentences = Iterable[Sequence[Token]]


def _item(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:").replace("\t", " ").replace("\n", " ")


def _items(token: Mapping[str, Any]) -> list[str]:
    """Features of a token as items: a text feature becomes name=value, a true one its name; numbers other than 1 are refused."""
    found = []
    for name, value in token.items():
        if isinstance(value, str):
            found.append("%s=%s" % (name, value))
        elif value is True or value == 1:
            found.append(str(name))
        elif value is not False and value is not None:
            raise UsageError("the feature \"%s\" has the weight %r: features hold or do not" % (name, value), "E204", "X",
                             "a text, True or False")
    return found


def _write(f: Any, X: Sentences, y: Optional[Iterable[Sequence[str]]], items: bool, dummy: str) -> None:
    """Sentences in the formats that the library reads: columns of words with the tag last, or CRFsuite's items with it first."""
    tags = None if y is None else iter(y)
    for sentence in X:
        labels = next(tags) if tags is not None else [dummy] * len(sentence)
        for token, label in zip(sentence, labels):
            if items:
                f.write("\t".join([label, *map(_item, _items(token))]) + "\n")
            else:
                words = [token] if isinstance(token, str) else list(token)
                f.write(" ".join(str(w).replace(" ", "_") for w in [*words, *([label] if tags is not None else [])]) + "\n")
        f.write("\n")


class _Tags(Learner):
    """Tags of the tokens of sentences."""

    column = -1  # of the tag in the lines of a prediction

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.items = False
        self.dummy = "O"

    def fit(self: Self, X: Sentences, y: Optional[Iterable[Sequence[str]]] = None) -> Self:
        """X: sentences of texts, or (CRF) of dicts of features; y: a tag for each token."""
        raise NotImplementedError

    def _fit(self, X: Sentences, y: Optional[Iterable[Sequence[str]]]) -> None:
        sentences = [list(s) for s in X]
        tags = None if y is None else [list(t) for t in y]
        first = next((s[0] for s in sentences if s), "")
        self.items = isinstance(first, Mapping)
        self.dummy = tags[0][0] if tags and tags[0] else "O"
        with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
            path = os.path.join(folder, "sentences.txt")
            with open(path, "w", encoding="utf-8") as f:
                _write(f, sentences, tags, self.items, self.dummy)
            self._train(path, tokens="crfsuite" if self.items else None)

    @classmethod
    def load(cls: type[SelfTags], path: PathLike) -> SelfTags:
        """An estimator with the model of a file."""
        found = super().load(path)
        found.items = found.model.option("tokens") == "crfsuite"
        return found

    def predict(self, X: Sentences) -> list[list[str]]:
        """The tags of each sentence."""
        sentences = [list(s) for s in X]
        tags = iter(self._tags(self._predicted(sentences, "predict_file", 0)))
        return [[next(tags) for _ in sentence] for sentence in sentences]

    def _predicted(self, sentences: list[list[Any]], name: str, *arguments: Any) -> str:
        """What stretto_NAME writes of the sentences: a line for each token."""
        with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
            path = os.path.join(folder, "sentences.txt")
            with open(path, "w", encoding="utf-8") as f:
                _write(f, sentences, None, self.items, self.dummy)
            with self.model._handle({}) as handle, open_for(handle, os.fsencode(path)) as data:
                return _lib.text(name, handle, data, b"-", *arguments)

    def predict_single(self, x: Sequence[Any]) -> list[str]:
        """The tags of one sentence."""
        return self.predict([x])[0]

    def _tags(self, text: str) -> list[str]:
        return [line.split()[-1] for line in text.splitlines() if line]

    def score(self, X: Sentences, y: Iterable[Sequence[str]]) -> float:
        """The share of tokens with the right tag."""
        found = [t for s in self.predict(X) for t in s]
        return _accuracy(np.asarray(found, object), [t for s in y for t in s])


class CRF(_Tags):
    """A conditional random field over sentences of words, or of dicts of features."""

    task = "crf"

    def fit(self, X: Sentences, y: Optional[Iterable[Sequence[str]]] = None) -> "CRF":
        """X: sentences of texts or dicts of features; y: a tag for each token."""
        self._fit(X, y)
        return self

    def predict_marginals(self, X: Sentences) -> list[list[dict[str, float]]]:
        """For each token of each sentence the probability of every tag, given the sentence."""
        sentences = [list(s) for s in X]
        lines = iter([line.split() for line in self._predicted(sentences, "marginals_file").splitlines() if line])
        tags = self.classes_
        return [[dict(zip(tags, (float(word.rpartition("/")[2]) for word in next(lines)[-len(tags):]))) for _ in sentence]
                for sentence in sentences]

    def predict_marginals_single(self, x: Sequence[Any]) -> list[dict[str, float]]:
        """The same for one sentence."""
        return self.predict_marginals([x])[0]

    @property
    def classes_(self) -> list[str]:
        """The tags that the model knows."""
        return str(self.model.info()["label_names"]).split()


class Tagger(_Tags):
    """Tags of words by an LSTM in both directions and a CRF."""

    task = "tagger"

    def fit(self, X: Sentences, y: Optional[Iterable[Sequence[str]]] = None) -> "Tagger":
        """X: sentences of texts; y: a tag for each token."""
        self._fit(X, y)
        return self


class HMM(_Tags):
    """A hidden Markov model: with tags they are counted, without them `states` hidden states are learnt."""

    task = "hmm"

    def fit(self, X: Sentences, y: Optional[Iterable[Sequence[str]]] = None) -> "HMM":
        """X: sentences of texts; y: a tag for each token, or None with option states."""
        self._fit(X, y)
        return self

    def _tags(self, text: str) -> list[str]:
        return [line.rsplit(",", 1)[1] for line in text.splitlines()[1:] if line]
