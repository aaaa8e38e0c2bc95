"""scores.py - a score table: a dict with the numbers, and the text that the program prints."""
from __future__ import annotations

import json
from typing import Any


class Scores(dict[str, Any]):
    """Scores of the model beside those of naive forecasts, as `stretto eval --json` has them.

    `text` is the printed table; `skill` is 1 - error / error of the best naive forecast."""

    text: str = ""
    skill: float = float("nan")

    @classmethod
    def parse(cls, content: str, text: str, skill: float) -> "Scores":
        scores = cls(json.loads(content) if content else {})
        scores.text, scores.skill = text, skill
        return scores

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return "<pre>%s</pre>" % self.text.replace("&", "&amp;").replace("<", "&lt;")
