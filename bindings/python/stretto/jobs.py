"""jobs.py - long calls of the library run in a thread of their own; the calling thread waits for them and can be interrupted.

    calling thread    run(work) ----- events: callbacks run here ----- KeyboardInterrupt: stop, wait, raise ----> result
    worker thread           work(job): data, trainer, stretto_trainer_run ..  events wait for the calling thread

All handles of a job belong to its worker thread, so nothing is freed under a call that still runs.
"""
from __future__ import annotations

import atexit
import math
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Optional, TypeVar

from . import _lib
from .errors import StopTraining

T = TypeVar("T")
KINDS = ("note", "warning", "begin", "step", "validation", "saved", "end", "work", "detail")
LOOK = 0.2       # seconds between two looks at what an interrupt may have lost
PATIENCE = 30.0  # seconds that the interpreter waits at its exit for a training that is asked to stop


def _number(x: float) -> Optional[float]:
    return None if math.isnan(x) else x


@dataclass(frozen=True)
class Event:
    """What a training reports: `kind` is one of note, warning, begin, step, validation, saved, end, work, detail.

    `step` counts training steps and is 0 before the first one; of "work" (choosing a base, measuring bands) `done` and `of` count.
    Losses are None where they were not measured at this step; `left` is the estimated number of seconds, None = unknown."""

    kind: str
    text: str
    step: int
    steps: int
    member: int
    members: int
    epoch: float
    seconds: float
    left: Optional[float]
    train: Optional[float]
    valid: Optional[float]
    lr: float
    grad_norm: float
    windows_per_s: float
    best: bool
    done: int = 0
    of: int = 0


def _event_of(e: Any) -> Event:
    kind = KINDS[e.kind]
    step, steps, done, of = (0, 0, e.step, e.steps) if kind == "work" else (e.step, e.steps, 0, 0)
    return Event(kind, (e.text or b"").decode("utf-8", "replace"), step, steps, e.member, e.members, e.epoch, e.seconds,
                 e.left if e.left >= 0 else None, _number(e.train), _number(e.valid), e.lr, e.grad_norm, e.windows_per_s, bool(e.best), done, of)


Listener = Callable[[Event], Any]


class Job(Generic[T]):
    """One long call.  `asked`: why it is to stop: "" (not at all), "interrupt", "callback", "exit"."""

    def __init__(self, work: "Callable[[Job[T]], T]", listener: Optional[Listener]) -> None:
        self.work, self.listener, self.asked = work, listener, ""
        self.stopper: Optional[Callable[[], None]] = None
        self.lock = threading.Lock()
        self.messages: "queue.SimpleQueue[Optional[tuple[Event, threading.Event]]]" = queue.SimpleQueue()
        self.result: Optional[T] = None
        self.error: Optional[BaseException] = None
        self.failed: Optional[BaseException] = None  # what a callback has raised
        self.thread = threading.Thread(target=self._run, name="stretto", daemon=True)
        self.event_fn = _lib.EVENT_FN(self._on_event) if listener else _lib.EVENT_FN()

    def _run(self) -> None:
        try:
            self.result = self.work(self)
        except BaseException as e:
            self.error = e
        self.messages.put(None)

    def _on_event(self, _user: Any, event: Any) -> None:
        """On the worker thread: hands the event to the calling thread and waits until that has dealt with it."""
        if self.asked:
            return
        answered = threading.Event()
        self.messages.put((_event_of(event.contents), answered))
        while not answered.wait(LOOK) and not self.asked:  # an interrupt may lose the message; then the job is asked to stop
            pass

    def stop_with(self, stopper: Optional[Callable[[], None]]) -> None:
        """Sets how the call that runs now is stopped; one that was asked to stop before stops at once."""
        with self.lock:
            self.stopper = stopper
            if self.asked and stopper:
                stopper()

    def stop(self, why: str) -> None:
        with self.lock:
            self.asked = self.asked or why
            if self.stopper:
                self.stopper()

    def tell(self, event: Event) -> None:
        """Runs the callbacks; one that returns True or raises ends the training."""
        if self.failed or self.asked or not self.listener:
            return
        try:
            if self.listener(event) is True:
                self.stop("callback")
        except StopTraining:
            self.stop("callback")
        except BaseException as e:
            self.failed = e
            self.stop("error")

    def wait(self) -> None:
        """Until the worker has ended; the callbacks run meanwhile, on this thread."""
        interrupts = 0
        answered: Optional[threading.Event] = None
        while True:
            try:
                if answered:
                    answered.set()
                    answered = None
                message = self.messages.get(timeout=LOOK)
                if message is None:
                    break
                event, answered = message
                self.tell(event)
            except queue.Empty:
                if not self.thread.is_alive():  # an interrupt has lost its last message
                    break
            except KeyboardInterrupt:
                interrupts += 1
                self.stop("interrupt")
                if interrupts > 1 or not self.stopper:  # the worker frees what it holds when it has come to its end
                    if answered:
                        answered.set()
                    raise
        self.thread.join()


_running: "set[Job[Any]]" = set()


def _end_all() -> None:
    """At the exit of the interpreter: trainings that other threads have started are stopped."""
    for job in list(_running):
        job.stop("exit")
    for job in list(_running):
        if job.stopper:
            job.thread.join(PATIENCE)


atexit.register(_end_all)


def run(work: "Callable[[Job[T]], T]", listener: Optional[Listener] = None) -> T:
    """Runs work(job) in a thread, with callbacks and KeyboardInterrupt in this one."""
    job = Job(work, listener)
    _running.add(job)
    try:
        job.thread.start()
        job.wait()
    finally:
        if not job.thread.is_alive():
            _running.discard(job)
    if job.failed:
        raise job.failed
    if job.asked == "interrupt":
        raise KeyboardInterrupt
    if job.error:
        raise job.error
    return job.result  # type: ignore[return-value]
