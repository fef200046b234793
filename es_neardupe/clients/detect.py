"""Which product answers at an address, and in which version."""

from __future__ import annotations

import re
from typing import Any

from es_neardupe.clients.answers import Answer, refusal
from es_neardupe.clients.driver import Driver
from es_neardupe.errors import Forbidden, UnsupportedServer
from es_neardupe.records import Product, Server

__all__ = ["detect"]

_SUPPORTED = {Product.ELASTICSEARCH: {8, 9}, Product.OPENSEARCH: {2, 3}}
_WORDS = "Elasticsearch 8 and 9 and OpenSearch 2 and 3 are supported"
_NODES = "/_nodes?filter_path=nodes.*.version"
_PLAIN = {"accept": "application/json"}  # every product takes it

_Version = tuple[int, int, int]


def detect(driver: Driver) -> Server:
    """Ask ``GET /``, and where that is forbidden or absent, the nodes.

    Raises ``UnsupportedServer``, ``LoginRefused``, ``Forbidden`` if nothing may be seen, and what a lost
    connection or an overloaded server raises.
    """
    root = _ask(driver, "/")
    product, version = _product(root), _root_version(root)
    if product is None or version is None:
        nodes = _ask(driver, _NODES)
        version = _lowest_version(nodes)
        if version is None:
            raise _unknown(driver.url, product or _product(nodes), nodes)
        product = product or _product(nodes) or _by_version(version)
    if product is None or version[0] not in _SUPPORTED[product]:
        name = str(Server(product, version)) if product else "an unknown search server"
        raise UnsupportedServer(f"{driver.url} is {name}; {_WORDS}.")
    return Server(product, version)


def _ask(driver: Driver, target: str) -> Answer:
    """The answer, unless it says that the server cannot answer now, or not to this user."""
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
    if "distribution" not in version and "lucene_version" in version:  # before 7.14, or a header was cut
        return Product.ELASTICSEARCH
    return None


def _by_version(version: _Version) -> Product | None:
    """The products' supported versions are disjoint, and Elasticsearch names itself in a header."""
    return Product.OPENSEARCH if version[0] in _SUPPORTED[Product.OPENSEARCH] else None


def _root_version(answer: Answer) -> _Version | None:
    version = _version_object(answer)
    found = _numbers(version.get("number"))
    # OpenSearch can be told to pass for Elasticsearch 7.10.2; the nodes tell the truth.
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
        what = f"the version of {product.value.capitalize()}" if product else "which server this is"
        return Forbidden(
            f"{url}: this user may not see {what}. Allow the cluster privilege 'monitor' (of OpenSearch: "
            f"'cluster_monitor').",
            status=403,
        )
    return UnsupportedServer(f"{url} answers, but not as a search server; {_WORDS}.")
