"""The Python API in one object: a connection and an index, with a method for each command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from es_neardupe.commands.audit.audit import audit as _audit
from es_neardupe.commands.audit.report import AuditReport
from es_neardupe.commands.clean import CleanReport
from es_neardupe.commands.clean import clean as _clean
from es_neardupe.commands.compare import compare as _compare
from es_neardupe.commands.contained import Contained
from es_neardupe.commands.contained import contained as _contained
from es_neardupe.commands.distribution.distribution import distribution as _distribution
from es_neardupe.commands.distribution.report import DistributionReport
from es_neardupe.commands.doctor.doctor import Check
from es_neardupe.commands.doctor.doctor import doctor as _doctor
from es_neardupe.commands.duplicates.duplicates import duplicates as _duplicates
from es_neardupe.commands.duplicates.request_plan import RequestPlan
from es_neardupe.commands.duplicates.results import DuplicatesReport
from es_neardupe.commands.enrich.enrich import EnrichReport
from es_neardupe.commands.enrich.enrich import enrich as _enrich
from es_neardupe.commands.enrich.ingest import fingerprinted_actions
from es_neardupe.commands.group import GroupReport
from es_neardupe.commands.group import group as _group
from es_neardupe.commands.groups import Advice
from es_neardupe.commands.groups import group_history as _group_history
from es_neardupe.commands.groups import groups as _groups
from es_neardupe.commands.groups import suggest_keep as _suggest_keep
from es_neardupe.commands.init.init import InitReport
from es_neardupe.commands.init.init import init as _init
from es_neardupe.commands.load.load import LoadReport
from es_neardupe.commands.load.load import load as _load
from es_neardupe.commands.migrate.migrate import MigrateReport
from es_neardupe.commands.migrate.migrate import migrate as _migrate
from es_neardupe.commands.moved.answer import Moved
from es_neardupe.commands.moved.moved import moved as _moved
from es_neardupe.commands.moved.moved import moved_all as _moved_all
from es_neardupe.commands.pairs import Pairs
from es_neardupe.commands.pairs import pairs as _pairs
from es_neardupe.commands.search.request import search_request as _search_request
from es_neardupe.commands.search.search import Found
from es_neardupe.commands.search.search import search as _search
from es_neardupe.commands.similar import Similar
from es_neardupe.commands.similar import similar as _similar
from es_neardupe.commands.stats import Stats
from es_neardupe.commands.stats import stats as _stats
from es_neardupe.commands.version import VersionReport
from es_neardupe.commands.version import version as _version
from es_neardupe.commands.watch import WatchReport
from es_neardupe.commands.watch import watch as _watch
from es_neardupe.commands.what_if import WhatIf
from es_neardupe.commands.what_if import what_if as _what_if
from es_neardupe.groups.read import Group
from es_neardupe.groups.registry import Entry
from es_neardupe.index.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX, Settings
from es_neardupe.index.sidecar.open import open_inline
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect, wrap
from es_neardupe.server.login.resolve import resolve_settings
from es_neardupe.similarity.comparison import Comparison

__all__ = ["NearDupe"]


class NearDupe:
    """Near-duplicates in one index. Each method takes the options of the function it names.

    >>> from es_neardupe import NearDupe, Settings
    >>> with NearDupe("news", url="http://127.0.0.1:9200") as news:   # doctest: +SKIP
    ...     news.init(Settings(fields=("title", "body"), threshold=0.8))
    ...     news.enrich()
    ...     report = news.group()
    ...     hits = news.similar(id="4711", min=0.7).hits

    ``client`` may be an ``elasticsearch.Elasticsearch`` or ``opensearchpy.OpenSearch`` of yours, which is not
    closed. Without it the server is found as on the command line: the keyword arguments of `resolve_settings`,
    then the environment, then a profile. ``run`` names the run in its requests (``X-Opaque-Id``) and log events;
    ``max_rate`` and ``max_load`` are the limits of `Pace.limit`. Raises `ConnectError` and its
    kinds.
    """

    def __init__(
        self,
        index: str,
        client: object | None = None,
        *,
        prefix: str = DEFAULT_PREFIX,
        run: str | None = None,
        max_rate: float | None = None,
        max_load: int | None = None,
        **connection: Any,
    ) -> None:
        self.index = index
        self.prefix = prefix
        self.client: Client = (
            connect(resolve_settings(run=run, **connection)) if client is None else wrap(client, run=run)
        )
        self.client.pace.limit(max_rate=max_rate, max_load=max_load)

    def __enter__(self) -> NearDupe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connection, unless it is yours."""
        self.client.close()

    def init(self, settings: Settings, **options: Any) -> InitReport:
        """See `es_neardupe.commands.init.init`. ``settings.prefix`` must be the prefix given here."""
        return _init(self.client, self.index, settings, **options)

    def load(self, paths: Sequence[str], **options: Any) -> LoadReport:
        """See `es_neardupe.commands.load.load`."""
        return _load(self.client, self.index, paths, prefix=self.prefix, **options)

    def enrich(self, **options: Any) -> EnrichReport:
        """See `es_neardupe.commands.enrich.enrich`."""
        return _enrich(self.client, self.index, prefix=self.prefix, **options)

    def similar(self, **options: Any) -> Similar:
        """See `es_neardupe.commands.similar`."""
        return _similar(self.client, self.index, prefix=self.prefix, **options)

    def search(self, text: str | Mapping[str, Any], **options: Any) -> Found:
        """See `es_neardupe.commands.search.search`."""
        return _search(self.client, self.index, text, prefix=self.prefix, **options)

    def search_request(self, text: str | Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """See `es_neardupe.commands.search_request`."""
        return _search_request(self.client, self.index, text, prefix=self.prefix, **options)

    def contained(self, **options: Any) -> Contained:
        """See `es_neardupe.commands.contained`."""
        return _contained(self.client, self.index, prefix=self.prefix, **options)

    def group(self, **options: Any) -> GroupReport:
        """See `es_neardupe.commands.group`."""
        return _group(self.client, self.index, prefix=self.prefix, **options)

    def groups(self, **options: Any) -> list[Group]:
        """See `es_neardupe.groups.read`."""
        return _groups(self.client, self.index, prefix=self.prefix, **options)

    def group_history(self, group: str) -> Entry:
        """See `es_neardupe.commands.group_history`."""
        return _group_history(self.client, self.index, group, prefix=self.prefix)

    def suggest_keep(self, **options: Any) -> list[Advice]:
        """See `es_neardupe.commands.suggest_keep`."""
        return _suggest_keep(self.client, self.index, prefix=self.prefix, **options)

    def pairs(self, **options: Any) -> Pairs:
        """See `es_neardupe.commands.pairs`."""
        return _pairs(self.client, self.index, prefix=self.prefix, **options)

    def moved(self, address: str, **options: Any) -> Moved:
        """See `es_neardupe.commands.moved.moved`."""
        return _moved(self.client, self.index, address, prefix=self.prefix, **options)

    def moved_all(self, addresses: Iterable[str], **options: Any) -> Iterator[Moved]:
        """See `es_neardupe.commands.moved_all`."""
        return _moved_all(self.client, self.index, addresses, prefix=self.prefix, **options)

    def duplicates(self, request: RequestPlan | Mapping[str, Any] | str, **options: Any) -> DuplicatesReport:
        """See `es_neardupe.commands.duplicates.duplicates`."""
        return _duplicates(self.client, self.index, request, prefix=self.prefix, **options)

    def distribution(self, **options: Any) -> DistributionReport:
        """See `es_neardupe.commands.distribution.distribution`."""
        return _distribution(self.client, self.index, prefix=self.prefix, **options)

    def audit(self, **options: Any) -> AuditReport:
        """See `es_neardupe.commands.audit.audit`."""
        return _audit(self.client, self.index, prefix=self.prefix, **options)

    def what_if(self, **options: Any) -> WhatIf:
        """See `es_neardupe.commands.what_if`."""
        return _what_if(self.client, self.index, prefix=self.prefix, **options)

    def compare(self, a: str, b: str | None = None, **options: Any) -> Comparison:
        """See `es_neardupe.commands.compare`."""
        return _compare(self.client, self.index, a, b, prefix=self.prefix, **options)

    def stats(self, **options: Any) -> Stats:
        """See `es_neardupe.commands.stats`."""
        return _stats(self.client, self.index, prefix=self.prefix, **options)

    def watch(self, **options: Any) -> WatchReport:
        """See `es_neardupe.commands.watch`."""
        return _watch(self.client, self.index, prefix=self.prefix, **options)

    def migrate(self, **options: Any) -> MigrateReport:
        """See `es_neardupe.commands.migrate.migrate`."""
        return _migrate(self.client, self.index, prefix=self.prefix, **options)

    def clean(self, **options: Any) -> CleanReport:
        """See `es_neardupe.commands.clean`."""
        return _clean(self.client, self.index, prefix=self.prefix, **options)

    def doctor(self) -> list[Check]:
        """See `es_neardupe.commands.doctor.doctor`."""
        return _doctor(self.client, self.index, prefix=self.prefix)

    def version(self) -> VersionReport:
        """See `es_neardupe.commands.version`."""
        return _version(self.client)

    def fingerprinted(
        self, actions: Iterable[Mapping[str, Any]], *, max_chars: int = DEFAULT_MAX_CHARS
    ) -> Iterator[dict[str, Any]]:
        """Your own bulk actions with their keys added: hand the result to the driver's ``helpers.bulk``.

        See `fingerprinted_actions` for what becomes of which action. Actions that name
        no index are taken to go to this one.
        """
        target = open_inline(self.client, self.index, self.prefix, "fingerprinted", writes=True)
        yield from fingerprinted_actions(
            actions, target.settings, index=self.index, max_chars=max_chars, left_alone=target.left_alone
        )
