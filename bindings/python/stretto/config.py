"""config.py - keyword arguments as options of the library.

    Config(horizon=24, known=["price"], refit_all=True)      horizon=24, known=price, refit-all=yes

A keyword is the name of an option with `_` for `-`; the library checks names and values.  None leaves an option as it is.  The
elements of a list are escaped, so a column name may hold a comma; a plain text is passed as it is on the command line.
"""
from __future__ import annotations

import ctypes
import datetime
import os
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Union

from . import _lib
from .errors import UsageError

PathLike = Union[str, "os.PathLike[str]"]


class HasYaml(Protocol):
    """What tune() and check() return: `yaml` holds options."""

    @property
    def yaml(self) -> str: ...


Source = Union[PathLike, HasYaml, None]  # of options: a YAML or JSON file, or the result of tune() or check()


class Option(NamedTuple):
    """One option: its default as text ("" = not set) and its help."""

    default: str
    help: str


def options() -> dict[str, Option]:
    """All options by their Python names."""
    found: dict[str, Option] = {}
    name, default, text = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_char_p()
    for i in range(_lib.library().stretto_option_count()):
        _lib.call("option", i, ctypes.byref(name), ctypes.byref(default), ctypes.byref(text))
        found[(name.value or b"").decode().replace("-", "_")] = Option((default.value or b"").decode(), (text.value or b"").decode())
    return found


def to_text(name: str, value: Any) -> str:
    """The value of an option as on the command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "yes" if value else "no"
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, datetime.timedelta):
        return "%rs" % value.total_seconds()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, (Mapping, bytes)):
        raise UsageError("option %s takes no %s" % (name, type(value).__name__), "E103", name, "text, a number, a bool or a list")
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return to_text(name, value.item())
    if hasattr(value, "__iter__"):
        return ",".join(to_text(name, v).replace(",", "\\,") for v in value)
    return repr(value)


class Config:
    """Options of a call; owns a stretto_config."""

    def __init__(self, given: Mapping[str, Any], source: Source = None) -> None:
        self.handle: int = _lib.library().stretto_config_new() or 0
        try:
            self._load(source)
            self.set(given)
        except BaseException:
            self.close()
            raise

    def _load(self, source: Source) -> None:
        if source is None:
            return
        if isinstance(source, (str, os.PathLike)):
            _lib.call("config_load", self.handle, os.fsencode(source))
            return
        with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
            path = os.path.join(folder, "config.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(source.yaml)
            _lib.call("config_load", self.handle, os.fsencode(path))

    def set(self, given: Mapping[str, Any]) -> None:
        """Sets options with the precedence of command-line flags."""
        set_flags(self.handle, given)

    def get(self, name: str) -> str:
        """The value of an option as text."""
        return _lib.string("config_get", self.handle, name.replace("_", "-").encode())

    def close(self) -> None:
        handle, self.handle = self.handle, 0
        _lib.library().stretto_config_free(handle)

    def __enter__(self) -> "Config":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def set_flags(config: int, given: Mapping[str, Any]) -> None:
    """Sets options of a config handle; None leaves an option as it is."""
    for name, value in given.items():
        if value is not None:
            _lib.call("config_flag", config, name.replace("_", "-").encode(), to_text(name, value).encode())
