"""Hidden documents and fields by the privileges of a user, and the identity in a header; no server is needed."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import SETTINGS, FakeClient, index_of

from es_neardupe.errors import Forbidden, NotFound, RequestError
from es_neardupe.index.permissions import check_sees_all, check_updates, partly_visible
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Product, Server, Service
from es_neardupe.server.drivers.driver import identity
from es_neardupe.server.login.settings import ConnectionSettings, authorization

QUERY = ['{"term": {"public": true}}']
TARGET = IndexTarget("news", ("news-1", "news-2"), SETTINGS, 10_000)


def grant(*names: str, privileges: tuple[str, ...] = ("read",), **limits: Any) -> dict[str, Any]:
    return {"names": list(names), "privileges": list(privileges), **limits}


class Privileges(FakeClient):
    """An Elasticsearch that answers requests for the user's privileges."""

    server = Server(Product.ELASTICSEARCH, (8, 19, 21))

    def __init__(self, *grants: dict[str, Any], refusal: RequestError | None = None) -> None:
        super().__init__()
        self.grants = grants
        self.refusal = refusal

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        assert (method, path) == ("GET", "/_security/user/_privileges")
        if self.refusal is not None:
            raise self.refusal
        return {"indices": list(self.grants)}


LIMITS = (
    {"query": QUERY},
    {"field_security": [{"grant": ["title", "text"]}]},
    {"field_security": [{"grant": ["*"], "except": ["secret"]}]},
    {"query": QUERY, "field_security": [{"grant": ["*"]}]},
)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("names", [("news-1",), ("news*",), ("other", "news-?"), ("/news-[0-9]/",), ("news",), ("*",)])
def test_limited_grants(limit: dict[str, Any], names: tuple[str, ...]) -> None:
    found = partly_visible(index_of(Privileges(grant(*names, **limit)), TARGET))
    assert found == (["news-1"] if names == ("news-1",) else ["news-1", "news-2"])
    with pytest.raises(Forbidden, match=r"only a part of the documents or fields of news-1.* and grouping needs all"):
        check_sees_all(index_of(Privileges(grant(*names, **limit)), TARGET), "grouping")


@pytest.mark.parametrize(
    "grants",
    [
        (),
        (grant("news*"),),
        (grant("news*", query=QUERY), grant("*", privileges=("all",))),  # rights add up
        (grant("news*", field_security=[{"grant": ["*"]}]),),
        (grant("other*", query=QUERY),),
        (grant("/new(/", query=QUERY), grant("news-1", "news-2")),
        (grant("news*", privileges=("monitor",), query=QUERY),),  # reads nothing
    ],
)
def test_unlimited_grants(grants: tuple[dict[str, Any], ...]) -> None:
    client = Privileges(*grants)
    assert partly_visible(index_of(client, TARGET)) == []
    check_sees_all(index_of(client, TARGET), "grouping")


@pytest.mark.parametrize("regex", ["/news-<1-2>/", "/new(/", "/~(other)/", "/@/"])
def test_a_regex_of_lucene_that_is_not_understood(regex: str) -> None:
    """Some grant must allow the user to read the index: a limit that may apply to it counts."""
    assert partly_visible(index_of(Privileges(grant(regex, query=QUERY), grant("other")), TARGET)) == [
        "news-1",
        "news-2",
    ]
    assert partly_visible(index_of(Privileges(grant(regex), grant("other", query=QUERY)), TARGET)) == []
    assert partly_visible(index_of(Privileges(grant(regex, query=QUERY), grant("news-*")), TARGET)) == []


def test_privileges_that_are_not_reported() -> None:
    assert partly_visible(index_of(Privileges(refusal=RequestError("no handler", status=400)), TARGET)) == []
    assert partly_visible(index_of(FakeClient(), TARGET)) == []  # OpenSearch is not asked


class Refusing(FakeClient):
    """An Elasticsearch that does not report the privileges of the login, and rejects updates."""

    server = Server(Product.ELASTICSEARCH, (8, 19, 21))

    def __init__(self, error: RequestError) -> None:
        super().__init__()
        self.error = error
        self.updated: list[list[str]] = []

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        assert (method, body) == ("POST", {"doc": {}})
        self.updated.append(path.split("/")[1:3])
        raise self.error


def test_whole_documents_are_written_only_with_access_to_all_fields() -> None:
    words = "Can't execute an update request if field or document level security is enabled"
    hidden = RequestError("refused", status=400, type="security_exception", reason=words)
    lacking = Forbidden("lacks the index privilege 'index'", status=403, reason="is unauthorized")
    for error, message in ((hidden, "only a part"), (lacking, "privilege 'index'")):
        with pytest.raises(Forbidden, match=message):
            check_updates(index_of(Refusing(error), TARGET), "cleaning", whole=True)
        check_updates(index_of(Refusing(error), TARGET), "cleaning")  # no request: `check_sees_all` has sent one
    allowing = Refusing(NotFound("no such document", status=404))
    check_updates(index_of(allowing, TARGET), "cleaning", whole=True)
    assert allowing.updated == [["news-1", "_update"], ["news-2", "_update"]]


def test_a_service_that_does_not_report_privileges() -> None:
    """Elastic Cloud Serverless: updates show whether documents are hidden."""
    hidden = Forbidden("", status=403, reason="Can't execute an update request if field or document level security")
    client = Refusing(hidden)
    client.server = Server(Product.ELASTICSEARCH, (9, 5, 0), Service.ELASTIC_SERVERLESS)
    with pytest.raises(Forbidden, match="only a part"):
        check_updates(index_of(client, TARGET), "grouping")


@given(st.text(min_size=1).filter(lambda name: ":" not in name), st.text(min_size=1))
def test_identities_name_the_user_and_no_secret(name: str, secret: str) -> None:
    basic = authorization(ConnectionSettings(url="http://h", username=name, password=secret))["authorization"]
    assert identity(basic) == f"basic {name}"
    encoded = base64.b64encode(f"{name}:{secret}".encode()).decode()
    assert identity(f"ApiKey {encoded}") == f"apikey {name}"


def test_identities_of_other_logins() -> None:
    assert identity(None) == identity("") == ""
    tokens = {
        identity(f"{kind} {word}") for kind in ("Bearer", "ApiKey") for word in ("secret-1", "secret-2", "bm9uZQ==")
    }
    assert len(tokens) == 6
    assert identity("Bearer \ud800").startswith("bearer ")  # whatever a client that is wrapped was given
    assert not any("secret" in one or "none" in one for one in tokens)
