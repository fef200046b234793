"""Frozen indices: searchable snapshots, which cannot be written. Keys are stored in sidecar indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from server_tools import JSON, delete_all, family, hits, make_index, mapping, put, versions

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Blocked
from es_neardupe.local_server.versions import Release, pick
from es_neardupe.server.client import Client, path

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

SETTINGS = Settings(("text",), threshold=0.7)


@pytest.fixture(params=["3.8", pytest.param("2.19", marks=pytest.mark.long)])
def archive(request: pytest.FixtureRequest, node_with_repository: Callable[[Release], Client]) -> Iterator[Client]:
    """A server with documents in ``news-2``, and others in the frozen ``news-1``; the alias ``news`` has both."""
    client = node_with_repository(pick("opensearch", request.param))
    for number, documents in enumerate(halves(), 1):
        make_index(client, f"news-{number}", settings={"number_of_shards": 2, "number_of_replicas": 0})
        put(client, f"news-{number}", documents)
    wait = {"wait_for_completion": True}
    client.request("PUT", path("_snapshot", "kept", "one"), params=wait, body={"indices": "news-1"})
    client.request("DELETE", path("news-1"))
    frozen = {"indices": "news-1", "storage_type": "remote_snapshot"}
    client.request("POST", path("_snapshot", "kept", "one", "_restore"), params=wait, body=frozen)
    both = {"actions": [{"add": {"indices": ["news-1", "news-2"], "alias": "news"}}]}
    client.request("POST", path("_aliases"), body=both)
    yield client
    delete_all(client, "news")


def halves() -> tuple[JSON, JSON]:
    """Families of near-copies, each with a part in one index and the rest in the other."""
    texts = {f"f{n}-{k}": {"text": text} for n in range(6) for k, text in enumerate(family(n, 4, length=60))}
    first, rest = ({id: one for id, one in texts.items() if (id[-1] in "01") == is_first} for is_first in (True, False))
    return first, rest


def test_a_frozen_index_and_one_that_is_written(archive: Client) -> None:
    before = mapping(archive, "news-1"), versions(archive, "news-1")
    ways: list[dict[str, Any]] = [{}, {"sidecar": True, "write_group": True}]
    for write_group in ways:
        with pytest.raises(
            Blocked, match=r"news-1: a searchable snapshot.*`es-neardupe init news --field FIELD --sidecar`"
        ):
            NearDupe("news", archive).init(SETTINGS, **write_group)
    (blocks,) = [one for one in NearDupe("news-1", archive).doctor() if one.name == "blocks"]
    assert (blocks.level, "searchable snapshot" in blocks.message) == ("error", True)

    NearDupe("news", archive).init(SETTINGS, sidecar=True)
    assert NearDupe("news", archive).enrich().writes.written == 24
    NearDupe("news", archive).group()
    groups = [{member.id[:2] for member in one.members} for one in NearDupe("news", archive).groups()]
    assert sorted(groups, key=str) == [{f"f{n}"} for n in range(6)]
    sizes = [len({member.index for member in one.members}) for one in NearDupe("news", archive).groups()]
    assert sizes == [2] * 6
    assert NearDupe("news", archive).similar(id="f0-0").hits
    assert NearDupe("news", archive).enrich().scope.read == 0
    assert {one.level for one in NearDupe("news", archive).doctor()} == {"ok"}

    assert NearDupe("news", archive).migrate(threshold=0.8).state == "done"
    assert NearDupe("news", archive).clean().writes.left == 0
    assert (mapping(archive, "news-1"), versions(archive, "news-1")) == before
    assert not any("neardupe" in hit["_source"] for hit in hits(archive, "news"))
