"""The older servers that are supported: enrich, similar, contained and group on each, whatever --servers says."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from server_tools import family, make_index, ours, put, theirs, true_pairs, words

from es_neardupe import Settings, node, pipeline
from es_neardupe.clients import Client, ConnectionSettings, connect
from es_neardupe.errors import NodeError

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=["elasticsearch-8.19", "opensearch-2.19"])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A connection to an older server, started for this module."""
    kind, _, version = request.param.partition("-")
    data = tmp_path_factory.mktemp(request.param)
    try:
        started = node.start(kind, version, data=data, heap="384m")
    except NodeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no server to be had: {error}")
    client = connect(ConnectionSettings(url=started.url))
    yield client
    client.close()
    node.stop(kind, version, data=data)


def test_enrich_similar_and_group(older: Client) -> None:
    index = "older"
    make_index(older, index, settings={"number_of_shards": 2})
    texts = {f"f{n:03}-{k}": text for n in range(60) for k, text in enumerate(family(n, 3, length=80))}
    texts |= {f"alone{n:04}": " ".join(words(n, 20)) for n in range(1000)}
    put(older, index, {id: {"text": text} for id, text in texts.items()})
    users = theirs(older, index)
    assert pipeline.init(older, index, Settings(("text",), threshold=0.7, sample_mod=4)).prepared == (index,)
    assert pipeline.enrich(older, index).written == len(texts)
    assert pipeline.enrich(older, index, check=True).unchanged == len(texts)
    found = pipeline.similar(older, index, id="f007-1", min=0.7)
    truth = true_pairs({id: text for id, text in texts.items() if id.startswith("f")}, 0.7)
    wanted = {(set(pair) - {"f007-1"}).pop(): value for pair, value in truth.items() if "f007-1" in pair}
    assert {hit.id: hit.resemblance for hit in found.hits} == pytest.approx(wanted)
    quoted = pipeline.contained(older, index, text=" ".join(texts["f007-1"].split()[:40]), min=0.9)
    directions = {hit.id: hit.direction.name for hit in quoted.hits}
    assert (directions["f007-1"], directions["alone0007"]) == ("CONTAINS", "CONTAINED")  # which begins the family
    assert set(directions) <= {"f007-0", "f007-1", "f007-2", "alone0007"}
    grouped = pipeline.group(older, index)
    assert (grouped.groups, grouped.grouped, grouped.written) == (60, 180, len(texts))
    assert pipeline.group(older, index).written == 0
    assert {(one.a[1], one.b[1]): one.resemblance for one in pipeline.pairs(older, index)} == pytest.approx(truth)
    assert {one.size for one in pipeline.groups(older, index)} == {3}
    assert pipeline.stats(older, index).documents == len(texts)
    assert {one.level for one in pipeline.doctor(older, index)} == {"ok"}
    assert theirs(older, index) == users
    assert pipeline.clean(older, index).cleaned == len(texts)
    assert not any(ours(older, index).values())
