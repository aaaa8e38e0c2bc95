"""facts.py - the library itself: version, kernels, samples."""
from __future__ import annotations

import json
from typing import Any

from . import _lib


def build_info() -> dict[str, Any]:
    """Version, compiler and instruction sets of the library."""
    found: dict[str, Any] = json.loads(_lib.text("build_info"))
    return found


def sample(name: str, rows: int = 0, seed: int = 1) -> str:
    """A synthetic series as CSV text, for a first try: "airline", "sine", ..; rows 0 = its usual number."""
    return _lib.text("sample", name.encode(), rows, seed)
