"""handles.py - handles of the library as context managers, and the bytes of a model."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _lib
from .config import Config, Source
from .frames import Data, opened


@contextmanager
def open_data(config: Config, path: bytes) -> Iterator[int]:
    """A stretto_data of the columns that the config names."""
    data = _lib.new("data_open", config.handle, path)
    try:
        yield data
    finally:
        _lib.library().stretto_data_free(data)


@contextmanager
def open_config_and_data(data: Data, given: dict[str, Any], config: Source) -> Iterator[tuple[Config, int]]:
    """Checked options, and a stretto_data of the columns that they name."""
    with Config(given, config) as opts:
        _lib.call("config_check", opts.handle)
        with opened(data, given.get("id")) as path, open_data(opts, path) as handle:
            yield opts, handle


@contextmanager
def open_for(model: int, path: bytes) -> Iterator[int]:
    """A stretto_data of the columns that the model names."""
    data = _lib.new("model_open", model, path)
    try:
        yield data
    finally:
        _lib.library().stretto_data_free(data)


@contextmanager
def open_trainer(config: Config, data: int) -> Iterator[int]:
    trainer = _lib.new("trainer_new", config.handle, data)
    try:
        yield trainer
    finally:
        _lib.library().stretto_trainer_free(trainer)


def model_bytes(model: int) -> bytes:
    """The bytes of the model file."""
    out, size = ctypes.c_void_p(), ctypes.c_size_t()
    _lib.call("model_to_bytes", model, ctypes.byref(out), ctypes.byref(size))
    try:
        return ctypes.string_at(out, size.value) if out.value else b""
    finally:
        _lib.library().stretto_bytes_free(out)


def model_from(content: bytes) -> int:
    """A handle for the bytes of a model file."""
    return _lib.new("model_from_bytes", content, len(content))
