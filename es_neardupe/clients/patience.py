"""An end to every request: drivers limit the time between two bytes of an answer, but not that of all of them."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from threading import Thread

from es_neardupe.clients.answers import Answer
from es_neardupe.clients.driver import Driver, DriverOver
from es_neardupe.errors import Unreachable

__all__ = ["PatientDriver"]


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
