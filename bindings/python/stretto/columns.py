"""columns.py - tables of Python as columns of Arrow: pandas, NumPy, dicts, lists of dicts, tensors.

float64 columns whose cells lie side by side are not copied; neither are datetime64, integers and codes of categories.  What
cannot be read raises one DataError that names the column and the remedy.
"""
from __future__ import annotations

import datetime
import decimal
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Optional

import numpy as np

from .arrow_c import Array, Column, coded_column, plain_column
from .errors import DataError


def bad_column(name: str, text: str, fix: str) -> DataError:
    return DataError("column \"%s\" %s" % (name, text), "E214", "data frame", fix)


def check_names(names: Iterable[Any]) -> list[str]:
    """Column names as text; two equal ones are refused."""
    texts = [" ".join(map(str, n)).strip() if isinstance(n, tuple) else str(n) for n in names]
    for name in texts:
        if texts.count(name) > 1:
            raise DataError("%d columns are named \"%s\"" % (texts.count(name), name), "E202", "data frame",
                            "df = df.loc[:, ~df.columns.duplicated()]   or   rename one of them")
    return texts


def _is_missing(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def _kind_of(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, np.bool_)):
        return "truth values"
    if isinstance(value, (int, float, np.number, decimal.Decimal)):
        return "numbers"
    if isinstance(value, (datetime.datetime, datetime.date, np.datetime64)):
        return "times"
    return type(value).__name__


def _times(name: str, values: Array, missing: Array) -> Column:
    """datetime, date and datetime64 objects; all have one time zone, or none has one."""
    zones = {str(v.tzinfo) if getattr(v, "tzinfo", None) else "" for v in values[~missing]}
    if len(zones) > 1:
        known = sorted(zones - {""}) or ["UTC"]
        first = "the same zone for all of them" if "" in zones else \
            "df[\"%s\"] = pd.to_datetime(df[\"%s\"], utc=True).dt.tz_convert(\"%s\")" % (name, name, known[0])
        raise bad_column(name, "mixes %s" % ("times with and without a zone" if "" in zones else "the time zones " + ", ".join(known)), first)
    zone = zones.pop() if zones else ""
    out = np.full(len(values), np.datetime64("NaT"), "datetime64[us]")
    for k in np.flatnonzero(~missing):
        v = values[k]
        out[k] = np.datetime64(v.astimezone(datetime.timezone.utc).replace(tzinfo=None) if zone else v, "us")
    column = plain_column(name, out, zone)
    assert column is not None
    return column


def _words(name: str, values: Array, missing: Array) -> Column:
    codes = np.full(len(values), -1, np.int32)
    known: dict[str, int] = {}
    for k in np.flatnonzero(~missing):
        codes[k] = known.setdefault(str(values[k]), len(known))
    return coded_column(name, codes, list(known))


def object_column(name: str, values: Array) -> Column:
    """A column of Python objects of one kind."""
    missing = np.fromiter((_is_missing(v) for v in values), bool, len(values))
    kinds = {_kind_of(v) for v in values[~missing]}
    if kinds <= {"numbers"} or kinds == {"truth values"}:
        out = np.full(len(values), np.nan)
        out[~missing] = [float(v) for v in values[~missing]]
        column = plain_column(name, out)
        assert column is not None
        return column
    if kinds == {"text"}:
        return _words(name, values, missing)
    if kinds == {"times"}:
        return _times(name, values, missing)
    if len(kinds) > 1:
        raise bad_column(name, "mixes %s" % " and ".join(sorted(kinds)),
                         "df[\"%s\"] = pd.to_numeric(df[\"%s\"], errors=\"coerce\")   or, for words,   df[\"%s\"].astype(str)" % ((name,) * 3))
    raise bad_column(name, "holds objects of the type %s" % kinds.pop(), "df = df.drop(columns=[\"%s\"])" % name)


def array_column(name: str, values: Array, missing: Optional[Array] = None, zone: str = "") -> Column:
    """A column from a NumPy array of one dimension."""
    if values.ndim != 1:
        raise bad_column(name, "has the shape %s; a column has one dimension" % (values.shape,), "one column for each of its values")
    if values.dtype.kind in "US":
        words, codes = np.unique(values.astype(str), return_inverse=True)
        return coded_column(name, codes, [str(w) for w in words])
    column = plain_column(name, values, zone, missing)
    if column is None and values.dtype.kind != "O":
        raise bad_column(name, "has the type %s" % values.dtype, "df = df.drop(columns=[\"%s\"])   or convert it to numbers" % name)
    return column or object_column(name, values)


def as_array(values: Any) -> Array:
    """Anything like an array; tensors by DLPack."""
    if isinstance(values, np.ma.MaskedArray):
        numbers = values.dtype.kind in "fiub"
        cells: Array = np.array(values.data, np.float64 if numbers else object)
        cells[np.ma.getmaskarray(values)] = np.nan if numbers else None
        return cells
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array_interface__"):
        if getattr(values, "requires_grad", False):
            values = values.detach()
        return np.from_dlpack(values.cpu() if hasattr(values, "cpu") else values)
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    listed = list(values)
    kinds = {type(v) for v in listed}
    return np.asarray(listed) if len(kinds) == 1 and kinds <= {float, int, str, bool} else np.array(listed, object)


def _from_pandas_array(name: str, series: Any) -> Column:
    """A column of pandas, by its dtype: categories, nullable types, periods, time zones, text, NumPy."""
    dtype = series.dtype
    if dtype.__class__.__name__ == "SparseDtype":
        return _from_pandas_array(name, series.sparse.to_dense())
    if dtype.__class__.__name__ == "CategoricalDtype":
        return coded_column(name, np.asarray(series.cat.codes), [str(c) for c in dtype.categories])
    if dtype.__class__.__name__ == "PeriodDtype":
        return _from_pandas_array(name, series.dt.to_timestamp())
    if dtype.__class__.__name__ == "DatetimeTZDtype":
        return array_column(name, series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), zone=str(dtype.tz))
    if isinstance(dtype, np.dtype):
        return array_column(name, series.to_numpy()) if dtype.kind != "O" else _from_objects(name, series)
    missing = series.isna().to_numpy()
    if getattr(dtype, "kind", "O") == "b":
        return array_column(name, series.to_numpy(dtype=bool, na_value=False), missing)
    if getattr(dtype, "kind", "O") in "iuf":
        return array_column(name, series.to_numpy(dtype="%s%d" % (dtype.kind, dtype.itemsize), na_value=0), missing)
    return _from_objects(name, series) if getattr(dtype, "kind", "O") != "M" else array_column(name, series.to_numpy("datetime64[ns]"))


def _from_objects(name: str, series: Any) -> Column:
    """Texts are found once each, which is quick for names that repeat; other objects are looked at one by one."""
    kind: str = series.array._pa_array.type.__str__() if hasattr(series.array, "_pa_array") else ""
    if kind in ("string", "large_string") or _inferred(series) == "string":
        codes, words = series.factorize()
        return coded_column(name, np.asarray(codes), [str(w) for w in words])
    return object_column(name, series.to_numpy(dtype=object))


def _inferred(series: Any) -> str:
    import pandas
    return str(pandas.api.types.infer_dtype(series, skipna=True))


def _index_columns(frame: Any, names: set[str]) -> list[tuple[str, Any]]:
    """Levels of the index that are data: times, and what has a name."""
    index, found = frame.index, []
    for k in range(index.nlevels):
        values = index.get_level_values(k)
        name = index.names[k]
        times = values.dtype.__class__.__name__ in ("DatetimeTZDtype", "PeriodDtype") or getattr(values.dtype, "kind", "") == "M"
        if name is None and not times:
            continue
        text = str(name) if name is not None else "time" if "time" not in names else "index"
        if text not in names:
            found.append((text, values.to_series(index=range(len(values)))))
    return found


def from_pandas(frame: Any) -> tuple[list[Column], int]:
    if hasattr(frame, "to_frame"):
        frame = frame.to_frame(frame.name if frame.name is not None else "y")
    names = check_names(frame.columns)
    columns = [_from_pandas_array(n, s) for n, s in _index_columns(frame, set(names))]
    return columns + [_from_pandas_array(n, frame.iloc[:, k]) for k, n in enumerate(names)], len(frame)


def from_mapping(given: Mapping[Any, Any]) -> tuple[list[Column], int]:
    names = check_names(given)
    columns = [array_column(n, as_array(v)) for n, v in zip(names, given.values())]
    sizes = {c.length for c in columns}
    if len(sizes) > 1:
        raise DataError("the columns have unlike lengths: " + ", ".join("%s %d" % (c.name, c.length) for c in columns), "E203",
                        "data frame", "one value of every column for each row")
    return columns, sizes.pop() if sizes else 0


def from_rows(rows: list[Any]) -> tuple[list[Column], int]:
    """A list of dicts, or of numbers."""
    if rows and isinstance(rows[0], Mapping):
        names = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
        return from_mapping({n: [r.get(n) for r in rows] for n in names})
    return from_array(as_array(rows) if rows and not isinstance(rows[0], (list, tuple)) else np.asarray(rows))


def from_array(values: Array) -> tuple[list[Column], int]:
    """A structured array, a vector (column "y") or a matrix (columns "x0", "x1", ..)."""
    if values.dtype.names:
        return from_mapping({n: values[n] for n in values.dtype.names})
    if values.ndim == 1:
        return from_mapping({"y": values})
    if values.ndim != 2:
        raise DataError("an array of %d dimensions is no table" % values.ndim, "E202", "data frame", "one row for each record")
    return from_mapping({"x%d" % k: values[:, k] for k in range(values.shape[1])})


def columns_of(data: Any) -> tuple[list[Column], int]:
    """Columns and number of rows of a table; TypeError for what is none."""
    if hasattr(data, "collect") and type(data).__name__ == "LazyFrame":
        raise TypeError("a LazyFrame has no rows yet: give its .collect()")
    try:
        return _columns_of(data)
    except UnicodeError as e:
        raise DataError("a name or a cell is no text of Unicode: %s" % e, "E202", "data frame", "write texts as str, in UTF-8") from None
    except OverflowError as e:
        raise DataError("a cell is too large for a number: %s" % e, "E208", "data frame", "smaller numbers, or a missing cell") from None


def _columns_of(data: Any) -> tuple[list[Column], int]:
    if type(data).__module__.split(".")[0] == "pandas":
        return from_pandas(data)
    if isinstance(data, Mapping):
        return from_mapping(data)
    if isinstance(data, (list, tuple)):
        return from_rows(list(data))
    if isinstance(data, np.ndarray) or hasattr(data, "__dlpack__") or hasattr(data, "__array__"):
        return from_array(as_array(data))
    raise TypeError("data of the type %s: a path, or a table of pandas, polars, Arrow, NumPy or dicts is wanted" % type(data).__name__)
