"""Reading by id while shards are unavailable: a server's answers for some seconds after a restart."""

from __future__ import annotations

from typing import Any

import pytest
from unit_tools import FakeClient

from es_neardupe.errors import RequestError
from es_neardupe.server import search as fetching
from es_neardupe.server.login.settings import Retries
from es_neardupe.server.search import fetch

DOCUMENTS = {("i", f"d{k}"): {"n": k} for k in range(5)}
REFERENCES = [("i", f"d{k}", None) for k in range(6)]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PART_RETRIES", Retries(wait=0))


class Starting(FakeClient):
    """Answers with an error for its second document, this many times."""

    def __init__(self, times: int, type: str = "no_shard_available_action_exception") -> None:
        super().__init__(DOCUMENTS)
        self.left = times
        self.error = {"type": type, "reason": "No shard available for [get]"}

    def request(self, *words: Any, **more: Any) -> Any:
        answer = super().request(*words, **more)
        if self.left and len(answer["docs"]) > 1:
            self.left -= 1
            answer["docs"][1] = {"_index": "i", "_id": "d1", "error": self.error}
        return answer


def test_it_is_asked_again_until_all_shards_are_there() -> None:
    client = Starting(times=3)
    found = [hit and hit.source for hit in fetch(client, REFERENCES, ["n"], batch=4)]
    assert found == [*DOCUMENTS.values(), None]
    assert client.requests == [4, 4, 4, 4, 2]


def test_it_gives_up() -> None:
    with pytest.raises(RequestError, match=r"'d1' of index i cannot be read: No shard available") as caught:
        list(fetch(Starting(times=100), REFERENCES, ["n"]))
    assert caught.value.status == 503


def test_other_errors_are_told_at_once() -> None:
    client = Starting(times=100, type="illegal_argument_exception")
    with pytest.raises(RequestError) as caught:
        list(fetch(client, REFERENCES, ["n"]))
    assert (caught.value.status, client.requests) == (500, [6])
