"""Prepared texts on a server: keys, groups and measures are those of what is left, and the original is shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from conftest import Cli, read_jsonl
from server_tools import make_index, make_or_skip, ours, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.options import MeasureName
from es_neardupe.server.client import Client

BODY = " ".join(words("body", 60))
OTHER = " ".join(words("other", 60))
NAV = "<nav>" + " ".join(words("nav", 40)) + "</nav>"
PAGES: dict[str, dict[str, Any]] = {
    "plain": {"title": "The page", "html": BODY},
    "new": {"title": "The page", "html": f"<html>{NAV}<main><p>{BODY}</main><footer>{OTHER}</footer>"},
    "old": {"title": "The page", "html": ["<table><tr><td>" + BODY.replace(" ", " <b></b>", 1) + "</table>"]},
    "other": {"title": "Another", "html": f"<html>{NAV}<main>{OTHER}</main>"},
}
HTML = Settings.chosen(("title", "html"), clean="html-main", sample_mod=2)


def filled(client: Client, name: str, sources: Mapping[str, Mapping[str, Any]], settings: Settings) -> NearDupe:
    fields = next(iter(sources.values()))
    make_index(client, name, {field: {"type": "text"} for field in fields})
    put(client, name, sources)
    index = NearDupe(name, client)
    index.init(settings)
    return index


@pytest.fixture
def pages(client: Client, index_name: str) -> NearDupe:
    index = filled(client, index_name, PAGES, HTML)
    index.enrich()
    return index


def test_everything_compares_what_is_left(pages: NearDupe, client: Client, index_name: str) -> None:
    pages.group()
    (group,) = pages.groups()
    assert (group.size, group.min_similarity) == (3, 1)
    stored = ours(client, index_name)
    assert stored["plain"]["content"] == stored["new"]["content"] == stored["old"]["content"]
    (hit,) = pages.similar(id="new").hits
    assert (hit.similarity, hit.copies) == (1, 1)
    page = f"{NAV}<main><h1>The page</h1><p>{BODY}</main>"
    (hit,) = pages.similar(text=page).hits
    assert (hit.similarity, hit.copies) == (1, 2)
    found = pages.compare("plain", "new")
    assert found.value(MeasureName.RESEMBLANCE) == 1
    assert found.b.text == f"The page\n{PAGES['new']['html']}"
    (block,) = found.matchings["literal"].blocks
    assert found.b.text[slice(*block.b)].endswith(f"<main><p>{BODY}")
    shown = pages.shingles("new")
    assert shown.prepared == f"The page\n{BODY}"
    assert shown.stored is not None
    assert shown.stored.equal
    assert pages.audit().precision == 1
    assert [check for check in pages.doctor() if check.level not in ("ok", "info")] == []
    assert pages.enrich(check=True).writes.written == 0


def test_passages_are_found_in_parts_that_are_left_out(pages: NearDupe) -> None:
    """`contained` reads the whole page, without its markup."""
    found = {hit.id: hit for hit in pages.contained(text=OTHER, min=0.9).hits}
    assert set(found) == {"new", "other"}
    (passage,) = found["new"].passages
    assert f"The page\n{PAGES['new']['html']}"[slice(*passage.b)] == OTHER


def test_init_shows_what_is_left(client: Client, index_name: str) -> None:
    index = filled(client, index_name, PAGES, HTML)
    sample = index.init(HTML).preparation
    assert sample is not None
    assert (sample.documents, sample.words, sample.left_out) == (4, 7 + 60 * 5 + 40 * 2, 60 + 40 * 2)
    assert {one.id for one in sample.examples} <= {"new", "other"}
    assert all(one.before != one.after for one in sample.examples)
    assert NearDupe(index_name, client, prefix="other").init(Settings(("title",), prefix="other")).preparation is None


def test_what_init_says(server_cli: Cli, client: Client, index_name: str) -> None:
    shown = server_cli("init", index_name, "--field", "text", "--clean", "mail", "--create")
    assert "Example, before: Monday at ten suits me, and I bring the plans. On 3 Mar 2026" in shown.out
    assert "after: Monday at ten suits me, and I bring the plans.\n" in shown.out
    quoted = "One two three four five.\n\n> " + " ".join(words("quoted", 20))
    put(client, index_name, {f"m{n}": {"text": f"{n} {quoted}"} for n in range(9)})
    shown = server_cli("init", index_name, "--field", "text", "--clean", "mail")
    assert "--clean mail leaves out 180 of 234 words of 9 random documents." in shown.out
    assert shown.out.count("Example, document m") == 3
    refused = server_cli("init", index_name, "--field", "text", "--clean", "mail", "--mask", "digits")
    assert "preparation: --clean mail, not --clean mail, --mask digits" in refused.err


@pytest.mark.product("opensearch")
def test_a_keyword_field_has_keys(client: Client, index_name: str) -> None:
    make_or_skip(client, index_name, {"line": {"type": "wildcard"}, "code": {"type": "keyword"}}, {})
    put(client, index_name, {str(n): {"line": f"user {n} logged in from 10.0.0.{n}", "code": "A"} for n in range(3)})
    index = NearDupe(index_name, client)
    index.init(Settings.chosen(("line", "code"), preset="logs"))
    index.enrich()
    index.group()
    assert [group.size for group in index.groups()] == [3]


@pytest.mark.product("opensearch")
def test_a_server_makes_no_keys_of_prepared_texts(pages: NearDupe, client: Client, index_name: str) -> None:
    for make in (lambda: pages.pipeline(action="install", default=True), lambda: pages.enrich(in_cluster=True)):
        with pytest.raises(IndexUnusable, match=r"which servers cannot do.*html_strip.*without --in-cluster"):
            make()
    assert pages.pipeline().state == "none"


def test_migrate_keeps_and_removes_the_preparation(pages: NearDupe, client: Client, index_name: str) -> None:
    pages.group()
    report = pages.migrate(threshold=0.7)
    assert not any("preparation" in one for one in report.changes)
    report = pages.migrate(clean="none", mask="digits")
    assert "preparation: `mask` digits, not `clean` html-main" in report.changes
    (made,) = fingerprints(
        [list(PAGES["other"].values())],
        Settings.chosen(("title", "html"), threshold=0.7, mask="digits", sample_mod=2).scheme,
    )
    assert ours(client, index_name)["other"]["content"] == made.content


def grouped(index: NearDupe, **options: Any) -> list[list[str]]:
    index.enrich()
    index.group(**options)
    return [[member.id for member in group.members] for group in index.groups()]


@pytest.mark.product("each")
def test_cases_of_pages(client: Client, index_name: str) -> None:
    """Copies in another template, of a part of the published pages."""
    rows = {one["id"]: one for one in read_jsonl("cases/html_pages.jsonl.xz")}
    true = defaultdict(list)
    for one in rows.values():
        true[one["true"]].append(one["id"])
    chosen = [ids for ids in true.values() if len(ids) > 1][:20]
    index = filled(
        client,
        index_name,
        {id: {"body": rows[id]["body"]} for ids in chosen for id in ids},
        Settings.chosen(("body",), clean="html-main"),
    )
    index.enrich()
    found = {frozenset((pair.a.id, pair.b.id)) for pair in index.pairs()}
    assert all(frozenset((ids[0], other)) in found for ids in chosen for other in ids[1:])


@pytest.mark.product("each")
def test_cases_of_mails(client: Client, index_name: str) -> None:
    rows = {one["id"]: one for one in read_jsonl("cases/mails.jsonl.xz")}
    index = filled(
        client,
        index_name,
        {id: {"text": one["text"]} for id, one in rows.items()},
        Settings.chosen(("text",), clean="mail"),
    )
    groups = grouped(index, linkage="chain")
    mixed = [ids for ids in groups if len({rows[id]["thread"] for id in ids}) > 1]
    assert (len(groups), sorted(map(sorted, mixed))) == (41, [["112.3", "35.2"]])  # equal but for their last word
    forwarded = {id for ids in groups for id in ids if rows[id]["kind"] == "fwd"}
    assert len(forwarded) == sum(one["kind"] == "fwd" for one in rows.values()) == 40


@pytest.mark.product("each")
def test_cases_of_log_lines(client: Client, index_name: str) -> None:
    rows = {one["id"]: one for one in read_jsonl("cases/log_lines.jsonl.xz")}
    index = filled(
        client,
        index_name,
        {id: {"message": one["message"]} for id, one in rows.items()},
        Settings.chosen(("message",), preset="logs"),
    )
    groups = grouped(index)
    templates = sorted(sorted({rows[id]["tpl"] for id in ids}) for ids in groups)
    assert templates == [[one] for one in (0, 1, 2, 3, 4, 5, 6, 100, 101, 102)]  # traces differ in their places
    assert sum(map(len, groups)) == len(rows)
    near = NearDupe(index_name, client).similar(text=rows["s0"]["message"])
    assert {rows[hit.id]["tpl"] for hit in near.hits} == {101}
    assert {rows[hit.id]["tpl"] for hit in near.related} == {100, 102}
    mixed = NearDupe(index_name, client).group(facts=["none"])
    assert (mixed.groups.count, mixed.rules.match.facts) == (8, ())


def test_log_lines_that_say_the_opposite(client: Client, index_name: str) -> None:
    says = [
        "opened for user root by (uid={})",
        "closed for user root by (uid={})",
        "not opened for user root by (uid={})",
    ]
    lines = {
        f"{k}-{n}": {"message": f"12:00:0{n} pam_unix(sshd:session): session {one.format(n)}"}
        for k, one in enumerate(says)
        for n in range(3)
    }
    index = filled(client, index_name, lines, Settings.chosen(("message",), preset="logs"))
    assert sorted(map(sorted, grouped(index))) == [[f"{k}-{n}" for n in range(3)] for k in range(3)]
    assert NearDupe(index_name, client).group(facts=["none"]).groups.count == 1


def test_requests_with_another_status(client: Client, index_name: str) -> None:
    lines = {
        f"{status}-{n}": {"message": f'10.0.0.{n} [03/Nov/2026:10:15:0{n} +0000] "GET /a HTTP/1.{n % 2}" {status} {n}'}
        for status in (200, 404, 500)
        for n in range(3)
    }
    index = filled(client, index_name, lines, Settings.chosen(("message",), preset="logs"))
    assert sorted(map(sorted, grouped(index))) == [[f"{status}-{n}" for n in range(3)] for status in (200, 404, 500)]


def test_unprepared_texts_are_named_wherever_they_are_met(client: Client, index_name: str) -> None:
    """By the texts that come last, also if the index shows few hits: its lengths alone would name another preset."""
    make_index(client, index_name, {"text": {"type": "text"}}, settings={"max_result_window": 15})
    index = NearDupe(index_name, client)
    assert index.init(Settings(("text",))).unprepared is None
    lines = {f"d{n}": {"text": f"2026-06-21T10:00:{n}.759Z INFO took {n} ms from 10.0.0.{n}"} for n in range(10, 30)}
    put(client, index_name, lines)
    for found in (index.enrich(), index.group(), index.group(), index.init(Settings(("text",)))):
        assert found.unprepared is not None
        assert (found.unprepared.options, found.unprepared.found) == ("--preset logs", 15)
