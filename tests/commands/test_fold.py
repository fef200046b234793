"""`fold` on real servers: the search pipeline, what it refuses, and the other commands that know it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from conftest import Cli
from rollover_tools import rolled
from server_tools import change, family, hits, make_index, one_line, plain_request, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, NotFound, SettingsError
from es_neardupe.records import Product
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.product("opensearch")

DEFAULT = "index.search.default_pipeline"


@pytest.fixture
def story(client: Client, index_name: str) -> Iterator[str]:
    """A group field of one test: the pipeline for a field belongs to the whole server."""
    if client.server.product is not Product.OPENSEARCH:
        pytest.skip("Elasticsearch has no search pipelines")
    field = index_name.replace("-", "_")
    yield field
    for name in pipelines(client, field):
        client.request("DELETE", path("_search", "pipeline", name))


def pipelines(client: Client, field: str) -> set[str]:
    """The names of the search pipelines with the field in their names."""
    try:
        stored = client.request("GET", path("_search", "pipeline"))
    except NotFound:
        return set()
    return {name for name in stored if field in name}


def grouped(client: Client, name: str, field: str | None) -> NearDupe:
    """An index with a group of three, a group of two, and a document alone."""
    make_index(client, name)
    texts = [*family("a", 3), *family("b", 2), " ".join(words("alone", 60))]
    put(client, name, {f"d{number}": {"text": text} for number, text in enumerate(texts)})
    news = NearDupe(name, client)
    news.init(Settings(("text",), group_field=field))
    news.enrich()
    news.group()
    return news


def found(client: Client, name: str) -> int:
    """The number of hits that an application gets."""
    status, answer = plain_request(client, "POST", f"/{name}/_search", {"size": 20})
    assert status == 200, answer
    return len(answer["hits"]["hits"])


def defaults(client: Client, name: str) -> dict[str, str | None]:
    stored = client.request("GET", path(name, "_settings"), params={"flat_settings": True})
    return {index: one["settings"].get(DEFAULT) for index, one in stored.items()}


def folding_check(news: NearDupe) -> tuple[str, str] | None:
    """The level and the message of `doctor` about folding."""
    return next(((one.level, one.message) for one in news.doctor() if one.name == "folding"), None)


def test_install_show_remove(
    client: Client, index_name: str, story: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    news = grouped(client, index_name, story)
    pipeline = f"es-neardupe-fold-{story}-x5"
    assert (news.fold().state, found(client, index_name)) == ("not folded", 6)
    tried = server_cli("fold", index_name, "install", "--dry-run", "--show-requests", "5", "--json").json
    assert [(one["method"], one["path"]) for one in tried["requests"]] == [
        ("PUT", f"/_search/pipeline/{pipeline}"),
        ("PUT", f"/{index_name}/_settings"),
    ]
    assert (tried["changed"], tried["state"], pipelines(client, story)) == ([index_name], "folded", set())

    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    refused = server_cli("fold", index_name, "install")
    assert refused.code == 1
    assert "_update_by_query, _delete_by_query and _reindex process only one document" in refused.err
    assert found(client, index_name) == 6
    assert server_cli("fold", index_name, "install", "--yes").code == 0
    assert (found(client, index_name), pipelines(client, story)) == (3, {pipeline})
    assert (news.fold().state, news.fold("install").changed) == ("folded", ())
    assert [one.level for one in news.doctor() if one.name == "folding"] == ["ok"]

    other = news.fold("install", oversample=3)
    assert (other.changed, pipelines(client, story)) == ((index_name,), {f"es-neardupe-fold-{story}-x3"})
    put(client, index_name, {"new1": {"text": "one"}, "new2": {"text": "two"}})
    assert news.fold().without_group == 2
    assert [one.level for one in news.doctor() if one.name == "folding"] == ["warning"]
    assert server_cli("fold", index_name, "remove").code == 0
    assert (found(client, index_name), pipelines(client, story)) == (8, set())
    assert news.fold("remove").changed == ()


def test_indices_share_a_pipeline(client: Client, index_name: str, story: str) -> None:
    """An alias is folded with all its indices, and the pipeline stays as long as an index uses it."""
    one, other = f"{index_name}-one", f"{index_name}-other"
    for name in (one, other):
        grouped(client, name, story)
    body = {"actions": [{"add": {"index": name, "alias": index_name}} for name in (one, other)]}
    client.request("POST", path("_aliases"), body=body)
    alias = NearDupe(index_name, client)
    assert NearDupe(one, client).fold("install").state == "folded"
    assert alias.fold().state == "partly"
    assert folding_check(alias) == ("warning", f"1 of 2 indices is folded: run `es-neardupe fold {index_name} install`")
    assert alias.fold("install").changed == (other,)
    assert found(client, index_name) == 6, "documents of different indices have groups of their own"
    assert NearDupe(one, client).fold("remove").changed == (one,)
    assert (found(client, one), found(client, other), len(pipelines(client, story))) == (6, 3, 1)
    client.request("PUT", path(other, "_settings"), body={DEFAULT: None})
    fold = f"es-neardupe fold {index_name}"
    message = f"no index is folded, but the search pipeline is stored: run `{fold} install` or `{fold} remove`"
    assert (alias.fold().state, folding_check(alias)) == ("unused", ("warning", message))
    assert alias.fold("remove").changed == ()
    assert (found(client, index_name), pipelines(client, story)) == (12, set())
    assert (alias.fold().state, folding_check(alias)) == ("not folded", None)


@pytest.mark.parametrize("kind", ["stream", "alias"])
def test_a_rollover(kind: str, client: Client, story: str) -> None:
    """The new index gets the group field by `enrich`, and the pipeline by another `install`."""
    with rolled(client, kind) as rolling:
        news = NearDupe(rolling.name, client)
        rolling.add(0, 3)
        news.init(Settings(("text",), group_field=story))
        news.enrich()
        news.group()
        assert (news.fold("install").state, found(client, rolling.name)) == ("folded", 1)
        new = rolling.roll()
        rolling.add(3, 5)
        news.enrich()
        news.group()
        assert found(client, rolling.name) == 1, "one of the indices has the pipeline"
        assert (news.fold().state, news.fold("install").changed) == ("partly", (new,))
        assert (news.fold().state, found(client, rolling.name), found(client, new)) == ("folded", 1, 1)
        news.clean()


def test_clean_unfolds_first(client: Client, index_name: str, story: str, server_cli: Cli) -> None:
    news = grouped(client, index_name, story)
    news.fold("install")
    assert server_cli("clean", index_name, "--dry-run", "--json").json["unfolded"] == [index_name]
    assert found(client, index_name) == 3
    assert news.clean().unfolded == (index_name,)
    assert (found(client, index_name), pipelines(client, story)) == (6, set())
    assert not any(story in hit["_source"] for hit in hits(client, index_name))


def test_a_deleted_pipeline(client: Client, index_name: str, story: str, server_cli: Cli) -> None:
    """The server rejects searches of an index whose pipeline was deleted; those of this program work."""
    news = grouped(client, index_name, story)
    news.fold("install")
    for repair, number in (("install", 3), ("remove", 6)):
        client.request("DELETE", path("_search", "pipeline", f"es-neardupe-fold-{story}-x5"))
        status, answer = plain_request(client, "POST", f"/{index_name}/_search", {})
        assert (status, "is not defined" in str(answer)) == (400, True)
        assert news.fold().state == "missing"
        (check,) = (one for one in news.doctor() if one.name == "folding")
        assert check.level == "error"
        assert "fold" in check.message
        assert server_cli("doctor", index_name).code == 1
        news.fold(repair)
        assert found(client, index_name) == number


def test_another_pipeline_is_not_replaced(client: Client, index_name: str, story: str) -> None:
    news = grouped(client, index_name, story)
    theirs, processors = f"{story}-theirs", {"response_processors": [{"truncate_hits": {"target_size": 2}}]}
    client.request("PUT", path("_search", "pipeline", theirs), body=processors)
    client.request("PUT", path(index_name, "_settings"), body={DEFAULT: theirs})
    with pytest.raises(IndexUnusable, match=f"has the default search pipeline {theirs} already"):
        news.fold("install")
    assert (news.fold().state, news.fold("remove").changed) == ("other", ())
    assert (defaults(client, index_name), pipelines(client, story)) == ({index_name: theirs}, {theirs})
    assert folding_check(news) is None
    client.request("PUT", path(index_name, "_settings"), body={DEFAULT: None})
    changed = f"es-neardupe-fold-{story}-x5"
    client.request("PUT", path("_search", "pipeline", changed), body=processors)
    with pytest.raises(IndexUnusable, match="is not as this program makes it"):
        news.fold("install")
    assert defaults(client, index_name) == {index_name: None}


def test_indices_that_cannot_be_folded(client: Client, index_name: str, story: str, server_cli: Cli) -> None:
    news = grouped(client, index_name, None)
    refused = one_line(server_cli("fold", index_name, "install", "--yes").err)
    assert "has no group field" in refused
    assert f"init {index_name} --field text --group-field neardupe_group`" in refused
    news.init(Settings(("text",), group_field=story))
    with pytest.raises(IndexUnusable, match=r"6 documents of .* have no value"):
        news.fold("install")
    news.enrich()
    change(client, index_name, "d0", {story: None})
    with pytest.raises(IndexUnusable, match=r"1 document of .* has no value"):
        news.fold("install")
    news.clean()
    news.init(Settings(("text",)), sidecar=True)
    with pytest.raises(IndexUnusable, match="in a sidecar index"):
        news.fold("install")
    with pytest.raises(SettingsError, match="Unknown action 'instal': choose show, install, remove"):
        news.fold("instal")
    assert defaults(client, index_name) == {index_name: None}
    assert pipelines(client, story) == set()


@pytest.mark.product("elasticsearch")
def test_elasticsearch_has_no_search_pipelines(client: Client, index_name: str) -> None:
    if client.server.product is not Product.ELASTICSEARCH:
        pytest.skip("OpenSearch has search pipelines")
    news = grouped(client, index_name, "story")
    assert news.fold().state == "unsupported"
    assert news.fold("remove").changed == ()
    with pytest.raises(IndexUnusable, match="has no search pipelines"):
        news.fold("install")
    assert news.clean().unfolded == ()
