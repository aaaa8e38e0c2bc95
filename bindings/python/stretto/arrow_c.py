"""arrow_c.py - NumPy buffers in the Arrow C data and stream interface, without copies where the layout allows.

    Column(name, "g", buffers=[None, values])  ..  ->  ArrowArrayStream with one batch

A struct that the library has consumed keeps its NumPy buffers alive until the library calls its release callback; `held` maps
the address that the struct has at that time (its `private_data`) to what has to live.
"""
from __future__ import annotations

import _thread
import ctypes
import itertools
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NULLABLE = 2  # ARROW_FLAG_NULLABLE


class Schema(ctypes.Structure):
    """struct ArrowSchema."""


class ArrayC(ctypes.Structure):
    """struct ArrowArray."""


class Stream(ctypes.Structure):
    """struct ArrowArrayStream."""


RELEASE_SCHEMA = CFUNCTYPE(None, POINTER(Schema))
RELEASE_ARRAY = CFUNCTYPE(None, POINTER(ArrayC))
RELEASE_STREAM = CFUNCTYPE(None, POINTER(Stream))
GET_SCHEMA = CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))
GET_NEXT = CFUNCTYPE(c_int, POINTER(Stream), POINTER(ArrayC))
LAST_ERROR = CFUNCTYPE(c_void_p, POINTER(Stream))

Schema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64), ("n_children", c_int64),
                   ("children", POINTER(POINTER(Schema))), ("dictionary", POINTER(Schema)), ("release", RELEASE_SCHEMA),
                   ("private_data", c_void_p)]
ArrayC._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                   ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(ArrayC))),
                   ("dictionary", POINTER(ArrayC)), ("release", RELEASE_ARRAY), ("private_data", c_void_p)]
Stream._fields_ = [("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", LAST_ERROR), ("release", RELEASE_STREAM),
                   ("private_data", c_void_p)]


@dataclass
class Column:
    """A column: `format` of the C data interface, its buffers (None = no bitmap) and, for categories, its words."""

    name: str
    format: str
    length: int
    buffers: list[Optional[Array]]
    nulls: int = 0
    words: Optional["Column"] = None


held: dict[int, Any] = {}
_numbers = itertools.count(1)


def _hold(what: Any) -> int:
    number = next(_numbers)
    held[number] = what
    return number


def _whole(body: Any) -> Any:
    """A callback that a Ctrl-C does not cut off: it runs again (it may), and the interrupt comes after the call of the library."""
    def call(*given: Any) -> Any:
        interrupted = False
        while True:
            try:
                result = body(*given)
                break
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            _thread.interrupt_main()
        return result
    return call


def _release(at: Any) -> None:
    """Marks a struct as released, after its children, and lets go of what it held."""
    one = at.contents
    for k in range(getattr(one, "n_children", 0)):
        child = one.children[k].contents
        if child.release:
            child.release(one.children[k])
    if getattr(one, "dictionary", None) and one.dictionary.contents.release:
        one.dictionary.contents.release(one.dictionary)
    number = one.private_data
    one.release = type(one.release)()
    held.pop(number, None)


release_schema = RELEASE_SCHEMA(_whole(_release))
release_array = RELEASE_ARRAY(_whole(_release))
release_stream = RELEASE_STREAM(_whole(_release))


def _pointers(kind: Any, structs: list[Any]) -> Any:
    return (POINTER(kind) * max(len(structs), 1))(*[ctypes.pointer(s) for s in structs])


def fill_schema(out: Any, column: Column, children: Optional[list[Column]] = None) -> None:
    """Writes the schema of a column, or of a record batch of `children`, into `out`."""
    inner = [Schema() for _ in children or []]
    for struct, child in zip(inner, children or []):
        fill_schema(struct, child)
    words = Schema() if column.words else None
    if words is not None and column.words:
        fill_schema(words, column.words)
    texts = (column.format.encode(), column.name.encode())
    pointers = _pointers(Schema, inner)
    out.format, out.name = texts
    out.metadata, out.flags, out.n_children = None, NULLABLE, len(inner)
    out.children = ctypes.cast(pointers, POINTER(POINTER(Schema))) if inner else None
    out.dictionary = ctypes.pointer(words) if words is not None else None
    out.release = release_schema
    out.private_data = _hold((inner, words, texts, pointers))


def fill_array(out: Any, column: Column, children: Optional[list[Column]] = None) -> None:
    """Writes the cells of a column, or of a record batch of `children`, into `out`."""
    inner = [ArrayC() for _ in children or []]
    for struct, child in zip(inner, children or []):
        fill_array(struct, child)
    words = ArrayC() if column.words else None
    if words is not None and column.words:
        fill_array(words, column.words)
    pointers = _pointers(ArrayC, inner)
    addresses = (c_void_p * len(column.buffers))(*[None if b is None else b.ctypes.data for b in column.buffers])
    out.length, out.null_count, out.offset = column.length, column.nulls, 0
    out.n_buffers, out.n_children = len(column.buffers), len(inner)
    out.buffers = ctypes.cast(addresses, POINTER(c_void_p))
    out.children = ctypes.cast(pointers, POINTER(POINTER(ArrayC))) if inner else None
    out.dictionary = ctypes.pointer(words) if words is not None else None
    out.release = release_array
    out.private_data = _hold((inner, words, addresses, pointers, column.buffers))


@dataclass
class _Source:
    """What get_schema and get_next of one stream read."""

    columns: list[Column]
    rows: int
    given: bool = False
    struct: Column = field(default_factory=lambda: Column("", "+s", 0, [None]))


def _get_schema(stream: Any, out: Any) -> int:
    source: _Source = held[stream.contents.private_data]
    fill_schema(out.contents, source.struct, source.columns)
    return 0


def _get_next(stream: Any, out: Any) -> int:
    source: _Source = held[stream.contents.private_data]
    if source.given:
        out.contents.release = RELEASE_ARRAY()
        return 0
    fill_array(out.contents, Column("", "+s", source.rows, [None]), source.columns)
    source.given = True
    return 0


_get_schema_c = GET_SCHEMA(_whole(_get_schema))
_get_next_c = GET_NEXT(_whole(_get_next))
_last_error_c = LAST_ERROR(lambda _stream: None)


def stream_of(columns: list[Column], rows: int) -> Any:
    """A stream with one batch of these columns; the consumer releases it."""
    stream = Stream()
    stream.get_schema, stream.get_next, stream.get_last_error = _get_schema_c, _get_next_c, _last_error_c
    stream.release = release_stream
    stream.private_data = _hold(_Source(columns, rows))
    return stream


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c_void_p, [ctypes.py_object, c_char_p]


def stream_in_capsule(capsule: object) -> int:
    """Address of the stream in a capsule of __arrow_c_stream__."""
    return int(_pointer_of(capsule, b"arrow_array_stream"))


# ------------------------------------------------------------------------------------------ NumPy <-> buffers ----------------

PLAIN = {"float64": "g", "float32": "f", "int8": "c", "int16": "s", "int32": "i", "int64": "l", "uint8": "C", "uint16": "S",
         "uint32": "I", "uint64": "L"}
UNITS = {"s": "tss:", "ms": "tsm:", "us": "tsu:", "ns": "tsn:"}


def bitmap(missing: Array) -> tuple[Optional[Array], int]:
    """The validity bitmap of a mask of missing cells, and their number."""
    count = int(np.count_nonzero(missing))
    return (np.packbits(~missing, bitorder="little"), count) if count else (None, 0)


def text_column(name: str, words: list[str]) -> Column:
    """A column of UTF-8 texts."""
    pieces = [w.encode("utf-8") for w in words]
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(p) for p in pieces], out=offsets[1:])
    data = np.frombuffer(b"".join(pieces) or b"\0", np.uint8)
    return Column(name, "U", len(words), [None, offsets, data])


def coded_column(name: str, codes: Array, words: list[str]) -> Column:
    """A column of categories: codes index words, -1 is missing."""
    valid, nulls = bitmap(codes < 0)
    kept = np.ascontiguousarray(codes if nulls == 0 else np.where(codes < 0, 0, codes), dtype=np.int32)
    return Column(name, "i", len(kept), [valid, kept], nulls, text_column("", words))


def plain_column(name: str, values: Array, zone: str = "", missing: Optional[Array] = None) -> Optional[Column]:
    """A column of numbers, truth values or times; None for other types."""
    valid, nulls = bitmap(missing) if missing is not None else (None, 0)
    kind = values.dtype.kind
    if kind == "M":
        unit, several = np.datetime_data(values.dtype)
        if unit not in UNITS or several != 1 or not values.dtype.isnative:  # days, 25 s, big-endian
            values = values.astype("datetime64[%s]" % (unit if unit in UNITS else "s"))
        absent = np.isnat(values)
        valid, nulls = bitmap(absent if missing is None else absent | missing)
        cells = np.ascontiguousarray(values).view(np.int64)
        return Column(name, UNITS[np.datetime_data(values.dtype)[0]] + zone, len(cells), [valid, cells], nulls)
    if kind == "b":
        return Column(name, "b", len(values), [valid, np.packbits(values, bitorder="little")], nulls)
    if kind == "f" and values.dtype.itemsize not in (4, 8):
        values = values.astype(np.float64)
    if kind not in "fiu":
        return None
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    return Column(name, PLAIN[values.dtype.name], len(values), [valid, values], nulls)


def numbers_at(address: int, dtype: str, count: int) -> Array:
    """A copy of `count` values at an address."""
    if count == 0 or not address:
        return np.empty(0, dtype)
    kind = np.dtype(dtype)
    cells: Array = np.empty(count, kind)
    ctypes.memmove(cells.ctypes.data, address, cells.nbytes)
    return cells


def _texts_of(array: Any, dtype: str) -> Array:
    offsets = numbers_at(array.buffers[1], dtype, array.offset + array.length + 1)[array.offset:]
    data = ctypes.string_at(array.buffers[2], int(offsets[-1])) if array.buffers[2] else b""
    out = np.empty(array.length, object)
    words: dict[bytes, str] = {}
    for k in range(array.length):
        piece = data[offsets[k]:offsets[k + 1]]
        out[k] = words.setdefault(piece, piece.decode("utf-8", "replace"))
    return out


def zone_of(schema: Any) -> str:
    """The time zone of an imported column of times; "" = none."""
    form = str(schema.format.decode())
    return form.split(":", 1)[1] if form.startswith("ts") else ""


def column_to_numpy(schema: Any, array: Any) -> Array:
    """The cells of an imported column as NumPy: numbers, datetime64, or objects of text; missing numbers are NaN, times NaT.
    Times with a zone are in UTC."""
    form = schema.format.decode()
    if form in ("u", "U"):
        return _texts_of(array, "i4" if form == "u" else "i8")
    unit = {v[:3]: k for k, v in UNITS.items()}.get(form[:3])
    dtype = "i8" if unit else {v: k for k, v in PLAIN.items()}[form]
    values = numbers_at(array.buffers[1], dtype, array.offset + array.length)[array.offset:]
    if unit:
        values = values.view("datetime64[%s]" % unit)
    if array.null_count and array.buffers[0]:
        bits = numbers_at(array.buffers[0], "u1", (array.offset + array.length + 7) // 8)
        absent = np.unpackbits(bits, bitorder="little")[array.offset:array.offset + array.length] == 0
        values = values if unit or values.dtype.kind == "f" else values.astype(np.float64)
        values[absent] = np.datetime64("NaT") if unit else np.nan
    return values


# ------------------------------------------------------------------------------------------ capsules -------------------------

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
_streams: dict[int, Any] = {}


def _drop(capsule: int) -> None:
    """The destructor of a capsule: releases the stream if nobody has consumed it."""
    address = _address_of(capsule, b"arrow_array_stream")
    stream = _streams.pop(address, None)
    if stream is not None and stream.release:
        stream.release(ctypes.pointer(stream))


_address_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_drop_c = ctypes.PYFUNCTYPE(None, c_void_p)(_drop)


def capsule_of(columns: list[Column], rows: int) -> object:
    """A capsule for __arrow_c_stream__."""
    stream = stream_of(columns, rows)
    address = ctypes.addressof(stream)
    _streams[address] = stream
    return _capsule_new(address, b"arrow_array_stream", ctypes.cast(_drop_c, c_void_p))
