"""Access to the application of `serve`: token, cookie, hosts, origins, CSRF token, headers. No server is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.types import Message
from unit_tools import FakeClient

from es_neardupe.commands.similar import similar
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.groups.reviewed import ReviewedGroups
from es_neardupe.index.document_text import given_text
from es_neardupe.index.index import Index
from es_neardupe.serve import guard
from es_neardupe.serve.application import asgi
from es_neardupe.serve.guard import Keys, host_of, new_token
from es_neardupe.serve.http_interface import http_interface
from es_neardupe.signatures import meaning_of

TOKEN = "a-token-of-the-tests-0123456789"
KEYS = Keys(TOKEN)
BEARER = {"Authorization": f"Bearer {TOKEN}"}
CLOSED = "/no-such-page"
"""A page that is only answered with the token: 404."""


APP = asgi(Index("news", FakeClient()), token=TOKEN, hosts=["reviews.example"])


def client(base: str = "http://127.0.0.1:8765") -> TestClient:
    """A browser without cookies."""
    return TestClient(APP, base_url=base, follow_redirects=False)


def test_token_is_exchanged_for_a_cookie() -> None:
    browser = client()
    answer = browser.get(f"{CLOSED}?q=a%26b&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{CLOSED}?q=a%26b")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{KEYS.cookie_name}={KEYS.cookie};")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert TOKEN not in cookie + answer.headers["location"] + answer.text
    assert browser.get(CLOSED).status_code == 404


def test_cookie_over_tls_is_secure() -> None:
    assert "Secure" in client("https://127.0.0.1").get(f"/?token={TOKEN}").headers["set-cookie"].split("; ")


def test_redirect_stays_on_this_site() -> None:
    answer = client().get(f"http://127.0.0.1:8765//evil.example/x?token={TOKEN}")
    assert answer.headers["location"] == "/evil.example/x"


@pytest.mark.parametrize("path", ["/", "/groups", "/group?id=1", "/compare?a=1&b=2", "/search", "/health", "/metrics"])
@pytest.mark.parametrize("wrong", ["", "wrong", TOKEN[:-1], TOKEN + "x", "é"])
def test_nothing_without_the_token(path: str, wrong: str) -> None:
    browser = client()
    assert browser.get(path).status_code == 401
    assert browser.get(path, params={"token": wrong}).status_code == 401
    assert browser.get(path, headers={"Authorization": f"Bearer {wrong}".encode()}).status_code == 401
    assert browser.get(path, headers={"Cookie": f"{KEYS.cookie_name}={wrong}".encode()}).status_code == 401


@pytest.mark.parametrize("path", ["/api/groups", "/api/openapi.json", "/api/stats", "/api/no-such"])
def test_no_interface_without_the_token(path: str) -> None:
    assert client().get(path).status_code == 401


def test_bearer_token() -> None:
    assert client().get("/api/openapi.json", headers=BEARER).status_code == 200
    assert client().get(CLOSED, headers=BEARER).status_code == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8765", 404),
        ("localhost", 404),
        ("[::1]:8765", 404),
        ("LOCALHOST:1", 404),
        ("reviews.example", 404),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8765", 421),
        ("localhost:evil.example", 421),
        ("", 421),
    ],
)
def test_only_known_hosts(host: str, status: int) -> None:
    assert client().get(CLOSED, headers={**BEARER, "Host": host}).status_code == status


def test_host_of() -> None:
    assert [host_of(one) for one in ("A:80", "a", "[::1]:9", "[::1]")] == ["a", "a", "[::1]", "[::1]"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8765", 404),
        ("https://127.0.0.1:8765", 403),
        ("http://127.0.0.1:8766", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_only_its_own_origin(origin: str, status: int) -> None:
    assert client().get(CLOSED, headers={**BEARER, "Origin": origin}).status_code == status


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 404), ("same-site", 403), ("cross-site", 403), ("none", 403)]
)
def test_forms_of_pages_without_referrer_have_no_origin(site: str, status: int) -> None:
    headers = {**BEARER, "Origin": "null", "Sec-Fetch-Site": site}
    assert client().get(CLOSED, headers=headers).status_code == status


@pytest.mark.parametrize("data", [{}, {"csrf": ""}, {"csrf": "wrong"}, {"csrf": TOKEN}, {"csrf": KEYS.cookie}])
def test_forms_that_change_something_need_the_csrf_token(data: Mapping[str, str]) -> None:
    browser = client()
    browser.get(f"{CLOSED}?token={TOKEN}")
    assert browser.post("/sign-out", data=data).status_code == 403
    assert browser.get(CLOSED).status_code == 404


def test_sign_out() -> None:
    browser = client()
    browser.get(f"{CLOSED}?token={TOKEN}")
    page = browser.get(CLOSED).text
    assert f'name="csrf" value="{KEYS.csrf("")}"' in page
    assert browser.post("/sign-out", data={"csrf": KEYS.csrf("")}).status_code == 303
    assert browser.get(CLOSED).status_code == 401


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (CLOSED, BEARER, 404),
        (CLOSED, {}, 401),
        (f"/?token={TOKEN}", {}, 303),
        ("/api/openapi.json", BEARER, 200),
        ("/api/no-such", BEARER, 404),
        ("/search", BEARER, 200),
        ("/metrics", BEARER, 200),
        ("/", {"Host": "evil.example"}, 421),
    ],
)
def test_every_answer_has_the_security_headers(path: str, headers: Mapping[str, str], status: int) -> None:
    answer = client().get(path, headers=dict(headers))
    assert answer.status_code == status
    found = answer.headers
    assert found["cache-control"] == "no-store"
    assert found["referrer-policy"] == "no-referrer"
    assert found["x-content-type-options"] == "nosniff"
    assert found["x-frame-options"] == "DENY"
    policy = dict(one.split(maxsplit=1) for one in found["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in found["content-security-policy"]


def test_pages_have_the_policy_of_their_header_and_no_other_script() -> None:
    answer = client().get("/search", headers=BEARER)
    policy = answer.headers["content-security-policy"]
    in_page, _, rest = policy.rpartition("; ")
    assert rest == "frame-ancestors 'none'"
    assert f'content="{in_page}"' in answer.text
    assert "script-src 'sha256-" in policy
    assert answer.text.count("<script") == 1
    assert TOKEN not in answer.text


def test_values_of_a_request_are_escaped() -> None:
    nasty = "<script>alert(1)</script>\u202e\"'"
    answer = client().get("/compare", params={"a": "x", "b": "y", "matching": nasty}, headers=BEARER)
    assert answer.status_code == 400
    assert "&lt;script&gt;" in answer.text
    assert answer.text.count("<script") == 1
    assert "\u202e" not in answer.text


def test_problems_are_json() -> None:
    answer = client().get("/api/similar?id=x&min=7", headers=BEARER)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "SettingsError",
        "title": "Bad Request",
        "status": 400,
        "detail": "min: Input should be less than or equal to 1",
    }


def test_bodies_are_limited_before_they_are_read() -> None:
    """With and without the token, and whether or not the request says how large its body is."""

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1_000_000

    for path in ("/api/decisions", "/decide", CLOSED):
        for headers in ({}, BEARER):
            answer = client().post(path, content=b"", headers={**headers, "Content-Length": "600000000"})
            assert answer.status_code == 413, path
            assert "16,000,000 bytes" in answer.text
        assert client().post(path, content=chunks(), headers=BEARER).status_code == 413
        assert client().post(path, content=chunks()).status_code == 401
    assert client().post("/api/decisions", content=(b"{}",), headers=BEARER).status_code == 405


def test_a_body_without_an_end_is_read_up_to_the_limit() -> None:
    parts = []

    async def receive() -> Message:
        parts.append(b"x" * 1_000_000)
        assert len(parts) <= 17
        return {"type": "http.request", "body": parts[-1], "more_body": True}

    assert asyncio.run(guard._whole_body(receive)) is None


def test_numbers_have_only_digits() -> None:
    for wrong in ("3_0", "3.0", "0x3", ""):
        answer = client().get(f"/api/groups?size={wrong}", headers=BEARER)
        assert (answer.status_code, answer.json()["detail"]) == (400, "size: not a whole number")


def test_mounted_in_another_application() -> None:
    inner = asgi(Index("news", FakeClient()), token=TOKEN)
    browser = TestClient(
        Starlette(routes=[Mount("/dupes", inner)]), base_url="http://127.0.0.1", follow_redirects=False
    )
    answer = browser.get(f"/dupes/search?token={TOKEN}")
    assert answer.headers["location"] == "/dupes/search"
    assert "Path=/dupes" in answer.headers["set-cookie"]
    page = browser.get("/dupes/search")
    assert page.status_code == 200
    assert 'href="/dupes/groups"' in page.text
    assert browser.get("/dupes/api/openapi.json").status_code == 200


def test_openapi_names_the_types() -> None:
    document = client().get("/api/openapi.json", headers=BEARER).json()
    known = {"/groups", "/groups/{group}", "/compare", "/similar", "/contained", "/stats", "/decisions"}
    known |= {"/groups/{group}/collation", "/document", "/documents"}
    assert set(document["paths"]) == known
    schemas = document["components"]["schemas"]
    assert {"Group", "Groups", "CompareReport", "SimilarReport", "ContainedReport", "StatsReport"} <= set(schemas)
    for path in document["paths"].values():
        for operation in path.values():
            for status in ("4XX", "5XX"):
                (kind, described), *others = operation["responses"][status]["content"].items()
                assert (kind, others) == ("application/problem+json", [])
                assert described["schema"] == {"$ref": "#/components/schemas/ProblemAnswer"}
    assert set(schemas["ProblemAnswer"]["properties"]) == {"type", "title", "status", "detail"}
    assert set(schemas["Address"]["properties"]) == {"index", "id"}
    assert "_text" not in schemas["Side"]["properties"]


@pytest.mark.parametrize("logins", [False, True])
def test_openapi_describes_parameters_and_logins(logins: bool) -> None:
    index = Index("news", FakeClient())
    app = http_interface(lambda request: index, "news", (), ReviewedGroups(), allow_decisions=True, logins=logins)
    document = app.openapi()
    schemes = {name: one.get("scheme", one["type"]) for name, one in document["components"]["securitySchemes"].items()}
    assert schemes == ({"password": "basic", "bearer": "bearer", "key": "apiKey"} if logins else {"token": "bearer"})
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) > 12
    for operation in operations:
        assert operation["security"] == [{name: []} for name in schemes]
        for parameter in operation.get("parameters", ()):
            assert parameter["description"].endswith("."), (operation["operationId"], parameter["name"])
    for name in ("SimilarQuery", "ContainedQuery", "AddressQuery", "VerdictQuery", "PartsQuery", "ProblemAnswer"):
        for part in document["components"]["schemas"][name]["properties"].values():
            assert part["description"], name


def test_openapi_describes_options_as_the_command_line() -> None:
    """With the same text and limits; an interface has more limits."""
    document = client().get("/api/openapi.json", headers=BEARER).json()
    paths, schemas = document["paths"], document["components"]["schemas"]
    shown = {one["name"]: one["schema"] for one in paths["/similar"]["get"]["parameters"]}
    for name in ("min", "top", "across", "facts"):
        assert shown[name]["description"] == meaning_of(similar, name)["description"]
    assert {"minimum": 1, "maximum": 1000, "default": 10}.items() <= shown["top"].items()
    assert schemas["SimilarQuery"]["properties"]["min"] == shown["min"]
    assert shown["min"]["anyOf"][0] == {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    assert shown["min"]["description"] == "Minimum similarity, in (0, 1]. Default: the threshold of the index."


def test_openapi_names_the_bounds() -> None:
    """What a command refuses for any index is not valid by the schema either."""
    browser = client()
    document = browser.get("/api/openapi.json", headers=BEARER).json()
    for path, name, low, high in (("groups", "size", 1, 1000), ("groups", "min_size", 2, 2**31 - 1)):
        (known,) = (one["schema"] for one in document["paths"][f"/{path}"]["get"]["parameters"] if one["name"] == name)
        assert (known["minimum"], known["maximum"]) == (low, high)
    for path in ("similar", "contained", "documents"):
        (minimum,) = (one for one in document["paths"][f"/{path}"]["get"]["parameters"] if one["name"] == "min")
        assert '"exclusiveMinimum": 0' in json.dumps(minimum["schema"])
    for query in ("similar?id=", "similar?id=1&min=0", "contained?id=1&min=0", "compare?a=&b=1", "documents?by="):
        answer = browser.get(f"/api/{query}", headers=BEARER)
        assert (answer.status_code, answer.json()["type"]) == (400, "SettingsError")
    text = browser.post("/api/similar", headers=BEARER, json={"text": "one", "min": 0})
    assert (text.status_code, text.json()["detail"].partition(":")[0]) == (400, "min")


def test_wrong_methods_name_the_right_ones() -> None:
    for path, allowed in (
        ("/search", "GET"),
        ("/decide", "POST"),
        ("/api/stats", "GET"),
        ("/api/similar", "GET, POST"),
        ("/api/groups/1/collation", "GET"),
    ):
        answer = client().request("PUT", path, headers={**BEARER, "Origin": "http://127.0.0.1:8765"})
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_wrong_requests_are_explained() -> None:
    for method, path, body, status, detail in (
        ("GET", "/nowhere", "", 404, "There is no /api/nowhere here: /api/openapi.json lists all paths."),
        ("PUT", "/similar", "", 405, "This path has no PUT, only GET, POST."),
        ("GET", "/stats?top=1", "", 400, "'top' is not a parameter of this path. It has none."),
        ("GET", "/documents?by=a&top=1&top=2", "", 400, "'top' is given 2 times: give it once."),
        ("GET", "/groups?value=a&value=b", "", 400, "A value must be given as FIELD:VALUE."),
        (
            "GET",
            "/documents?by=a&mim=1",
            "",
            400,
            "'mim' is not a parameter of this path. Its parameters: by, min, top.",
        ),
        ("GET", "/groups/a?group=b", "", 400, "'group' is not a parameter of this path. It has none."),
        (
            "POST",
            "/similar",
            '{"text": "a"}',
            400,
            "body: it must be a JSON object, sent with Content-Type: application/json",
        ),
        ("POST", "/similar?text=a", "{}", 400, "'text' is not a parameter of this path. It has none."),
    ):
        headers = {**BEARER, "Content-Type": "text/plain"}
        answer = client().request(method, f"/api{path}", content=body, headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (status, detail)


def test_refusals_of_the_interface_are_problems() -> None:
    large = {**BEARER, "Content-Length": "600000000"}
    for status, headers in ((401, {}), (421, {**BEARER, "Host": "x"}), (403, {**BEARER, "Origin": "x"}), (413, large)):
        answer = client().post("/api/similar", headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        known = answer.json()
        assert (known["status"], known["type"]) == (status, "about:blank")
        page = client().post("/decide", headers=headers)
        assert (page.status_code, page.headers["content-type"]) == (status, "text/plain; charset=utf-8")
        assert known["detail"] == page.text.strip()
        assert answer.headers.get("www-authenticate") == page.headers.get("www-authenticate")


def test_a_fault_of_the_program_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(index: Index) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("es_neardupe.serve.http_interface.stats", fail)
    browser = TestClient(APP, base_url="http://127.0.0.1:8765", raise_server_exceptions=False)
    answer = browser.get("/api/stats", headers=BEARER)
    assert (answer.status_code, answer.json()["title"]) == (500, "Internal Server Error")
    assert "secret" not in answer.text


def test_tokens_are_random_and_cookies_do_not_reveal_them() -> None:
    one, other = new_token(), new_token()
    assert one != other
    assert len(one) == 32
    assert len({KEYS.cookie, KEYS.csrf(""), KEYS.csrf("Basic x"), TOKEN}) == 4
    assert Keys(one).cookie != Keys(other).cookie
    assert Keys(one).cookie_name != Keys(other).cookie_name


@pytest.mark.parametrize(
    "token", ["", "a", " " * 15, "0123456789abcde", "ümlaut-0123456789", "a line\nbreak in it", None]
)
def test_weak_tokens_open_nothing(token: Any) -> None:
    """Not even an application that another one mounts."""
    with pytest.raises(SettingsError, match="at least 16 printable ASCII"):
        asgi(Index("news", FakeClient()), token=token)


def test_there_must_be_a_token() -> None:
    with pytest.raises(SettingsError, match="at least 16 printable ASCII"):
        asgi(Index("news", FakeClient()))


def test_half_of_a_surrogate_pair() -> None:
    """The words are those of the commands."""
    body = b'{"text": "a \\ud800 b"}'
    headers = BEARER | {"Content-Type": "application/json"}
    answer = TestClient(APP, base_url="http://127.0.0.1").post("/api/similar", headers=headers, content=body)
    said = "text contains half of a surrogate pair; allowed: valid Unicode"
    assert (answer.status_code, answer.json()["detail"].replace(":", "", 1)) == (400, said)
    with pytest.raises(InputError, match=f"^`text`{said.removeprefix('text')}"):
        given_text("a \ud800 b")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"text": "a \xff"}', "body: it is not valid UTF-8"),
        (b"[" * 100_000, "body: it is nested too deeply"),
        (b'{"text": "one", "top": 1, "text": "two"}', "'text' is given 2 times: give it once."),
        (b'{"text": "one", "facts": [{"a": 1, "a": 1, "a": 2}]}', "'a' is given 3 times: give it once."),
    ],
)
def test_bodies_that_cannot_be_read(body: bytes, why: str) -> None:
    headers = BEARER | {"Content-Type": "application/json"}
    answer = TestClient(APP, base_url="http://127.0.0.1").post("/api/similar", headers=headers, content=body)
    assert (answer.status_code, answer.json()["type"], answer.json()["detail"]) == (400, "SettingsError", why)


def test_a_value_of_several_types_is_named_once() -> None:
    browser = TestClient(APP, base_url="http://127.0.0.1")
    answer = browser.get("/api/contained?id=1&ignore_common=often", headers=BEARER)
    parts = [part.partition(":")[0] for part in answer.json()["detail"].split("; ")]
    assert (answer.status_code, parts) == (400, ["ignore_common", "ignore_common"])


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_path_with_a_slash_at_its_end_is_unknown(method: str) -> None:
    answer = client().request(method, "/api/decisions/", headers=BEARER)
    assert (answer.status_code, answer.json()["type"]) == (404, "about:blank")


def test_metrics_count_requests() -> None:
    app = asgi(Index("news", FakeClient()), token=TOKEN)
    browser = TestClient(app, base_url="http://127.0.0.1")
    browser.get("/search", headers=BEARER)
    text = browser.get("/metrics", headers=BEARER).text
    assert 'es_neardupe_http_requests_total{index="news",path="/search",status="200"} 1.0' in text
