"""Tasks on the workers of a Dask scheduler: a running one, or worker processes of this command.

The scheduler of our own processes listens on the loopback interface, with certificates of its own (other users of the
machine could run programs through it otherwise), and without a dashboard.
"""

from __future__ import annotations

import logging
import pickle
import socket
import ssl
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker, util
from types import TracebackType
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import dask.config
import distributed
from distributed.scheduler import KilledWorker
from distributed.worker import thread_state

from es_neardupe import wording
from es_neardupe.engines.engine import Kept
from es_neardupe.errors import EngineError, NeardupeError
from es_neardupe.progress import Progress
from es_neardupe.wording import option

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

_CONNECT = 10
"""Seconds until a scheduler has answered, and until it has workers."""

_PATIENCE = 120
"""Seconds without a result after which there must be workers: lost ones may be replaced until then."""

_STARTS = 3
"""Attempts to start the processes of this command: one may be killed before it has begun."""

_QUEUED = 2
"""Tasks that are submitted for each one that runs: workers need not wait for this process."""

_COMPARED = ("python", "es-neardupe", "distributed", "numpy")
"""Packages that must have the same version on the workers; of Python, the same minor version."""

_CONFIG = {
    "distributed.admin.large-graph-warning-threshold": "1GB",
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
}
"""For this process and our own workers. A lost one is always replaced, however long that takes. Without routes, the
ports for browsers answer nothing. Before Python 3.11.9, the profiler of Dask can hang a worker for ever."""


class DaskEngine:
    """See `es_neardupe.engines.engine.Engine`. Our own worker processes are started when they are first needed."""

    def __init__(self, engine: str) -> None:
        """``engine``: ``processes:4``, or the address of a scheduler."""
        self._engine = engine
        self._starts = engine.startswith("processes:")
        self._stack = ExitStack()
        self._opened: distributed.Client | None = None
        self._versions: Mapping[str, str | None] = {}
        self.workers = 0

    def __enter__(self) -> DaskEngine:
        self._stack.enter_context(dask.config.set(_CONFIG))
        self._stack.enter_context(_quiet())
        if self._starts:
            self.workers = int(self._engine.partition(":")[2])
            return self
        try:
            with self._lost():
                _check_listens(self._engine)
                self._use(self._connect(self._engine, self._stack))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, task: Callable[[S, P], R], shared: S, parts: Iterable[P]) -> Iterator[tuple[P, R]]:
        """See `Engine.run`."""
        with self._lost():
            client, waiting, parts = self._client, dict[Any, P](), iter(parts)
            common = client.submit(_same, shared, pure=False)
            checked = _checked(task, self._versions)

            def submit(number: int) -> None:
                for part in islice(parts, number):
                    waiting[client.submit(checked, common, part, pure=False)] = part

            try:
                submit(_QUEUED * self.workers)
                while waiting:
                    for future in self._finished(list(waiting)):
                        part, result = waiting.pop(future), future.result()
                        future.release()
                        submit(1)
                        yield part, result
            finally:
                if waiting:
                    client.cancel(list(waiting), asynchronous=None)

    def keep(self, task: Callable[[S, P], Any], shared: S, parts: Sequence[P]) -> list[Kept]:
        """See `Engine.keep`."""
        with self._lost():
            common = self._client.submit(_same, shared, pure=False)
            checked = _checked(task, self._versions)
            return [self._client.submit(checked, common, part, pure=False) for part in parts]

    def _finished(self, waiting: Sequence[Any]) -> Sequence[Any]:
        """The tasks that have finished, as soon as there is one."""
        while True:
            try:
                with self._client.as_current():
                    return list(distributed.wait(waiting, timeout=_PATIENCE, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                if not self._client.nthreads():
                    if self._starts:
                        raise self._ended() from None
                    raise EngineError(
                        f"The scheduler at {self._engine} has lost all of its workers. Start others with "
                        f"`dask worker {self._engine}`, and run the same command again; without "
                        f"{option('engine')}, it needs none."
                    ) from None

    @property
    def _client(self) -> distributed.Client:
        if self._opened is None:
            self._start()
        assert self._opened is not None
        return self._opened

    def _start(self) -> None:
        """Start processes. Raises `EngineError` if that has failed several times."""
        for _ in range(_STARTS):
            try:
                with ExitStack() as started:
                    cluster = distributed.LocalCluster(
                        n_workers=self.workers,
                        threads_per_worker=1,
                        host="127.0.0.1",
                        security=True,
                        dashboard_address=None,
                        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                        silence_logs=logging.CRITICAL,
                    )
                    self._use(self._connect(started.enter_context(cluster), started))
                    self._stack.push(started.pop_all())
                return
            except (EngineError, RuntimeError, OSError, TimeoutError) as error:
                failed = error
        raise EngineError(
            f"The processes of {self._engine} ended before they could work, {_STARTS} times: check the memory of this "
            f"machine, choose fewer processes, or omit {option('engine')}. A script of Python must use it below "
            f'`if __name__ == "__main__":`.'
        ) from failed

    def _connect(self, address: str | distributed.LocalCluster, stack: ExitStack) -> distributed.Client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions: see _check_versions
            client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
        return cast(distributed.Client, stack.enter_context(client))

    def _use(self, client: distributed.Client) -> None:
        try:
            client.wait_for_workers(1, timeout=_CONNECT)
        except TimeoutError:
            raise EngineError(
                f"The scheduler at {self._engine} has no workers: start some with `dask worker {self._engine}`."
            ) from None
        self._versions = _check_versions(client)
        self.workers = sum(client.nthreads().values())
        self._opened = client

    @contextmanager
    def _lost(self) -> Iterator[None]:
        """Raise `EngineError` for errors of Dask."""
        try:
            yield
        except NeardupeError:
            raise
        except KilledWorker as error:
            raise EngineError(
                f"A task lost its worker {error.allowed_failures + 1} times: check the memory of the workers. Run the "
                f"same command again."
            ) from error
        except (distributed.CancelledError, OSError, TimeoutError) as error:
            if self._opened is None:
                raise self._no_scheduler(error) from error
            if self._starts:
                raise self._ended() from error
            raise EngineError(
                f"The scheduler at {self._engine} was lost, and the tasks with it. Check the address, or start the "
                f"scheduler and its workers again; then run the same command again. Without {option('engine')}, it "
                f"needs neither."
            ) from error
        except (ImportError, AttributeError, RuntimeError, TypeError) as error:
            if self._opened is None:
                raise self._no_scheduler(error) from error
            _check_versions(self._opened)  # of a worker that has joined, and cannot load a task
            if isinstance(error, ImportError):
                raise EngineError(str(error)) from error
            raise

    def _ended(self) -> EngineError:
        return EngineError(
            f"The processes of {self._engine} have ended, and the tasks with them: check the memory of this machine, "
            f"and run the same command again."
        )

    def _no_scheduler(self, error: BaseException) -> EngineError:
        return EngineError(
            f"No Dask scheduler answers at {self._engine} ({_reason(error)}). Start one with `dask scheduler`, or use "
            f"processes:NUMBER."
        )


def _check_listens(address: str) -> None:
    """Raises `OSError` if no scheduler listens at an address, and `EngineError` if it does not accept the certificates
    of this command: Dask would try again until its timeout, and wait for the answer of another server without limit. A
    scheduler speaks first, and only then is it known that it accepts the certificate of a client."""
    parts = urlsplit(address)
    context = _certificates(address) if parts.scheme == "tls" else None
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=_CONNECT) as connection:
        try:
            spoken = (context.wrap_socket(connection) if context else connection).recv(1)
        except ssl.SSLError as error:
            raise _not_encrypted(address, error.reason or _reason(error)) from error
        if not spoken:
            raise ConnectionError("another kind of server")


def _certificates(address: str) -> ssl.SSLContext:
    """The certificates in Dask's configuration. Raises `EngineError` if there are none, or they cannot be read."""
    try:
        context = distributed.Security().get_connection_args("client").get("ssl_context")
    except OSError as error:
        raise _not_encrypted(address, _reason(error)) from error
    if context is None:
        raise _not_encrypted(address, "a certificate is missing")
    return cast(ssl.SSLContext, context)


def _not_encrypted(address: str, reason: str) -> EngineError:
    return EngineError(
        f"No encrypted connection to the scheduler at {address} ({reason}): check the certificates in "
        f"distributed.comm.tls of Dask's configuration."
    )


def _same(shared: S) -> S:
    """The argument that tasks have in common, as the result of a task: it is sent to each worker once, and again after
    a worker was lost."""
    return shared


def _checked(task: Callable[[S, P], R], here: Mapping[str, str | None]) -> Callable[[S, P], R]:
    """A task that raises `ImportError` on a worker with other versions than ``here``, such as one that joins during a
    run. It is sent as a whole, so that it needs nothing of these versions, and loads the task itself afterwards. Its
    messages are those of the command here."""
    packed = pickle.dumps(partial(_spoken, wording.current(), task))

    def checked(shared: S, part: P) -> R:
        import pickle

        from distributed import get_worker
        from distributed.versions import get_versions

        found = get_versions(packages=["es-neardupe"])["packages"]
        for name, version in here.items():
            there = ".".join(found[name].split(".")[:2]) if name == "python" else found.get(name)
            if there != version:
                raise ImportError(
                    f"Worker {get_worker().address} has {name} {there or 'not installed'}, and this command {name} "
                    f"{version}: install the same versions."
                )
        result: R = pickle.loads(packed)(shared, part)  # noqa: S301 - of this process
        return result

    return checked


def _spoken(on: wording.CommandLine | None, task: Callable[[S, P], R], shared: S, part: P) -> R:
    with wording.spoken(on):
        return task(shared, part)


def _check_versions(client: distributed.Client) -> dict[str, str | None]:
    """The versions of this process. Raises `EngineError` unless all workers have them."""
    found = client.get_versions(packages=["es-neardupe"])
    here = _versions(found["client"])
    for worker, versions in found["workers"].items():
        there = _versions(versions)
        for name, version in here.items():
            if there[name] != version:
                raise EngineError(
                    f"Worker {worker} has {name} {there[name] or 'not installed'}, and this command {name} {version}: "
                    f"install the same versions."
                )
    return here


def _versions(found: Any) -> dict[str, str | None]:
    packages = found["packages"]
    python = ".".join(packages["python"].split(".")[:2])
    return {name: python if name == "python" else packages.get(name) for name in _COMPARED}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the messages of Dask, and of what it starts: errors are raised here, and lost tasks run again. Python
    starts the process that tracks its resources again if it was killed; the new one writes tracebacks about resources
    that only its predecessor knew, so it gets no stderr."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logging.getLogger(name) for name in (*names, "asyncio", "tornado.application")]
    levels = [(one, one.level) for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL + 1)
    vars(resource_tracker)["util"] = _WithoutStderr()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "resource_tracker: ")
            yield
    finally:
        vars(resource_tracker)["util"] = util
        for one, level in levels:
            one.setLevel(level)


class _WithoutStderr:
    """`multiprocessing.util` for `multiprocessing.resource_tracker`: the process that it starts gets no stderr."""

    def __getattr__(self, name: str) -> Any:
        return getattr(util, name)

    def spawnv_passfds(self, path: bytes, args: Sequence[str], passfds: Sequence[int]) -> int:
        """Start a process, whose last argument is a program."""
        return util.spawnv_passfds(path, [*args[:-1], f"import sys;sys.stderr = None;{args[-1]}"], passfds)


def _reason(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class _Cancelled(Exception):
    """The task was cancelled; nobody waits for its result."""


def ends_when_cancelled() -> Progress:
    """See `es_neardupe.engines.chosen.until_cancelled`."""
    worker, key = distributed.get_worker(), thread_state.key

    def reported(stage: str, done: int, total: int | None) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise _Cancelled

    return reported
