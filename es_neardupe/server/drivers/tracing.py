"""A driver whose requests have names: each carries an ``X-Opaque-Id``, which the server's tasks and slow logs show."""

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
from es_neardupe.log_events import new_run, told, wanted
from es_neardupe.server.drivers.driver import Driver, DriverOver
from es_neardupe.server.responses import Answer

__all__ = ["PatientDriver", "TracedDriver"]


_RUN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class TracedDriver(DriverOver):
    """Passes requests on to a driver, named ``es-neardupe/RUN/NUMBER``, and logs what became of them."""

    def __init__(self, driver: Driver, run: str | None = None) -> None:
        if run is not None and not _RUN.fullmatch(run):
            raise SettingsError(f"The run {run!r} cannot be used: 1 to 64 letters, digits, dots, - or _ name a run.")
        super().__init__(driver)
        self._run = run or new_run()
        self._numbers = itertools.count(1)

    def over(self, driver: Driver) -> TracedDriver:
        """The same run through another driver: its numbers go on."""
        other = TracedDriver(driver, self._run)
        other._numbers = self._numbers
        return other

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See ``Driver.send``. Answers and errors bear the name of the request."""
        name = f"es-neardupe/{self._run}/{next(self._numbers)}"
        started = time.monotonic()
        try:
            answer = self._driver.send(method, target, body, {**headers, "x-opaque-id": name})
        except ConnectError as error:
            if isinstance(error, Unreachable):  # it may have been received, and its answer lost
                error.request = name
            _log(method, target, name, started, error=type(error).__name__)
            raise
        _log(method, target, name, started, status=answer.status, bytes=len(body or b""))
        return replace(answer, request=name)


def _log(method: str, target: str, name: str, started: float, **result: str | int) -> None:
    if wanted(logging.DEBUG):
        milliseconds = round(1000 * (time.monotonic() - started), 1)
        path = target.partition("?")[0]
        told(logging.DEBUG, "request", method=method, path=path, request=name, milliseconds=milliseconds, **result)


class PatientDriver(DriverOver):
    """Sends requests through another driver, and waits for the whole of an answer for so many seconds only.

    A thread of its own waits with each request. That of an answer which never ends is left behind; it does not keep
    the program from ending.
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
            except BaseException as error:  # noqa: BLE001 - raised by whoever waits
                answer.set_exception(error)

        Thread(target=contextvars.copy_context().run, args=(ask,), name="request", daemon=True).start()
        try:
            return answer.result(self._seconds)
        except NotInTime as error:
            if answer.done():  # the driver's own error
                raise
            raise Unreachable(
                f"{self.url}: an answer was not complete after {self._seconds:g} seconds. Try again, or ask for less."
            ) from error
