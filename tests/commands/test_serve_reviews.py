"""Reviews in `serve`: what a reviewer decides on its pages is stored, shown, exported and respected by `group`."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, urlencode

import pyarrow
import pyarrow.parquet
import pytest
from page_reader import NASTY, Reader
from server_tools import JSON, change, delete_all, family, hits, make_index, put, words
from starlette.testclient import TestClient

from es_neardupe import Address, NearDupe, Settings
from es_neardupe.display_text import shown
from es_neardupe.groups.decisions import Decisions
from es_neardupe.groups.reviewed import ReviewedGroups
from es_neardupe.index.index import opened
from es_neardupe.serve.application import asgi
from es_neardupe.server.client import Client
from es_neardupe.views.group_pages import next_to_review

pytestmark = pytest.mark.either("storage")

TOKEN = "a-token-of-the-tests-0123456789"
A, B, C, D = family("large", 4)
SOURCES: JSON = {
    "a": {"title": "Principal", "body": f"{A} and a few more words"},
    "b": {"title": "=Formula", "body": B},
    "copy": {"title": "Copy", "body": B},
    f"c/ü {NASTY}": {"title": NASTY, "body": C},
    "d": {"title": "D", "body": D},
    **{f"s{n}": {"title": f"Small {n}", "body": text} for n, text in enumerate(family("small", 2))},
    **{f"e{n}": {"title": f"Equal {n}", "body": " ".join(words("equal", 40))} for n in range(2)},
    **{f"x{n}": {"title": f"Alone {n}", "body": " ".join(words(n, 50))} for n in range(3)},
}
NAMES = ["a", "b", "copy", f"c/ü {NASTY}", "d"]


def _as_sent(value: object) -> object:
    """A value of a form as browsers send it: each line break is of two characters."""
    if isinstance(value, list):
        return [_as_sent(one) for one in value]
    return re.sub(r"\r\n|\r|\n", "\r\n", str(value))


class Reviewer:
    """A browser of one reviewer."""

    def __init__(self, news: NearDupe, name: str, **options: Any) -> None:
        self.news = news
        app = asgi(news, token=TOKEN, reviewer=name, **options)
        self.site = TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {TOKEN}"})
        self.csrf = str(self._inputs(self.get("/"))["csrf"])

    @staticmethod
    def _inputs(page: str) -> dict[str, str | None]:
        inputs = (one for tag, one in Reader(page).tags if tag == "input" and "name" in one)
        return {str(one["name"]): one.get("value") for one in inputs}

    def get(self, path: str, **params: object) -> str:
        answer = self.site.get(path, params={name: str(value) for name, value in params.items()} or None)
        assert answer.status_code == 200, answer.text
        assert "alert(1)" not in Reader(answer.text).script
        return str(answer.text)

    def group(self) -> str:
        """The id of the large group."""
        return max(self.news.groups(), key=lambda one: one.size).group

    def documents(self, group: str | None = None) -> dict[str, str]:
        """Id -> the value by which the form of a group names the document."""
        page = Reader(self.get("/group", id=group or self.group()))
        values = [str(one["value"]) for _, one in page.tags if one.get("name") == "document"]
        return {unquote(value.split(" ", 2)[2]): value for value in values}

    def form(self, verdict: str, *ids: str, **more: object) -> dict[str, object]:
        """About a group; the documents ``ids`` are chosen."""
        documents = self.documents()
        chosen = [documents[id].split(" ")[0] for id in ids]
        fixed = {"csrf": self.csrf, "group": self.group(), "verdict": verdict}
        return {**fixed, "document": [*documents.values()], "chosen": chosen, **more}

    def parts(self, *parts: list[str], **more: object) -> dict[str, object]:
        """The form of a split."""
        numbers = {id: str(number) for number, part in enumerate(parts, 1) for id in part}
        return self.form("split", part=[numbers.get(id, "") for id in self.documents()], **more)

    def post(self, path: str, form: Mapping[str, object], status: int = 200) -> str:
        answer = self.site.post(path, data={name: _as_sent(value) for name, value in form.items()})
        assert answer.status_code == status, answer.text
        return str(answer.text)


def begun(client: Client, name: str) -> NearDupe:
    make_index(client, name, {"title": {"type": "text"}, "body": {"type": "text"}})
    put(client, name, SOURCES)
    news = NearDupe(name, client)
    news.init(Settings(("body",)))
    news.enrich()
    news.group()
    assert sorted(one.size for one in news.groups()) == [2, 2, 5]
    return news


def test_a_review(client: Client, index_name: str) -> None:
    """Previewed, stored, shown, replaced, taken back, and respected by `group`."""
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    large = ann.group()
    assert "<b>0</b> of 2 groups with different texts are reviewed" in ann.get("/")
    page = ann.get("/group", id=large)
    assert "1 of 2" in page
    preview = ann.post("/decide", ann.form("different", "b"))
    assert "These 2 parts are different" in preview
    assert "and 1 exact copy" in preview
    assert news.decisions() == []
    third = f"c/ü {NASTY}"
    after = ann.post("/decide", ann.parts(["a", third], ["b"], confirmed="true"))
    assert "Small" in after  # the next group
    assert "Stored <b>2 parts</b>: <bdi>Principal" in after
    (decision,) = news.decisions()
    assert (decision.author, decision.verdict.value, decision.parts) == ("ann", "split", (1, 1, 2))
    assert "You have decided this already" in ann.post("/decide", ann.parts(["a", third], ["b"]))
    assert "1 decision waits" in ann.get("/")
    assert "<td>open <small>3 of 4</small></td>" in ann.get("/groups")
    undo = {str(one["name"]): str(one["value"]) for _, one in Reader(after).tags if one.get("name") == "decision"}
    taken = ann.post("/withdraw", {"csrf": ann.csrf, "group": large, **undo})
    assert "Taken back: <b>2 parts</b>" in taken
    assert "waits" not in ann.get("/")
    assert news.decisions() == []

    more = {"confirmed": "true", "following": f"/group?id={large}"}  # as if more of its documents followed
    assert 'name="group" value="' + large in ann.post("/decide", ann.parts(["a", "d", third], ["b"], **more))
    assert "<td>reviewed</td>" in ann.get("/groups", review="reviewed")
    assert "<b>1</b> of 2 groups with different texts is reviewed" in ann.get("/")
    assert "Principal" not in ann.get("/groups", review="open")
    assert '<b id="total">1</b>' in ann.get("/groups", reviewer="ann")
    assert '<b id="total">0</b>' in ann.get("/groups", reviewer="nobody")
    ann.post("/decide", ann.form("note", "d", note=f"look {NASTY}"))
    assert "Stored <b>keep</b>" in ann.post("/decide", ann.form("keep", "b"))
    assert [one.keep.id for one in news.suggest_keep(top=1)] == ["b"]
    bob = Reviewer(news, "bob")
    bob.post("/decide", bob.form("keep", "b"))
    assert '<b id="total">1</b>' in bob.get("/groups", reviewer="bob")
    bob.post("/withdraw", {"csrf": bob.csrf, "decision": [one.id for one in news.decisions() if one.author == "bob"]})
    assert '<b id="total">0</b>' in bob.get("/groups", reviewer="bob")
    news.group()
    assert sorted(one.size for one in news.groups()) == [2, 2, 2, 3]
    assert "waits" not in ann.get("/")

    listed = ann.get("/decisions")
    assert '<b id="total">5</b>' in listed
    assert "Formula" in listed
    (split,) = [one for one in news.decisions() if one.verdict.value == "split"]
    ann.post("/withdraw", {"csrf": ann.csrf, "decision": split.id})
    assert "1 decision waits" in ann.get("/")
    assert '<b id="total">3</b>' in ann.get("/decisions", state="withdrawn")
    assert '<option value="ann">ann (4)</option>' in ann.get("/decisions")
    news.group()
    assert sorted(one.size for one in news.groups()) == [2, 2, 5]


def test_a_group_that_has_ended(client: Client, index_name: str) -> None:
    """A former link says what has become of it, with a link to the list, or to the group that it is a part of."""
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    groups = {one.principal.id: one.group for one in news.groups() if one.principal is not None}
    small = groups[next(id for id in groups if id.startswith("s"))]
    news.decide(parts=[["s0"], ["s1"]], author="ann")
    news.group()
    answer = ann.site.get("/group", params={"id": small})
    assert answer.status_code == 404
    assert "no longer exists: on" in unescape(answer.text)
    assert "<code>group</code> dissolved it." in answer.text
    assert '<a href="/groups">The list of groups</a>' in answer.text
    equal = groups[next(id for id in groups if id.startswith("e"))]
    news.decide(parts=[["a", "b", "e0"]], author="ann")
    news.group()
    page = ann.site.get("/group", params={"id": equal}).text
    assert f'<a href="/group?id={groups["a"]}">The group it was merged into</a>' in page


def test_a_decision_about_two_texts_is_stored_at_once(client: Client, index_name: str) -> None:
    """And the next open group is shown; after the last one, the list says that all are decided."""
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    small = next(one.group for one in news.groups() if one.members[0].id.startswith("s"))
    form = {"csrf": ann.csrf, "group": small, "verdict": "different", "document": [*ann.documents(small).values()]}
    assert "Stored <b>different</b>: <bdi>Small" in ann.post("/decide", form)
    (decision,) = news.decisions()
    assert {one.id for one in decision.documents} == {"s0", "s1"}
    again = ann.get("/group", id=small)
    assert "You stored <b>different</b> on " in again
    assert '<small class="verdict">different <bdi>ann</bdi></small>' in again
    last = ann.post("/decide", ann.form("apart", confirmed="true"))
    assert "All 2 groups are decided" in last
    assert "Stored <b>different</b>: <bdi>Principal" in last
    undo = {
        str(one["name"]): str(one["value"]) for _, one in Reader(last).tags if one.get("name") in ("decision", "group")
    }
    assert "Taken back: <b>different</b>" in ann.post("/withdraw", {"csrf": ann.csrf, **undo})
    equal = next(one.group for one in news.groups() if one.members[0].id.startswith("e"))
    page = ann.get("/group", id=equal)
    assert "There is nothing to decide" in page
    assert 'value="same"' not in page


def test_a_pair_that_returns_shows_what_changed(client: Client, index_name: str) -> None:
    """What was decided, and what one text read then and reads now; also when both changed."""
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    body = {id: SOURCES[id]["body"].split() for id in ("s0", "s1")}
    place = next(number for number, (one, other) in enumerate(zip(*body.values(), strict=False)) if one == other)
    news.decide("different", "s0", ["s1"], author="ann")

    def pages() -> list[str]:
        small = next(one.group for one in news.groups() if one.members[0].id.startswith("s"))
        found = (ann.get("/group", id=small), ann.get("/compare", a="s0", b="s1"))
        return [" ".join(one.split()) for one in found]

    def now(id: str, *words: str) -> None:
        change(client, index_name, id, {"body": " ".join([*body[id][:place], *words, *body[id][place + 1 :]])})
        news.enrich()
        news.group(ignore_reviews=True)

    assert not any("Since then" in page for page in pages())
    today = datetime.fromisoformat(news.decisions()[0].at)
    now("s1", "two", "million")
    for page in pages():
        assert f"<b>different</b> on {today.day} {today:%B %Y}." in page
        assert "Since then <bdi>s1</bdi> changed:" in page
        assert f'<del dir="auto">{body["s1"][place]}</del> → <ins dir="auto">two million</ins>' in page
    now("s0", "three", "<script>")
    for page in pages():
        assert "Since then both changed. Then they read" in page
    news.decide("same", "s0", ["s1"], author="ann")
    assert not any("Since then" in page for page in pages())


def test_a_document_has_a_page(client: Client, index_name: str) -> None:
    """With its text, its group, what was decided about it, and similar ones below the threshold; ids lead to it."""
    news = begun(client, index_name)
    half = " ".join(A.split()[: len(A.split()) * 3 // 4])
    put(client, index_name, {"half": {"title": f"Half {NASTY}", "body": half}})
    news.enrich()
    news.group()
    ann = Reviewer(news, "ann")
    below = [one.id for one in news.similar(id="half", min=0.1).hits]
    assert below
    news.decide("different", "a", ["d"], author="bob", note=f"costs {NASTY}")

    page = ann.get("/document", id="half")
    assert "In no group with another document" in page
    assert f"Half {NASTY}" in unescape(page)
    assert half in page
    links = {one["href"] for tag, one in Reader(page).tags if tag == "a" and "href" in one}
    assert {f"/document?{urlencode({'id': id, 'index': index_name})}" for id in below} <= links
    large = f"/group?{urlencode({'id': ann.group()})}"
    assert {one for one in links if str(one).startswith("/group?")} == {large}, "not to groups of one document"

    page = ann.get("/document", id="a", index=index_name)
    assert ">5 documents</a>, 4 texts" in page
    assert "and a few more words" in page
    assert "2026" in page
    assert f"costs {NASTY}" in unescape(page)
    form = {
        name: value for name, value in Reviewer._inputs(page).items() if name in ("csrf", "group", "page", "document")
    }
    kept = ann.post("/decide", {**form, "verdict": "keep"})
    assert "Stored <b>keep</b>: <bdi>Principal" in kept
    assert '<h2 id="decided">' in kept
    assert [one.verdict.value for one in news.decisions(author="ann")] == ["keep"]
    change(client, index_name, "a", {"body": "changed"})
    assert "Its text changed since" in ann.get("/document", id="a")
    assert ann.site.get("/document", params={"id": "unknown"}).status_code == 404
    assert ann.site.get("/document").status_code == 400

    link = f"/document?id=d&amp;index={index_name}"
    for path, given in (
        ("/groups", {}),
        ("/search", {"q": "title:D"}),
        ("/decisions", {}),
        ("/group", {"id": ann.group()}),
    ):
        listed = ann.get(path, **given)
        assert link in listed or path == "/groups", path
        assert "/document?id=" in listed
    assert link in ann.get("/compare", a="d", b="b")


def test_the_same_ids_in_two_indices_of_an_alias(client: Client, index_name: str) -> None:
    """Forms, links and requests of programs name the index of each document."""
    both = [f"{index_name}-1", f"{index_name}-2"]
    texts = family("two indices", 4)
    for number, one in enumerate(both):
        make_index(client, one, {"title": {"type": "text"}, "body": {"type": "text"}}, aliases={index_name: {}})
        put(
            client,
            one,
            {id: {"title": f"{id} of {number}", "body": texts[2 * k + number]} for k, id in enumerate("ab")},
        )
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()
    news.group()
    (group,) = news.groups(fields=None)
    ann = Reviewer(news, "ann", allow_decisions=True)
    principal, *others = [one.address for one in group.members]
    (twin,) = [one for one in others if one.id == principal.id]

    page = Reader(ann.get("/group", id=group.group))
    named = {tuple(str(one["value"]).split(" ")[1:]) for _, one in page.tags if one.get("name") == "document"}
    assert named == {tuple(one.address) for one in group.members}
    links = [str(one["href"]) for _, one in page.tags if "/compare?" in str(one.get("href"))]
    assert len(links) == 3
    for link in links:
        assert ann.site.get(unescape(link)).status_code == 200
    there = {"a": principal.id, "a_index": principal.index, "b": twin.id, "b_index": twin.index}
    compared = ann.site.get("/api/compare", params=there).json()
    assert [compared["a"]["name"], compared["b"]["name"]] == ["/".join(principal), "/".join(twin)]
    assert f"{principal.id} of {both.index(principal.index)}" in ann.get("/compare", **there)
    found = ann.site.get("/api/similar", params={"id": twin.id, "index": twin.index, "min": 0.5}).json()
    assert found["query"]["index"] == twin.index
    assert len(found["hits"]) == 3

    content = {
        one.address: hit["_source"]["neardupe"]["content"]
        for one in group.members
        for hit in hits(client, one.index)
        if hit["_id"] == one.id
    }
    value = {one: f"{content[one]} {one.index} {one.id}" for one in content}
    form = {"csrf": ann.csrf, "group": group.group, "document": [*value.values()]}
    preview = ann.post("/decide", {**form, "verdict": "same"})
    for address in (principal, twin):
        assert f"{address.id} of {both.index(address.index)}</span>" in preview
        assert f'<small class="name">{address.index}/{address.id}</small>' in preview
    for path in ("/groups", "/search?q=*"):
        assert f">{principal.index}/{principal.id}</a>" in ann.get(path)
    ann.post("/decide", {**form, "verdict": "different", "document": [value[principal], value[twin]]})
    assert [set(one.documents) for one in news.decisions()] == [{principal, twin}]
    listed = ann.get("/decisions")
    assert all(f"{one.id} of {both.index(one.index)}</span>" in listed for one in (principal, twin))

    gone = replace(news.decisions()[0], author="eve", documents=(principal, Address(f"{index_name}-3", "a")))
    Decisions(opened(news)).put([gone])  # as one about an index of the alias that was deleted since
    assert f"{index_name}-3/a" in ann.get("/decisions")
    news.withdraw([gone.id])

    asked = {"verdict": "same", "author": "bot", "id": principal._asdict(), "others": [twin._asdict()]}
    assert ann.site.post("/api/decisions", json=asked).json()["stored"] == 1
    assert ann.site.post("/api/decisions", json={**asked, "others": [twin.id]}).status_code == 400
    assert ann.site.post("/api/decisions", json={**asked, "others": [{"index": "other", "id": "a"}]}).status_code == 404
    delete_all(client, index_name)


@pytest.mark.parametrize("storage", ["inline", "sidecar"])
def test_one_document_of_a_group_is_kept(client: Client, index_name: str, storage: str) -> None:
    """A later choice replaces the earlier one of this reviewer in the group, and not those in other groups."""
    make_index(client, index_name, {"body": {"type": "text"}})
    put(client, index_name, SOURCES)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)), sidecar=storage == "sidecar")
    news.enrich()
    news.group()
    ann = Reviewer(news, "ann")
    news.decide("keep", "s0", author="ann")
    ann.post("/decide", ann.form("keep", "b"))
    assert {one.documents[0].id for one in news.decisions(author="ann")} == {"b", "s0"}
    ann.post("/decide", ann.form("keep", "d"))
    assert {one.documents[0].id for one in news.decisions()} == {"d", "s0"}
    assert {one.keep.id for one in news.suggest_keep() if one.reviewer == "ann"} == {"d", "s0"}


def test_a_note_goes_with_a_decision(client: Client, index_name: str) -> None:
    ann = Reviewer(begun(client, index_name), "ann")
    assert '<p>Note: <span dir="auto">see the ticket</span></p>' in ann.post(
        "/decide", ann.form("same", note="see the ticket")
    )
    ann.post("/decide", ann.form("same", note="see the ticket", confirmed="true"))
    assert [one.note for one in ann.news.decisions()] == ["see the ticket"]


def test_parts_are_those_of_a_split(client: Client, index_name: str) -> None:
    """Another verdict is about what is chosen, whatever parts the form has from a preview that was canceled."""
    ann = Reviewer(begun(client, index_name), "ann")
    parts = [str(number) for number, _ in enumerate(ann.documents(), 1)]
    ann.post("/decide", ann.form("keep", "b", part=parts))
    ann.post("/decide", ann.form("note", "b", part=parts, note="look"))
    said = {(one.verdict.value, one.note, tuple(two.id for two in one.documents)) for one in ann.news.decisions()}
    assert said == {("keep", None, ("b",)), ("note", "look", ("b",))}
    assert "These texts are the same" in ann.post("/decide", ann.form("same", part=parts))


def test_ids_with_any_characters(client: Client, index_name: str) -> None:
    """In the forms of a group, of a preview and of a document."""
    names = ["line\nbreak", "\r\n", "tab\t ", "100%2F %"]
    make_index(client, index_name, {"body": {"type": "text"}})
    put(client, index_name, {id: {"body": text} for id, text in zip(names, (A, B, C, D), strict=True)})
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()
    news.group()
    ann = Reviewer(news, "ann")
    assert {*ann.documents()} == {*names}
    preview = Reader(ann.post("/decide", ann.form("apart")))
    form: dict[str, list[str]] = {}
    for tag, one in preview.tags:
        if tag == "input" and "name" in one:
            form.setdefault(str(one["name"]), []).append(str(one["value"]))
    ann.post("/decide", form)
    (stored,) = news.decisions()
    assert {one.id for one in stored.documents} == {*names}
    for id in names:
        inputs = ann._inputs(ann.get("/document", id=id))
        ann.post("/decide", {**inputs, "verdict": "keep"})
        assert [one.documents[0].id for one in news.decisions()[:1]] == [id]


def test_exports(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    ann.post("/decide", ann.parts(["a"], ["b", f"c/ü {NASTY}"], confirmed="true"))
    exported = ann.site.get("/decisions/export?format=csv")
    assert exported.content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(exported.content.decode("utf-8-sig"))))
    titles = {"a": "Principal", "b": "'=Formula", f"c/ü {NASTY}": NASTY}  # one decision, a row for each pair
    assert {(row["verdict"], frozenset((row["a_id"], row["b_id"]))) for row in rows} == {
        ("different", frozenset(("a", "b"))),
        ("different", frozenset(("a", f"c/ü {NASTY}"))),
        ("same", frozenset(("b", f"c/ü {NASTY}"))),
    }
    assert all(row["b_title"] == titles[row["b_id"]] for row in rows)
    lines = [json.loads(line) for line in ann.site.get("/decisions/export?format=jsonl").text.splitlines()]
    assert sorted(line["id"] for line in lines) == sorted(one.id for one in news.decisions())
    assert ann.site.get("/decisions/export?format=exe").status_code == 400


def test_a_changed_text_returns_to_review(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    before = ann.form("same", confirmed="true")
    ann.post("/decide", before)
    assert "Principal" in ann.get("/groups", review="reviewed")
    change(client, index_name, "d", {"body": f"{D} changed"})
    refused = ann.site.post("/decide", data=before)
    assert refused.status_code == 409
    assert "has changed since you saw it" in refused.text
    news.enrich()
    news.group()
    assert "Principal" not in ann.get("/groups", review="reviewed")
    assert "Principal" in ann.get("/groups", review="open")


def test_two_reviewers(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    ann, bob = Reviewer(news, "ann"), Reviewer(news, "bob")
    index, kept = opened(news), ReviewedGroups()
    first = next_to_review(index, kept, None, "ann")
    assert first == ann.group()
    ann.post("/claim", {"csrf": ann.csrf, "group": first})
    assert "<bdi>ann</bdi> works on this group until" in bob.get("/group", id=first)
    assert "works on this group until" not in ann.get("/group", id=first)
    assert next_to_review(index, kept, None, "bob") not in (None, first)
    assert next_to_review(index, kept, None, "ann") == first
    assert (
        next_to_review(index, kept, next_to_review(index, kept, first, "ann"), "ann") == first
    )  # from the start again

    third = f"c/ü {NASTY}"
    ann.post("/decide", ann.parts(["a"], ["b"]))
    preview = bob.post("/decide", bob.parts(["a", "b", "d"]))
    assert "ann says different: what you disagree about stays open" in preview
    bob.post("/decide", bob.parts(["a", "b", "d"], confirmed="true"))
    assert "<td>disputed" in bob.get("/groups")
    assert '<b id="total">1</b>' in bob.get("/groups", review="disputed")
    assert "1 disputed" in bob.get("/")
    page = bob.get("/group", id=first)
    assert "You call" in page
    assert "same, <bdi>ann</bdi> different: the pair is open until one of you withdraws" in page
    news.withdraw([one.id for one in news.decisions()])
    news.decide("same", "b", ["d", third], author="ann")
    refused = bob.post("/decide", bob.parts(["d"], [third], confirmed="true"))
    assert "This contradicts other decisions" in refused
    assert 'id="store"' not in refused


def test_names_and_forms(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    for path, form in (
        ("/decide", ann.form("same")),
        ("/withdraw", {"decision": "x"}),
        ("/claim", {"group": "g"}),
        ("/reviewer", {"name": "x"}),
    ):
        assert ann.site.post(path, data={**form, "csrf": "wrong"}).status_code == 403
    for form in (
        ann.form("perhaps"),
        ann.form("split"),
        ann.parts(["a"]),
        ann.form("keep", "b", "d"),
        {**ann.form("same"), "document": "nothing"},
        {**ann.form("same"), "document": [f"{'0' * 32} none", f"{'1' * 32} none"]},
    ):
        answer = ann.site.post("/decide", data=form)
        assert answer.status_code in (400, 404), answer.text
        assert "This was not done" in answer.text
    assert news.decisions() == []
    group, form = ann.group(), ann.form("same", confirmed="true")
    client.request("DELETE", f"/{index_name}/_doc/b", params={"refresh": "true"})
    gone = ann.post("/decide", form, 404)
    assert f"There is no document &#39;b&#39; in {index_name}." in gone
    assert "1 of 2</span>" in ann.get("/group", id=group)  # its place, though it has a document less
    named = ann.site.post("/reviewer", data={"csrf": ann.csrf, "name": "  Zoë   Ö  "}, follow_redirects=False)
    assert named.headers["set-cookie"].startswith(f"es-neardupe-reviewer={quote('Zoë Ö')};")
    assert "httponly" in named.headers["set-cookie"].lower()
    ann.site.cookies.set("es-neardupe-reviewer", quote("Zoë Ö"))
    ann.post("/decide", ann.form("same", confirmed="true"))
    assert [one.author for one in news.decisions()] == ["Zoë Ö"]
    assert ann.site.post("/reviewer", data={"csrf": ann.csrf, "name": " "}).status_code == 400
    assert ann.site.post("/withdraw", data={"csrf": ann.csrf, "decision": "none"}).status_code == 404


def test_programs_decide_only_if_allowed(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    body = {"verdict": "different", "id": "a", "others": ["b"], "author": "program"}
    reading = Reviewer(news, "ann").site
    refused = reading.post("/api/decisions", json=body)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
    assert "start `es-neardupe serve` with --allow-decisions" in refused.json()["detail"]
    writing = Reviewer(news, "ann", allow_decisions=True).site
    assert writing.post("/api/decisions", json={**body, "dry_run": True}).json()["stored"] == 1
    assert news.decisions() == []
    stored = writing.post("/api/decisions", json=body).json()
    assert sorted(stored["copies"].values()) == [1, 2]
    (found,) = reading.get("/api/decisions").json()["decisions"]
    assert (found["verdict"], found["author"], found["withdrawn"]) == ("different", "program", None)
    assert stored["decisions"] == [found]  # with the id by which it is withdrawn
    assert writing.delete(f"/api/decisions/{found['id']}").json()["withdrawn"] is not None
    assert writing.delete("/api/decisions/none").status_code == 404
    assert reading.get("/api/decisions?withdrawn=true").json()["total"] == 1
    wrong_values = ({"verdict": "x"}, {"more": 1}, {"others": ["none"]}, {"author": ""}, {"note": "a\0b"})
    for wrong in ({**body, **one} for one in wrong_values):
        assert writing.post("/api/decisions", json=wrong).status_code in (400, 404)


def test_decisions_as_parquet_are_those_of_the_csv(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    ann.post("/decide", ann.parts(["a"], ["b"]))
    ann.post("/decide", ann.form("keep", "d"))
    news.withdraw([news.decisions()[0].id])
    table = pyarrow.parquet.read_table(io.BytesIO(ann.site.get("/decisions/export?format=parquet").content))
    lines = csv.DictReader(io.StringIO(ann.site.get("/decisions/export?format=csv").content.decode("utf-8-sig")))
    rows = [{name: "" if value is None else str(value) for name, value in row.items()} for row in table.to_pylist()]
    assert rows == [{**line, "b_title": line["b_title"].removeprefix("'")} for line in lines]
    assert [one["verdict"] for one in rows] == ["keep", "different"]
    assert table.schema.field("similarity").type == pyarrow.float64()


def test_a_group_as_a_file_of_its_own(client: Client, index_name: str) -> None:
    """Without forms, scripts and links into the application, and with the decisions."""
    news = begun(client, index_name)
    ann = Reviewer(news, "ann")
    news.decide("note", "b", author="ann", note="see the ticket")
    answer = ann.site.get("/group/file", params={"id": ann.group()})
    assert answer.headers["content-disposition"] == f'attachment; filename="group-{ann.group()}.html"'
    page = Reader(answer.text)
    assert not {"form", "input", "script", "img", "nav", "a"} & {tag for tag, _ in page.tags}
    assert all(shown(id) in unescape(answer.text) for id in ("a", "b", "copy", "d"))
    assert "note ann: see the ticket" in answer.text
    assert f"of {index_name}, 20" in answer.text
    assert ann.site.get("/group/file", params={"id": "unknown"}).status_code == 404
