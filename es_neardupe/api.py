"""The Python API in one object: a connection and an index, with a method for each command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from es_neardupe import pipeline
from es_neardupe.audits import AuditReport
from es_neardupe.clients import Client, connect, resolve_settings, wrap
from es_neardupe.comparison import Comparison
from es_neardupe.distributions import DistributionReport
from es_neardupe.pipeline.clean import CleanReport
from es_neardupe.pipeline.contained import Contained
from es_neardupe.pipeline.doctor import Check
from es_neardupe.pipeline.duplicate_results import DuplicatesReport
from es_neardupe.pipeline.enrich import EnrichReport
from es_neardupe.pipeline.group import GroupReport
from es_neardupe.pipeline.groups import Group
from es_neardupe.pipeline.init import InitReport
from es_neardupe.pipeline.keeping import Advice
from es_neardupe.pipeline.load import LoadReport
from es_neardupe.pipeline.migrate import MigrateReport
from es_neardupe.pipeline.pairs import Pairs
from es_neardupe.pipeline.places import Moved
from es_neardupe.pipeline.search import Found
from es_neardupe.pipeline.similar import Similar
from es_neardupe.pipeline.stats import Stats
from es_neardupe.pipeline.version import VersionReport
from es_neardupe.pipeline.watch import WatchReport
from es_neardupe.pipeline.what_if import WhatIf
from es_neardupe.registry import Entry
from es_neardupe.requests import RequestPlan
from es_neardupe.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX, Settings
from es_neardupe.sidecar import open_inline
from es_neardupe.stages.ingest import fingerprinted_actions

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
    ``max_rate`` and ``max_load`` are the limits of `es_neardupe.pacing.Pace.limit`. Raises `ConnectError` and its
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
        """See `es_neardupe.pipeline.init`. ``settings.prefix`` must be the prefix given here."""
        return pipeline.init(self.client, self.index, settings, **options)

    def load(self, paths: Sequence[str], **options: Any) -> LoadReport:
        """See `es_neardupe.pipeline.load`."""
        return pipeline.load(self.client, self.index, paths, prefix=self.prefix, **options)

    def enrich(self, **options: Any) -> EnrichReport:
        """See `es_neardupe.pipeline.enrich`."""
        return pipeline.enrich(self.client, self.index, prefix=self.prefix, **options)

    def similar(self, **options: Any) -> Similar:
        """See `es_neardupe.pipeline.similar`."""
        return pipeline.similar(self.client, self.index, prefix=self.prefix, **options)

    def search(self, text: str | Mapping[str, Any], **options: Any) -> Found:
        """See `es_neardupe.pipeline.search`."""
        return pipeline.search(self.client, self.index, text, prefix=self.prefix, **options)

    def search_request(self, text: str | Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """See `es_neardupe.pipeline.search_request`."""
        return pipeline.search_request(self.client, self.index, text, prefix=self.prefix, **options)

    def contained(self, **options: Any) -> Contained:
        """See `es_neardupe.pipeline.contained`."""
        return pipeline.contained(self.client, self.index, prefix=self.prefix, **options)

    def group(self, **options: Any) -> GroupReport:
        """See `es_neardupe.pipeline.group`."""
        return pipeline.group(self.client, self.index, prefix=self.prefix, **options)

    def groups(self, **options: Any) -> list[Group]:
        """See `es_neardupe.pipeline.groups`."""
        return pipeline.groups(self.client, self.index, prefix=self.prefix, **options)

    def group_history(self, group: str) -> Entry:
        """See `es_neardupe.pipeline.group_history`."""
        return pipeline.group_history(self.client, self.index, group, prefix=self.prefix)

    def suggest_keep(self, **options: Any) -> list[Advice]:
        """See `es_neardupe.pipeline.suggest_keep`."""
        return pipeline.suggest_keep(self.client, self.index, prefix=self.prefix, **options)

    def pairs(self, **options: Any) -> Pairs:
        """See `es_neardupe.pipeline.pairs`."""
        return pipeline.pairs(self.client, self.index, prefix=self.prefix, **options)

    def moved(self, address: str, **options: Any) -> Moved:
        """See `es_neardupe.pipeline.moved`."""
        return pipeline.moved(self.client, self.index, address, prefix=self.prefix, **options)

    def moved_all(self, addresses: Iterable[str], **options: Any) -> Iterator[Moved]:
        """See `es_neardupe.pipeline.moved_all`."""
        return pipeline.moved_all(self.client, self.index, addresses, prefix=self.prefix, **options)

    def duplicates(self, request: RequestPlan | Mapping[str, Any] | str, **options: Any) -> DuplicatesReport:
        """See `es_neardupe.pipeline.duplicates`."""
        return pipeline.duplicates(self.client, self.index, request, prefix=self.prefix, **options)

    def distribution(self, **options: Any) -> DistributionReport:
        """See `es_neardupe.pipeline.distribution`."""
        return pipeline.distribution(self.client, self.index, prefix=self.prefix, **options)

    def audit(self, **options: Any) -> AuditReport:
        """See `es_neardupe.pipeline.audit`."""
        return pipeline.audit(self.client, self.index, prefix=self.prefix, **options)

    def what_if(self, **options: Any) -> WhatIf:
        """See `es_neardupe.pipeline.what_if`."""
        return pipeline.what_if(self.client, self.index, prefix=self.prefix, **options)

    def compare(self, a: str, b: str | None = None, **options: Any) -> Comparison:
        """See `es_neardupe.pipeline.compare`."""
        return pipeline.compare(self.client, self.index, a, b, prefix=self.prefix, **options)

    def stats(self, **options: Any) -> Stats:
        """See `es_neardupe.pipeline.stats`."""
        return pipeline.stats(self.client, self.index, prefix=self.prefix, **options)

    def watch(self, **options: Any) -> WatchReport:
        """See `es_neardupe.pipeline.watch`."""
        return pipeline.watch(self.client, self.index, prefix=self.prefix, **options)

    def migrate(self, **options: Any) -> MigrateReport:
        """See `es_neardupe.pipeline.migrate`."""
        return pipeline.migrate(self.client, self.index, prefix=self.prefix, **options)

    def clean(self, **options: Any) -> CleanReport:
        """See `es_neardupe.pipeline.clean`."""
        return pipeline.clean(self.client, self.index, prefix=self.prefix, **options)

    def doctor(self) -> list[Check]:
        """See `es_neardupe.pipeline.doctor`."""
        return pipeline.doctor(self.client, self.index, prefix=self.prefix)

    def version(self) -> VersionReport:
        """See `es_neardupe.pipeline.version`."""
        return pipeline.version(self.client)

    def fingerprinted(
        self, actions: Iterable[Mapping[str, Any]], *, max_chars: int = DEFAULT_MAX_CHARS
    ) -> Iterator[dict[str, Any]]:
        """Your own bulk actions with their keys added: hand the result to the driver's ``helpers.bulk``.

        See `es_neardupe.stages.ingest.fingerprinted_actions` for what becomes of which action. Actions that name
        no index are taken to go to this one.
        """
        target = open_inline(self.client, self.index, self.prefix, "fingerprinted", writes=True)
        yield from fingerprinted_actions(
            actions, target.settings, index=self.index, max_chars=max_chars, left_alone=target.left_alone
        )
