"""Missing privileges, read from the reason of a rejected request, and checked by `doctor`. No server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.commands.doctor.checks import privilege_checks
from es_neardupe.commands.doctor.roles import ROLES, RoleNames
from es_neardupe.errors import Forbidden, RequestError
from es_neardupe.records import Product, Server
from es_neardupe.server.responses import Answer, lacking, refusal

NAMES = RoleNames("i", "g", "p", "cg", "cp", "d")
GRANTED = "this action is granted by the index privileges"

REASONS = {
    f"action [indices:data/write/bulk[s]] is unauthorized for user [anna] with effective roles [a,b] on indices "
    f"[news,old], {GRANTED} [create_doc,create,delete,index,write,all]": "anna lacks the index privilege 'index' on "
    "news,old (indices:data/write/bulk[s]).",
    "action [cluster:monitor/nodes/info] is unauthorized for user [anna] with effective roles [], this action is "
    "granted by the cluster privileges [monitor,manage,all]": "anna lacks the cluster privilege 'monitor' "
    "(cluster:monitor/nodes/info).",
    f"action [indices:data/read/search] is unauthorized for API key id [x1] of user [anna] on indices [news], "
    f"{GRANTED} [read,all]": "API key id x1 of user anna lacks the index privilege 'read' on news "
    "(indices:data/read/search).",
    f"action [indices:monitor/settings/get] is unauthorized for user [anna] on indices [ours], {GRANTED} "
    "[monitor,view_index_metadata,manage,all]": "anna lacks the index privilege 'view_index_metadata' on ours "
    "(indices:monitor/settings/get).",
    f"action [indices:x/new] is unauthorized for user [anna] on indices [news], {GRANTED} [special,all]": "anna lacks "
    "the index privilege 'special' on news (indices:x/new).",
    "no permissions for [indices:data/read/search] and User [name=anna, roles=[]]": "anna lacks the "
    "permission 'indices:data/read/search'.",
    "something else": "",
    "": "",
}


@pytest.mark.parametrize("reason", REASONS)
def test_lacking(reason: str) -> None:
    assert lacking(reason) == REASONS[reason]


def test_a_refusal_names_the_privilege_however_long_its_reason_is() -> None:
    roles = ",".join(f"role-{k}" for k in range(100))
    reason = (
        f"action [indices:admin/refresh] is unauthorized for user [anna] with effective roles [{roles}] on indices "
        f"[news], {GRANTED} [maintenance,manage,all]"
    )
    body = {"error": {"type": "security_exception", "reason": reason}}
    error = refusal(Answer(403, {}, body), "POST http://h/news/_refresh")
    assert isinstance(error, Forbidden)
    assert str(error).startswith(
        "POST http://h/news/_refresh: 403. anna lacks the index privilege 'maintenance' on news"
    )
    assert (error.status, error.type) == (403, "security_exception")
    unknown = refusal(Answer(403, {}, {"error": {"type": "x", "reason": "no"}}), "GET http://h/")
    assert "lacks a privilege" in str(unknown)


@given(st.text(alphabet="action [x] is unauthorized for user[a], granted by the index privileges\n", max_size=300))
def test_any_reason(reason: str) -> None:
    assert isinstance(lacking(reason), str)


class Asked:
    """The API of Elasticsearch for the privileges of a user; None: without security."""

    server = Server(Product.ELASTICSEARCH, (8, 19, 21))

    def __init__(self, has: set[str] | None) -> None:
        self.has = has

    def request(self, method: str, path: str, *, body: Any) -> Any:
        assert (method, path) == ("POST", "/_security/user/_has_privileges")
        if self.has is None:
            raise RequestError("no handler", status=400)
        rights = {one["names"][0]: {p: p in self.has for p in one["privileges"]} for one in body["index"]}
        return {"username": "anna", "cluster": {p: p in self.has for p in body["cluster"]}, "index": rights}


def checks(has: set[str] | None) -> list[tuple[str, str]]:
    return [(one.level, one.message) for one in privilege_checks(Asked(has), NAMES)]  # type: ignore[arg-type]  # a client with one request


def test_what_doctor_says_of_privileges() -> None:
    everything = {one for role in ROLES for some in role.privileges(NAMES).values() for one in some}
    assert {level for level, _ in checks(everything | {"monitor"})} == {"ok"}
    assert ("ok", "anna may run init") in checks({"monitor", "manage"})
    assert ("ok", "anna may not run init: lacks monitor on the cluster") in checks({"manage"})
    (level, words) = checks({"monitor", "read"})[0]
    assert level == "error"
    assert words.endswith("doctor: lacks view_index_metadata on i")
    ((level, words),) = checks(None)
    assert (level, words[:11]) == ("ok", "not checked")
