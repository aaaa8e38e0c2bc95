"""progress.py - who hears of a training: user callbacks, the logger "stretto", a progress bar."""
from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, Union

from .errors import UsageError
from .jobs import Event, Job, T, run

log = logging.getLogger("stretto")
log.addHandler(logging.NullHandler())
LEVELS = {"warning": logging.WARNING, "note": logging.INFO, "detail": logging.DEBUG, "work": logging.DEBUG}

Callback = Callable[[Event], Any]


def log_lines(text: str, level: int = logging.WARNING) -> None:
    for line in text.splitlines():
        log.log(level, line)


class Bar:
    """A progress bar of tqdm (in a notebook, its widget), or a line of standard error that is written again."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.width = 0
        try:
            from tqdm.auto import tqdm
            self.tqdm: Any = tqdm
        except ImportError:
            self.tqdm = None

    def _line(self, event: Event) -> None:
        losses = "".join("  %s %.4g" % (n, v) for n, v in (("train", event.train), ("valid", event.valid)) if v is not None)
        text = "step %d of %d%s" % (event.step, event.steps, losses)
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def __call__(self, event: Event) -> None:
        if event.kind == "begin":
            self.close()
            if self.tqdm:
                name = "member %d of %d" % (event.member + 1, event.members) if event.members > 1 else "training"
                self.bar = self.tqdm(total=event.steps, desc=name, leave=False)
        elif event.kind in ("step", "validation"):
            if not self.bar:
                self._line(event)
                return
            self.bar.total = max(event.steps, event.step)
            self.bar.update(event.step - self.bar.n)
            losses = {"train": event.train, "valid": event.valid}
            self.bar.set_postfix({k: "%.4g" % v for k, v in losses.items() if v is not None}, refresh=False)

    def close(self) -> None:
        if self.bar:
            self.bar.close()
        elif self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
        self.bar, self.width = None, 0


class Listeners:
    """Calls every callback, in their order; True from one of them ends the training."""

    def __init__(self, callback: Union[Callback, Iterable[Callback], None], progress: bool) -> None:
        self.bar = Bar() if progress else None
        several = isinstance(callback, Iterable) and not callable(callback)
        given: list[Any] = [] if callback is None else list(callback) if several else [callback]  # type: ignore[arg-type]
        if not all(callable(one) for one in given):
            raise UsageError("a callback is a function of an Event, not a %s" % type(next(c for c in given if not callable(c))).__name__, "",
                             "callback", "callback=lambda event: event.kind == \"validation\" and event.valid < 0.1")
        self.callbacks: list[Callback] = given
        self.asks = bool(given)

    def __call__(self, event: Event) -> bool:
        if event.kind in LEVELS:
            log.log(LEVELS[event.kind], event.text)
        if self.bar:
            self.bar(event)
        stops = [callback(event) is True for callback in self.callbacks]
        return any(stops)

    def close(self) -> None:
        if self.bar:
            self.bar.close()


def run_with_listeners(work: Callable[[Job[T]], T], callback: Union[Callback, Iterable[Callback], None], progress: bool) -> T:
    """Runs work(job) in a thread; the callbacks hear of it on this one."""
    listeners = Listeners(callback, progress)
    try:
        return run(work, listeners)
    finally:
        listeners.close()
