"""Drivers that name each request (``X-Opaque-Id``, which the server's tasks and slow logs show), and limit its time."""

from __future__ import annotations

import contextvars
import itertools
import logging
import re
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import replace
from threading import Thread

from es_neardupe.errors import ConnectError, SettingsError, Unreachable
from es_neardupe.log_events import is_logged, log_event, new_run
from es_neardupe.server.drivers.driver import Driver, DriverOver
from es_neardupe.server.responses import Answer

__all__ = ["PatientDriver", "TracedDriver"]


_RUN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class TracedDriver(DriverOver):
    """Forwards requests with the name ``es-neardupe/RUN/NUMBER``, and logs their results."""

    def __init__(self, driver: Driver, run: str | None = None) -> None:
        if run is not None and not _RUN.fullmatch(run):
            raise SettingsError(f"{run!r} is not a name for a run: use 1 to 64 letters, digits, dots, - or _.")
        super().__init__(driver)
        self._run = run or new_run()
        self._numbers = itertools.count(1)

    def over(self, driver: Driver) -> TracedDriver:
        """The same run with another driver; the numbers continue."""
        other = TracedDriver(driver, self._run)
        other._numbers = self._numbers
        return other

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See ``Driver.send``. Answers and errors carry the name of the request."""
        name = f"es-neardupe/{self._run}/{next(self._numbers)}"
        started = time.monotonic()
        try:
            answer = self._driver.send(method, target, body, {**headers, "x-opaque-id": name})
        except ConnectError as error:
            if isinstance(error, Unreachable):  # the server may have received it, and the answer was lost
                error.request = name
            _log(method, target, name, started, error=type(error).__name__)
            raise
        _log(method, target, name, started, status=answer.status, bytes=len(body or b""))
        return replace(answer, request=name)


def _log(method: str, target: str, name: str, started: float, **result: str | int) -> None:
    if is_logged(logging.DEBUG):
        milliseconds = round(1000 * (time.monotonic() - started), 1)
        path = target.partition("?")[0]
        log_event(logging.DEBUG, "request", method=method, path=path, request=name, milliseconds=milliseconds, **result)


class PatientDriver(DriverOver):
    """Forwards requests, and waits only so many seconds for a complete answer.

    Each request runs in its own thread. The thread of an answer that never ends is abandoned; it does not keep the
    program alive.
    """

    def __init__(self, driver: Driver, seconds: float) -> None:
        super().__init__(driver)
        self._seconds = seconds

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See ``Driver.send``."""
        answer: Future[Answer] = Future()

        def ask() -> None:
            try:
                answer.set_result(self._driver.send(method, target, body, headers))
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                answer.set_exception(error)

        Thread(target=contextvars.copy_context().run, args=(ask,), name="request", daemon=True).start()
        try:
            return answer.result(self._seconds)
        except NotInTime as error:
            if answer.done():  # the driver's own error
                raise
            raise Unreachable(
                f"{self.url}: an answer was not complete after {self._seconds:g} seconds. Try again, or request less."
            ) from error
