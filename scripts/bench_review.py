"""Times of the pages of ``serve`` in a large index, and of ``group`` with many decisions of reviewers.

    python scripts/bench_review.py [--groups 100000] [--members 5000] [--decisions 100000] [--server elasticsearch]

The index has groups of two short texts, one group of form letters, and one of three texts of 100,000 words. The pages
are asked for in turn, in several rounds; each is read whole, without a browser. Then reviewers decide about one pair of
each group of two, *different* about every fourth. ``group --rebuild --dry-run`` is timed before, and after `group` has
applied the decisions.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import partial

from bench_tools import drop_index, loaded, settle, timed
from starlette.testclient import TestClient

from es_neardupe import NearDupe, asgi
from es_neardupe.groups.decisions import Decision, Decisions, Verdict
from es_neardupe.index.index import opened
from es_neardupe.keys.text import contents
from es_neardupe.local_server import control
from es_neardupe.records import Address
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

INDEX = "bench-review"
WORDS = [f"{first}{second}" for first in ("ba", "ce", "di", "fo", "gu", "ha") for second in "bcdfghklmnprstvz"]
LONG_WORDS = 100_000


def main() -> None:
    """Measure and print."""
    gc.freeze()
    gc.set_threshold(50_000)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--url", help="a running server instead")
    parser.add_argument("--groups", type=int, default=100_000, help="groups of two documents (default 100000)")
    parser.add_argument("--members", type=int, default=5000, help="form letters in one group (default 5000)")
    parser.add_argument("--decisions", type=int, default=100_000, help="pairs decided about (default 100000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default 5)")
    arguments = parser.parse_args()
    client = connect(ConnectionSettings(url=arguments.url or control.start(arguments.server, say=print).url))
    try:
        news = prepare(client, arguments.groups, arguments.members)
        pages(news, arguments.rounds)
        without = rebuilds(news, arguments.rounds)
        decide(news, min(arguments.decisions, arguments.groups))
        ratios = [one / other for one, other in zip(rebuilds(news, arguments.rounds), without, strict=True)]
        print(f"With decisions: {ratios[0]:.3f} times the time, {ratios[1]:.3f} times the processor time")
        pages(news, arguments.rounds)
    finally:
        drop_index(client, INDEX)
        client.close()


def pair(number: int) -> tuple[str, str]:
    """The two texts of a group: thirty words, and one more."""
    text = " ".join(random.Random(number).choices(WORDS, k=30))
    return f"{text} {number}", f"{text} {number} again"


def documents(groups: int, members: int) -> Iterator[tuple[str, str]]:
    """Ids and texts."""
    for number in range(groups):
        for end, text in zip("ab", pair(number), strict=True):
            yield f"{number:07}{end}", text
    words = random.Random("letter").choices(WORDS, k=200)
    for number in range(members):
        place = random.Random(f"place {number}").choice(words)
        letter = [*words[:80], place, *words[80:160], f"${number},000", *words[160:]]
        yield f"letter-{number:05}", " ".join(letter)
    words = random.Random("long").choices(WORDS, k=LONG_WORDS)
    for number in range(3):
        changed = (f"changed{number}" if place % 2000 == number else word for place, word in enumerate(words))
        yield f"long-{number}", " ".join(changed)


def prepare(client: Client, groups: int, members: int) -> NearDupe:
    """Load and group the documents."""
    news = loaded(client, INDEX, ({"id": id, "text": text} for id, text in documents(groups, members)))
    report = news.group()  # evidence of all pairs of the letters would take hours
    settle(client, INDEX)
    print(f"{client.server}: {report.scope.documents:,} documents, {report.groups.count:,} groups")
    return news


def pages(news: NearDupe, rounds: int) -> None:
    """Time each page, and print."""
    largest = {one.members[0].id.partition("-")[0]: one for one in news.groups(min_size=3)}
    letters, long = largest["letter"], largest["long"]
    last = letters.members[-1].id
    addresses = {
        "overview": "/",
        "groups": "/groups",
        "groups, least similar": "/groups?order=least-similar",
        "groups, by text": "/groups?q=ba*",
        "groups to review": "/groups?review=open",
        "next group": f"/next?after={letters.group}",
        "group of two": f"/group?id={news.groups(top=letters.size)[-1].group}",
        f"group of {letters.size:,}": f"/group?id={letters.group}",
        "  its second page": f"/group?id={letters.group}&start=200",
        "  with another reference": f"/group?id={letters.group}&reference={last}",
        "texts of 100,000 words": f"/group?id={long.group}",
        "two of them compared": f"/compare?a={long.members[0].id}&b={long.members[1].id}",
        "search": "/search?q=ba*",
        "decisions": "/decisions",
    }
    token = "a token of the benchmark"
    site = TestClient(
        asgi(news, token=token), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {token}"}
    )
    began = time.perf_counter()
    first, _ = timed(lambda: site.get("/"))
    by_text, _ = timed(lambda: site.get(addresses["groups, by text"]))
    while 'id="reading"' in site.get("/").text:
        time.sleep(0.1)
    print(f"\nright after the start: first overview {first:.2f} s, then the first filter by text {by_text:.2f} s")
    print(f"states of all reviews after {time.perf_counter() - began:.1f} s")
    seconds: dict[str, list[float]] = {name: [] for name in addresses}
    used: dict[str, list[float]] = {name: [] for name in addresses}
    sizes = {}
    for _ in range(rounds):
        for name, address in addresses.items():
            began = time.process_time()
            taken, answer = timed(partial(site.get, address))
            assert answer.status_code == 200, answer.text[:500]
            seconds[name].append(taken)
            used[name].append(time.process_time() - began)
            sizes[name] = len(answer.content)
    print(f"\n{'page':28}{'median':>9}{'slowest':>9}{'own processor time':>20}{'size':>12}")
    for name, some in seconds.items():
        print(
            f"{name:28}{statistics.median(some):8.2f}s{max(some):8.2f}s{statistics.median(used[name]):19.2f}s{sizes[name]:12,}"
        )


def decide(news: NearDupe, number: int) -> None:
    """Store a decision about the pair of each group of two."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")

    def made() -> Iterator[Decision]:
        for place in range(number):
            verdict = Verdict.SAME if place % 4 else Verdict.DIFFERENT
            first, second = contents(pair(place))
            seen = (Address(INDEX, f"{place:07}a"), Address(INDEX, f"{place:07}b"))
            yield Decision(verdict, (first, second), seen, "bench", now, None, 0.9, "resemblance")

    seconds, _ = timed(lambda: Decisions(opened(news)).put(made()))
    applied, _ = timed(news.group)
    print(f"\n{number:,} decisions stored in {seconds:.1f} s, applied by `group` in {applied:.1f} s")


def rebuilds(news: NearDupe, rounds: int) -> tuple[float, float]:
    """The median time of ``group --rebuild --dry-run`` and of its own processor time, in seconds; also printed."""
    seconds, used = [], []
    for _ in range(rounds):
        began = time.process_time()
        taken, report = timed(lambda: news.group(rebuild=True, dry_run=True))
        used.append(time.process_time() - began)
        seconds.append(taken)
    assert report.writes.written == 0
    print(
        f"group --rebuild --dry-run with {report.decisions.same:,} decisions same and {report.decisions.different:,} "
        f"different: {statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}), own processor time "
        f"{statistics.median(used):.1f} s"
    )
    return statistics.median(seconds), statistics.median(used)


if __name__ == "__main__":
    main()
