"""errors.py - exceptions: one class for each group of error codes of the library.

    StrettoError                      code, message, where, fix
      UsageError       1xx            also a ValueError
      DataError        2xx            also a ValueError
        TooShortError  3xx
      PlanError        4xx            also a ValueError
      DivergedError    5xx
      OutOfMemory      6xx            also a MemoryError
      FileError        7xx            also an OSError
      ClusterError     8xx, 11xx
      ModelError       9xx            also a ValueError

`stretto explain E204` prints what a code means.
"""
from __future__ import annotations

import re
from typing import Any

FLAG = re.compile(r"--(no-)?([a-z][a-z0-9-]*)(?:[ =](?!\()(\S+))?")


def _keyword(flag: "re.Match[str]") -> str:
    """A flag of the command line as a keyword argument: --gaps mask -> gaps="mask", --no-guard -> guard=False."""
    no, name, value = flag.group(1), flag.group(2).replace("-", "_"), flag.group(3)
    if value is None:
        return name if flag.string[:flag.start()].endswith(("another ", "other ", "without ", "option ")) else "%s=%s" % (name, not no)
    number = re.fullmatch(r"-?\d+(\.\d+)?", value)
    return "%s=%s" % (name, value if number else '"%s"' % value.strip("'\""))


def as_keywords(fix: str) -> str:
    """Remedies in the words of Python; commands stay as they are."""
    lines = [FLAG.sub(_keyword, line) if line.startswith("--") else line for line in fix.split("\n")]
    return "\n".join(re.sub(r"(\w=\S+) (?=\w+=)", r"\1, ", line) for line in lines)


MENTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")


def as_mentions(message: str) -> str:
    """A message with the options by their keywords: given by --target -> given by target."""
    return MENTION.sub(lambda m: m.group(1).replace("-", "_"), message)


class StrettoError(Exception):
    """An error of the library: `code` as "E204" ("" = of this package), `message`, `where` (file:line:field, or an option) and
    `fix`, the remedies, one per line."""

    def __init__(self, message: str, code: str = "", where: str = "", fix: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.where, self.fix = message, code, where, fix

    def __str__(self) -> str:
        head = "[%s] " % self.code if self.code else ""
        place = self.where + ": " if self.where else ""
        return head + place + self.message + "".join("\n  fix: " + line for line in self.fix.split("\n") if line)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.code, self.where, self.fix)

    @staticmethod
    def of(code: int, message: str, where: str = "", fix: str = "") -> "StrettoError":
        """The exception for an error code of the library, as 204."""
        kind = GROUPS.get(code // 100, StrettoError)
        place = where[2:].replace("-", "_") if where.startswith("--") else where
        remedy = as_keywords(fix) if code != 101 else fix.replace("--", "").replace("-", "_")
        return kind(as_mentions(message), "E%03d" % code if code else "", place, remedy)


class UsageError(StrettoError, ValueError):
    """Options are unknown, invalid or in conflict."""


class DataError(StrettoError, ValueError):
    """The contents of the data cannot be used as they are."""


class TooShortError(DataError):
    """The series have too few records, or future records are missing."""


class PlanError(StrettoError, ValueError):
    """A parallel plan is not possible, or its file is invalid."""


class DivergedError(StrettoError):
    """The loss became infinite or NaN."""


class OutOfMemory(StrettoError, MemoryError):
    """An allocation failed, or option memory does not suffice."""


class FileError(StrettoError, OSError):
    """A file cannot be read or written."""


class ClusterError(StrettoError):
    """Ranks, devices, schedulers or hosts failed."""


class ModelError(StrettoError, ValueError):
    """The file is no model, is of a newer version, or does not fit the data."""


class StopTraining(Exception):
    """Raised by a callback to end the training; the model holds the best weights so far."""


GROUPS: dict[int, type[StrettoError]] = {1: UsageError, 2: DataError, 3: TooShortError, 4: PlanError, 5: DivergedError, 6: OutOfMemory,
                                         7: FileError, 8: ClusterError, 9: ModelError, 11: ClusterError}
