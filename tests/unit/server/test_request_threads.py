"""Threads of requests: used again, given up if an answer takes too long, ended with the connection."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

import pytest

from es_neardupe.errors import Unreachable
from es_neardupe.server.drivers.driver import PatientDriver
from es_neardupe.server.responses import Answer

VALUE: ContextVar[int] = ContextVar("value")


class Echo:
    """Answers with the thread and the context of the request; for ``/hangs`` only after it may."""

    url, login = "http://localhost:9200", ""

    def __init__(self) -> None:
        self.may_answer = threading.Event()

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        if target == "/hangs":
            self.may_answer.wait()
        if target == "/fails":
            raise Unreachable("no answer")
        return Answer(200, {}, (threading.current_thread().ident, VALUE.get()))

    def close(self) -> None:
        pass


@pytest.fixture
def echo() -> Iterator[Echo]:
    driver = Echo()
    yield driver
    driver.may_answer.set()


def ask(driver: PatientDriver, target: str, value: int = 0) -> tuple[int, int]:
    VALUE.set(value)
    found: tuple[int, int] = driver.send("GET", target, None, {}).body
    return found


def test_one_thread_sends_requests_one_after_the_other(echo: Echo) -> None:
    driver = PatientDriver(echo, 30)
    found = [ask(driver, "/", value) for value in range(5)]
    assert len({thread for thread, _ in found}) == 1
    assert [value for _, value in found] == list(range(5))
    with pytest.raises(Unreachable, match="no answer"):
        ask(driver, "/fails")
    assert ask(driver, "/")[0] == found[0][0]


def test_a_late_answer_is_not_that_of_the_next_request(echo: Echo) -> None:
    driver = PatientDriver(echo, 0.05)
    first = ask(driver, "/", 1)
    with pytest.raises(Unreachable, match="the answer was incomplete"):
        ask(driver, "/hangs", 2)
    echo.may_answer.set()
    thread, value = ask(driver, "/", 3)
    assert value == 3
    assert thread != first[0]


def test_closing_ends_the_threads(echo: Echo) -> None:
    driver = PatientDriver(echo, 30)
    thread = ask(driver, "/")[0]
    (running,) = [one for one in threading.enumerate() if one.ident == thread]
    driver.close()
    running.join(60)
    assert not running.is_alive()
    assert ask(driver, "/", 7)[1] == 7  # a client of the user stays open


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_its_own_threads(echo: Echo) -> None:
    driver = PatientDriver(echo, 30)
    ask(driver, "/")
    child = os.fork()
    if not child:
        os._exit(ask(driver, "/", 5)[1])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
