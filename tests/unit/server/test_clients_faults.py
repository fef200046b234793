"""Servers that reject, fail, disappear or are another product: small fakes on the loopback interface."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fake_fixtures
import pytest
import trustme
from fake_servers import (
    AT_ONCE,
    ELASTIC,
    HTML,
    JSON,
    OPENSEARCH_ROOT,
    ROOT,
    Fake,
    Reply,
    error,
    opened,
    reply,
)
from server_tools import wait_until

from es_neardupe.errors import (
    AnswerTooLarge,
    Blocked,
    CertificateRefused,
    Conflict,
    ConnectError,
    Forbidden,
    IncompleteAnswer,
    LoginRefused,
    NeardupeError,
    NoServer,
    NotFound,
    RequestError,
    SettingsError,
    Unreachable,
    UnsupportedServer,
)
from es_neardupe.records import Product
from es_neardupe.server import read_all
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect, wrap
from es_neardupe.server.drivers import driver
from es_neardupe.server.drivers.http import HttpDriver
from es_neardupe.server.login.settings import ConnectionSettings, ConnectionWarning, Retries

start, product = fake_fixtures.start, fake_fixtures.product
fake, client = fake_fixtures.fake, fake_fixtures.client

# ---- product and version


@pytest.mark.parametrize(
    ("root", "nodes", "expected"),
    [
        (reply(OPENSEARCH_ROOT), None, "OpenSearch 3.8.0"),
        (reply({"version": {"number": "8.19.2-SNAPSHOT"}}, headers=ELASTIC), None, "Elasticsearch 8.19.2"),
        (reply({"error": "no"}, 405, ELASTIC), ["9.5.3", "9.5.1"], "Elasticsearch 9.5.1"),
        (error(403, "security_exception"), ["2.19.1"], "OpenSearch 2.19.1"),
        (reply({"error": "no"}, 404, ELASTIC), ["8.19.0"], "Elasticsearch 8.19.0"),
        # compatibility.override_main_response_version
        (
            reply({"version": {"number": "7.10.2", "distribution": "opensearch"}}),
            ["2.5.0"],
            "OpenSearch 2.5.0",
        ),
    ],
)
def test_detects(start: Callable[..., Fake], root: Reply, nodes: list[str] | None, expected: str) -> None:
    fake = start()
    fake.on("GET /", root)
    fake.on("GET /_nodes", reply({"nodes": {str(i): {"version": v} for i, v in enumerate(nodes or [])}}))
    client = opened(fake)
    assert str(client.server) == expected
    assert client.url == fake.url
    client.close()


ELASTIC_7 = {"version": {"number": "7.10.0", "lucene_version": "8"}, "tagline": "You Know, for Search"}


@pytest.mark.parametrize(
    ("root", "words"),
    [
        (reply(ELASTIC_7), "is Elasticsearch 7.10.0"),
        (reply({"version": {"number": "1.3.0", "distribution": "opensearch"}}), "is OpenSearch 1.3.0"),
        (reply({"version": {"number": "10.0.0"}}, headers=ELASTIC), "is Elasticsearch 10.0.0"),
        (reply(b"<html>hello</html>", headers=HTML), "not as Elasticsearch or OpenSearch"),
        (reply({"hello": "world"}), "not as Elasticsearch or OpenSearch"),
        (reply(b"", 302, {"Location": "/login"}), "not as Elasticsearch or OpenSearch"),
    ],
)
def test_unsupported(start: Callable[..., Fake], root: Reply, words: str) -> None:
    fake = start()
    fake.on("GET /", root)
    with pytest.raises(UnsupportedServer, match=words) as caught:
        opened(fake)
    assert "\n" not in str(caught.value)


def test_nothing_may_be_seen(start: Callable[..., Fake]) -> None:
    fake = start()
    fake.on("GET /", error(403, "security_exception"))
    fake.on("GET /_nodes", error(403, "security_exception"))
    with pytest.raises(Forbidden, match="'monitor'"):
        opened(fake)


def test_login_refused(start: Callable[..., Fake]) -> None:
    fake = start()
    fake.on("GET /", error(401, "security_exception", "unable to authenticate SECRET"))
    with pytest.raises(LoginRefused, match="401") as caught:
        opened(fake, username="u", password="SECRET")
    assert "SECRET" not in str(caught.value)
    assert fake.count("GET /") == 1


@pytest.mark.parametrize(
    ("login", "header"),
    [
        ({"username": "u", "password": "pä€"}, "Basic dTpww6Tigqw="),
        ({"api_key": "id:key"}, "ApiKey aWQ6a2V5"),
        ({"api_key": "aWQ6a2V5"}, "ApiKey aWQ6a2V5"),
    ],
)
def test_logs_in(fake: Fake, login: dict[str, str], header: str) -> None:
    client = opened(fake, **login)
    fake.on("GET /x", reply({}))
    client.request("GET", "/x")
    assert {headers.get("authorization") for _, headers, _ in fake.seen} == {header}
    client.close()


def test_nobody_listens_there() -> None:
    with socket.socket() as held:  # bound, but not listening: no other process can take the port
        held.bind(("127.0.0.1", 0))
        url = f"http://user:SECRET@127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(Unreachable, match="refused") as caught:
            connect(ConnectionSettings(url, retries=Retries(wait=0)))
    assert "SECRET" not in str(caught.value)


def test_unknown_host() -> None:
    with pytest.raises(Unreachable, match="no connection"):
        connect(ConnectionSettings("http://nowhere.invalid:9200", retries=AT_ONCE))


def encoded(domain: str) -> str:
    return "production:" + base64.b64encode(domain.encode()).decode()


@pytest.mark.parametrize(
    "cloud_id", ["rubbish", "a:b", encoded("found.example"), encoded("found.example:x$es$kb"), "a:é"]
)
def test_bad_cloud_id(cloud_id: str) -> None:
    with pytest.raises(SettingsError, match="cloud ID"):
        connect(ConnectionSettings(cloud_id=cloud_id))


@pytest.mark.parametrize(
    ("domain", "url"),
    [
        ("eu.found.example$abc$def", "https://abc.eu.found.example:443"),
        ("eu.found.example:9243$abc$", "https://abc.eu.found.example:9243"),
    ],
)
def test_cloud_id(domain: str, url: str) -> None:
    assert HttpDriver(ConnectionSettings(cloud_id=encoded(domain))).url == url


def test_no_server_named() -> None:
    with pytest.raises(NoServer, match="node start"):
        connect(ConnectionSettings())
    with pytest.raises(NoServer):
        connect(ConnectionSettings(), local_url=lambda: None)


def test_local_node(fake: Fake) -> None:
    client = connect(ConnectionSettings(retries=AT_ONCE), local_url=lambda: fake.url)
    assert client.url == fake.url
    client.close()


def test_named_server_goes_before_the_local_node(fake: Fake) -> None:
    def never() -> str:
        raise AssertionError

    connect(ConnectionSettings(fake.url), local_url=never).close()


# ---- requests


@pytest.mark.parametrize(
    ("status", "type_", "kind"),
    [
        (400, "parsing_exception", RequestError),
        (403, "security_exception", Forbidden),
        (404, "index_not_found_exception", NotFound),
        (409, "version_conflict_engine_exception", Conflict),
        (403, "cluster_block_exception", Blocked),
        (429, "cluster_block_exception", Blocked),
        (500, "null_pointer_exception", RequestError),
    ],
)
def test_refusals(client: Client, fake: Fake, status: int, type_: str, kind: type[RequestError]) -> None:
    fake.on("POST /i/_search", error(status, type_, "words\n of the server"))
    with pytest.raises(RequestError, match="words of the server") as caught:
        client.request("POST", "/i/_search", body={})
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.type) == (status, type_)
    assert caught.value.reason == "words of the server"
    assert fake.count("POST /i/_search") == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_tries_again(client: Client, fake: Fake, status: int) -> None:
    busy = error(status, "es_rejected_execution_exception")
    fake.on("POST /i/_search", busy, busy, reply({"hits": {}}))
    assert client.request("POST", "/i/_search", body={}) == {"hits": {}}
    fake.on("POST /_bulk", busy, reply({"errors": False}))
    assert client.bulk(b"{}\n") == {"errors": False, "sent": 2}


def test_a_node_that_was_just_lost_is_asked_round(client: Client, fake: Fake) -> None:
    """OpenSearch forwards a request to it, and answers 500."""
    lost = error(500, "node_not_connected_exception", "[n1][127.0.0.1:9520] Node not connected")
    fake.on("GET /i/_doc/1", lost, lost, reply({"_id": "1"}))
    assert client.request("GET", "/i/_doc/1") == {"_id": "1"}
    fake.on("GET /i/_doc/1", error(500, "illegal_state_exception", "a bug"))
    with pytest.raises(RequestError, match="a bug"):
        client.request("GET", "/i/_doc/1")
    assert fake.count("GET /i/_doc/1") == 3 + 1


def test_statistics_without_a_node_that_was_just_lost_are_asked_for_again(client: Client, fake: Fake) -> None:
    why = {"type": "failed_node_exception", "reason": "Failed node [n1]"}
    failed = reply({"_shards": {"total": 6, "failed": 2, "failures": [{"shard": 0, "index": "i", "reason": why}]}})
    fake.on("GET /i/_stats", failed, failed, reply({"_shards": {"total": 6, "failed": 0}}))
    assert client.request("GET", "/i/_stats")["_shards"]["failed"] == 0
    fake.on("GET /i/_stats", failed)
    with pytest.raises(IncompleteAnswer, match=r"2 of 6 shards failed \(Failed node \[n1\]\)"):
        client.request("GET", "/i/_stats")
    assert fake.count("GET /i/_stats") == 3 + AT_ONCE.attempts


def test_a_cluster_without_a_master_is_waited_for(client: Client, fake: Fake) -> None:
    """The answer is a block, but not one that an administrator must remove."""
    starting = error(503, "cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered];")
    fake.on("POST /i/_refresh", starting, starting, reply({}))
    assert client.request("POST", "/i/_refresh") == {}
    fake.on("POST /i/_refresh", starting)
    with pytest.raises(Blocked, match="state not recovered"):
        client.request("POST", "/i/_refresh")
    assert fake.count("POST /i/_refresh") == 3 + AT_ONCE.attempts


def test_gives_up(client: Client, fake: Fake) -> None:
    fake.on("POST /i/_search", error(503, "search_phase_execution_exception", "all shards failed"))
    with pytest.raises(RequestError, match="all shards failed"):
        client.request("POST", "/i/_search", body={})
    assert fake.count("POST /i/_search") == AT_ONCE.attempts


def test_dropped_connection(client: Client, fake: Fake) -> None:
    fake.on("GET /x", None, None, reply({"ok": True}))
    assert client.request("GET", "/x") == {"ok": True}
    fake.on("GET /x", None)
    with pytest.raises(Unreachable, match=r"without an answer|reset"):
        client.request("GET", "/x")


def test_too_slow(start: Callable[..., Fake], product: Product) -> None:
    fake = start()
    root = OPENSEARCH_ROOT if product is Product.OPENSEARCH else {"version": {"number": "9.0.0"}}
    fake.on("GET /", reply(root, headers=JSON if product is Product.OPENSEARCH else ELASTIC))
    settings = ConnectionSettings(fake.url, retries=Retries(attempts=2, wait=0), timeout=0.2)
    clients: list[Client] = []

    def connects() -> bool:  # a busy machine can be too slow at first
        with suppress(Unreachable):
            clients.append(connect(settings))
        return bool(clients)

    wait_until(connects)
    (client,) = clients
    release = threading.Event()
    answer = fake.answer

    def stuck(request: str, headers: dict[str, str], body: bytes) -> Reply:
        release.wait(60)
        return answer(request, headers, body)

    fake.answer = stuck  # type: ignore[method-assign]  # of this one server
    with pytest.raises(Unreachable, match="in time"):
        client.request("GET", "/x")
    release.set()
    client.close()


@pytest.mark.parametrize(
    "body",
    [
        {"timed_out": True, "hits": {"hits": []}},
        {"_shards": {"total": 4, "failed": 1, "failures": [{"reason": {"type": "x", "reason": "disk"}}]}},
        {"responses": [{"hits": {}}, {"_shards": {"total": 4, "failed": 1}}]},
    ],
)
def test_an_answer_that_is_not_whole(client: Client, fake: Fake, body: dict[str, Any]) -> None:
    fake.on("POST /i/_search", reply(body))
    with pytest.raises(IncompleteAnswer):
        client.request("POST", "/i/_search", body={})


def test_a_stored_document_whose_replica_failed_is_no_error(client: Client, fake: Fake) -> None:
    fake.on("PUT /i/_doc/1", reply({"result": "created", "_shards": {"total": 2, "failed": 1}}, 201))
    assert client.request("PUT", "/i/_doc/1", body={})["result"] == "created"


@pytest.mark.parametrize("status", [200, 400])
def test_a_page_of_a_proxy(client: Client, fake: Fake, status: int) -> None:
    fake.on("GET /x", reply(b"<html>\n<b>login</b></html>", status, HTML))
    with pytest.raises(RequestError) as caught:
        client.request("GET", "/x")
    assert caught.value.status == status
    assert "<" not in str(caught.value)


def test_broken_json(client: Client, fake: Fake) -> None:
    fake.on("GET /x", reply(b'{"a": ', headers=JSON))
    with pytest.raises((RequestError, ConnectError), match="proxy"):
        client.request("GET", "/x")


def test_head(client: Client, fake: Fake) -> None:
    fake.on("HEAD /i", reply(b""))
    assert client.request("HEAD", "/i") is None
    with pytest.raises(NotFound):
        client.request("HEAD", "/nope")


def test_what_is_sent(client: Client, fake: Fake, product: Product) -> None:
    fake.on("POST /i/_search", reply({}))
    fake.on("POST /_bulk", reply({}))
    client.request("POST", "/i/_search", params={"a": True, "b": 3, "timeout": "1m"}, body={"q": "ä\ud800"})
    client.bulk(b'{"x":1}\n', params={"filter_path": "errors,items.*.status"})
    (_, search, body), (_, bulk, lines) = fake.seen[-2:]
    assert json.loads(body) == {"q": "ä\ud800"}
    body.decode("utf-8")
    assert lines == b'{"x":1}\n'
    if product is Product.ELASTICSEARCH:
        assert search["content-type"] == "application/vnd.elasticsearch+json; compatible-with=8"
        assert search["accept"] == "application/vnd.elasticsearch+json; compatible-with=8"
        assert bulk["content-type"] == "application/vnd.elasticsearch+x-ndjson; compatible-with=8"
    else:
        assert search["content-type"] == search["accept"] == "application/json"
        assert bulk["content-type"] == "application/x-ndjson"


def test_warnings_of_the_server_are_not_raised(client: Client, fake: Fake) -> None:
    fake.on("GET /x", reply({"a": 1}, headers={**ELASTIC, "Warning": '299 X-1 "old"'}))
    assert client.request("GET", "/x") == {"a": 1}


# ---- reading


def with_snapshots(fake: Fake) -> None:
    """Open and close points in time."""
    for target in ("POST /i/_pit", "POST /i/_search/point_in_time", "DELETE /_pit", "DELETE /_search/point_in_time"):
        fake.on(target, reply({"id": "p", "pit_id": "p"}))


def page(*ids: str) -> Any:
    """One page of documents."""
    return reply({"hits": {"hits": [{"_index": "i", "_id": id, "sort": [1, 2]} for id in ids]}})


def test_failed_shards_are_not_the_end_of_reading(client: Client, fake: Fake, product: Product) -> None:
    opening = "_pit" if product is Product.ELASTICSEARCH else "_search/point_in_time"
    closing = "DELETE /_pit" if product is Product.ELASTICSEARCH else "DELETE /_search/point_in_time"
    fake.on(f"POST /i/{opening}", reply({"id": "p1", "pit_id": "p1"}))
    hit = {"_index": "i", "_id": "1", "sort": [1, 2], "_source": {}}
    whole = {"pit_id": "p2", "hits": {"hits": [hit]}}
    partial = {"_shards": {"total": 4, "failed": 2}, "hits": {"hits": []}}
    fake.on("POST /i/_search", reply(whole))  # a full page: there may be more
    fake.on("POST /_search", reply(whole), reply(partial))
    pages = client.pages("i", {}, page_size=1)
    assert [hit.id for hit in next(pages)] == ["1"]
    with pytest.raises(IncompleteAnswer, match="2 of 4 shards"):
        next(pages)
    assert fake.seen[-1][0] == closing
    assert b"p2" in fake.seen[-1][2]  # the newest id
    assert json.loads(fake.seen[-2][2])["search_after"] == [1, 2]


@pytest.mark.parametrize(
    ("ids", "page_size", "requests"), [("", 3, 1), ("ab", 3, 1), ("ab", None, 3), ("abc", 3, 5), ("abcd", 3, 5)]
)
def test_a_few_documents_are_read_by_one_search(
    client: Client, fake: Fake, ids: str, page_size: int | None, requests: int
) -> None:
    """If it returns a full page, there may be more, and all are read from a snapshot."""
    with_snapshots(fake)

    fake.on("POST /i/_search", page(*ids[:3]))
    fake.on("POST /_search", *([page(*ids[:3]), page(*ids[3:])] if page_size else [page(*ids)]))
    before = len(fake.seen)
    pages = client.pages("i", {}, page_size=page_size)
    assert "".join(hit.id for one in pages for hit in one) == ids
    asked = [line for line, *_ in fake.seen[before:] if "_nodes" not in line]
    assert len(asked) == requests


@pytest.fixture
def scroller(start: Callable[..., Fake]) -> Iterator[tuple[Fake, Client]]:
    fake = start()
    fake.on("GET /", reply({"version": {"distribution": "opensearch", "number": "2.19.1"}}))
    first = {"_scroll_id": "s", "hits": {"total": {"value": 2}, "hits": [{"_index": "i", "_id": "1"}]}}
    fake.on("POST /i/_search", reply(first))
    client = opened(fake)
    yield fake, client
    client.close()


@pytest.mark.parametrize("fault", [None, error(503, "x"), error(429, "x")])
def test_a_scroll_is_never_continued_twice(
    scroller: tuple[Fake, Client], fault: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another snapshot is opened and returns the missing documents; at most four of them."""
    monkeypatch.setattr(read_all, "_PAUSE", 0)
    fake, client = scroller
    second = {"_scroll_id": "s", "hits": {"hits": [{"_index": "i", "_id": "2"}]}}
    last = {"_scroll_id": "s", "hits": {"hits": []}}
    fake.on("POST /_search/scroll", fault, reply(second), reply(last))
    assert [hit.id for page in client.pages("i", {}, page_size=1) for hit in page] == ["1", "2"]
    asked = [line for line, *_ in fake.seen if "scroll" in line or line == "POST /i/_search"]
    assert [line.partition("?")[0] for line in asked][:5] == [
        "POST /i/_search",  # is one search enough?
        "POST /i/_search",
        "POST /_search/scroll",
        "DELETE /_search/scroll",
        "POST /i/_search",
    ]
    fake.on("POST /_search/scroll", *[fault] * 9)
    begun = fake.count("POST /i/_search")
    with pytest.raises((Unreachable, RequestError)):
        list(client.pages("i", {}, page_size=1))
    assert fake.count("POST /i/_search") == begun + 2 * 4
    assert fake.seen[-1][0] == "DELETE /_search/scroll"


def test_a_scroll_that_ends_early(scroller: tuple[Fake, Client]) -> None:
    fake, client = scroller
    fake.on("POST /_search/scroll", reply({"_scroll_id": "s", "hits": {"hits": []}}))
    with pytest.raises(IncompleteAnswer, match="1 of 2"):
        list(client.pages("i", {}, page_size=1))


def test_an_expired_snapshot(scroller: tuple[Fake, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_all, "_PAUSE", 0)
    fake, client = scroller
    fake.on(
        "POST /_search/scroll",
        error(404, "search_context_missing_exception", "No search context found for id [1]"),
    )
    with pytest.raises(IncompleteAnswer, match="5m"):
        list(client.pages("i", {}, page_size=1))


@pytest.mark.parametrize(
    "lost",
    [
        error(404, "search_context_missing_nodes_exception", "references nodes that have left the cluster: [n1]"),
        error(404, "search_phase_execution_exception", "No search context found for id [1]"),
        error(500, "search_phase_execution_exception", "[n1][indices:data/read/search[can_match]] disconnected"),
    ],
)
def test_a_lost_snapshot_is_taken_anew(
    client: Client, fake: Fake, lost: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents that were read before are skipped; none is read twice or missed."""
    monkeypatch.setattr(read_all, "_PAUSE", 0.0)
    with_snapshots(fake)

    fake.on("POST /i/_search", page("a", "b"))  # a full page: there may be more
    fake.on("POST /_search", page("a", "b"), lost, page("c", "a"), page("b", "d"), page())
    assert [[hit.id for hit in one] for one in client.pages("i", {}, page_size=2)] == [["a", "b"], ["c"], ["d"]]
    fake.on("POST /_search", page("a", "b"), lost)
    with pytest.raises(NeardupeError, match=r"Try again|disconnected"):
        list(client.pages("i", {}, page_size=2))
    fake.on("POST /_search", page("a", "b"), lost)
    fake.on("POST /i/_search", lost)
    with pytest.raises(NeardupeError):  # part of a snapshot cannot be replaced
        list(client.pages("i", {}, page_size=2, slice=(0, 2)))


# ---- TLS


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls_fake(start: Callable[..., Fake], authority: trustme.CA, product: Product) -> Fake:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    fake = start(context)
    fake.on("GET /", ROOT[product])
    fake.on("GET /x", reply({"a": 1}))
    return fake


def test_unknown_authority(tls_fake: Fake) -> None:
    with pytest.raises(CertificateRefused, match=r"certificate was not accepted .*`ca_certs`"):
        opened(tls_fake)


def test_known_authority(tls_fake: Fake, authority: trustme.CA, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    client = opened(tls_fake, ca_certs=str(file))
    assert client.request("GET", "/x") == {"a": 1}
    client.close()


def test_wrong_host(start: Callable[..., Fake], authority: trustme.CA, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    with pytest.raises(CertificateRefused, match=r"mismatch.*host name that the certificate contains"):
        opened(start(context), ca_certs=str(file))


def test_insecure_warns_once_and_works(tls_fake: Fake) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client = opened(tls_fake, verify=False)
        assert client.request("GET", "/x") == {"a": 1}
        client.close()
    assert [warning.category for warning in caught] == [ConnectionWarning]


def test_tls_where_there_is_none(fake: Fake) -> None:
    with pytest.raises(Unreachable, match="TLS"):
        connect(ConnectionSettings(fake.url.replace("http:", "https:"), retries=AT_ONCE, timeout=60))


# ---- wrapped clients


def test_wrap_refuses_other_objects() -> None:
    with pytest.raises(SettingsError, match=r"elasticsearch\.Elasticsearch or an opensearchpy\.OpenSearch"):
        wrap(object())


def test_wrap_limits_answers_of_its_own_requests(fake: Fake, product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of the user is not changed."""
    fake.on("GET /x", reply({"a": "x" * 2000}, headers=ELASTIC))
    wrapped = driver_of(product, fake.url)
    client = wrap(wrapped)
    monkeypatch.setattr(driver, "MAX_ANSWER", 1000)
    with pytest.raises(AnswerTooLarge, match="larger than 1,000 bytes"):
        client.request("GET", "/x")
    answer = wrapped.transport.perform_request("GET", "/x")
    assert "x" * 2000 in str(answer)
    wrapped.close()


def driver_of(product: Product, url: str) -> Any:
    """A client of a user."""
    if product is Product.OPENSEARCH:
        from opensearchpy import OpenSearch

        return OpenSearch(url, http_auth=("u", "p"))
    from elasticsearch import Elasticsearch

    return Elasticsearch(url, basic_auth=("u", "p"))


def test_wrap_keeps_the_login_and_stays_open(fake: Fake, product: Product) -> None:
    fake.on("GET /x", None, reply({"a": 1}))
    wrapped = driver_of(product, fake.url)
    client = wrap(wrapped, retries=Retries(wait=0))
    assert client.server.product is product
    client.close()
    assert client.request("GET", "/x") == {"a": 1}
    assert fake.count("GET /x") == 2  # our retries, without the driver's
    assert {headers.get("authorization") for _, headers, _ in fake.seen} == {"Basic dTpw"}
    wrapped.close()


@pytest.mark.parametrize(
    ("version", "headers", "parameter"),
    [
        ({"distribution": "opensearch", "number": "3.8.0"}, JSON, "search_pipeline=_none"),
        ({"distribution": "opensearch", "number": "2.9.0"}, JSON, "search_pipeline=_none"),
        ({"distribution": "opensearch", "number": "2.8.0"}, JSON, ""),
        ({"number": "9.1.0"}, ELASTIC, ""),
    ],
)
def test_searches_bypass_default_search_pipelines(
    version: dict[str, str], headers: dict[str, str], parameter: str, start: Callable[..., Fake]
) -> None:
    """Where they exist. Counts and later pages of a scroll use none, and servers reject the parameter there."""
    fake, paths = start(), ("/i/_search", "/_search", "/i/_count", "/_search/scroll")
    for request in ("GET /", *(f"POST {path}" for path in paths)):
        fake.on(request, reply({"version": version}, headers=headers))
    client = opened(fake)
    fake.queries.clear()
    for path in paths:
        client.request("POST", path, body={})
    assert fake.queries == [parameter, parameter, "", ""]
