"""frames.py - any table of Python as a path of stretto_data_open.

    with opened(df) as path:        "memory:1" for a table in memory, the path itself for a path
        stretto_data_open(config, path, &data)

Tables with __arrow_c_stream__ (polars, pyarrow, duckdb) hand over their own stream; those of pandas, NumPy and plain Python become
one in columns.py.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Optional

import numpy as np

from . import _lib
from .arrow_c import stream_in_capsule, stream_of
from .columns import bad_column, check_names, columns_of
from .config import to_text

Data = Any  # a path, or a table: pandas, polars, pyarrow, NumPy, dict of arrays, list of dicts, tensor
LABEL = b"data frame"


def is_path(data: Data) -> bool:
    return isinstance(data, (str, os.PathLike))


def _names_of(data: Data) -> Optional[list[str]]:
    names = getattr(data, "column_names", None)
    return check_names(names) if isinstance(names, list) else None


def is_pandas(data: Data) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def check_ids(data: Data, ids: Iterable[str]) -> None:
    """A missing name of a series is refused with its row."""
    for name in ids:
        if not is_pandas(data) or name not in data.columns:
            continue
        missing = data[name].isna().to_numpy()
        if missing.any():
            raise bad_column(name, "names the series, and is missing in %d rows, first in row %d (from 1)" % (missing.sum(), np.argmax(missing) + 1),
                             "df = df.dropna(subset=[\"%s\"])" % name)


def zone_of_times(data: Data) -> str:
    """The name of the time zone of a table: the library knows its offset alone; "" = none, or several."""
    if is_pandas(data):
        kinds = [level.dtype for level in (data.index.levels if data.index.nlevels > 1 else [data.index])]
        kinds += list(getattr(data, "dtypes", [])) if hasattr(data, "columns") else [data.dtype]
    else:
        schema: Any = getattr(data, "schema", None)
        types = schema.values() if hasattr(schema, "values") else getattr(schema, "types", ())
        kinds = list(types) if not callable(types) else []
    zones = {str(z) for z in (getattr(k, "tz", None) or getattr(k, "time_zone", None) for k in kinds) if z}
    return zones.pop() if len(zones) == 1 else ""


class Frame:
    """A table in memory; owns a stretto_frame.  Close it after the data handles that were opened from it."""

    def __init__(self, data: Data) -> None:
        self.handle = 0
        self.kept: Any = data
        if hasattr(data, "__arrow_c_stream__") and not is_pandas(data):
            _names_of(data)
            self.kept = capsule = data.__arrow_c_stream__()
            self.handle = _lib.new("frame_new", stream_in_capsule(capsule), LABEL)
        else:
            columns, rows = columns_of(data)
            stream = stream_of(columns, rows)
            self.handle = _lib.new("frame_new", ctypes.addressof(stream), LABEL)
        self.path = _lib.string("frame_path", self.handle)

    def close(self) -> None:
        handle, self.handle, self.kept = self.handle, 0, None
        _lib.library().stretto_frame_free(handle)


@contextmanager
def opened(data: Data, ids: Any = None) -> Iterator[bytes]:
    """The path under which the library reads this table; `ids`: the columns of option id."""
    if is_path(data):
        yield os.fsencode(data)
        return
    if ids is not None:
        check_ids(data, to_text("id", ids).split(","))
    frame = Frame(data)
    try:
        yield frame.path.encode()
    finally:
        frame.close()
