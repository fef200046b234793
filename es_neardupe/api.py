"""`NearDupe`: the Python interface, one object with a method for each command."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from importlib.metadata import version as version_of
from inspect import isfunction, isgeneratorfunction, unwrap
from types import TracebackType
from typing import Any, ParamSpec, TypeGuard, TypeVar, cast

from es_neardupe import options
from es_neardupe.commands import audit as _audit
from es_neardupe.commands import clean as _clean
from es_neardupe.commands import compare as _compare
from es_neardupe.commands import contained as _contained
from es_neardupe.commands import decide as _decide
from es_neardupe.commands import distribution as _distribution
from es_neardupe.commands import doctor as _doctor
from es_neardupe.commands import documents as _documents
from es_neardupe.commands import duplicates as _duplicates
from es_neardupe.commands import enrich as _enrich
from es_neardupe.commands import fingerprinted as _fingerprinted
from es_neardupe.commands import fold as _fold
from es_neardupe.commands import group as _group
from es_neardupe.commands import groups as _groups
from es_neardupe.commands import init as _init
from es_neardupe.commands import load as _load
from es_neardupe.commands import migrate as _migrate
from es_neardupe.commands import moved as _moved
from es_neardupe.commands import pairs as _pairs
from es_neardupe.commands import pipeline as _pipeline
from es_neardupe.commands import screened as _screened
from es_neardupe.commands import search as _search
from es_neardupe.commands import shingles as _shingles
from es_neardupe.commands import similar as _similar
from es_neardupe.commands import stats as _stats
from es_neardupe.commands import version as _version
from es_neardupe.commands import watch as _watch
from es_neardupe.commands import what_if as _what_if
from es_neardupe.index.index import Index
from es_neardupe.index.settings import check_prefix
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.log_events import is_logged, log_event, loggable_arguments, logged_progress, new_run
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect, wrap
from es_neardupe.server.login.options import CONNECTION_DEFAULTS, ConnectionOptions
from es_neardupe.server.login.resolve import resolve_settings
from es_neardupe.signatures import checked_values, document_options, signature_of

_Self = TypeVar("_Self", bound="NearDupe")
_Class = TypeVar("_Class", bound=type)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _log_commands(cls: _Class) -> _Class:
    """Make the methods of a class that are commands log their start, their progress and their end."""
    for name, method in vars(cls).copy().items():
        if isfunction(method) and method.__module__.startswith("es_neardupe.commands."):
            setattr(cls, name, _logged(method))
    return cls


def _logged(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """The command as a method, with log events. It gets the index of the object, which has no commands. Commands that
    it runs are parts of it, and log no start and end of their own.

    An iterator starts when its first element is requested.
    """
    parameters = signature_of(command)
    iterates = isgeneratorfunction(unwrap(command))

    @wraps(command)
    def run(*given: _P.args, **options: _P.kwargs) -> _R:
        try:
            arguments = dict(parameters.bind(*given, **options).arguments)
        except TypeError:
            return command(*given, **options)  # which says what is wrong
        index: NearDupe = arguments.pop("index")
        arguments = checked_values(parameters.parameters, arguments)
        call = partial(cast("Callable[..., _R]", command), index._index, **arguments)
        if not is_logged(logging.INFO):
            return call()
        context = {"run": index.run, "command": command.__name__, "index": index.name}
        if "progress" in parameters.parameters and "progress" not in arguments:
            call = partial(call, progress=logged_progress(context=context))
        if iterates:
            return cast("_R", _iterated(call, context, arguments))
        with _events(context, arguments):
            return call()

    return run


def _iterated(command: Callable[[], Any], context: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[Any]:
    with _events(context, arguments):
        yield from command()


@contextmanager
def _events(context: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[None]:
    """Log the start of a command and its end, with the kind of the error that ended it."""
    started, kind = time.monotonic(), None
    version = version_of("es-neardupe")
    log_event(logging.INFO, "started", **context, version=version, arguments=loggable_arguments(arguments))
    try:
        yield
    except GeneratorExit:  # the rest of an iterator was not requested
        raise
    except BaseException as error:
        kind = type(error).__name__
        raise
    finally:
        seconds = round(time.monotonic() - started, 3)
        log_event(logging.INFO, "finished", **context, seconds=seconds, error=kind)


@document_options
@_log_commands
class NearDupe(Index):
    """Near-duplicates in one index, alias, data stream or pattern: a method for each command.

    >>> from es_neardupe import NearDupe, Settings
    >>> with NearDupe("news", url="http://127.0.0.1:9200") as news:   # doctest: +SKIP
    ...     news.init(Settings(fields=("title", "body"), threshold=0.8))
    ...     news.enrich()
    ...     report = news.group()
    ...     hits = news.similar(id="4711", min=0.7).hits

    In the examples of the methods, ``news`` is an index of the nine articles in ``docs/articles.jsonl``, with sampled
    keys and stored evidence, ``bridge`` is the text of the first article, and ``pages`` is an index of the pages in
    ``docs/pages.jsonl``.

    ``client`` may be an ``elasticsearch.Elasticsearch`` or ``opensearchpy.OpenSearch``, which stays open. Without it,
    the connection is configured as on the command line: by the keyword arguments from ``url`` to ``profile``, the
    environment, or a profile. ``run`` names the run in requests (``X-Opaque-Id``) and log events. ``max_rate`` limits
    the documents written per second, ``max_load`` the documents in unanswered requests. Raises `ConnectError` and its
    subclasses.
    """

    @with_defaults(CONNECTION_DEFAULTS)
    def __init__(
        self,
        index: str,
        client: object | None = None,
        *,
        prefix: options.Prefix = DEFAULT_PREFIX,
        run: str | None = None,
        max_rate: options.MaxRate = None,
        max_load: options.MaxLoad = None,
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        check_prefix(prefix)
        self.run = run or new_run()
        """Name of the run in requests and log events."""
        if client is None:
            opened = connect(resolve_settings(**connection, run=self.run))
        else:
            opened = client if _is_connection(client) else wrap(client, run=self.run)
        super().__init__(index, opened, prefix)
        self._index = Index(index, opened, prefix)
        if max_rate is not None or max_load is not None:
            opened.pace.limit(max_rate=max_rate, max_load=max_load)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, but not a client that was passed in.

        >>> news.close()
        """
        self.client.close()

    init = _init.init
    load = _load.load
    enrich = _enrich.enrich
    fingerprinted = _fingerprinted.fingerprinted
    screened = _screened.screened
    migrate = _migrate.migrate
    clean = _clean.clean
    pipeline = _pipeline.pipeline
    similar = _similar.similar
    contained = _contained.contained
    search = _search.search
    search_request = _search.search_request
    pairs = _pairs.pairs
    documents = _documents.documents  # type: ignore[assignment,unused-ignore]  # an index that is opened has its own
    moved = _moved.moved
    moved_all = _moved.moved_all
    compare = _compare.compare
    duplicates = _duplicates.duplicates
    group = _group.group
    groups = _groups.groups
    group_history = _groups.group_history
    suggest_keep = _groups.suggest_keep
    decide = _decide.decide
    withdraw = _decide.withdraw
    decisions = _decide.decisions
    watch = _watch.watch
    fold = _fold.fold
    stats = _stats.stats
    doctor = _doctor.doctor
    audit = _audit.audit
    distribution = _distribution.distribution
    what_if = _what_if.what_if
    shingles = _shingles.shingles
    version = _version.version


def _is_connection(client: object) -> TypeGuard[Client]:
    """Whether a client is one of this package. Reads no property, because a property may send a request."""
    return callable(getattr(client, "pages", None))
