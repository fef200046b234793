"""Opening a connection, or taking over somebody else's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

from es_neardupe.clients import elasticsearch
from es_neardupe.clients.again import retrying
from es_neardupe.clients.detect import detect
from es_neardupe.clients.driver import Driver
from es_neardupe.clients.patience import PatientDriver
from es_neardupe.clients.protocol import Client
from es_neardupe.clients.server_client import ServerClient
from es_neardupe.clients.settings import ConnectionSettings, ConnectionWarning, Retries
from es_neardupe.clients.traced import TracedDriver
from es_neardupe.errors import NoServer, SettingsError
from es_neardupe.records import Product, Server

__all__ = ["connect", "wrap"]

_FIRST_TRIES, _FIRST_TOTAL = 2, 10.0
"""An address that nobody listens at is most often a mistake: say so soon."""


def connect(settings: ConnectionSettings, *, local_url: Callable[[], str | None] | None = None) -> Client:
    """A client for the server that the settings name, else for a running local one.

    ``local_url`` looks for a running local node and gives its address or None; such a node gets no
    credentials. Raises ``NoServer``, ``SettingsError``, and every other ``ConnectError``; ``RequestError``
    where the server refuses to say what it is.
    """
    settings = _with_place(settings, local_url)
    patience = max(settings.retries.longest_answer, settings.timeout)
    if not settings.verify and (settings.url or "https:").startswith("https:"):
        warnings.warn(
            "The server's certificate is not checked: somebody in between could read and change everything.",
            ConnectionWarning,
            stacklevel=2,
        )
    driver = TracedDriver(PatientDriver(elasticsearch.open_driver(settings), patience), settings.run)
    try:
        server = _first_answer(driver, settings.retries)
    except BaseException:
        driver.close()
        raise
    if server.product is Product.OPENSEARCH:
        driver.close()
        driver = driver.over(PatientDriver(_opensearch(settings), patience))
    return ServerClient(driver, server, settings.retries)


def wrap(client: object, *, retries: Retries | None = None, run: str | None = None) -> Client:
    """A client over an existing ``elasticsearch.Elasticsearch`` or ``opensearchpy.OpenSearch``.

    Its hosts, login, TLS and time-out stay as they are, its own retries are not used, and ``close`` does not
    close it. An answer that is not complete after ``retries.longest_answer`` seconds is lost, whatever the client's
    time-out is. ``run`` names the run in its requests. Raises ``SettingsError`` for any other object, and what
    :func:`connect` raises.
    """
    from es_neardupe.clients import opensearch  # late, as in _opensearch

    driver: Driver | None = elasticsearch.wrap_driver(client) or opensearch.wrap_driver(client)
    if driver is None:
        raise SettingsError(
            "An elasticsearch.Elasticsearch or an opensearchpy.OpenSearch is needed (not the async ones), "
            f"not {type(client).__module__}.{type(client).__qualname__}."
        )
    retries = retries or Retries()
    traced = TracedDriver(PatientDriver(driver, retries.longest_answer), run)
    return ServerClient(traced, _first_answer(traced, retries), retries)


def _with_place(settings: ConnectionSettings, local_url: Callable[[], str | None] | None) -> ConnectionSettings:
    if settings.url or settings.cloud_id:
        return settings
    found = local_url() if local_url else None
    if not found:
        raise NoServer(
            "No server was named and none is running. "
            "Start one with `es-neardupe node start`, or give --url (or set ES_NEARDUPE_URL)."
        )
    return ConnectionSettings(url=found, timeout=settings.timeout, retries=settings.retries, run=settings.run)


def _first_answer(driver: Driver, retries: Retries) -> Server:
    few = replace(retries, attempts=min(_FIRST_TRIES, retries.attempts), total=min(_FIRST_TOTAL, retries.total))
    return retrying(few)(detect, driver)


def _opensearch(settings: ConnectionSettings) -> Driver:
    from es_neardupe.clients import opensearch  # late: a tenth of a second that many do not need

    return opensearch.open_driver(settings)
