"""The command moved, compared with the record that the generator of a site's history keeps."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from conftest import Cli, Run
from server_tools import JSON, family, jaccard, make_index, new_name, one_line, put, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.moved.report import MovedReport
from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.server.client import Client, path

SITE = {"text": {"type": "text"}, "url": {"type": "keyword"}, "date": {"type": "date"}}
SETTINGS = Settings(("text",))
DAY = timedelta(days=1)
LEAST = 0.8


class Best(NamedTuple):
    """Where a page is now, and the version of it that is there."""

    addresses: set[str]
    similarity: float
    text: str
    since: str
    version: int


@dataclass
class History:
    """A site that is crawled whenever a page changes: what is at each address now, and what was there before."""

    rng: random.Random
    sources: dict[str, JSON] = field(default_factory=dict)
    """Documents of the index by id, one per visit."""
    now: dict[str, tuple[str, date]] = field(default_factory=dict)
    """The text at each address and since when, by what was done to it."""
    day: date = date(2024, 1, 1)

    def visit(self, url: str, text: str) -> None:
        self.day += DAY
        self.sources[f"visit {len(self.sources)}/é"] = {"text": text, "url": url, "date": self.day.isoformat()}
        self.now[url] = text, self.day

    def edited(self, text: str) -> str:
        """One word is replaced: of 120 words, 5 of 116 shingles."""
        tokens = text.split()
        tokens[self.rng.randrange(5, len(tokens) - 5)] = f"new{len(self.sources)}"
        return " ".join(tokens)

    def best(self, url: str) -> Best:
        """By brute force: the addresses that now have the most similar text to the latest version for which there are
        any, from the day of that visit on."""
        versions = [(one["text"], one["date"]) for one in self.sources.values() if one["url"] == url][::-1]
        for number, (text, since) in enumerate(versions, 1):
            found = {
                other: jaccard(text, its)
                for other, (its, day) in self.now.items()
                if other != url and day.isoformat() >= since and jaccard(text, its) >= LEAST
            }
            if found:
                maximum = max(found.values())
                best = {other for other, similarity in found.items() if similarity == maximum}
                return Best(best, maximum, text, since, number)
        return Best(set(), 0.0, *versions[0], 1)


def history(seed: int = 7, pages: int = 14) -> History:
    """Pages come, are edited, move, are copied to mirrors, and get a new text at their old address."""
    site = History(random.Random(seed))
    for n in range(pages):
        site.visit(f"https://site.example/{n}?q=ä b", " ".join(words(f"page{n}", 120)))
    for n in range(pages * 2):
        url = site.rng.choice(sorted(site.now))
        text = site.now[url][0]
        what = site.rng.choice(["edit", "move", "move and edit", "copy", "reuse"])
        if what == "edit":
            site.visit(url, site.edited(text))
        elif what == "reuse":
            site.visit(url, " ".join(words(f"reused{n}", 120)))
        else:
            site.visit(f"https://site.example/{what}/{n}", site.edited(text) if what == "move and edit" else text)
    return site


@pytest.fixture(scope="module")
def site() -> History:
    return history()


@pytest.fixture(scope="module")
def crawled(client: Client, site: History) -> Iterator[str]:
    """The history in an index that no test changes."""
    name = new_name()
    make_index(client, name, SITE, settings={"number_of_shards": 2, "number_of_replicas": 0})
    put(client, name, site.sources)
    NearDupe(name, client).init(SETTINGS)
    NearDupe(name, client).enrich()
    NearDupe(name, client).group()
    yield name
    NearDupe(name, client).clean()
    client.request("DELETE", path(name))


def test_every_address_of_the_history(client: Client, crawled: str, site: History) -> None:
    """The best place is the one of the record; similarities are exact."""
    answers = list(NearDupe(crawled, client).moved_all(sorted(site.now)))
    assert [one.address for one in answers] == sorted(site.now)
    found, former = 0, 0
    for one in answers:
        expected = site.best(one.address)
        assert (one.best is not None) == bool(expected.addresses), one.address
        if one.best is not None:
            found += 1
            assert one.best.address in expected.addresses
            assert one.best.similarity == pytest.approx(expected.similarity)
        former += one.version > 1
        assert (one.version, one.notices) == (expected.version, 0)
        assert (one.date or "").startswith(expected.since)
        assert one.versions == sum(source["url"] == one.address for source in site.sources.values())
        _check_places(one, expected.text, expected.since, site)
    assert 5 < found < len(answers)
    assert former


def _check_places(one: MovedReport, text: str, since: str, site: History) -> None:
    """All documents of other addresses that are similar enough and not older, each once, in the promised order."""
    expected = {
        id: jaccard(text, source["text"])
        for id, source in site.sources.items()
        if source["url"] != one.address and source["date"] >= since
    }
    assert {place.id: place.similarity for place in one.places} == pytest.approx(
        {id: similarity for id, similarity in expected.items() if similarity >= LEAST}
    )
    for place in one.places:
        last = site.now[place.address][1].isoformat()
        assert (place.replaced or "")[:10] == ("" if site.sources[place.id]["date"] == last else last)
        assert (place.basis, place.measure, place.known_at) == ("texts", "resemblance", None)
    ranks = [(-place.similarity, place.replaced is not None) for place in one.places]
    assert ranks == sorted(ranks)


def test_earlier_copies(client: Client, crawled: str, site: History) -> None:
    answers = list(NearDupe(crawled, client).moved_all(sorted(site.now)))
    assert any(one.reason == "only earlier copies" for one in answers)
    for one in answers:
        whole = NearDupe(crawled, client).moved(one.address, earlier=True) if one.earlier else one
        assert len(whole.places) == len(one.places) + one.earlier
        assert whole.earlier == 0
        if one.reason == "only earlier copies":
            assert not one.places


def test_a_list_as_csv(crawled: str, site: History, server_cli: Cli, tmp_path: Path, monkeypatch: Any) -> None:
    asked = [*sorted(site.now), "https://site.example/never", "=1+1"]
    file = tmp_path / "gone.txt"
    file.write_text("\ufeff" + "\n\n  ".join(asked) + "\n", "utf-8")
    done = server_cli("moved", crawled, "--gone", str(file))
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0])[:6] == ["address", "reason", "best_address", "best_similarity", "date", "best_date"]
    assert [row["address"] for row in rows] == [*asked[:-1], "'=1+1"]
    for row in rows[:-2]:
        best = site.best(row["address"])
        if best.addresses:
            assert row["best_address"] in best.addresses
        else:
            assert row["best_address"] == "" != row["reason"]
        assert row["best_similarity"] == (str(best.similarity) if best.addresses else "")
        assert bool(row["reason"]) != bool(row["best_address"])
    assert [(row["best_address"], row["reason"]) for row in rows[-2:]] == [("", "unknown address")] * 2
    found = sum(bool(row["best_address"]) for row in rows)
    assert f"{len(asked)} addresses: {found} found; " in done.err
    assert "2 unknown address" in done.err
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO("\n".join(asked).encode())))
    assert server_cli("moved", crawled, "--gone", "-").out == done.out
    lines = server_cli("moved", crawled, "--gone", str(file), "--json").lines
    assert [(line["address"], line["reason"] or "") for line in lines] == [
        (address, row["reason"]) for address, row in zip(asked, rows, strict=True)
    ]


def small(client: Client, index: str, sources: dict[str, JSON], **options: Any) -> None:
    """A grouped index of a few pages."""
    make_index(client, index, options.pop("properties", SITE))
    put(client, index, sources)
    NearDupe(index, client).init(SETTINGS)
    NearDupe(index, client).enrich()
    NearDupe(index, client).group(**options)


def page(text: str, url: str, day: str | None = "2024-05-01") -> JSON:
    return {"text": text, "url": url, **({"date": day} if day else {})}


def delete(client: Client, index: str, id: str) -> None:
    send(client, [({"delete": {"_index": index, "_id": id}}, None)])


@pytest.mark.product("each")
def test_the_timeline(client: Client, index_name: str, server_cli: Cli) -> None:
    texts = family("timeline", 5)
    other = " ".join(words("other", 100))
    pages = {
        "1": page(other, "/old", "2024-01-01"),
        "2": page(texts[0], "/old", "2024-02-01"),
        "3": page(texts[1], "/moved", "2024-03-01"),
        "4": page(texts[0], "/copy", "2024-04-01"),
        "5": page(other, "/copy", "2024-05-01"),
        "6": page(texts[2], "/before", "2024-01-15"),
        "7": page(texts[3], "/undated", None),
    }
    small(client, index_name, pages)
    done = server_cli("moved", index_name, "/old")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert done.out.startswith(f"/old: document {index_name}/2, 2024-02-01, the latest of 2 with this address.")
    assert ["2024-03-01", "2", "/moved", f"{jaccard(texts[0], texts[1]):.4f}", f"{index_name}/3"] in lines
    assert ["2024-04-01", "1", "/copy", "1.0000", "2024-05-01", f"{index_name}/4"] in lines
    assert ["3", "/undated", f"{jaccard(texts[0], texts[3]):.4f}", f"{index_name}/7"] in lines
    assert [line[0] for line in lines if line and line[0].startswith("2024")] == ["2024-03-01", "2024-04-01"]
    assert f"Now at /moved, {jaccard(texts[0], texts[1]):.4f} similar." in done.out
    assert "1 copy with an earlier date is not shown: add --earlier." in done.err
    assert "Addresses are from url, dates from date." in done.err
    nothing = server_cli("moved", index_name, "/never")
    assert nothing.out.splitlines() == ["/never: unknown address.", "Not found: unknown address."]
    delete(client, index_name, "3")
    delete(client, index_name, "7")
    done = server_cli("moved", index_name, "/old")  # the text that was there before
    assert done.out.startswith(
        f"/old: document {index_name}/1, 2024-01-01, number 2 from the latest of 2 with this address."
    )
    assert "Now at /copy, 1.0000 similar." in done.out
    assert "1 found" in _as_list(server_cli, index_name, "/old").err
    delete(client, index_name, "5")
    assert NearDupe(index_name, client).moved("/old").reason is None  # the latest text is at /copy again
    delete(client, index_name, "4")
    assert NearDupe(index_name, client).moved("/old").reason == "only earlier copies"
    delete(client, index_name, "6")
    assert NearDupe(index_name, client).moved("/old").reason == "no copy found"
    put(client, index_name, {"5": page(other, "/copy", "2024-05-01")})
    NearDupe(index_name, client).enrich()
    assert "Now at /copy, 1.0000 similar." in server_cli("moved", index_name, "1").out
    empty = one_line(server_cli("moved", index_name, "").err)
    assert empty == "error: The address is empty. Give an address, or the id of a document."
    low = server_cli("moved", index_name, "/old", "--min", "0.5")
    assert "pairs exactly 0.5 similar become candidates with probability 0.2" in low.err


CRAWL = Path(__file__).parents[3] / "shared" / "data" / "cases" / "moved_crawl.jsonl"


def notices(client: Client, index: str) -> dict[str, list[JSON]]:
    """Ten pages that moved, and whose old addresses all have the same notice since; by address."""
    at: dict[str, list[JSON]] = {}
    notice = " ".join(words("notice", 80))
    for n in range(10):
        text = " ".join(words(f"article {n}", 120))
        at[f"/old/{n}"] = [page(text, f"/old/{n}", "2024-01-01"), page(notice, f"/old/{n}", "2024-06-01")]
        at[f"/new/{n}"] = [page(text, f"/new/{n}", "2024-03-01")]
    small(client, index, {f"{address} {k}": one for address, some in at.items() for k, one in enumerate(some)})
    return at


def test_a_notice_at_many_addresses_is_no_new_place(client: Client, index_name: str, server_cli: Cli) -> None:
    pages = notices(client, index_name)
    dead = [address for address in pages if address.startswith("/old")]
    for answers in (
        list(NearDupe(index_name, client).moved_all(dead)),
        [NearDupe(index_name, client).moved(one) for one in dead],  # nothing is known of the others then
    ):
        found = {one.address: [place.address for place in one.places] for one in answers}
        assert found == {one: [one.replace("old", "new")] for one in dead}
        assert {(one.version, one.versions, one.notices) for one in answers} == {(2, 2, 1)}
    done = server_cli("moved", index_name, "/old/3")
    assert "number 2 from the latest of 2 with this address; a later one is a notice." in done.out
    assert "Now at /new/3, 1.0000 similar." in done.out
    for one in dead[1:]:
        delete(client, index_name, f"{one} 0")
    (alone,) = NearDupe(index_name, client).moved_all(["/old/1"])
    assert alone.best is not None  # one text at several addresses: nothing shows that it is a notice
    several = list(NearDupe(index_name, client).moved_all(dead))
    assert [one.reason for one in several] == [None] + ["only copies of a notice"] * 9
    assert several[1].gone == 9
    assert "9 copies of a notice, at other addresses of the list" not in done.err


def test_dead_pages_of_a_crawl(client: Client, index_name: str) -> None:
    """Twenty-five old addresses were crawled again as one notice."""
    if not CRAWL.exists():
        pytest.skip(f"{CRAWL} is missing")
    keyword = {"type": "keyword"}
    make_index(
        client, index_name, {"url": keyword, "host": keyword, "fetched": {"type": "date"}, "body": {"type": "text"}}
    )
    documents = [json.loads(line) for line in CRAWL.read_text("utf-8").splitlines()]
    put(client, index_name, {one.pop("id"): one for one in documents})
    NearDupe(index_name, client).init(Settings(("body",)))
    NearDupe(index_name, client).enrich()
    dead = CRAWL.with_name("moved_dead.txt").read_text("utf-8").split()
    by_url = {one["url"]: one["body"] for one in reversed(documents)}
    answers = list(NearDupe(index_name, client).moved_all(dead))
    assert len(answers) == len(dead) > 0
    for one in answers:
        assert one.places
        assert {place.address.split("/")[2] for place in one.places} <= {"new.example", "mirror.example"}
        assert all(jaccard(by_url[place.address], by_url[one.address]) >= 0.8 for place in one.places)


def test_chosen_fields(client: Client, crawled: str, site: History, server_cli: Cli, tmp_path: Path) -> None:
    """Those of the last document and of each place, as they are in the documents; none by default."""
    asked = sorted(site.now)
    plain = list(NearDupe(crawled, client).moved_all(asked))
    assert all(one.fields == {} and all(place.fields == {} for place in one.places) for one in plain)
    chosen = list(NearDupe(crawled, client).moved_all(asked, fields=["date", "text"]))
    for one, before in zip(chosen, plain, strict=True):
        assert [(place.index, place.id) for place in one.places] == [(place.index, place.id) for place in before.places]
        for id, fields in ((one.id, one.fields), *((place.id, place.fields) for place in one.places)):
            source = site.sources[str(id)]
            assert fields == {"date": source["date"], "text": source["text"]}
    address = next(one.address for one in chosen if one.best)
    shown = server_cli("moved", crawled, address, "--field", "date")
    assert f"date: {site.best(address).since}" in shown.out.splitlines()
    assert " address " in (head := next(line for line in shown.out.splitlines() if " rank " in line))
    assert head.split()[:4] == ["date", "rank", "address", "date"]
    table = tmp_path / "moved.csv"
    file = tmp_path / "gone.txt"
    file.write_text("\n".join([*asked, "/never"]), "utf-8")
    printed = server_cli("moved", crawled, "--gone", str(file), "--field", "date").out
    server_cli("moved", crawled, "--gone", str(file), "--field", "date", "--output", str(table))
    for text in (printed, table.read_text("utf-8-sig")):
        rows = list(csv.DictReader(io.StringIO(text)))
        assert list(rows[0])[-2:] == ["fields_date", "best_fields_date"]
        expected = [(one.fields["date"], one.best.fields["date"] if one.best else "") for one in chosen]
        assert [(row["fields_date"], row["best_fields_date"]) for row in rows] == [*expected, ("", "")]
    failed = server_cli("moved", crawled, "--gone", str(file), "--field", "absent")
    assert (failed.code, failed.out) == (2, ""), "the heading is not printed before an error"
    one = NearDupe(crawled, client).moved(address, fields=["date"])
    assert list(one.table().columns)[-2:] == ["fields_date", "best_fields_date"]
    unknown = one_line(server_cli("moved", crawled, address, "--field", "absent").err)
    assert f"Index {crawled} has no field 'absent' to show. Fields: date, " in unknown


def test_values_with_line_breaks(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """They come back from the printed CSV, as do values inside objects."""
    texts = family("lines", 2)
    pages = {
        f"p{n}": {**page(f"{text}\nsecond\tline\r\nthird", f"/p{n}"), "at": {"n": n}} for n, text in enumerate(texts)
    }
    small(client, index_name, pages)
    (file := tmp_path / "gone.txt").write_text("/p0")
    printed = server_cli("moved", index_name, "--gone", str(file), "--field", "text", "--field", "at.n").out
    (row,) = csv.DictReader(io.StringIO(printed, newline=""))
    for name, n in (("fields_text", 0), ("best_fields_text", 1)):
        assert row[name] == pages[f"p{n}"]["text"].replace("\r\n", "\n")
    assert (row["fields_at.n"], row["best_fields_at.n"]) == ("0", "1")


@pytest.mark.parametrize("basis", ["evidence", "grouping"])
def test_a_deleted_document(basis: str, client: Client, index_name: str, server_cli: Cli) -> None:
    """Its id was its address: similarities computed before the deletion are reported with their date."""
    gone = "https://site.example/ä b/gone"
    texts = family("gone", 4)
    pages = {gone: page(f"{texts[0]} and some words more", gone)}
    pages |= {f"p{n}": page(texts[n], f"/p{n}", f"2024-05-0{n + 1}") for n in (1, 2, 3)}
    small(client, index_name, pages, evidence=basis == "evidence")
    before = {place.id: place.similarity for place in NearDupe(index_name, client).moved(gone, earlier=True).places}
    assert len(before) == 3
    delete(client, index_name, gone)
    put(client, index_name, {"p3": page(" ".join(words("changed", 100)), "/p3")})
    found = NearDupe(index_name, client).moved(gone)
    assert (found.basis, found.index, found.id, found.date) == (basis, index_name, gone, None)
    assert {place.id: place.similarity for place in found.places} == pytest.approx(
        {id: similarity for id, similarity in before.items() if id != "p3"}
    )
    assert {place.basis for place in found.places} == {basis}
    assert all(re.fullmatch(r"20..-..-..T..:..:..\....Z", str(place.known_at)) for place in found.places)
    with_dates = NearDupe(index_name, client).moved(gone, fields=["date"])
    assert with_dates.fields == {}
    assert {place.id: place.fields["date"] for place in with_dates.places} == {"p1": "2024-05-02", "p2": "2024-05-03"}
    done = server_cli("moved", index_name, gone)
    assert f"which was deleted; known only from {basis}" in done.out
    (row, *_) = csv.DictReader(io.StringIO(_as_list(server_cli, index_name, gone).out))
    assert (row["best_basis"], bool(row["best_known_at"]), row["date"]) == (basis, True, "")
    if basis == "evidence":  # the same text, put elsewhere since
        put(client, index_name, {"again": page(pages[gone]["text"], "/again", "2024-06-01")})
        NearDupe(index_name, client).enrich()
        best = NearDupe(index_name, client).moved(gone).best
        assert best is not None
        assert (best.address, best.similarity) == ("/again", 1.0)


def test_a_page_that_was_written_over(client: Client, index_name: str, server_cli: Cli) -> None:
    """Its current text has no copies, but evidence knows those of its former text."""
    texts = family("over", 3)
    pages = {str(n): page(texts[n], f"/p{n}", f"2024-05-0{n + 1}") for n in range(3)}
    small(client, index_name, pages, evidence=True)
    before = {place.id: place.similarity for place in NearDupe(index_name, client).moved("/p0").places}
    assert before.keys() == {"1", "2"}
    assert NearDupe(index_name, client).moved("/p2").reason == "only earlier copies"
    put(
        client,
        index_name,
        {"0": page("This page has been removed, please look for it elsewhere.", "/p0", "2024-07-01")},
    )
    found = NearDupe(index_name, client).moved("/p0")
    assert (found.basis, found.id, found.date, found.versions, found.changed) == ("evidence", "0", None, 1, 0)
    assert {place.id: place.similarity for place in found.places} == before
    done = server_cli("moved", index_name, "/p0")
    assert "which now has another text; the former text is known from evidence" in done.out
    assert found.best is not None
    assert f"Now at {found.best.address}, " in done.out


class Walled:
    """A connection whose user may not read the hidden indices."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def request(self, method: str, path: str, **more: Any) -> Any:
        if "-neardupe-" in path:
            raise Forbidden(f"{path}: 403", status=403)
        return self._client.request(method, path, **more)


def test_a_user_who_may_not_read_evidence(client: Client, crawled: str, site: History) -> None:
    found = list(NearDupe(crawled, Walled(client)).moved_all([*sorted(site.now)[:3], "/never"]))
    assert [one.basis for one in found] == ["address"] * 3 + [None]
    assert found[-1].reason == "unknown address, and evidence may not be read"


def _as_list(server_cli: Cli, index: str, address: str) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(address.encode())))
        return server_cli("moved", index, "--gone", "-")


def test_fields_that_must_be_named(client: Client, index_name: str, server_cli: Cli) -> None:
    """A text with a keyword part will do, one without will not; what is ambiguous is listed."""
    dynamic = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 40}}}
    properties = {
        "text": {"type": "text"},
        "url": dynamic,
        "link": {"type": "keyword"},
        "title": {"type": "text"},
        "date": {"type": "date"},
        "seen": {"type": "date_nanos"},
    }
    texts = family("fields", 2)
    pages = {
        "a": {**page(texts[0], "/a/" + "x" * 30), "seen": "2024-01-01T00:00:00.000000001Z", "link": "l1"},
        "b": {**page(texts[1], "/b"), "seen": "2024-01-01T00:00:00.000000002Z", "link": "l2"},
        "c": {**page(texts[0], "/c/" + "x" * 60), "seen": "2024-01-01", "link": "l3"},
    }
    small(client, index_name, pages, properties=properties)
    for options, said in (
        ((), "2 keyword fields have a name such as url or link. Set --url-field."),
        ((), "link, url.keyword"),
        (("--url-field", "url"), "has several date fields"),
        (("--url-field", "url"), "Set --date-field to one of date, seen."),
        (
            ("--url-field", "title"),
            "no keyword field 'title', and no text field of this name with one",
        ),
        (("--url-field", "absent"), "Keyword fields: link, url.keyword."),
        (("--url-field", "url", "--date-field", "link"), "no date field 'link'. Available: date, seen."),
        (("--url-field", "url", "--date-field", "seen", "--min", "0"), "0 is not in (0, 1]"),
    ):
        done = server_cli("moved", index_name, "/x", *options)
        assert done.code == 2
        assert said in " ".join(done.err.replace("│", " ").split())
    named = ("--url-field", "url", "--date-field", "seen", "--json")
    found = server_cli("moved", index_name, "/a/" + "x" * 30, *named).json
    assert ([place["id"] for place in found["places"]], found["url_field"]) == (["b"], "url.keyword")
    back = server_cli("moved", index_name, "/b", *named).json
    assert (back["earlier"], back["reason"]) == (1, "only earlier copies")
    long = server_cli("moved", index_name, "/c/" + "x" * 60, *named).json
    assert long["reason"] == "address longer than the index keeps"
    assert NearDupe(index_name, client).moved("x" * 40_000, url_field="url", date_field="date").reason == long["reason"]
    by_id = server_cli("moved", index_name, "c", "--url-field", "link", "--date-field", "seen", "--json").json
    assert (by_id["basis"], {place["address"] for place in by_id["places"]}) == ("id", {"l1", "l2"})


def test_indices_without_what_is_needed(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, {"text": {"type": "text"}, "url": {"type": "keyword"}})
    assert "es-neardupe init" in one_line(server_cli("moved", index_name, "/a").err)
    put(client, index_name, {"a": {"text": "", "url": "/a"}, "b": {"text": "some words", "url": "/b"}})
    NearDupe(index_name, client).init(SETTINGS)
    assert "has no date field" in one_line(server_cli("moved", index_name, "/a").err)
    client.request("PUT", path(index_name, "_mapping"), body={"properties": {"date": {"type": "date"}}})
    done = server_cli("moved", index_name, "/a")
    assert "Not found: its text is empty." in done.out
    assert "2 documents are not enriched" in done.err
    assert NearDupe(index_name, client).moved("/b").reason == "no copy found"
    with pytest.raises(SettingsError, match="`max_candidates`"):
        NearDupe(index_name, client).moved("/b", max_candidates=0)


def test_an_alias_and_few_candidates(client: Client, index_name: str) -> None:
    """The same id in both indices is two documents."""
    alias = f"{index_name}-all"
    texts = family("alias", 3)
    for n, part in enumerate("abc"):
        make_index(client, f"{index_name}-{part}", SITE, aliases={alias: {}})
        put(client, f"{index_name}-{part}", {"one": page(texts[n], f"/{part}", f"2024-05-0{n + 1}")})
    with NearDupe(alias, url=client.url) as both:
        both.init(SETTINGS)
        both.enrich()
        found = both.moved("/a")
        assert {(place.index, place.address) for place in found.places} == {
            (f"{index_name}-b", "/b"),
            (f"{index_name}-c", "/c"),
        }
        few = both.moved("/a", max_candidates=1)
        assert (len(few.places), few.candidates, few.not_compared) == (1, 2, 1)
        assert [one.reason for one in both.moved_all(["/a", "/c", "/d"])] == [
            None,
            "only earlier copies",
            "unknown address",
        ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "ADDRESS or --gone"),
        (("/a", "--gone", "x"), 2, "ADDRESS or --gone"),
        (("--gone", "/no/such/file"), 1, "No such file"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], code: int, said: str, crawled: str, server_cli: Cli) -> None:
    done = server_cli("moved", crawled, *arguments)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_list_that_is_no_text(crawled: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "gone.txt"
    file.write_bytes(b"/a\n\xff\xfe\n")
    done = server_cli("moved", crawled, "--gone", str(file))
    assert done.code == 1
    assert f"{file}:2 is not UTF-8" in one_line(done.err)


def test_the_dates_of_other_prefixes_are_no_dates_of_documents(client: Client, index_name: str) -> None:
    """Nor after their `clean`, which leaves them in the mapping."""
    make_index(client, index_name, SITE)
    texts = family("dates", 2)
    put(
        client,
        index_name,
        {f"d{n}": {"text": text, "url": f"u{n}", "date": f"2026-01-0{n + 1}"} for n, text in enumerate(texts)},
    )
    news, other = NearDupe(index_name, client), NearDupe(index_name, client, prefix="second")
    for one in (news, other):
        one.init(Settings(("text",), prefix=one.prefix, group_field=f"{one.prefix}_group"))
        one.enrich()
    assert news.group(principal="oldest").groups.largest == 2
    assert news.moved("u0").versions == 1
    with pytest.raises(SettingsError, match="second_group"):
        news.group(within=["second_group"])
    other.clean()
    assert news.group().groups.largest == 2
    assert news.moved("u0").versions == 1
