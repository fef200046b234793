"""The service of a server is found in its answers, or in the name of its host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from es_neardupe.records import Product, Server, Service
from es_neardupe.server.connect import detect
from es_neardupe.server.responses import Answer

ELASTICSEARCH = {"version": {"number": "9.5.0", "build_flavor": "default", "lucene_version": "10.3.0"}}
SERVERLESS = {"version": {"number": "10.2.0", "build_flavor": "serverless", "lucene_version": "10.3.0"}}
OPENSEARCH = {"version": {"number": "3.8.0", "distribution": "opensearch", "lucene_version": "10.3.0"}}


class OneAnswer:
    """A driver whose server gives one answer."""

    login = ""

    def __init__(self, url: str, answer: Answer) -> None:
        self.url = url
        self._answer = answer

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        return self._answer

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("url", "status", "headers", "body", "server"),
    [
        ("http://a:9200", 200, {}, OPENSEARCH, Server(Product.OPENSEARCH, (3, 8, 0))),
        (
            "http://a:9200",
            200,
            {"x-elastic-product": "Elasticsearch", "x-found-handling-cluster": "1"},
            ELASTICSEARCH,
            Server(Product.ELASTICSEARCH, (9, 5, 0), Service.ELASTIC_HOSTED),
        ),
        (
            "http://a:443",
            200,
            {"x-elastic-product": "Elasticsearch"},
            SERVERLESS,
            Server(Product.ELASTICSEARCH, (9, 5, 0), Service.ELASTIC_SERVERLESS),
        ),
        (
            "https://search.example:443",
            200,
            {"x-amzn-requestid": "1"},
            OPENSEARCH,
            Server(Product.OPENSEARCH, (3, 8, 0), Service.AMAZON_DOMAIN),
        ),
        (
            "https://search-a.eu-central-1.es.amazonaws.com:443",
            200,
            {},
            OPENSEARCH,
            Server(Product.OPENSEARCH, (3, 8, 0), Service.AMAZON_DOMAIN),
        ),
        (
            "https://search.example:443",
            404,
            {"server": "aoss-amazon"},
            None,
            Server(Product.OPENSEARCH, (0, 0, 0), Service.AMAZON_COLLECTION),
        ),
    ],
)
def test_the_service(url: str, status: int, headers: dict[str, str], body: Any, server: Server) -> None:
    assert detect(OneAnswer(url, Answer(status, headers, body))) == server


def test_names() -> None:
    assert str(Server(Product.OPENSEARCH, (3, 8, 0), Service.AMAZON_DOMAIN)) == (
        "OpenSearch 3.8.0 on Amazon OpenSearch Service"
    )
    assert str(Server(Product.ELASTICSEARCH, (9, 5, 0), Service.ELASTIC_SERVERLESS)) == "Elastic Cloud Serverless"
