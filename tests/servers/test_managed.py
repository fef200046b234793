"""Managed services: every command works, takes another way, or refuses in one sentence. Proxies in front of the local
servers answer as the services do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.credentials import Credentials
from conftest import Cli
from golden_tools import FOLDER, Life, changes, pretty
from managed_proxies import CollectionProxy, DomainProxy, ElasticServerlessProxy
from server_tools import family, put
from signature_proxy import REGION, Proxy, SignatureProxy, served
from starlette.testclient import TestClient

from es_neardupe import NearDupe
from es_neardupe.errors import SettingsError
from es_neardupe.records import Product
from es_neardupe.serve.application import asgi
from es_neardupe.server import collection
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.server

KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "a-secret", "AWS_SESSION_TOKEN": "a-token"}
SERVICES = {"domain": DomainProxy, "collection": CollectionProxy, "serverless": ElasticServerlessProxy}
PRODUCTS = dict.fromkeys(("domain", "collection"), Product.OPENSEARCH) | {"serverless": Product.ELASTICSEARCH}

Through = Callable[[Proxy], Cli]


@pytest.fixture
def through(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Through:
    """Runs commands through a proxy."""
    for name, value in {**KEYS, "AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)

    def run(proxy: Proxy) -> Cli:
        monkeypatch.setenv("ES_NEARDUPE_URL", proxy.url)
        if isinstance(proxy, SignatureProxy):
            proxy.keys["AKID"] = Credentials(*KEYS.values())
            monkeypatch.setenv("ES_NEARDUPE_AWS_REGION", REGION)
            monkeypatch.setenv("ES_NEARDUPE_AWS_SERVICE", proxy.service)
        return cli

    return run


def skip_others(client: Client, service: str) -> None:
    """Skip a test on the product that a service does not run."""
    if client.server.product is not PRODUCTS[service]:
        pytest.skip(f"this service runs {PRODUCTS[service].value}")


@pytest.mark.parametrize(
    "service",
    [
        pytest.param("domain", marks=[pytest.mark.long, pytest.mark.product("opensearch")]),
        pytest.param("collection", marks=[pytest.mark.long, pytest.mark.product("opensearch")]),
        pytest.param("serverless", marks=[pytest.mark.long, pytest.mark.product("elasticsearch")]),
    ],
)
@pytest.mark.parametrize("keys", ["inline", "sidecar"])
def test_every_command(
    service: str,
    keys: str,
    client: Client,
    index_name: str,
    server_url: str,
    through: Through,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """The output is that of the product, but for the lines in a golden file."""
    skip_others(client, service)
    settings = {"refresh_interval": "300ms"} if service == "collection" else {}  # there is no other refresh
    with served(SERVICES[service](server_url)) as proxy:
        run = through(proxy)
        said = Life(client, index_name, run, tmp_path, sidecar=keys == "sidecar", settings=settings).live()
    if isinstance(proxy, SignatureProxy):
        assert proxy.refused == []
    if isinstance(proxy, CollectionProxy):
        tried = ["slice", "preference", "_shard_doc"]  # by each of the two calls of `doctor`
        assert sorted(one.rpartition(": ")[2] for one in proxy.broken) == sorted(2 * tried)
    product = json.loads((FOLDER / client.server.product.value / f"{keys}.json").read_text("utf-8"))
    found = "".join(f"{one}\n" for one in changes(product, json.loads(pretty(said).replace(proxy.url, "URL"))))
    file = FOLDER.parent / "managed" / f"{service}-{keys}.txt"
    if request.config.getoption("--record"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(found, "utf-8")
    assert found == file.read_text("utf-8")


@pytest.mark.product("opensearch")
def test_a_collection(client: Client, index_name: str, server_url: str, through: Through, tmp_path: Path) -> None:
    """Commands wait for what they wrote, and need no request that a collection lacks; what it cannot do is refused."""
    skip_others(client, "collection")
    file = texts_file(tmp_path)
    with served(CollectionProxy(server_url)) as proxy:
        run = through(proxy)
        assert run("init", index_name, "--field", "text", "--create").code == 0
        for words in (
            ("load", index_name, str(file)),
            ("enrich", index_name, "--slices", "3"),
            ("group", index_name, "--evidence"),
            ("groups", index_name),
            ("similar", index_name, "--id", "a1"),
        ):
            done = run(*words)
            assert done.code == 0, (words, done.err)
        assert [one["size"] for one in run("groups", index_name, "--json").lines] == [3, 3]
        for line, sentence in REFUSED_BY_COLLECTIONS.items():
            name, *options = line.split()
            done = run(name, index_name, *options)
            assert (done.code in (1, 2), sentence in done.err) == (True, True), (line, done.err)
        assert (proxy.refused, proxy.broken) == ([], [])
        assert NearDupe(index_name).decide("different", "a0", ["a1"], author="ann").stored == 1
        checks = {one["message"]: one["level"] for one in run("doctor", index_name, "--json").json["checks"]}
        assert checks["Amazon OpenSearch Serverless"] == "ok"
        assert checks["versions of documents (if_seq_no): yes"] == "ok"
        assert checks["refresh (_refresh): no, commands wait until searches find what they wrote"] == "ok"
        assert run("clean", index_name, "--yes").code == 0
    assert "neardupe" not in client.request("GET", path(index_name, "_doc", "a1"))["_source"]


REFUSED_BY_COLLECTIONS = {
    "enrich --tune": "Amazon OpenSearch Serverless manages refresh and replicas: omit --tune.",
    "enrich --in-cluster": "Amazon OpenSearch Serverless has no update by query",
    "enrich --engine processes:2": "Amazon OpenSearch Serverless reads no slices",
    "pipeline install": "This collection runs no pipelines with scripts: make the keys with `enrich`.",
    "fold install": "Amazon OpenSearch Serverless documents no search pipelines that collapse",
}


@pytest.mark.product("opensearch")
def test_a_collection_that_cannot_store_keys(
    client: Client, index_name: str, server_url: str, through: Through, tmp_path: Path
) -> None:
    """Without ids of documents, or if it ignores their versions."""
    skip_others(client, "collection")
    put(client, index_name, {"a": {"text": "one two three four five six"}})
    with served(CollectionProxy(server_url, type="TIMESERIES")) as proxy:
        done = through(proxy)("init", index_name, "--field", "text")
        assert "Collections of this type accept no document ids, so keys cannot be stored" in done.err
    assert "neardupe" not in client.request("GET", path(index_name, "_mapping"))[index_name]["mappings"]["properties"]
    with served(CollectionProxy(server_url, checks_versions=False)) as proxy:
        run = through(proxy)
        assert run("init", index_name, "--field", "text").code == 0
        done = run("enrich", index_name)
        assert (done.code, "does not check the versions of documents" in done.err) == (1, True)
        checks = run("doctor", index_name, "--json").json["checks"]
    assert {"name": "service", "level": "error"}.items() <= next(
        one for one in checks if one["message"].startswith("versions of documents (if_seq_no): no")
    ).items()
    assert client.request("GET", path(index_name, "_doc", "a"))["_source"] == {"text": "one two three four five six"}


@pytest.mark.product("opensearch")
def test_writes_that_stay_invisible(
    client: Client, index_name: str, server_url: str, through: Through, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "_LONGEST", 0.5)
    with served(CollectionProxy(server_url, refresh_interval="-1")) as proxy:
        run = through(proxy)
        assert run("init", index_name, "--field", "text", "--create").code == 0
        done = run("load", index_name, str(texts_file(tmp_path)))
    sentence = f"Searches of {index_name} do not find what was written 0.5 seconds ago. Run the same command again"
    assert (done.code, sentence in done.err) == (1, True), done.err


@pytest.mark.long
@pytest.mark.product("opensearch")
def test_more_of_a_domain(painless: Client, index_name: str, server_url: str, through: Through, tmp_path: Path) -> None:
    """On processes, in the cluster, by pipelines, and in the pages of `serve`."""
    with served(DomainProxy(server_url)) as proxy:
        run = through(proxy)
        for line in (
            "init INDEX --field text --create --group-field copies",
            "pipeline INDEX install --default",
            "load INDEX FILE",
            "enrich INDEX --all --engine processes:2",
            "enrich INDEX --in-cluster",
            "enrich INDEX --all --tune",
            "group INDEX --engine processes:2",
            "fold INDEX install --yes",
        ):
            words = [{"INDEX": index_name, "FILE": str(texts_file(tmp_path))}.get(word, word) for word in line.split()]
            done = run(*words)
            assert done.code == 0, (line, done.err)
        assert [one["size"] for one in run("groups", index_name, "--json").lines] == [3, 3]
        check_pages(NearDupe(index_name))
        with pytest.raises(SettingsError, match="without a client certificate or signatures of AWS"):
            asgi(NearDupe(index_name), auth_proxy=True)
        assert run("clean", index_name, "--yes").code == 0
        assert proxy.refused == []


@pytest.mark.product("opensearch")
def test_in_the_cluster_without_statistics_and_cancelling(
    painless: Client,
    index_name: str,
    server_url: str,
    through: Through,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As on Elastic Cloud Serverless, of which the local server runs no scripts."""
    put(painless, index_name, {f"{n}": {"text": text} for n, text in enumerate(family("a", 3))})
    with served(DomainProxy(server_url, denied=(f"/{index_name}/_stats", "/_nodes/"))) as proxy:
        run = through(proxy)
        assert run("init", index_name, "--field", "text").code == 0
        done = run("enrich", index_name, "--in-cluster", "--json")
        assert (done.code, done.json["writes"]["written"]) == (0, 3), done.err
        proxy.denied = ("/_tasks/",)
        assert run("enrich", index_name, "--in-cluster", "--check").code == 1
    assert "not_cancelled" in caplog.text


def check_pages(news: NearDupe) -> None:
    """The page of groups is shown, and a decision is stored."""
    token = "a-token-of-the-tests-0123456789"
    browser = TestClient(asgi(news, token=token), base_url="http://127.0.0.1")
    page = browser.get("/", headers={"Authorization": f"Bearer {token}"})
    assert (page.status_code, news.name in page.text) == (200, True)
    assert news.decide("different", "a0", ["a1"], author="ann").stored == 1


@pytest.mark.product("elasticsearch")
def test_elastic_serverless(client: Client, index_name: str, server_url: str, through: Through, tmp_path: Path) -> None:
    skip_others(client, "serverless")
    file = texts_file(tmp_path)
    with served(ElasticServerlessProxy(server_url)) as proxy:
        run = through(proxy)
        for words in (
            ("init", index_name, "--field", "text", "--create", "--group-field", "copies"),
            ("load", index_name, str(file)),
            ("enrich", index_name, "--tune"),
            ("group", index_name, "--evidence"),
            ("groups", index_name),
            ("doctor", index_name),
        ):
            done = run(*words)
            assert done.code == 0, (words, done.err)
        assert "Elastic Cloud Serverless does not report sequence numbers" in run("enrich", index_name).err
        changed = [one.json for one in proxy.seen if one.method == "PUT" and one.path.endswith("/_settings")]
        assert {"index.refresh_interval": "-1"} in changed
        assert not any("index.number_of_replicas" in one for one in changed)
        assert "Elastic Cloud Serverless has no search pipelines" in run("fold", index_name, "install").err
        assert run("clean", index_name, "--yes").code == 0


def texts_file(folder: Path) -> Path:
    """Two families of three texts."""
    texts = {f"{name}{n}": text for name in "ab" for n, text in enumerate(family(name, 3))}
    file = folder / "texts.jsonl"
    file.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items()), "utf-8")
    return file
