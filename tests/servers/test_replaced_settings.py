"""Settings that are replaced or removed while another command runs: it stops, and leaves nothing of the former ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from server_tools import family, make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Conflict
from es_neardupe.server.client import Before, Client, ForwardingClient

REPLACED = "were replaced during this run, so nothing more is written: run the same command again"
TITLES = Settings(("title",))


class InFlight(ForwardingClient):
    """Something happens while the first request with keys or groups of documents is on its way."""

    def __init__(self, client: Client, happens: Callable[[], object]) -> None:
        super().__init__(client)
        self.todo = [happens]

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        if self.todo and b'"neardupe":' in body:
            self.todo.pop()()
        return self.plain.bulk(body, params=params, before=before)


def fill(client: Client, index: str) -> None:
    """Documents with different titles, whose texts are two families."""
    make_index(client, index, {"title": {"type": "text"}, "body": {"type": "text"}})
    texts = [*family("one", 20), *family("other", 20)]
    put(client, index, {f"d{n:02}": {"title": " ".join(words(n, 20)), "body": text} for n, text in enumerate(texts)})


@pytest.mark.product("each")
@pytest.mark.parametrize("sidecar", [False, True])
def test_a_migration_to_another_field(sidecar: bool, client: Client, index_name: str) -> None:
    """The scheme of the keys is the same."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(TITLES, sidecar=sidecar)
    news.enrich()
    news.group()

    def migrate() -> None:
        assert news.migrate(fields=("body",)).state == "done"

    with pytest.raises(Conflict, match=REPLACED):
        NearDupe(index_name, InFlight(client, migrate)).enrich(all=True, batch=10)
    news.enrich()
    news.group()
    assert news.enrich(check=True).writes.written == 0
    assert {len(group.members) for group in news.groups()} == {20}


def test_a_run_that_writes_nothing_stores_no_progress(client: Client, index_name: str) -> None:
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(TITLES)
    news.enrich()
    todo = [lambda: news.migrate(fields=("body",))]

    def progress(stage: str, done: int, total: int | None) -> None:
        while stage == "fingerprinting" and done and todo:
            todo.pop()()

    with pytest.raises(Conflict, match=REPLACED):
        news.enrich(check=True, progress=progress)
