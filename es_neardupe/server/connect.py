"""Connections: opened from settings, or over an existing driver client."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from es_neardupe.errors import Forbidden, NoServer, SettingsError, UnsupportedServer
from es_neardupe.records import Product, Server, Service
from es_neardupe.server.client import Client
from es_neardupe.server.drivers.driver import Driver, PatientDriver, TracedDriver
from es_neardupe.server.drivers.http import HttpDriver
from es_neardupe.server.http_client import ServerClient
from es_neardupe.server.login.settings import AwsLogin, ConnectionSettings, ConnectionWarning, Retries
from es_neardupe.server.pacing import with_retries
from es_neardupe.server.responses import Answer, refusal
from es_neardupe.wording import option

_SUPPORTED = {Product.ELASTICSEARCH: {8, 9}, Product.OPENSEARCH: {2, 3}}
_NODES = "/_nodes?filter_path=nodes.*.version"
_PLAIN = {"accept": "application/json"}  # every product accepts it

_Version = tuple[int, int, int]

_COLLECTION = Server(Product.OPENSEARCH, (0, 0, 0), Service.AMAZON_COLLECTION)
_SERVERLESS = Server(Product.ELASTICSEARCH, (9, 5, 0), Service.ELASTIC_SERVERLESS)
"""Elastic Cloud Serverless runs the newest code, whatever number it reports."""


def detect(driver: Driver) -> Server:
    """Product, version and service from ``GET /``; the version from the nodes if that is forbidden or shows none.

    Raises ``UnsupportedServer``, ``LoginRefused``, ``Forbidden`` if the user may see neither, and the errors of a lost
    connection or an overloaded server.
    """
    root = _ask(driver, "/")
    if (service := _service(root, driver.url)) is Service.AMAZON_COLLECTION:
        return _COLLECTION
    if service is Service.ELASTIC_SERVERLESS:
        return _SERVERLESS
    if service is Service.AMAZON_DOMAIN and root.status == 403:  # its policy, which knows no privilege of OpenSearch
        raise refusal(root, f"GET {driver.url}/")
    product, version = _product(root), _root_version(root)
    if product is None or version is None:
        nodes = _ask(driver, _NODES)
        version = _lowest_version(nodes)
        if version is None:
            raise _unknown(driver.url, product or _product(nodes), nodes)
        product = product or _product(nodes) or _by_version(version)
    if product is None or version[0] not in _SUPPORTED[product]:
        name = str(Server(product, version)) if product else "an unknown search server"
        raise UnsupportedServer(
            f"{driver.url} is {name}, which is not supported. Use Elasticsearch 8 or 9, or OpenSearch 2 or 3."
        )
    return Server(product, version, service)


def _service(root: Answer, url: str) -> Service:
    """The service that runs the server: custom domains hide it in the host name, so headers count too."""
    amazon = AwsLogin()
    if root.headers.get("server") == "aoss-amazon" or amazon.service_of(url) == "aoss":
        return Service.AMAZON_COLLECTION
    if "x-amzn-requestid" in root.headers or amazon.region_of(url):
        return Service.AMAZON_DOMAIN
    if _version_object(root).get("build_flavor") == "serverless":
        return Service.ELASTIC_SERVERLESS
    return Service.ELASTIC_HOSTED if "x-found-handling-cluster" in root.headers else Service.UNKNOWN


def _ask(driver: Driver, target: str) -> Answer:
    """The answer; raises its error if the server cannot answer now, or rejects the credentials."""
    answer = driver.send("GET", target, None, _PLAIN)
    if answer.status in {401, 429} or answer.status >= 500:
        error = refusal(answer, f"GET {driver.url}{target.partition('?')[0]}")
        error.request = answer.request
        raise error
    return answer


def _product(answer: Answer) -> Product | None:
    if answer.headers.get("x-elastic-product") == "Elasticsearch":
        return Product.ELASTICSEARCH
    version = _version_object(answer)
    if version.get("distribution") == "opensearch":
        return Product.OPENSEARCH
    if "distribution" not in version and "lucene_version" in version:  # before 7.14, or a proxy removed the header
        return Product.ELASTICSEARCH
    return None


def _by_version(version: _Version) -> Product | None:
    """The product by version: the supported versions are disjoint, and Elasticsearch names itself in a header."""
    return Product.OPENSEARCH if version[0] in _SUPPORTED[Product.OPENSEARCH] else None


def _root_version(answer: Answer) -> _Version | None:
    version = _version_object(answer)
    found = _numbers(version.get("number"))
    # OpenSearch can be configured to report version 7.10.2 of Elasticsearch; its nodes report the true version.
    pretends = version.get("distribution") == "opensearch" and found is not None and found[0] == 7
    return None if pretends else found


def _version_object(answer: Answer) -> dict[str, Any]:
    version = answer.body.get("version") if answer.ok and isinstance(answer.body, dict) else None
    return version if isinstance(version, dict) else {}


def _lowest_version(answer: Answer) -> _Version | None:
    nodes = answer.body.get("nodes") if answer.ok and isinstance(answer.body, dict) else None
    if not isinstance(nodes, dict):
        return None
    found = [_numbers(node.get("version")) for node in nodes.values() if isinstance(node, dict)]
    return min((version for version in found if version), default=None)


def _numbers(text: object) -> _Version | None:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _unknown(url: str, product: Product | None, nodes: Answer) -> UnsupportedServer | Forbidden:
    if nodes.status == 403:
        hidden = f"the version of {product.value.capitalize()}" if product else "the product and version of the server"
        return Forbidden(
            f"{url}: this user may not read {hidden}. Ask an administrator to grant the cluster privilege 'monitor' "
            f"(on OpenSearch 'cluster_monitor').",
            status=403,
        )
    return UnsupportedServer(
        f"{url} answers, but not as Elasticsearch or OpenSearch. Give the URL of the search server itself."
    )


_FIRST_TRIES, _FIRST_TOTAL = 2, 10.0
"""An address without a server is usually a mistake, which should be reported soon."""


def connect(settings: ConnectionSettings, *, local_url: Callable[[], str | None] | None = None) -> Client:
    """A client for the server that the settings name, else for a running local one.

    ``local_url`` returns the URL of a running local server, or None; such a server gets no credentials. Raises
    ``NoServer``, ``SettingsError``, and every other ``ConnectError``; ``RequestError`` if the server does not report
    its product and version.
    """
    settings = _with_url(settings, local_url)
    patience = max(settings.retries.longest_answer, settings.timeout)
    if not settings.verify and (settings.url or "https:").startswith("https:"):
        warnings.warn(
            "The server's certificate is not checked: anyone on the network can read and change all traffic.",
            ConnectionWarning,
            stacklevel=2,
        )
    driver = TracedDriver(PatientDriver(_opened(settings), patience), settings.run)
    try:
        # A collection answers no request that would name it.
        signed_for = settings.aws.service_of(driver.url) if settings.aws else None
        server = _COLLECTION if signed_for == "aoss" else _first_answer(driver, settings.retries)
    except BaseException:
        driver.close()
        raise
    only_header = settings.client_cert is None and settings.aws is None
    client = _client_class(server)
    return client(driver, server, settings.retries, settings.options, other_logins=only_header)


def wrap(client: object, *, retries: Retries | None = None, run: str | None = None) -> Client:
    """A client over an existing ``elasticsearch.Elasticsearch`` or ``opensearchpy.OpenSearch``.

    Its hosts, credentials, TLS and timeout apply, its own retries are not used, and ``close`` does not close it. An
    answer that is incomplete after ``retries.longest_answer`` seconds counts as lost, whatever the client's timeout is.
    ``run`` names the run in its requests. Raises ``SettingsError`` for any other object, and the errors of
    :func:`connect`.
    """
    driver = _adapter(client)
    if driver is None:
        raise SettingsError(
            f"{type(client).__module__}.{type(client).__qualname__} is not a supported client. Pass an "
            "elasticsearch.Elasticsearch or an opensearchpy.OpenSearch (not an async client)."
        )
    retries = retries or Retries()
    traced = TracedDriver(PatientDriver(driver, retries.longest_answer), run)
    server = _first_answer(traced, retries)
    return _client_class(server)(traced, server, retries, {"url": traced.url, "run": run})


def _client_class(server: Server) -> type[ServerClient]:
    if not server.is_collection:
        return ServerClient
    from es_neardupe.server.collection import CollectionClient  # few servers are collections

    return CollectionClient


def _opened(settings: ConnectionSettings) -> Driver:
    if settings.aws is None:
        return HttpDriver(settings)
    from es_neardupe.server.drivers.aws import SignedDriver  # an extra

    return SignedDriver(HttpDriver(settings), settings.aws)


def _adapter(client: object) -> Driver | None:
    """The driver over a client of the user; None if it is none of a supported package."""
    packages = {one.__module__.partition(".")[0] for one in type(client).__mro__}
    if "elasticsearch" in packages:
        from es_neardupe.server.drivers import elasticsearch

        return elasticsearch.wrap_driver(client)
    if "opensearchpy" in packages:
        from es_neardupe.server.drivers import opensearch

        return opensearch.wrap_driver(client)
    return None


def _with_url(settings: ConnectionSettings, local_url: Callable[[], str | None] | None) -> ConnectionSettings:
    if settings.url or settings.cloud_id:
        return settings
    local = local_url() if local_url else None
    if not local:
        raise NoServer(
            "No server was given, and no local server is running. "
            f"Give {option('url')}, set ES_NEARDUPE_URL, or run `es-neardupe node start`."
        )
    return ConnectionSettings(url=local, timeout=settings.timeout, retries=settings.retries, run=settings.run)


def _first_answer(driver: Driver, retries: Retries) -> Server:
    few = replace(retries, attempts=min(_FIRST_TRIES, retries.attempts), total=min(_FIRST_TOTAL, retries.total))
    return with_retries(partial(detect, driver), few)
