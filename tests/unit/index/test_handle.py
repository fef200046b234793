"""A handle of an index, before and after it is opened; no server is needed."""

from __future__ import annotations

from typing import Any

from unit_tools import SETTINGS, FakeClient, index_of

from es_neardupe.index.index import Index
from es_neardupe.index.target import IndexTarget


def test_requests_name_the_concrete_indices_once_it_is_opened() -> None:
    client: Any = FakeClient()
    target = IndexTarget("news", ("news-1", "news-2"), SETTINGS, 10_000)
    assert Index("news", client).documents.name == "news"
    assert index_of(client, target).documents.name == "news-1,news-2"


def test_plain_documents_go_through_the_connection_itself() -> None:
    client: Any = FakeClient()
    index = index_of(client, IndexTarget("news", ("news-1",), SETTINGS, 10_000))
    assert index.documents.client is index.client is not client
    assert index.plain_documents.client is client
    assert index.plain_documents.name == index.documents.name == "news-1"
