"""Pages of the application of `serve`, made without a server: everything from documents is escaped, numbers and links
are those of the records."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote, quote_plus

import pytest
from page_reader import NASTY, Reader

from es_neardupe.commands.decide import Contradiction, DecisionReport
from es_neardupe.commands.search.report import Copy, SearchHit, SearchReport
from es_neardupe.commands.stats.report import StatsScope
from es_neardupe.groups.decisions import Decision, DecisionPage, Verdict
from es_neardupe.groups.heaviest import HeaviestDifference
from es_neardupe.groups.listing import GroupCount, GroupFilter, GroupOrder, GroupOverview, GroupPage, QueuePlace
from es_neardupe.groups.registry import GroupRecord
from es_neardupe.groups.reviewed import GroupReview, KnownReviews, ReadProgress, ReviewFilter, ReviewState, TitledPage
from es_neardupe.options import Matching
from es_neardupe.pages.application import Site
from es_neardupe.pages.bar import DecisionBar, Said
from es_neardupe.pages.decisions import DecisionRequest, decision_preview_page, decisions_page
from es_neardupe.pages.site import (
    DocumentText,
    Hosted,
    Offered,
    comparison_page,
    document_page,
    error_page,
    groups_error_page,
    groups_page,
    overview_page,
    search_page,
)
from es_neardupe.records import Address
from es_neardupe.similarity.comparison import compare_texts
from es_neardupe.similarity.pair_relation import Relation
from es_neardupe.views.document_pages import CurrentDocument, DocumentReview
from es_neardupe.views.group_pages import CommonValues, DocumentFilter, GroupSelection

SITE = Site("/below", "news", "csrf-of-the-tests", f"ann {NASTY}")
STATES = {"signed": 90, "short": 5, "empty": 1, "too_large": 0, "failed": 0}
PRINCIPAL = Address("news", f"p {NASTY}")
RECORD = GroupRecord(
    group="g1",
    created="2026-01-01T00:00:00Z",
    updated="2026-01-02T00:00:00Z",
    ended=None,
    size=1234,
    texts=7,
    principal=PRINCIPAL,
    min_similarity=0.8125,
    mean_similarity=0.9,
    pairs_below=0,
    pairs_not_compared=0,
    diameter=None,
    weakest=None,
    held=0,
    settings=None,
)
REVIEWS = KnownReviews({f"g{k}": (GroupReview(), state) for k, state in enumerate(ReviewState)})
FIELDS = {"title": f"\u202eTitle {NASTY}", "source": NASTY}


def scope(**numbers: int) -> StatsScope:
    given = {
        "numeric": 0,
        "unknown": 0,
        "other_schemes": 0,
        "unprocessed": 0,
        "ungrouped": 0,
        "deleted": 0,
        "skipped": 0,
    }
    return StatsScope(documents=96, states=STATES, schemes={}, **{**given, **numbers})


def read(page: Hosted, scripts: int = 1) -> Reader:
    """The page as a browser sees it, with nothing from documents as an element."""
    found = Reader(page.html)
    tags = [tag for tag, _ in found.tags]
    assert "img" not in tags
    assert tags.count("script") == scripts
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    assert not [one for _, one in found.tags if "style" in one]
    assert "\u202e" not in page.html
    assert page.policy.startswith("default-src 'none'")
    links = [one.get("href") or one.get("action") for tag, one in found.tags if tag in ("a", "form")]
    assert all(str(link).startswith("/below/") for link in links)
    return found


def test_overview() -> None:
    sizes = (GroupCount(2, 3, 8), GroupCount(3, 1000, 0), GroupCount(1000, None, 2))
    similarities = (GroupCount(0.8, 0.82, 4), GroupCount(0.98, 1.0, 5), GroupCount(1.0, None, 1))
    overview = GroupOverview(10, 2016, 8, sizes, similarities)
    page = overview_page(SITE, scope(unprocessed=3, ungrouped=2), overview, reviews=REVIEWS, waiting=3)
    found = read(page)
    bars = [str(one["href"]) for tag, one in found.tags if tag == "a" and "aria-label" in one]
    assert bars == [
        "/below/groups?min_similarity=0.8&below=0.82&order=least-similar",
        "/below/groups?min_similarity=0.98&below=1.0&order=least-similar",
        "/below/groups?min_similarity=1.0&order=least-similar",
        "/below/groups?min_size=2&max_size=2",
        "/below/groups?min_size=1000",
    ]
    assert len([tag for tag, _ in found.tags if tag == "rect"]) == 5
    assert "3 documents wait for" in page.html
    assert "2 documents are new or changed" in page.html
    assert "1,000 or more: 2 groups" in page.html
    assert "3 decisions wait" in page.html
    assert "<b>1</b> of 8 groups with different texts is reviewed" in page.html
    assert ">1 disputed</a>" in page.html
    assert 'id="reading"' not in page.html


def test_reviews_that_are_still_being_read() -> None:
    """Numbers that are not known are not shown, earlier ones are said to be so."""
    overview = GroupOverview(10, 2016, 8, (GroupCount(2, 3, 10),), (GroupCount(1.0, None, 10),))
    progress = ReadProgress("texts", 1000, 2000)
    first = overview_page(SITE, scope(), overview, reviews=KnownReviews(None, progress), waiting=0)
    read(first)
    assert "still being read: 1,000 of 2,000 texts." in first.html
    assert "How many of them are reviewed is not known yet." in first.html
    assert "<progress" not in first.html
    later = overview_page(SITE, scope(), overview, reviews=replace(REVIEWS, reading=progress), waiting=0)
    read(later)
    assert "<b>1</b> of 8 groups" in later.html
    assert "groups are counted and chosen by the earlier ones." in later.html


@pytest.mark.parametrize(("bars", "names"), [(13, 13), (16, 8)])
def test_names_of_bars_do_not_touch(bars: int, names: int) -> None:
    counts = tuple(GroupCount(0.6 + n / 50, 0.62 + n / 50, 1) for n in range(bars))
    overview = GroupOverview(bars, 2 * bars, bars, (), counts)
    page = overview_page(SITE, scope(), overview, reviews=KnownReviews({}), waiting=0)
    assert len(re.findall(r'aria-hidden="true">0\.\d\d</text>', page.html)) == names


def test_overview_without_groups() -> None:
    page = overview_page(SITE, scope(), GroupOverview(0, 0, 0, (), ()), reviews=KnownReviews({}), waiting=0)
    read(page)
    assert "There are no groups" in page.html
    assert "wait for" not in page.html
    assert '"row">without near-duplicates</th><td class="value">95</td>' in page.html
    new = overview_page(SITE, scope(ungrouped=95), GroupOverview(0, 0, 0, (), ()), reviews=KnownReviews({}), waiting=0)
    assert "without near-duplicates" not in new.html  # who has some is not known before the first run of group
    assert '"row">waiting for group</th><td class="value">95</td>' in new.html


OFFERED = Offered(
    values=[
        CommonValues("source", ((NASTY, 1200), ("other", 3)), 0),
        CommonValues("town", (("Ghent", 7), ("Liège", 2)), 9),
    ],
    relations=list(Relation),
    reviewers=[NASTY],
)


def test_groups_that_cannot_be_listed() -> None:
    """The form keeps its values, also wrong ones."""
    given = {
        "q": NASTY,
        "value": ["town:rare", "wrong"],
        "below": "2",
        "min_size": "many",
        "review": "open",
        "order": NASTY,
    }
    page = groups_error_page(SITE, given, OFFERED, f"Wrong: {NASTY}")
    found = read(page)
    assert 'role="alert"' in page.html
    values = {str(one["name"]): one.get("value") for tag, one in found.tags if tag == "input" and "name" in one}
    assert (values["q"], values["below"], values["min_size"]) == (NASTY, "2", "many")
    chosen = [str(one.get("value")) for name, one in found.tags if name == "option" and "selected" in one]
    assert chosen[0] == "town:rare"
    assert "<table" not in page.html


def test_groups() -> None:
    page = groups_page(
        SITE,
        TitledPage(
            GroupPage(120, (RECORD,), ("x",)),
            {PRINCIPAL: FIELDS},
            False,
            '[1234, "g1"]',
            {"g1": GroupReview(3, 0, (NASTY,))},
            {"g1": HeaviestDifference("amount", (("amount", "₪9", "₪8"), ("name", "חיפה", NASTY)))},
        ),
        GroupSelection(
            GroupFilter(min_size=3, below=0.9),
            DocumentFilter(NASTY, (("source", NASTY), ("town", "rare"), ("gone", "x:y")), Relation.CONTAINED),
            ReviewFilter(ReviewState.OPEN, NASTY),
        ),
        OFFERED,
        first=True,
    )
    found = read(page)
    assert '<td class="value">1,234</td><td class="value">7</td><td class="value">0.8125</td>' in page.html
    (following,) = [str(one["href"]) for _, one in found.tags if one.get("rel") == "next"]
    assert "min_size=3" in following
    assert "below=0.9" in following
    assert "after=%5B1234%2C+%22g1%22%5D" in following
    assert [one.get("value") for _, one in found.tags if one.get("name") == "q"] == [NASTY]
    chosen = [str(one.get("value")) for name, one in found.tags if name == "option" and "selected" in one]
    assert chosen[:3] == [f"source:{NASTY}", "town:rare", "gone:x:y"]
    assert f"value={quote_plus('town:rare')}" in following
    assert "relation=contained" in following
    assert "Ghent (7)" in page.html
    assert "<option disabled>other values (9)</option>" in page.html
    assert "only 50,000 were looked at" in page.html
    assert "<td>open <small>3 of 7</small></td>" in page.html
    assert "review=open" in following
    assert "<bdi>₪9</bdi> / <bdi>₪8</bdi> · <bdi>חיפה</bdi> / <bdi>" in page.html
    headings = re.findall(r"<th scope=.*?</th>", page.html)
    assert [re.findall(r"order=([a-z-]+)", one) for one in headings] == [
        ["largest"],
        ["most-texts"],
        ["least-similar"],
        ["review"],
        ["principal"],
    ]
    assert ["aria-sort" in one for one in headings] == [True, False, False, False, False]


def test_a_group_whose_principal_is_gone() -> None:
    one = groups_page(
        SITE,
        TitledPage(GroupPage(1, (RECORD,), None), {}, True, None, {}),
        GroupSelection(order=GroupOrder.NEWEST),
        Offered([], [], []),
        first=False,
    )
    read(one)
    assert "Relation to the principal" not in one.html
    assert "looked at" not in one.html
    assert "deleted or hidden" in one.html


@pytest.mark.parametrize(("texts", "cell"), [(1, "<td></td>"), (2, "<td>open</td>")])
def test_exact_copies_have_no_state_of_a_review(texts: int, cell: str) -> None:
    found = TitledPage(GroupPage(1, (replace(RECORD, texts=texts),), None), {}, True, None, {})
    page = groups_page(SITE, found, GroupSelection(), Offered([], [], []), first=True)
    assert cell in page.html


def test_why_more_groups_may_match() -> None:
    """Either documents of too many groups match, or the texts of too many would have to be compared."""
    found = TitledPage(GroupPage(1, (RECORD,), None), {}, False, None, {})
    for difference, words in ((None, "only 50,000 were looked at"), ("name", "only the first 1,000 of the list")):
        selection = GroupSelection(difference=difference)
        assert words in groups_page(SITE, found, selection, Offered([], [], []), first=True).html


def test_texts_that_are_still_compared() -> None:
    """The page says how many groups the filter knows, and leads to itself."""
    found = TitledPage(GroupPage(1, (RECORD,), None), {}, True, None, {}, compared=(40, 1200))
    page = groups_page(SITE, found, GroupSelection(difference="name"), Offered([], [], []), first=True).html
    assert "40 of 1,200 groups. The others are missing here." in page
    assert re.search(r'<a href="[^"]*difference=name[^"]*">Load the page again</a>', page)
    assert (
        "still being compared"
        not in groups_page(SITE, replace(found, compared=None), GroupSelection(), Offered([], [], []), first=True).html
    )


@pytest.mark.parametrize(
    ("number", "words"), [(1, "The only group is decided."), (1200, "All 1,200 groups are decided.")]
)
def test_when_all_is_decided(number: int, words: str) -> None:
    empty = TitledPage(GroupPage(0, (), None), {}, True, None, {})
    said = Said("Stored", "same", NASTY, "id", "g1")
    page = groups_page(SITE, empty, GroupSelection(), Offered([], [], []), first=True, all_decided=number, said=said)
    found = read(page)
    assert words in page.html
    assert [one["value"] for _, one in found.tags if one.get("name") in ("group", "decision")] == ["g1", "id"]


def test_search() -> None:
    copies = (Copy("news", NASTY, 0.93, False, FIELDS), Copy("news", "new", None, False, {}))
    hits = (SearchHit("news", NASTY, 1.0, "g1", 150, FIELDS, copies),)
    apart = (SearchHit("news", "alone", 1.0, None, 0, {"title": ""}, ()),)
    result = SearchReport("news", 151, 1, 1, 2, 20, 1, hits, apart, ("news",))
    page = search_page(SITE, NASTY, result)
    found = read(page)
    assert "150 near-copies" in page.html
    assert "148 more are not listed." in page.html
    assert [one.get("rel") for _, one in found.tags if one.get("rel")] == ["prev", "next"]
    read(search_page(SITE, "", None))


@pytest.mark.parametrize("title", ["A title", ""])
def test_heading_of_a_document(title: str) -> None:
    """It has the title, if there is one, and the id once."""
    text = DocumentText("one two", {"title": title}, [], (), 0.8, 20)
    documents = (CurrentDocument(Address("news", "id-7"), "0" * 32, False, None, 7),)
    review = DocumentReview(documents, None, None, None, [], [])
    page = document_page(SITE, text, review, DecisionBar("/document?id=7", "", None, [], False, [], None))
    heading = page.html[page.html.index("<h1>") : page.html.index("</h1>")]
    assert re.sub("<[^>]*>", "", heading).split() == [*title.split(), "id-7"]


def test_comparison_and_error() -> None:
    both = [(PRINCIPAL, "0" * 32), (Address("other", f"m {NASTY}"), "f" * 32)]
    documents = tuple(CurrentDocument(address, content, False, "g1", 100) for address, content in both)
    said = Decision(Verdict.SAME, ("0" * 32, "f" * 32), (both[0][0], both[1][0]), "bob", "2026-01-02T00:00:00Z")
    review = DocumentReview(documents, "g1", None, QueuePlace(2, 5, "g0"), [said], [said])
    bar = DecisionBar(
        "/compare?a=1&b=2", "g1", review.queue, both, True, [said], Said("Stored", "keep", NASTY, "x", "g1")
    )
    comparison = compare_texts(f"{NASTY} one two three", f"{NASTY} one two four")
    page = comparison_page(SITE, comparison, Matching.LITERAL, review, bar)
    found = read(page, scripts=1)
    assert "Sign out" in page.html
    assert "<bdi>bob</bdi> calls these <b>same</b>, since 2026-01-02." in page.html
    assert [one["data-key"] for _, one in found.tags if "data-key" in one] == list("sdeEtupn?")
    assert "form-action 'self'" in page.policy
    assert "This page cannot be shown" in error_page(SITE, NASTY).html
    assert "This was not done" in error_page(SITE, NASTY, back="/below/group").html
    read(error_page(SITE, NASTY))


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("run `enrich news`, or `init`.", ">run <code>enrich news</code>, or <code>init</code>.<"),
        ("Unknown group 'a`b'.", ">Unknown group &#39;a`b&#39;.<"),
    ],
)
def test_commands_in_an_error_stand_out(message: str, written: str) -> None:
    assert written in error_page(SITE, message).html


def test_decisions() -> None:
    one, other = PRINCIPAL, Address("news", f"m {NASTY}")
    low, high = "0" * 32, "f" * 32
    decisions = (
        Decision(
            Verdict.DIFFERENT, (low, high), (one, other), NASTY, "2026-01-01T00:00:00Z", NASTY, 0.85, "resemblance"
        ),
        Decision(Verdict.SPLIT, (low, high), (one, other), "bob", "2026-01-01T00:00:00Z", parts=(1, 2)),
        Decision(Verdict.KEEP, (low,), (one,), "bob", "2026-01-01T00:00:00Z", withdrawn="2026-01-02T00:00:00Z"),
    )
    page = decisions_page(
        SITE,
        DecisionPage(102, decisions, ("x",)),
        {one: FIELDS},
        given={"author": NASTY, "verdict": "", "state": ""},
        authors={NASTY: 7, "bob": 1},
        after='["x"]',
        parquet=True,
    )
    found = read(page)
    assert '<b id="total">102</b> decisions' in page.html
    ids = [one["value"] for _, one in found.tags if one.get("name") == "decision"]
    assert ids == [decisions[0].id, decisions[1].id]
    assert re.findall("<small>(part .)</small>", page.html) == ["part 1", "part 2"]
    assert "withdrawn 2026-01-02" in page.html


@pytest.mark.parametrize("verdict", ["same", "different", "apart", "split"])
def test_the_preview_of_a_decision(verdict: str) -> None:
    member, contents = Address("other", f"m {NASTY}"), ["0" * 32, "f" * 32]
    seen: dict[str | Address, str] = dict(zip((PRINCIPAL, member), contents, strict=True))
    asked = DecisionRequest(verdict, "g1", f"/group?id=g1&start=50&other={NASTY}", [[PRINCIPAL], [member]], NASTY, seen)
    report = DecisionReport("news", (), 1, 0, (), (), (), {contents[0]: 3, contents[1]: 2}, True)
    page = decision_preview_page(SITE, asked, report, {PRINCIPAL: {"title": NASTY}})
    found = read(page)
    inputs = [(str(one["name"]), one["value"]) for tag, one in found.tags if tag == "input" and "name" in one]
    stored = dict(inputs)
    assert (stored["verdict"], stored["confirmed"], stored["csrf"]) == ("split", "true", SITE.csrf)
    assert [value for name, value in inputs if name == "document"] == [
        f"{contents[0]} {PRINCIPAL.index} {quote(PRINCIPAL.id)}",
        f"{contents[1]} other {quote(member.id)}",
    ]
    assert [value for name, value in inputs if name == "part"] == ["1", "2"]
    assert "replaces" not in page.html
    earlier = Decision(Verdict.NOTE, (contents[0],), (PRINCIPAL,), "ann", "2026-01-01T10:30:00Z", note=NASTY)
    for replaced, said in (((earlier,), "your decision <b>note</b> of 2026-01-01 10:30"), ((earlier, earlier), "2 of")):
        assert (
            f"This replaces {said}" in decision_preview_page(SITE, asked, replace(report, replaced=replaced), {}).html
        )
    assert "and 2 exact copies" in page.html
    (back,) = (one["href"] for tag, one in found.tags if tag == "a" and one.get("data-key") == "Escape")
    assert back == SITE.link("/group", id="g1", start="50")
    contradiction = Contradiction((PRINCIPAL, PRINCIPAL), ())
    refused = decision_preview_page(SITE, asked, replace(report, contradictions=(contradiction,)), {})
    assert 'id="store"' not in refused.html
