"""Page of a collated group, made without a server: everything from documents is escaped, and its size is bounded."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from page_reader import NASTY, Reader
from unit_tools import words

from es_neardupe.groups.collate import (
    MAX_CHARACTERS,
    MAX_MEMBERS,
    MAX_PLACES,
    CollatedCell,
    CollatedPlace,
    CollatedRow,
    GroupCollation,
    RowState,
)
from es_neardupe.groups.decisions import Claim, Decision, Verdict
from es_neardupe.groups.read import Member
from es_neardupe.groups.reviewed import GroupFindings
from es_neardupe.options import FactKind
from es_neardupe.pages.application import Site
from es_neardupe.pages.collation import CELL, WHOLE_TEXT, field_value, from_difference, group_page
from es_neardupe.records import Address
from es_neardupe.similarity.collation import CellKind
from es_neardupe.similarity.pair_relation import Relation
from es_neardupe.verification.evidence import PairEvidence

SITE = Site("/below", "news", "csrf-of-the-tests", f"ann {NASTY}")
FIELDS = {"title": f"\u202eTitle {NASTY}", "source": NASTY}
EVIDENCE = PairEvidence("accepted", Relation.REVISION, NASTY, 0.9, "2026-01-01T00:00:00Z")


def collation(text: str, places: int, rows: int, cell: str = NASTY) -> GroupCollation:
    """A collation with places of one word every few characters."""
    step = max(len(text) // (places + 1), 1)
    found = tuple(
        CollatedPlace(n, (n * step, n * step + 3), text[n * step : n * step + 3], 0, (FactKind.NAME,), 2)
        for n in range(1, places + 1)
    )
    kinds = list(CellKind)
    cells = tuple(CollatedCell(kinds[n % 4], "" if n % 4 == 0 else cell, 9, n % 3 == 0) for n in range(places))
    members = [Member("news", f"m{n} &?{NASTY}", 0.9, FIELDS) for n in range(rows)]
    return GroupCollation(
        title=NASTY,
        group="g1",
        principal=Address("news", members[0].id),
        size=5000,
        reachable=4000,
        min_similarity=0.8125,
        start=200,
        members=rows,
        reference=members[0],
        of_page=True,
        text=text,
        text_start=0,
        characters=len(text),
        total_places=places,
        first_place=1,
        places=found,
        rows=tuple(CollatedRow((one,), RowState.COLLATED, True, EVIDENCE, cells) for one in members),
        left_out=0,
        deleted=0,
        differing=("title",),
        equal={"source": NASTY},
        order="-2",
    )


def read(found: GroupCollation) -> tuple[Reader, str]:
    """The page as a browser sees it, with nothing from documents as an element."""
    texts = [row.members[0].address for row in found.rows]
    hashes = {address: f"{number:032x}" for number, address in enumerate(texts)}
    note = Decision(Verdict.NOTE, (hashes[texts[0]],), (texts[0],), NASTY, "2026-01-01T00:00:00Z", note=NASTY)
    findings = GroupFindings(hashes, {texts[0]: [note]}, Claim(found.group, NASTY, "2026-01-01T10:30:00Z"), [note])
    page = group_page(SITE, found, findings, done=NASTY)
    reader = Reader(page.html)
    assert "img" not in [tag for tag, _ in reader.tags]
    assert not [name for _, attributes in reader.tags for name in attributes if name.startswith("on")]
    assert page.html.count("<script") == 1
    boxes = [one["value"] for _, one in reader.tags if one.get("type") == "checkbox"]
    decidable = [row for row in found.rows if not row.changed and row.state is not RowState.DELETED]
    assert boxes == [
        f"{hashes[row.members[0].address]} {row.members[0].index} {row.members[0].id}" for row in decidable
    ]
    assert "until 10:30 UTC" in page.html
    assert "\u202e" not in page.html
    return reader, page.html


def text_of_page(html: str) -> str:
    """The reference text as shown, without the numbers of places."""
    (inner,) = re.findall(r'<div class="text"[^>]*>(.*?)</div>', html, re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", "", re.sub(r"<a [^>]*>\d+</a>", "", inner)))


def test_everything_is_escaped_and_linked() -> None:
    text = f"{NASTY} one two three four five {NASTY} six seven eight nine ten"
    found = replace(collation(text, 4, 3), left_out=7, deleted=2)
    reader, html = read(found)
    assert text_of_page(html) == text
    assert [one.get("rel") for tag, one in reader.tags if one.get("rel")] == ["prev", "next"]
    assert len(reader.with_class("to-compare")) == len(reader.with_class("to-reference")) == 2
    assert "Documents 201 to 203 of 5,000." in html
    assert "The other 4,997 are not on this page." in html
    assert "7 documents of this page are not compared" in html
    assert "2 documents of this page were deleted" in html
    assert html.count("text changed since enrich") == 3
    assert html.count("revision, accepted: 0.9000") == 3
    ids = [one["id"] for _, one in reader.tags if "id" in one]
    assert len(ids) == len(set(ids))
    addresses = [str(one.get("href")) for tag, one in reader.tags if tag == "a"]
    links = [address for address in addresses if address.startswith("#")]
    assert links
    assert {link[1:] for link in links} <= set(ids)
    assert 'aria-sort="descending"' in html
    assert "sort=2" in html.replace("sort=-2", "")


def test_only_unchanged_texts_can_be_decided_about() -> None:
    found = collation("one two three four", 1, 4)
    rows = [replace(row, changed=False) for row in found.rows]
    reader, _ = read(replace(found, rows=(*rows[:2], replace(rows[2], state=RowState.DELETED), found.rows[3])))
    assert len([one for _, one in reader.tags if one.get("type") == "checkbox"]) == 2


def test_copies_and_texts_that_are_not_collated() -> None:
    found = collation("one two three four", 1, 4)
    first, second, third, fourth = found.rows
    rows = (
        first,
        replace(second, members=second.members * 4),
        replace(third, cells=(), state=RowState.LEFT_OUT),
        replace(fourth, cells=(), state=RowState.DELETED),
    )
    _, html = read(replace(found, rows=rows))
    assert "3 exact copies" in html
    assert html.count("not compared</small>") == html.count("deleted</small>") == 1
    _, html = read(replace(collation("one two three four", 0, 2), principal=None))
    assert "The principal was deleted" in html
    assert "All compared documents of this page have the same words." in html


def test_the_last_page_that_can_be_read_says_so() -> None:
    _, html = read(replace(collation("one two", 1, 2), start=3998))
    assert "The pages show the first 4,000 only" in html


def test_a_page_of_full_size_is_bounded() -> None:
    text = "abcd " * 1_000_000
    found = replace(collation(text, MAX_PLACES, MAX_MEMBERS, "<&>" * (MAX_CHARACTERS // 3)), total_places=9999)
    _, html = read(found)
    assert "characters not shown" in html
    assert len(text_of_page(html)) < MAX_PLACES * 1000
    assert len(html) < 6_000_000  # every character of these cells is escaped
    assert "Later places" in html
    assert text_of_page(read(collation("a" * WHOLE_TEXT, 3, 2))[1]) == "a" * WHOLE_TEXT


def test_a_long_cell_shows_what_differs() -> None:
    """Not the beginning that it has in common with the reference."""
    reference = f"{words(0, 60)} red {words(60, 20)}"
    assert from_difference(f"{words(0, 60)} blue {words(60, 20)}", reference).startswith("... ")
    assert "w59 blue w60" in from_difference(f"{words(0, 60)} blue {words(60, 20)}", reference)
    assert from_difference(words(100, 60), reference).startswith("w100 w101")
    assert from_difference("short red", "short blue") == "short red"
    assert from_difference(reference, reference).startswith("w0 w1"), "only the cut off part differs"
    url = f"https://news.example/{'a' * 60}/{'b' * 60}/story?page="
    assert from_difference(f"{url}2", f"{url}1").endswith("/story?page=2")
    others = [field_value(f"{url}{page}", "https://other.example/") for page in (1, 2)]
    assert [one[-1] for one in others] == ["1", "2"]
    assert all(one.startswith("https://news.example/aaa") and len(one) < CELL + 40 for one in others)
    assert field_value("short red", "short blue") == "short red"
    assert from_difference(url, f"{url}1").endswith("/story?page="), "the other one goes on"
    assert from_difference(f"{'c' * 300}2", f"{'c' * 300}1") == f"... {'c' * 40}2"
    assert len(from_difference(f"{words(0, 60)} blue {words(60, 20)}", reference)) <= CELL + 8
