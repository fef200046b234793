"""Page of a group, made without a server: everything from documents is escaped, and its size is bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import NASTY, Reader
from unit_tools import words

from es_neardupe.groups.collate import CollatedRow, CollatedTexts, RowState
from es_neardupe.groups.decisions import Claim, Decision, Verdict
from es_neardupe.groups.listing import QueuePlace
from es_neardupe.groups.read import Member, MemberPage
from es_neardupe.groups.reviewed import Dispute, GroupFindings
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.pages.application import Site
from es_neardupe.pages.bar import Said
from es_neardupe.pages.group import MAX_PLACES, group_file, group_page, letter, unwrapped
from es_neardupe.pages.readings import (
    each_in_few_words,
    field_value,
    in_few_words,
    in_narrow_column,
    shown_reading,
    with_context,
)
from es_neardupe.similarity.collation import collate
from es_neardupe.similarity.weighed_places import WORDS

SITE = Site("/below", "news", "csrf-of-the-tests", f"ann {NASTY}")
FIELDS = {"title": f"\u202eTitle {NASTY}", "source": NASTY}


def group(*texts: str | PlacedText, copies: int = 1) -> CollatedTexts:
    """The texts of a group, each with so many documents."""
    found = collate(texts)
    rows = []
    for row, _ in enumerate(found.rows):
        members = [Member("news", f"m{row}-{n} &?{NASTY}", 0.9, FIELDS) for n in range(copies)]
        rows.append(CollatedRow(tuple(members), RowState.COLLATED, False, None, ()))
    members = [one for row in rows for one in row.members]
    page = MemberPage("g1", members[0], len(members), len(members), 0.8125, 0, tuple(members), {}, {}, None)
    return CollatedTexts(page, members[0], NASTY, found, tuple(rows), ("title",), {"source": NASTY})


def findings(texts: CollatedTexts) -> GroupFindings:
    addresses = [row.members[0].address for row in texts.rows]
    hashes = {address: f"{number:032x}" for number, address in enumerate(addresses)}
    note = Decision(Verdict.NOTE, (hashes[addresses[0]],), (addresses[0],), NASTY, "2026-01-01T00:00:00Z", note=NASTY)
    return GroupFindings(hashes, {addresses[0]: [note]}, Claim("g1", NASTY, "2026-01-01T10:30:00Z"), [note])


def read(texts: CollatedTexts, found: GroupFindings | None = None) -> tuple[Reader, str]:
    """The page as a browser sees it, with nothing from documents as an element."""
    said = Said("Stored", "same", NASTY, "id", "g0")
    page = group_page(SITE, texts, found or findings(texts), queue=QueuePlace(20, 594, f"g {NASTY}"), said=said)
    reader = Reader(page.html)
    assert "img" not in [tag for tag, _ in reader.tags]
    assert not [name for _, attributes in reader.tags for name in attributes if name.startswith("on")]
    assert not [attributes for _, attributes in reader.tags if "style" in attributes]
    scripts = [attributes.get("type") for tag, attributes in reader.tags if tag == "script"]
    assert scripts == [None, "application/json"]
    assert "\u202e" not in page.html
    assert "20 of 594" in page.html
    assert "until 10:30 UTC" in page.html
    ids = [one["id"] for _, one in reader.tags if "id" in one]
    assert len(ids) == len(set(ids))
    return reader, page.html


def letters(number: int) -> list[str]:
    return [f"{words(0, 30)} we grant ${n + 1},000 to {NASTY} of {words(50, 30)}" for n in range(number)]


@pytest.mark.parametrize(("number", "form"), [(1, "alone"), (2, "pair"), (3, "three"), (4, "four"), (12, "many")])
def test_each_form_of_the_page(number: int, form: str) -> None:
    reader, html = read(group(*letters(number), copies=2))
    assert f'class="group {form}"' in html
    documents = [str(one["value"]) for _, one in reader.tags if one.get("name") == "document"]
    assert documents == [f"{n:032x} news {quote(f'm{n}-0 &?{NASTY}')}" for n in range(number)]
    places = json.loads(re.findall(r'type="application/json" id="places">(.*?)</script>', html)[0])
    assert [[each["text"] for each in one["values"]] for one in places.values()] == (
        [] if number == 1 else [[f"${n + 1},000" for n in range(number)]]
    )
    assert html.count('name="chosen"') == (number if number > 2 else 0)
    assert ("There is nothing to decide" in html) == (number == 1)
    assert html.count("<small>exact copy</small>") == number
    assert "note ann" not in html


def test_disagreements_are_summed_up() -> None:
    """The names of a reader who takes no part are not his; more than three are counted."""
    texts = group(*letters(12))
    several = tuple(row.members[0].address for row in texts.rows[:5])
    pair = Dispute(several[:2], 1, "bob", Verdict.SAME, "eve", Verdict.DIFFERENT)
    own = Dispute(several[:3], 2, SITE.reviewer, Verdict.DIFFERENT, "bob", Verdict.SAME)
    disputes = [replace(pair, documents=several, pairs=10), own, pair, pair, pair]
    _, html = read(texts, replace(findings(texts), disputes=disputes))
    banners = [
        unescape(re.sub("<.*?>", "", one)) for one in re.findall('<p class="banner" role="note">(.*?)</p>', html)
    ]
    names = [f"m{n}-0 &?{NASTY}" for n in range(3)]
    assert [one for one in banners if "works" not in one] == [
        f"bob calls {', '.join(names)} and 2 more same, eve different: the pairs are open until one of them withdraws.",
        f"You call 2 pairs of {names[0]}, {names[1]} and {names[2]} different, bob same: the pairs are open until "
        "one of you withdraws.",
        f"bob calls {names[0]} and {names[1]} same, eve different: the pair is open until one of them withdraws.",
        "And 2 more disagreements of reviewers.",
    ]


def test_related_groups_are_links() -> None:
    texts = group(*letters(2))
    texts = replace(texts, page=replace(texts.page, related=tuple(f"r{n:03} {NASTY}" for n in range(120))))
    reader, html = read(texts)
    links = [str(one["href"]) for tag, one in reader.tags if tag == "a" and "id=r" in str(one.get("href"))]
    assert (len(links), links[0].startswith("/below/group?id=r000")) == (100, True)
    assert "120 related groups" in html
    assert "20 more" in html
    texts = replace(texts, page=replace(texts.page, related=(), same_form=("f1",)))
    reader, html = read(texts)
    assert "1 group of the same form with other facts" in html
    assert "related group" not in html
    assert any("group?id=f1" in str(one.get("href")) for _, one in reader.tags)
    page = group_page(SITE, texts, findings(texts), titles={"f1": {"title": "The <b> & the c"}})
    assert ">The &lt;b&gt; &amp; the c</a></li>" in page.html


def test_the_following_page_of_a_large_group() -> None:
    """A decision is about the documents of one page, and leads to the next one."""
    texts = group(*letters(6))
    reader, html = read(texts)
    assert "data-paged" not in html
    assert not [one for _, one in reader.tags if one.get("name") == "following"]
    reader, html = read(replace(texts, page=replace(texts.page, size=300, reachable=300)))
    assert "data-paged" in html
    assert [one["value"] for _, one in reader.tags if one.get("name") == "following"] == ["/group?id=g1&start=6"]
    assert "all documents of the page" in html


@pytest.mark.parametrize(("copies", "hidden"), [(1, 0), (2, 2)])
def test_a_row_shows_the_values_for_which_it_has_room(copies: int, hidden: int) -> None:
    """Without numbers of documents more of them."""
    texts = [
        f"{words(0, 60)} Senator {name} said {words(60, 60)}"
        for name in ("Snow", "Levi", "Cole", "Webb", "Dole", "Reid", "Byrd")
    ]
    _, html = read(group(*texts, copies=copies))
    row = re.findall(r'<tr data-place="1".*?</tr>', html, re.DOTALL)[0]
    assert row.count('class="variant"') == 6
    assert row.count('class="rest"') == hidden


def test_a_file_has_no_forms() -> None:
    texts = group(*letters(6))
    texts = replace(texts, page=replace(texts.page, related=("other",)))
    html = group_file(SITE, texts, findings(texts), "2026-01-01T00:00")
    tags = {tag for tag, _ in Reader(html).tags}
    assert not {"form", "input", "script", "img", "nav", "a"} & tags


def test_texts_that_changed_or_are_not_collated() -> None:
    texts = group(*letters(4))
    first, second, third, fourth = texts.rows
    gone = replace(third, state=RowState.DELETED), replace(fourth, state=RowState.LEFT_OUT)
    two = replace(texts, found=collate(letters(2)), rows=(first, replace(second, changed=True), *gone))
    reader, html = read(two)
    assert "The text of B" in html
    assert "changed since" in html
    assert "1 document of this page is not compared" in html
    assert "1 document of this page was deleted" in html
    assert 'value="same"' not in html  # one text alone cannot be decided about
    assert len([one for _, one in reader.tags if one.get("name") == "document"]) == 1


def test_a_text_whose_others_are_too_long_is_no_copy_of_them() -> None:
    """They can be read and decided about two at a time."""
    texts = group(*letters(2))
    first, second = texts.rows
    alone = replace(texts, found=collate(letters(1)), rows=(first, replace(second, state=RowState.LEFT_OUT)))
    reader, html = read(alone)
    assert "Exact copies" not in html
    assert "Not compared" in html
    (link,) = [one["href"] for tag, one in reader.tags if tag == "a" and one.get("data-compare") == "1"]
    assert str(link).startswith("/below/compare?a=m0-0")
    assert "b=m1-0" in str(link)
    gone = replace(alone, rows=(first, replace(second, state=RowState.DELETED)))
    _, html = read(gone)
    assert "the same words" not in html
    assert "the same in all" not in read(replace(alone, found=collate([words(0, 60_000)])))[1]


CODE = """reader.py
def parse(line, *, strict=False):
    name, _, value = line.partition("=")
    if strict and not value:
        raise ValueError(f"no value in {line!r}")
    return name.strip()
"""
LETTER = "Dear Ms Rivers,\n\nThank you.\n\nKind regards\nThe office\n12 Mill Road"
LIST = "The parts:\n- a lid of steel, with a handle that stays cool on each stove\n- a pot"
PROSE = """The licence is granted to each person who gets a
copy of the program, as long as the notice of the
authors is kept."""


@pytest.mark.parametrize("text", [CODE, f"{CODE}\n\n{CODE}", LETTER, f"{LIST}\n\n{LIST}", PROSE, "\n\n", "a\n\n\n b"])
def test_lines_that_are_not_wrapped(text: str) -> None:
    """Code, lists, addresses and titles keep their lines, as all texts without blank lines do."""
    assert unwrapped(text) == text


def test_wrapped_lines() -> None:
    joined = PROSE.replace("\n", " ")
    assert unwrapped(f"{PROSE}\n\n{CODE}\n \n{PROSE}\n") == f"{joined}\n\n{CODE}\n \n{joined}\n"
    assert unwrapped(f"A title\n{PROSE}\n\n{LETTER}") == f"A title\n{joined}\n\n{LETTER}"


@given(st.text(st.sampled_from("ab1-.\n \t"), max_size=300))
def test_places_of_a_text_are_those_of_its_wrapped_lines(text: str) -> None:
    assert len(unwrapped(text)) == len(text)
    assert unwrapped(text).split() == text.split()


def test_a_line_of_its_own_stays_one() -> None:
    _, html = read(group(*(f"Agreement {k}\n1. Goods are sold.\n\n2. Goods are paid." for k in (3, 7))))
    assert '</span>\n1. Goods are sold.<span class="para"></span>2. Goods are paid.</div>' in html


def test_long_texts_are_folded_and_bounded() -> None:
    """Equal stretches are folded, or left out of a very long text; only the heaviest places are marked."""
    one, other = f"{words(0, 3000)} red", f"{words(0, 3000)} blue"
    _, html = read(group(one, other))
    assert "the same in all" in html
    assert "w1500" in html
    _, html = read(group(f"{words(0, 60_000)} red", f"{words(0, 60_000)} blue"))
    assert "not shown, the same in all" in html
    assert len(html) < 100_000
    many = [" ".join(f"{words(9 * n, 9)} {'ab'[k]}{n}" for n in range(MAX_PLACES + 20)) for k in range(2)]
    _, html = read(group(*many))
    assert html.count("<mark") == MAX_PLACES
    assert f"the {MAX_PLACES} heaviest are shown" in html
    full: Sequence[str] = [" ".join(f"{words(9 * n, 9)} {k}<&>{n}" for n in range(MAX_PLACES)) for k in range(200)]
    _, html = read(group(*full))
    assert len(html) < 8_000_000


def test_a_reading_begins_shortly_before_what_differs() -> None:
    text = shown_reading(f"{words(0, 60)} red {words(60, 20)}", f"{words(0, 60)} blue {words(60, 20)}", "words", 100)
    assert text.cut
    assert text.more == 3
    assert [run.text.strip() for run in text.runs if run.bold] == ["red"]
    assert sum(len(run.text) for run in text.runs) <= 100


def test_of_a_fact_the_fact_is_bold() -> None:
    clause, other = "a grant of $620,000, announced this winter, for streets", "a grant of $440,000 for buildings"
    assert [run.text for run in shown_reading(clause, other, "amount", 150).runs if run.bold] == ["$620,000"]
    assert in_few_words(clause, other, "amount") == "$620,000"
    assert in_few_words("Monday", "Tuesday", "date") == "Monday"
    assert not any(run.bold for run in shown_reading(clause, other, "passage", 150).runs)


def test_long_words_that_differ_at_their_end() -> None:
    word = "x" * 300
    reading = shown_reading(f"{word}2", f"{word}1", "words", 100)
    assert reading.cut
    assert (reading.runs[-1].text[-2:], reading.runs[-1].bold) == ("x2", True)
    assert reading.size < 100
    few = in_few_words(f"{word}2", f"{word}1", "words")
    assert few.startswith("… x")
    assert few.endswith("x2")
    assert in_few_words("red " * 30, "red " * 40, "passage").startswith("red red")
    whole = shown_reading("red " * 30, "red " * 40, "words", 100)
    assert whole.runs[0].text.startswith("red red")
    assert not whole.cut


def test_readings_with_the_same_fact_are_told_apart() -> None:
    texts = ["the Upstream License of 1999", "the Open Software License of 2005", "the Academic Free License of 2005"]
    own, *others = each_in_few_words(texts, "number")
    assert own == "1999"
    assert others == texts[1:]


def test_another_contact_or_page_number_is_a_row_and_marked() -> None:
    """Only what has the same letters and digits is layout."""
    text = f"{words(0, 30)} and we grant {{}} to all\n\nPage {{}}\n\nwrite to {{}} before {words(50, 30)}".format
    own = text("$5,000", 3, "pay@bank.com")
    reader, html = read(group(own, text("$5,000", 3, "pay@evil.org")))
    assert "Layout only" not in html
    assert re.findall(r'<tr data-place="1" data-also="" data-kind="(\w+)" class="word', html) == ["contact"]
    assert reader.panes["text"].count("pay@bank.com") == 1
    assert [one["data-place"] for one in reader.with_class("word")] == ["1", "1"]  # the row and the mark
    reader, html = read(group(own, text("$6,000", 4, "pay@evil.org")))
    assert "<p><b>1 fact</b> · 1 contact · 1 counter</p>" in html
    assert re.findall(r'data-kind="(\w+)"', html) == ["amount", "contact", "counter"]
    _, html = read(group(text("e-mails", 3, "x"), text("emails", 3, "x")))
    assert "<p>The same letters and digits, written in another way. 1 difference in layout.</p>" in html


def test_prepared_texts_have_a_note() -> None:
    quoted = "> an older mail\n"
    mails = [f"{quoted}{words(0, 30)} {end}\n" for end in ("red", "blue")]
    _, plain = read(group(*mails))
    _, prepared = read(group(*(Preparation.named("mail", ()).placed(mail) for mail in mails)))
    assert "Compared as prepared" not in plain
    assert "Compared as prepared: parts of the texts are left out or masked." in prepared


def test_letters() -> None:
    assert [letter(n) for n in (0, 25, 26, 51, 52, 199)] == ["A", "Z", "AA", "AZ", "BA", "GR"]


def test_a_long_value_of_a_field_shows_what_differs() -> None:
    url = f"https://news.example/{'a' * 60}/{'b' * 60}/story?page="
    assert field_value(f"{url}2", f"{url}1").endswith("/story?page=2")
    others = [field_value(f"{url}{page}", "https://other.example/") for page in (1, 2)]
    assert [one[-1] for one in others] == ["1", "2"]
    assert all(one.startswith("https://news.example/aaa") and len(one) < 160 for one in others)
    assert field_value("short red", "short blue") == "short red"


def test_everything_is_escaped() -> None:
    _, html = read(group(*letters(3)))
    assert NASTY in unescape(re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize(("room", "after"), [(45, " four five six seven"), (43, " four five six …")])
def test_a_text_that_ends_after_a_reading_is_not_shown_as_cut(room: int, after: str) -> None:
    text = "one two three four five six seven"
    reading = shown_reading("three", "other", WORDS, 100)
    found = with_context(reading, text, (8, 13), room)
    assert (found.before, found.after) == ("one two ", after)


def test_texts_in_a_narrow_column() -> None:
    """Those that begin alike are shown from what differs on."""
    assert in_narrow_column(["contracts/2026/a/v1", "contracts/b"], 10) == ["…cts/2026/a/v1", "…cts/b"]
    assert in_narrow_column([f"contracts/2026/v{n}.docx" for n in (1, 12)], 10) == ["…6/v1.docx", "…6/v12.docx"]
    dates = [f"Updated on {day}" for day in ("5 May", "5 June", "6 May")]
    assert in_narrow_column(["Published", *dates], 11) == ["Published", "…5 May", "…5 June", "…6 May"]
    times = [f"Updated on 5 May 2026 at 10:{minute}" for minute in (10, 20)]
    assert in_narrow_column([*times, "Updated on 5 June"], 11) == ["…10:10", "…10:20", "…June"]
    for names in (["mail-1", "mail-2"], ["one-long-name-1", "another-long-name"], ["contracts/2026/v1"], []):
        assert in_narrow_column(names, 10) == names


def test_words_around_a_reading_have_the_spaces_of_the_text() -> None:
    text = "we paid (about\n\t$45) to him"
    place = text.index("$"), text.index(")")
    found = with_context(shown_reading("$45", "$50", WORDS, 100), text, place, 100)
    assert (found.before, found.after) == ("we paid (about ", ") to him")
    found = with_context(shown_reading("東京", "大阪", WORDS, 100), "会議は東京で開かれた", (3, 5), 100)
    assert (found.before, found.after) == ("会議は", "で開かれた")
    long = "会議は東京で開かれた" * 10
    found = with_context(shown_reading("東京", "大阪", WORDS, 100), long, (53, 55), 60)
    assert (found.before, found.after) == (f"… {long[24:53]}", f"{long[55:84]} …")


def test_a_number_is_bold_with_its_thousands_in_any_digits() -> None:
    runs = shown_reading("مبلغ ۵۴۰٬۰۰۰ تومان", "مبلغ ۴۵۰٬۰۰۰ تومان", "amount", 100).runs
    assert [run.text for run in runs if run.bold] == ["۵۴۰٬۰۰۰"]


def test_readings_of_any_direction_are_shown_apart() -> None:
    """Each in its own direction, so that A and B stay in this order, and dots where the text goes on."""
    spring, autumn = "الربيع القادم", "الخريف القادم"
    html = read(group(*(f"{words(0, 20)} {season} {words(20, 20)}" for season in (spring, autumn))))[1]
    assert '<td class="a" data-letter="A"><span class="clamp" dir="auto">' in html
    assert f'<td data-letter="B"><span class="clamp" dir="auto"><b>{autumn.split(maxsplit=1)[0]}</b>' in html
