"""Driver: the interface of the adapters for driver packages; drivers that trace requests and limit their time; and
functions that the adapters share, for credentials, parsing and connection errors."""

from __future__ import annotations

import base64
import contextvars
import hashlib
import itertools
import logging
import re
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Protocol

from es_neardupe.errors import (
    AnswerTooLarge,
    CertificateRefused,
    ConnectError,
    NeardupeError,
    SettingsError,
    UnexpectedAnswer,
    Unreachable,
)
from es_neardupe.log_events import is_logged, log_event, new_run
from es_neardupe.server.numbers import loads
from es_neardupe.server.request_sizes import current_limit
from es_neardupe.server.responses import Answer
from es_neardupe.wording import option

POOL_SIZE = 16
"""Connections kept open to a server; further worker threads wait or reconnect."""


class Driver(Protocol):
    """Sends one request once, without knowledge of products, retries or the meaning of answers."""

    @property
    def url(self) -> str:
        """The URL without credentials."""

    @property
    def login(self) -> str:
        """The authenticated user, see `identity`."""

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """The answer, whatever its status. ``target`` is path and query, percent-encoded.

        Raises ``Unreachable`` or ``CertificateRefused``.
        """

    def close(self) -> None:
        """Close the connections if the adapter opened them."""


class ForwardingDriver:
    """A driver that sends its requests through another one."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @property
    def url(self) -> str:
        """See ``Driver.url``."""
        return self._driver.url

    @property
    def login(self) -> str:
        """See ``Driver.login``."""
        return self._driver.login

    def close(self) -> None:
        """See ``Driver.close``."""
        self._driver.close()


class LoginDriver(ForwardingDriver):
    """Forwards requests with the credentials of another user: ``authorization`` is sent instead of the header of the
    other driver, over the same connections."""

    def __init__(self, driver: Driver, authorization: str) -> None:
        super().__init__(driver)
        self._authorization = authorization

    @property
    def login(self) -> str:
        """See ``Driver.login``."""
        return identity(self._authorization)

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See ``Driver.send``."""
        return self._driver.send(method, target, body, {**headers, "authorization": self._authorization})

    def close(self) -> None:
        """Close nothing: the connections belong to the other driver."""


_RUN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class TracedDriver(ForwardingDriver):
    """Forwards requests with the name ``es-neardupe/RUN/NUMBER``, and logs their results."""

    def __init__(self, driver: Driver, run: str | None = None) -> None:
        if run is not None and not _RUN.fullmatch(run):
            raise SettingsError(f"{run!r} is not a valid run name: use 1 to 64 letters, digits, dots, - or _.")
        super().__init__(driver)
        self._run = run or new_run()
        self._numbers = itertools.count(1)

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See ``Driver.send``. Answers and errors carry the name of the request."""
        name = f"es-neardupe/{self._run}/{next(self._numbers)}"
        started = time.monotonic()
        try:
            answer = self._driver.send(method, target, body, {**headers, "x-opaque-id": name})
        except (ConnectError, UnexpectedAnswer) as error:
            if not isinstance(error, ConnectError) or isinstance(
                error, Unreachable
            ):  # the server may have received it, and the answer was lost
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


class PatientDriver(ForwardingDriver):
    """Forwards requests, and waits at most ``seconds`` for a complete answer.

    Each request runs in its own thread, which is used again for a later one: starting a thread can take as long as the
    request. The thread of an answer that never ends is abandoned; it does not keep the program alive.
    """

    def __init__(self, driver: Driver, seconds: float) -> None:
        super().__init__(driver)
        self._seconds = seconds
        self._idle: list[_Worker] = []

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See ``Driver.send``."""
        worker = self._idle_worker() or _Worker()
        send = partial(contextvars.copy_context().run, self._driver.send, method, target, body, headers)
        try:
            answer = worker.result(send, self._seconds)
        except Empty:
            worker.end()
            raise Unreachable(
                f"{self.url}: the answer was incomplete after {self._seconds:g} seconds. Try again, or request less."
            ) from None
        except BaseException:  # interrupted
            worker.end()
            raise
        self._idle.append(worker)
        if isinstance(answer, Answer):
            return answer
        raise answer

    def close(self) -> None:
        """See ``Driver.close``. Also ends the threads."""
        super().close()
        while (worker := self._idle_worker()) is not None:
            worker.end()

    def _idle_worker(self) -> _Worker | None:
        """A worker without a request. Those of a process that was forked have no thread here."""
        with suppress(IndexError):  # other threads take workers too
            while not (worker := self._idle.pop()).is_alive:
                pass
            return worker
        return None


_Work = Callable[[], Answer]


class _Worker:
    """A thread that sends one request after the other."""

    def __init__(self) -> None:
        self._given: SimpleQueue[_Work | None] = SimpleQueue()
        self._answers: SimpleQueue[Answer | BaseException] = SimpleQueue()
        self._thread = Thread(target=_work, args=(self._given, self._answers), name="request", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def result(self, send: _Work, seconds: float) -> Answer | BaseException:
        """The answer or the error of a request. Raises ``queue.Empty`` if there is none in time."""
        self._given.put(send)
        return self._answers.get(timeout=seconds)

    def end(self) -> None:
        """End the thread after its request."""
        self._given.put(None)

    def __del__(self) -> None:
        self.end()


def _work(given: SimpleQueue[_Work | None], answers: SimpleQueue[Answer | BaseException]) -> None:
    while (send := given.get()) is not None:
        try:
            answers.put(send())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            answers.put(error)
        del send  # which holds the body of the request


MAX_ANSWER = 1_000_000_000
"""Maximum size of the body of an answer in bytes, expanded. Servers build none that is larger than 2 GB."""

_PIECE = 2**16
"""Bytes read at a time: gzip expands them at most to a thousand times as many."""


class LimitedPool:
    """A connection pool of urllib3, whose answers are read only up to `MAX_ANSWER`, or the limit of
    `es_neardupe.server.request_sizes.answer_limit`, however far they expand."""

    def __init__(self, pool: Any, url: str) -> None:
        self._pool = pool
        self._url = url
        self.body: bytes | None = None
        """The body of the last answer. Parsing it takes less time than parsing decoded text."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def urlopen(self, *args: Any, **options: Any) -> Any:
        """As ``urllib3.HTTPConnectionPool.urlopen``. Raises ``AnswerTooLarge``, and ``SettingsError`` if the client was
        closed."""
        if self._pool is None or self._pool.pool is None:
            raise SettingsError(f"{self._url}: this client is closed. Read results such as pairs before you close it.")
        response = self._pool.urlopen(*args, **options, preload_content=False)
        pieces, size, maximum = [], 0, current_limit(MAX_ANSWER)
        try:
            for piece in response.stream(_PIECE, decode_content=True):
                pieces.append(piece)
                size += len(piece)
                if size > maximum:
                    raise AnswerTooLarge(
                        f"{self._url}: the answer is larger than {maximum:,} bytes. Check any proxy in front of the "
                        f"server, or request less (a smaller {option('batch')})."
                    )
        except BaseException:
            response.close()  # the rest of the answer is never read
            raise
        finally:
            response.release_conn()  # even if it is closed: the pool has no other place for a new one
        self.body = b"".join(pieces)
        return _ReadResponse(response, self.body)


class _ReadResponse:
    """A response of urllib3 whose body was read."""

    def __init__(self, response: Any, data: bytes) -> None:
        self._response = response
        self.data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)


def identity(header: str | None) -> str:
    """The scheme of an ``authorization`` header, with the user name, the id of the API key, or a hash of anything else;
    empty without a header. It contains no secret."""
    kind, _, word = (header or "").partition(" ")
    if kind.lower() in {"basic", "apikey"} and (name := _name_in(word)) is not None:
        return f"{kind.lower()} {name}"
    digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kind.lower()} {digest}" if header else ""


def user_name(header: str) -> str | None:
    """The user name in an ``authorization`` header; None unless it is one with a password."""
    kind, _, word = header.partition(" ")
    return _name_in(word) if kind.lower() == "basic" else None


def _name_in(word: str) -> str | None:
    """The part before the colon of encoded credentials."""
    with suppress(ValueError):  # also binascii.Error and UnicodeDecodeError
        name, colon, _ = base64.b64decode(word, validate=True).decode().partition(":")
        return name if colon else None
    return None


def parsed(text: str | bytes) -> Any:
    """The value if the text is JSON (see `es_neardupe.server.numbers`), else the text (a proxy's HTML page), None if it
    is empty."""
    if not text:
        return None
    try:
        return loads(text)
    except RecursionError:
        with suppress(ValueError):
            return deep(text)
    except ValueError:
        pass
    return text if isinstance(text, str) else str(text, "utf-8", "replace")


_MORE_LEVELS = 2000
_DEEPER = Lock()
"""The recursion limit belongs to the whole process."""


def deep(text: str | bytes) -> Any:
    """The value of JSON nested more deeply than Python's recursion limit: servers accept 1,000 levels. Raises
    ``ValueError``."""
    with _DEEPER:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + _MORE_LEVELS)
        try:
            return loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        finally:
            sys.setrecursionlimit(before)


def unreadable(url: str) -> Unreachable:
    """The error for an answer whose content type is JSON, but whose body is not, or is truncated."""
    return Unreachable(f"{url}: the answer is truncated or not valid JSON. Check any proxy in front of the server.")


def lost_connection(error: BaseException, url: str) -> NeardupeError:
    """The exception for a driver's connection error: that of `LimitedPool`, certificate, TLS, timeout, or no
    connection."""
    causes = list(_causes(error))
    ours = next((cause for cause in causes if isinstance(cause, NeardupeError)), None)
    return ours or _connect_error(causes, url)


def _connect_error(causes: Sequence[BaseException], url: str) -> ConnectError:
    for reason in filter(None, map(_certificate_problem, causes)):
        return CertificateRefused(
            f"{url}: the server's certificate was not accepted ({reason}). {_certificate_advice(reason)}"
        )
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            reason = cause.reason or "no reason given"
            if "ALERT" in reason and "CERT" in reason:
                return CertificateRefused(
                    f"{url}: the server requires a client certificate that it trusts ({_plain(reason)}). "
                    f"Give one with {option('client_cert')}."
                )
            return Unreachable(f"{url}: TLS failed ({reason}). If the server has no TLS, begin the URL with http://.")
    if any("Timeout" in type(cause).__name__ or isinstance(cause, TimeoutError) for cause in causes):
        return Unreachable(f"{url}: no answer in time. Try again, or increase {option('timeout')}.")
    # The operating system's message contains no request; the driver's own message would.
    system = [str(cause.strerror) for cause in causes if isinstance(cause, OSError) and cause.strerror]
    if not system:
        return Unreachable(
            f"{url}: the connection was closed without an answer. If the server uses TLS, begin the URL with https://."
        )
    return Unreachable(f"{url}: no connection ({system[-1].lower()}). Check the address, or start the server.")


def _plain(reason: str) -> str:
    return reason.partition("ALERT_")[2].replace("_", " ").lower()


def _certificate_problem(cause: BaseException) -> str | None:
    """The problem with the server's certificate; None for any other cause. urllib3 has its own errors for host names
    and fingerprints."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message.rstrip(".")
    if type(cause).__name__ == "CertificateError":
        return str(cause)
    return "it has another fingerprint" if "Fingerprints did not match" in str(cause) else None


def _certificate_advice(reason: str) -> str:
    if "fingerprint" in reason:
        return "Ask an administrator of the server for the right fingerprint."
    if "mismatch" in reason or "doesn't match" in reason:
        return "Use a host name that the certificate contains."
    return f"If you trust its authority, name it with {option('ca_certs')} or {option('cert_fingerprint')}."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes; drivers and urllib3 hide the socket's error in their arguments."""
    seen: list[BaseException] = []
    queue = [error]
    while queue:
        current = queue.pop(0)
        if current is None or current in seen:
            continue
        seen.append(current)
        yield current
        inside = [a for a in (*current.args, *getattr(current, "errors", ())) if isinstance(a, BaseException)]
        queue += [*inside, getattr(current, "reason", None), current.__cause__, current.__context__]
        queue = [q for q in queue if isinstance(q, BaseException)]
