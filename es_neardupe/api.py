"""`NearDupe`: the Python interface, one object with a method for each command."""

from __future__ import annotations

from types import TracebackType
from typing import TypeGuard, TypeVar

from es_neardupe import options
from es_neardupe.commands import clean as _clean
from es_neardupe.commands import compare as _compare
from es_neardupe.commands import contained as _contained
from es_neardupe.commands import group as _group
from es_neardupe.commands import groups as _groups
from es_neardupe.commands import pairs as _pairs
from es_neardupe.commands import search as _search
from es_neardupe.commands import similar as _similar
from es_neardupe.commands import stats as _stats
from es_neardupe.commands import version as _version
from es_neardupe.commands import watch as _watch
from es_neardupe.commands import what_if as _what_if
from es_neardupe.commands.audit import audit as _audit
from es_neardupe.commands.distribution import distribution as _distribution
from es_neardupe.commands.doctor import doctor as _doctor
from es_neardupe.commands.duplicates import duplicates as _duplicates
from es_neardupe.commands.enrich import enrich as _enrich
from es_neardupe.commands.enrich import ingest as _ingest
from es_neardupe.commands.init import init as _init
from es_neardupe.commands.load import load as _load
from es_neardupe.commands.migrate import migrate as _migrate
from es_neardupe.commands.moved import moved as _moved
from es_neardupe.index.index import Index
from es_neardupe.options import DEFAULT_PREFIX, document_options
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect, wrap
from es_neardupe.server.login.resolve import resolve_settings

__all__ = ["NearDupe"]

_Self = TypeVar("_Self", bound="NearDupe")


@document_options
class NearDupe(Index):
    """Near-duplicates in one index, alias, data stream or pattern: a method for each command.

    >>> from es_neardupe import NearDupe, Settings
    >>> with NearDupe("news", url="http://127.0.0.1:9200") as news:   # doctest: +SKIP
    ...     news.init(Settings(fields=("title", "body"), threshold=0.8))
    ...     news.enrich()
    ...     report = news.group()
    ...     hits = news.similar(id="4711", min=0.7).hits

    ``client`` may be your ``elasticsearch.Elasticsearch`` or ``opensearchpy.OpenSearch``, which is not closed. Without
    it the server is found as on the command line: by the keyword arguments from ``url`` to ``profile``, then the
    environment, then a profile. ``run`` names the run in its requests (``X-Opaque-Id``) and log events. ``max_rate``
    limits the documents written per second, ``max_load`` the documents in requests under way. Raises `ConnectError` and
    its kinds.
    """

    def __init__(
        self,
        index: str,
        client: object | None = None,
        *,
        prefix: options.Prefix = DEFAULT_PREFIX,
        run: str | None = None,
        max_rate: options.MaxRate = None,
        max_load: options.MaxLoad = None,
        url: options.Url = None,
        api_key_file: options.ApiKeyFile = None,
        username: options.Username = None,
        password_file: options.PasswordFile = None,
        bearer_token_file: options.BearerTokenFile = None,
        ca_certs: options.CaCerts = None,
        cert_fingerprint: options.CertFingerprint = None,
        client_cert: options.ClientCert = None,
        client_key: options.ClientKey = None,
        insecure: options.Insecure = False,
        timeout: options.Timeout = None,
        profile: options.Profile = None,
    ) -> None:
        if client is None:
            settings = resolve_settings(
                url=url,
                api_key_file=api_key_file,
                username=username,
                password_file=password_file,
                bearer_token_file=bearer_token_file,
                ca_certs=ca_certs,
                cert_fingerprint=cert_fingerprint,
                client_cert=client_cert,
                client_key=client_key,
                insecure=insecure,
                timeout=timeout,
                profile=profile,
                run=run,
            )
            connection = connect(settings)
        else:
            connection = client if _is_connection(client) else wrap(client, run=run)
        super().__init__(index, connection, prefix)
        if max_rate is not None or max_load is not None:
            connection.pace.limit(max_rate=max_rate, max_load=max_load)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, unless it is yours."""
        self.client.close()

    init = _init.init
    load = _load.load
    enrich = _enrich.enrich
    fingerprinted = _ingest.fingerprinted
    migrate = _migrate.migrate
    clean = _clean.clean
    similar = _similar.similar
    contained = _contained.contained
    search = _search.search
    search_request = _search.search_request
    pairs = _pairs.pairs
    moved = _moved.moved
    moved_all = _moved.moved_all
    compare = _compare.compare
    duplicates = _duplicates.duplicates
    group = _group.group
    groups = _groups.groups
    group_history = _groups.group_history
    suggest_keep = _groups.suggest_keep
    watch = _watch.watch
    stats = _stats.stats
    doctor = _doctor.doctor
    audit = _audit.audit
    distribution = _distribution.distribution
    what_if = _what_if.what_if
    version = _version.version


def _is_connection(client: object) -> TypeGuard[Client]:
    """Whether a client is one of this package. No property of it is read: that may ask the server."""
    return callable(getattr(client, "pages", None))
