"""Every number in the JSON of every command, counted again from the raw documents of the index in another way.

A new number fails the test until it has an entry here. Numbers of a run that nobody can know (durations, bytes on disk)
are checked for their bounds.
"""

from __future__ import annotations

import json
import math
import re
import time
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from conftest import Cli, Run
from duplicates_requests import request_of_all_stages
from every_command import names
from recount import (
    Document,
    Passage,
    Snapshot,
    Star,
    about,
    address_hash,
    at_most,
    between,
    chosen_bands,
    detection,
    differences,
    in_order,
    numbers,
    passages,
    places,
    resemblance,
    shingle_set,
    tokens_of,
    word_edits,
)
from scheme_oracle import GOLDEN, M32, M64, mix64, oracle_shapes, oracle_signature, oracle_token_hash, oracle_tokens
from server_tools import JSON, change, family, hits, make_index, mapping, put, words
from star_model import star_model
from unit_tools import set_resemblance

from es_neardupe.index.stored_fields import own_group
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.scheme import Scheme
from es_neardupe.options import FactKind, Mask
from es_neardupe.server.client import Client, path
from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.kinds import FACT_NAMES, parse_facts
from es_neardupe.similarity.facts.tokens import fact_tokens

MAX_CHARS, THRESHOLD, SAMPLE_MOD, SHINGLE = 2000, 0.5, 2, 5
BANDS, ROWS = chosen_bands(THRESHOLD)
SCHEME = Scheme(bands=BANDS, rows=ROWS, sample_mod=SAMPLE_MOD)
FIELDS = ("headline", "text")
SITE = "https://a.example"
PROPERTIES = {
    "headline": {"type": "object", "enabled": False},
    "text": {"type": "text"},
    "title": {"type": "text"},
    "url": {"type": "keyword"},
    "date": {"type": "date"},
    "source": {"type": "keyword"},
}


def _documents() -> dict[str, JSON]:
    """Exact copies, near-copies, revisions, quotations, boilerplate; empty, short, too long and unreadable texts."""
    texts: dict[str, Any] = {f"bridge{n}": text for n, text in enumerate(family("bridge", 6, length=90))}
    ferry = family("ferry", 3, length=80, edits=3)
    texts |= {f"ferry{n}": text for n, text in enumerate([*ferry, ferry[0].upper(), f"{ferry[0]}!", ferry[1]])}
    long = words("chain", 130)
    texts |= {f"chain{n}": " ".join(link) for n, link in enumerate((long[:80], long[20:104], long[40:120]))}
    body = " ".join(words("price", 70))
    texts |= {f"price{n}": f"{body} costs {n + 10} euros on {n + 3} May 202{n}" for n in range(4)}
    footer = " ".join(words("footer", 45))
    texts |= {f"footer{n}": f"{' '.join(words(('own', n), 40))} {footer}" for n in range(8)}
    far, near = words("far", 70), words("near", 70)
    texts |= {"far0": " ".join(far), "far1": " ".join([*far[:44], *words("farther", 26)])}
    texts |= {f"near{n}": " ".join([*near[: 70 - 8 * n], *words(("end", n), 8 * n)]) for n in range(4)}
    texts["quoting"] = " ".join([*words("before", 60), *words("bridge", 90)[10:70], *words("after", 50)])
    texts |= {f"umlaut{n}": f"Straße nach Köln Nr {n} " + " ".join(words("umlaut", 40)) for n in range(2)}
    texts |= {f"alone{n}": " ".join(words(("alone", n), 40)) for n in range(3)}
    texts |= {"empty": "", "missing": None, "points": "... !!!", "short0": "two words", "short1": "Two words!"}
    texts |= {"numbers": " ".join(map(str, range(100, 150))), "number": 4711}
    texts |= {"list0": [" ".join(words("list", 30)), " ".join(words("more", 30))]}
    texts |= {"list1": " ".join([*words("list", 30), *words("more", 30)])}
    texts |= {"long0": "word " * MAX_CHARS, "long1": "word " * MAX_CHARS}
    found = {id: _document(id, text, day) for day, (id, text) in enumerate(texts.items())}
    found["object"] = {**_document("object", None, 5), "headline": {"not": "a text"}}
    return found | _visits()


def _document(id: str, text: Any, day: int) -> JSON:
    about_it = {"title": id, "url": f"{SITE}/{id}", "date": f"2024-01-{day % 28 + 1:02}", "source": "ab"[day % 2]}
    return about_it if text is None else {**about_it, "text": text}


def _visits() -> dict[str, JSON]:
    """Documents at addresses: moved, and replaced by another one."""
    page, used = (family(name, 4, length=100) for name in ("page", "used"))
    visits = [
        ("page0", "old", "2024-03-01", page[0]),
        ("page1", "new", "2024-04-01", page[1]),
        ("page2", "mirror", "2024-05-01", page[2]),
        ("page3", "earlier", "2024-02-01", page[3]),
        ("used0", "used", "2024-01-01", used[0]),
        ("used1", "used", "2024-05-01", " ".join(words("another", 70))),
        ("used2", "used-moved", "2024-06-01", used[1]),
    ]
    return {
        id: {"title": id, "url": f"{SITE}/{where}", "date": date, "source": "b", "text": text}
        for id, where, date, text in visits
    }


DOCUMENTS = _documents()
ROUTED = {"routed0": _document("routed0", DOCUMENTS["alone2"]["text"], 7)}
LOADED = {
    "loaded0": _document("loaded0", f"{DOCUMENTS['bridge0']['text']} loaded", 3),
    "loaded1": _document("loaded1", "7 8", 4),
}
LATE = {"late": _document("late", f"{DOCUMENTS['alone0']['text']} and more", 1)}
FORGED = {
    "price3": {"scheme": "v1-00000000"},
    "umlaut1": {"content": "nothing"},
    "alone1": {"state": "strange"},
}
"""What another client wrote into the fields of some documents."""
ADDED = {"added": _document("added", f"{DOCUMENTS['alone1']['text']} and more", 2)}


@dataclass
class World:
    """An index, the commands that were run on it, and the numbers that were wrong."""

    client: Client
    index: str
    run: Cli
    folder: Path
    sidecar: bool
    wrong: list[str] = field(default_factory=list)
    ran: set[str] = field(default_factory=set)
    grouped: Snapshot | None = None
    """After the last run of ``group``."""
    chained: bool = False
    """Whether the last run of ``group`` used linkage chain."""
    compared: frozenset[frozenset[str | None]] | None = None
    """The pairs of texts that commands with ``--max-bucket`` compare."""
    printed: bool = False
    """Whether the text that commands print is checked too."""
    seen: Snapshot | None = None
    """The index after the last command, as long as the test changes nothing."""
    looking: bool = False
    """Whether commands must change nothing, which is checked after the last of them."""

    def look(self, scheme: Scheme = SCHEME) -> Snapshot:
        self.seen = Snapshot.of(self.client, self.index, FIELDS, scheme, MAX_CHARS, keys_apart=self.sidecar)
        return self.seen

    @contextmanager
    def changing(self) -> Iterator[Client]:
        """While an application changes documents."""
        self.seen = None
        yield self.client

    def check(self, *line: str, **more: Any) -> Case:
        """Run a command and count all its numbers again."""
        before = self.seen or self.look()
        started = time.monotonic()
        done = self.run(*line, "--json")
        wall = time.monotonic() - started
        assert done.out, (line, done.err)
        said = done.lines[0] if len(done.lines) == 1 and line[0] not in MANY else done.lines
        after = before if self.looking else self.look(more.pop("scheme", SCHEME))
        if "--max-bucket" in line:
            before, after = (replace(one, compared=self.compared) for one in (before, after))
        case = Case(self, line, said, before, after, wall, more)
        self.ran.add(line[0])
        wrong = differences(said, COUNTED[line[0]](case))
        if self.printed and self.looking:
            self.wrong += list(_unexplained(case, self.run(*line)))
        self.wrong += [f"{' '.join(line).replace(self.index, 'INDEX')}: {one}" for one in wrong]
        return case

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """While nothing may be written."""
        before, self.looking = self.seen or self.look(), True
        yield
        assert self.look() == before
        self.looking = False


MANY = {"groups", "pairs"}
"""Commands that print one object per line."""


@dataclass
class Case:
    """One command with its output, and the index before and after it."""

    world: World
    line: tuple[str, ...]
    said: Any
    before: Snapshot
    after: Snapshot
    wall: float
    more: JSON

    @property
    def index(self) -> Snapshot:
        return self.before

    def given(self, option: str, default: Any) -> Any:
        """The value of an option."""
        return type(default)(self.line[self.line.index(option) + 1]) if option in self.line else default

    @property
    def seconds(self) -> JSON:
        return {"seconds": at_most(self.wall)}


# init, bands, version


def of_init(case: Case) -> JSON:
    if "short" in case.line:
        return _init_short(case)
    threshold = case.given("--threshold", 0.8)
    bands, rows = chosen_bands(threshold)
    found = {"threshold": threshold, "bands": bands, "rows": rows, "agree": 1, "sample_mod": SAMPLE_MOD}
    found["detection"] = detection(threshold, bands, rows)
    found["unrelated"] = _unrelated(bands, rows)
    found["unsuited"] = _too_short([len(one.tokens) for one in case.index if one.tokens], threshold)
    if "--sample-keys" in case.line:
        wanted = case.given("--sample-keys", 0)
        read = [one for one in case.index if one.tokens]
        sizes = [len(one.shingles) for one in read]
        mean = sum(sizes) / len(sizes)
        mod = round(mean / wanted)
        found["sample_mod"] = mod
        found["sampling"] = {
            "sample_mod": mod,
            "wanted": wanted,
            "documents": len(read),
            "mean_words": sum(len(one.tokens) for one in read) / len(read),
            "mean_shingles": mean,
            "without": sum(math.exp(size * math.log1p(-1 / mod)) for size in sizes) / len(sizes),
        }
    return found


def _init_short(case: Case) -> JSON:
    """The bands find 99 % of the least similar pairs, on average over all texts; the threshold is the lowest
    resemblance that they find as often."""
    minimum, shingle = 0.6, 2
    words = sorted(len(one.tokens) for one in case.index if one.tokens)
    every = [_least_resemblance(number, minimum, shingle) for number in words]
    least = sorted(one for one in every if one < 1)

    def found(bands: int, rows: int) -> float:
        return sum(detection(one, bands, rows) for one in least) / len(least)

    rows = max(rows for rows in range(1, 33) if found(128 // rows, rows) >= 0.99)
    bands = min(bands for bands in range(1, 128 // rows + 1) if found(bands, rows) >= 0.99)
    threshold = min(k for k in range(1, 1001) if detection(k / 1000, bands, rows) >= 0.99) / 1000
    placed = [one for number in words if (one := _least_resemblance(number, minimum, shingle, throughout=False)) < 1]
    in_one_place = sum(detection(one, bands, rows) for one in placed) / len(placed)
    return {
        "threshold": threshold,
        "bands": bands,
        "rows": rows,
        "agree": 1,
        "detection": detection(threshold, bands, rows),
        "sample_mod": 0,
        "unrelated": _unrelated(bands, rows, shingle),
        "by_lengths": {
            "min": minimum,
            "shingle": shingle,
            "documents": len(words),
            "words": [words[0], words[(len(words) - 1) // 2], words[-1]],
            "only_copies": len(words) - len(least),
            "resemblance": [least[0], least[(len(least) - 1) // 2], least[-1]],
            "detection": found(bands, rows),
            "detection_by_changes": {"in one place": in_one_place, "throughout": found(bands, rows)},
        },
        "unsuited": {
            "words": 30,
            "unsuited": sum(number >= 30 for number in words),
            "documents": len(words),
            "threshold": threshold,
        },
    }


def _least_resemblance(words: int, minimum: float, shingle: int, *, throughout: bool = True) -> float:
    """The lowest resemblance of two texts that just reach the minimum by jaccard: with one common passage, of texts up
    to five times as long, and with changes throughout. 1 if only copies reach it."""
    longest = max(longer for longer in range(words, 2 * words + 1) if words / longer >= minimum - 1e-9)
    lowest = 1.0
    for longer in {min(ratio * words, longest) for ratio in (1, 2, 5)}:
        reaching = [
            common for common in range(shingle, words + 1) if common / (words + longer - common) >= minimum - 1e-9
        ]
        shares = [[reaching[0]]] if reaching else []
        if reaching and longer == words and throughout:
            pieces = min(words - reaching[0] + 1, reaching[0] // shingle)
            shares.append([len(range(k, reaching[0], pieces)) for k in range(pieces)])
        for sizes in shares:
            shared = sum(max(size - shingle + 1, 0) for size in sizes)
            sets = [max(size - shingle + 1, 1) for size in (words, longer)]
            lowest = min(lowest, 1.0 if sum(sizes) == longer else shared / (sum(sets) - shared))
    return lowest


def of_bands(case: Case) -> JSON:
    threshold = case.given("--threshold", 0.8)
    bands, rows = chosen_bands(threshold)
    step = scipy.optimize.brentq(lambda s: s**rows - 1 / bands, 0, 1, xtol=1e-15)
    return {
        "threshold": threshold,
        "bands": bands,
        "rows": rows,
        "agree": 1,
        "permutations": 128,
        "key_bytes": len("x" * 8) * bands,
        "detection": detection(threshold, bands, rows),
        "wanted_detection": 0.99,
        "unrelated": _unrelated(bands, rows),
        "step": step,
        "curve": [[k / 20, detection(k / 20, bands, rows)] for k in range(1, 21)],
    }


def _unrelated(bands: int, rows: int, shingle: int = SHINGLE) -> JSON:
    """These indices have too few texts to count, so pairs of usual ones: nine of ten have no shingle of five words in
    common, the others 0.19 % of them."""
    usual = {
        2: [0.0034, 0.0072, 0.0093, 0.0111, 0.0128, 0.0145, 0.0163, 0.0186, 0.0218, 0.0293],
        SHINGLE: [0] * 9 + [0.0019],
    }
    chances = [detection(value + (1 - value) / 256, bands, rows) for value in usual[shingle]]
    return {"of_a_million": 1e6 * sum(chances) / len(chances), "documents": 0}


def of_version(case: Case) -> JSON:
    return {"scheme_version": int(case.said["scheme"][1])}


# Commands that write


DISTURBED = ("whole", "conflicts", "deleted", "refused", "failed")
"""Outcomes of writes that something has disturbed, or that cannot be partial updates."""


def _outcomes(case: Case, written: Sequence[Document], *, unchanged: int = 0) -> JSON:
    """The writes of a run that nothing has disturbed."""
    found = {"written": len(written), "unchanged": unchanged} | dict.fromkeys(DISTURBED, 0)
    return found | ({"mirrored": _mirrored(case)} if case.said["writes"]["mirrored"] else {})


def _mirrored(case: Case) -> JSON:
    """Group ids that this run has written from the sidecar index into the documents, or that a run had to write."""
    assert all(one.own.get("group") == one.group for one in case.after)
    written = [one for one in case.after if one.own_version != case.before[one.id].own_version]
    return {"written": len(written), "left": 0, "failed": 0}


def _fingerprints(case: Case, written: Sequence[Document], *, unchanged: int = 0) -> JSON:
    """The same with the states of the documents."""
    return _outcomes(case, written, unchanged=unchanged) | {
        "states": Counter(one.state for one in written),
        "numeric": sum(_numeric(one) for one in written),
    }


def _numeric(one: Document) -> bool:
    return one.state in ("signed", "short") and all(token.isdecimal() for token in one.tokens)


def of_load(case: Case) -> JSON:
    ids: list[str | None] = []
    for line in Path(case.line[2]).read_text("utf-8").splitlines():
        try:
            ids.append(json.loads(line)["id"])
        except ValueError:
            ids.append(None)
    known = [id for id in ids if id]
    added = [one for one in case.after if one.id not in case.before.documents]
    scope = {
        "read": len(ids),
        "bad": ids.count(None),
        "duplicates": len(known) - len(set(known)),
        "existing": len(set(known) & case.before.documents.keys()),
        "matching": 0,
        "dropped": 0,
        "skipped_links": 0,
        "skipped_files": 0,
        "empty_lines": 0,
    }
    writes = _fingerprints(case, added)
    return {"scope": scope, "screened": None, "writes": writes, "unsuited": _unsuited(case.after), **case.seconds}


def of_enrich(case: Case) -> JSON:
    """With ``--query``, only documents of one source."""
    scope = [one for one in case.before if "--query" not in case.line or one.source["source"] == "a"]
    every = "--check" in case.line or "--all" in case.line
    if case.world.sidecar and 2 * sum(one.processed for one in case.before) < len(scope):
        every = True  # reading the versions first would not pay
    reread = bool(case.said["scope"]["reread"])  # no run has processed the whole index yet
    every = every or reread
    read = [one for one in scope if every or not one.processed]
    # An entry of a sidecar may get the new version of its document only.
    written = [one for one in case.after.changed(case.before) if one.stored != case.before[one.id].stored]
    if dry := "--dry-run" in case.line:
        written = [one for one in read if not (reread and one.processed)]
    unchanged = [one for one in read if one.id not in {each.id for each in written}]
    return {
        "scope": {
            "documents": len(scope),
            "excluded": len(case.before.documents) - len(scope),
            "skipped": 0,
            "current": sum(one.processed for one in scope),
            "slice": None,
            "read": len(read),
            "changed": between(0, sum(one.processed for one in read)),
        },
        "writes": _fingerprints(case, written, unchanged=len(unchanged)),
        "removed": case.before.orphans - (0 if dry else case.after.orphans),
        "unsuited": _too_short(lengths, THRESHOLD) if dry and (lengths := _words(written)) else _unsuited(case.after),
        **case.seconds,
    }


def of_group(case: Case) -> JSON:
    """A run over the whole index; or one whose numbers lie between those of the documents that it must process, and
    those of all documents that these can reach."""
    if case.said["scope"]["whole"]:
        return _of_run(case, {one.id for one in case.before if one.processed})
    low, high = (dict(numbers(_of_run(case, some))) for some in _affected(case.before, case.more["lost"]))
    assert low.keys() == high.keys()
    return {path: one if one == high[path] else _bounds(one, high[path]) for path, one in low.items()}


def _bounds(low: Any, high: Any) -> Any:
    return high if callable(high) else between(*sorted((low, high)))


def _of_run(case: Case, affected: set[str]) -> JSON:
    """The numbers of a run that processes these documents."""
    index = case.before
    if "--measure" in case.line or "--ignore-common" in case.line:
        index = replace(index, measure=_measure(case))
    minimum = case.given("--min", THRESHOLD)
    bucket = case.given("--max-bucket", 200)
    dry = "--dry-run" in case.line
    processed = [one for one in index if one.processed]
    corrupt, stale = [one for one in processed if one.corrupt], [one for one in processed if one.stale]
    made, linked = index.chain(minimum) if "chain" in case.line else index.star(minimum), 0
    if "complete" in case.line:
        made, linked = index.complete(minimum)
    values = [value for one in made.groups for value in list(one.values())[1:]]
    looked = [one for one in made.groups if affected & one.keys()]
    looked_values = [value for one in looked for value in list(one.values())[1:]]
    inside = [one for one in processed if one.id in affected and one not in corrupt]
    touched = {one.content for one in inside}
    candidates = [pair for pair in index.candidates if touched & set(pair)]
    matches = [pair for pair in index.similar_texts(minimum) if touched >= set(pair)]
    nearly = [pair for pair in index.similar_texts(round(minimum - 0.2, 9)) if touched >= set(pair)]
    nearly = [pair for pair in nearly if pair not in matches]
    clusters = _clusters(matches)
    written = case.after.changed(case.before)
    if dry:
        written = [one for one in inside if not _is_stored(index, one, made)]
    return {
        "rules": _rules(minimum, bucket, **_ignoring(case)) | _weights(case),
        "detection": _detection(
            case, minimum, _median(len(one.tokens) for one in index if one.processed and one.tokens)
        ),
        "scope": {
            "documents": len(processed) + index.orphans,
            "unprocessed": len(index.documents) - len(processed),
            "affected": len(inside) + len([one for one in corrupt if one.id in affected]) + index.orphans,
            "states": {
                state: sum(one.stored["state"] == state for one in inside)
                for state in ("signed", "short", "empty", "too_large", "failed")
            },
            "stale": len([one for one in stale if one.id in affected]) + index.orphans,
            "untouched": index.orphans,
            "corrupt": len([one for one in corrupt if one.id in affected]),
            "written_since_enrich": between(len(stale), len(index.documents)),
        },
        "pairs": {
            "copies": sum(len(some) - 1 for content, some in index.texts.items() if content in touched),
            "candidates": len(candidates),
            "compared": case.more.get("compared", at_most(len(index.texts) ** 2)),
            "matches": len(matches),
            "nearly": len(nearly),
            "nearly_texts": len({text for pair in nearly for text in pair}),
            "compared_to_link": linked,
            "other_facts": 0,
            "open": 0,
            **_large_buckets(case, bucket),
        },
        "decisions": dict.fromkeys(("same", "different", "disputed", "unsatisfied", "held"), 0),  # nobody has decided
        "groups": {
            "count": len(made.groups),
            "grouped": sum(made.sizes),
            "alone": len(processed) - len(corrupt) - sum(made.sizes),
            "largest": max(made.sizes),
            "min_similarity": min(values),
            "related": _related(index, made, minimum),
            "looked_at": {
                "count": len(looked),
                "mean_similarity": sum(looked_values) / len(looked_values) if looked_values else 1.0,
                "pairs_below": sum(_below(index, list(one), minimum) for one in looked),
                "pairs_not_compared": 0,
                "only_boilerplate": _groups_held(index, looked, clusters, minimum),
                "facts": _group_facts(index, looked),
            },
        },
        "writes": _outcomes(case, written, unchanged=len(inside) - len(written)),
        **({"evidence": _evidence(case)} if "--evidence" in case.line and not dry else {}),
        **({"common": _common(case, index)} if "--ignore-common" in case.line else {}),
        "boilerplate": _boilerplate(index, clusters),
        "unsuited": _unsuited(case.after),
        **case.seconds,
    }


def _related(index: Snapshot, made: Star, minimum: float) -> JSON:
    """Documents that are alone although they match, and pairs of texts that match, but are in different groups."""
    group = {id: first for first, some in made.members.items() for id in some}
    split, alone = [], dict[str, float]()
    for (a, b), value in index.similar_texts(minimum).items():
        sides = [index.current(content)[0].id for content in (a, b)]
        if group[sides[0]] != group[sides[1]]:
            split.append(value)
            for id in sides:
                if len(made.members[group[id]]) == 1:
                    alone[id] = max(value, alone.get(id, 0))
    return {
        "alone": len(alone),
        "alone_similarity": max(alone.values(), default=None),
        "pairs": len(split),
        "similarity": max(split, default=None),
    }


def _related_records(case: Case) -> JSON:
    """The same, from the records of the registry."""
    stored = [one["_source"] for one in hits(case.world.client, f"{case.world.index}-neardupe-groups")]
    records = [one for one in stored if one["kind"] == "cluster"]
    highest = {
        name: max((one[name] for one in records if one[name] is not None), default=None)
        for name in ("alone_similarity", "split_similarity")
    }
    return {
        "alone": sum(one["alone_matching"] for one in records),
        "alone_similarity": highest["alone_similarity"],
        "pairs": sum(one["split_pairs"] for one in records),
        "similarity": highest["split_similarity"],
    }


def _affected(index: Snapshot, lost: set[str]) -> tuple[set[str], set[str]]:
    """The documents that an incremental run must process, and all that it can: those that wait or whose groups ``lost``
    documents, with the other members; and what is reached from there through matches and common groups."""
    waiting = {one.id for one in index if one.processed and (one.waits or one.group in lost)}
    ties: dict[str, set[str]] = {one.id: {one.id} for one in index if one.processed}
    together: dict[Any, list[str]] = {}
    for one in index:
        if one.processed:
            together.setdefault(one.group, []).append(one.id)
            together.setdefault(one.content or one.id, []).append(one.id)
    least = {id for ids in together.values() if waiting & set(ids) for id in ids}
    for a, b in index.similar_texts(THRESHOLD):
        together[a, b] = [one.id for text in (a, b) for one in index.texts[text]]
    for ids in together.values():
        for id in ids:
            ties[id].update(ids)
    reached: set[str] = set()
    following = waiting
    while following:
        reached |= following
        following = {other for id in following for other in ties[id]} - reached
    return least & reached, reached


def _is_stored(index: Snapshot, one: Document, made: Star) -> bool:
    """Whether a document has its group, its role and its similarity already. A group keeps its id if its principal was
    one before."""
    members = next((some for some in made.members.values() if one.id in some), {one.id: 1.0})
    first, similarity = index[next(iter(members))], one.stored.get("similarity")
    return bool(
        first.stored["principal"]
        and one.group == first.group
        and one.stored["principal"] == (one is first)
        and similarity is not None
        and about(members[one.id])(similarity)
    )


def _measure(case: Case) -> Callable[[Document, Document], float]:
    """Another measure of two documents."""
    name = case.given("--measure", "")
    if "--ignore-common" in case.line:
        common = _shingles_above(case.before, case.given("--ignore-common", 0.0))
        return lambda a, b: resemblance(_without(a, common), _without(b, common))
    if name in ("jaccard", "containment"):
        return lambda a, b: _by_passages(name, a, b)
    sample = [one for one in case.before if one.keys]
    frequency = Counter(shingle for one in sample for shingle in one.shingles)

    def weight(shingles: Iterable[int]) -> float:
        return math.fsum(math.log((len(sample) + 1) / (frequency[one] + 1)) + 1 for one in shingles)

    return lambda a, b: weight(a.shingles & b.shingles) / weight(a.shingles | b.shingles)


def _by_passages(name: str, a: Document, b: Document) -> float:
    common, sizes = sum(size for *_, size in _tiles(a, b)), (len(a.tokens), len(b.tokens))
    return common / (sum(sizes) - common if name == "jaccard" else min(sizes))


def _median(values: Iterable[int]) -> int:
    """As the server estimates it: exact for so few documents, and rounded."""
    return round(float(np.median(list(values))))


def _detection(case: Case, minimum: float, words: int) -> JSON:
    """For resemblance, the probability that a pair exactly this similar is found; for others, that of some cases."""
    name = case.given("--measure", "resemblance")
    if name == "resemblance" and "--ignore-common" not in case.line:
        return _by_keys(minimum)
    shapes = [one["shape"] for one in case.said["detection"]["cases"]]
    if name in ("weighted", "resemblance"):
        cases = [(shape, float(shape.split()[1])) for shape in shapes]
    else:
        cases = [(shape, _of_shape(shape, name, minimum)) for shape in shapes]
        assert all(f"{words} and " in shape for shape in shapes)
    return {
        "min": minimum,
        "probability": None,
        "cases": [
            {"shape": shape, "resemblance": value, "probability": detection(value, BANDS, ROWS)}
            for shape, value in cases
        ],
        "keys_made_for": False,
    }


def _by_keys(minimum: float) -> JSON:
    """The detection of pairs by their resemblance."""
    probability = detection(minimum, BANDS, ROWS)
    return {"min": minimum, "probability": probability, "cases": [], "keys_made_for": minimum >= THRESHOLD}


def _weights(case: Case) -> JSON:
    """The sample of the weights: so few documents are all in it."""
    return {"weights": {"documents": case.before.count(lambda one: one.keys)}} if "weighted" in case.line else {}


def _of_shape(shape: str, name: str, minimum: float) -> float:
    """The resemblance of two texts that are made as described: no others of this shape that just reach the minimum have
    fewer common words."""
    shorter, longer = map(int, re.findall(r"(\d+) and (\d+) words", shape)[0])
    for common in range(1, shorter + 1):
        similarity = common / (shorter + longer - common if name == "jaccard" else shorter)
        if similarity >= minimum - 1e-9 and common >= SHINGLE:
            break
    pieces = 1 if shape.startswith("one passage") else min(shorter - common + 1, common // SHINGLE)
    sizes = [(common + k) // pieces for k in range(pieces)]
    shared = sum(max(size - SHINGLE + 1, 0) for size in sizes)
    every = shorter - SHINGLE + 1 + longer - SHINGLE + 1 - shared
    return 1.0 if common == longer else shared / every


def _rules(minimum: float, bucket: int, **match: float) -> JSON:
    return {
        "version": 1,
        "min": minimum,
        "match": {"max": 1.0, **({} if minimum == THRESHOLD else {"min": minimum}), **match},
        "group": {"max_bucket": bucket},
    }


def _below(index: Snapshot, ids: Sequence[str], minimum: float) -> int:
    return sum(
        index.measure(index[a], index[b]) < minimum
        for a, b in combinations(ids, 2)
        if index[a].content != index[b].content
    )


def _large_buckets(case: Case, maximum: int) -> JSON:
    """Keys that more texts share than allowed. A pair that shares several of them is skipped once, and by each."""
    index = case.before
    large = {key: some for key, some in _buckets(index).items() if len(some) > maximum}
    candidates = set(map(frozenset, index.candidates))
    of_key = {key: sum(frozenset(pair) in candidates for pair in combinations(some, 2)) for key, some in large.items()}
    in_large = {frozenset(pair) for some in large.values() for pair in combinations(some, 2)}
    assert in_large >= {frozenset(pair) for pair in index.sharing} - candidates
    return {
        "skipped": index.skipped,
        "large_buckets": [
            {
                "key": key,
                "size": len(some),
                "documents": sum(len(index.texts[content]) for content in some),
                "compared": of_key[key],
                "skipped": math.comb(len(some), 2) - of_key[key],
            }
            for key, some in large.items()
        ],
    }


def _buckets(index: Snapshot) -> dict[str, list[str]]:
    """Key -> the texts that have it, in the order of principals."""
    found: dict[str, list[str]] = {}
    for content, some in index.texts.items():
        for key in some[0].keys:
            found.setdefault(key, []).append(content)
    return found


# Common shingles


def _ignoring(case: Case) -> dict[str, float]:
    return {"ignore_common": case.given("--ignore-common", 0.0)} if "--ignore-common" in case.line else {}


def _frequencies(index: Snapshot) -> tuple[Counter[int], int]:
    """Shingle -> the number of documents that have it; and the number of all documents, so few that all are drawn."""
    keyed = [one for one in index if one.keys]
    return Counter(shingle for one in keyed for shingle in one.shingles), len(keyed)


def _shingles_above(index: Snapshot, share: float) -> frozenset[int]:
    frequency, documents = _frequencies(index)
    return frozenset(shingle for shingle, number in frequency.items() if number > share * documents)


def _without(one: Document, common: frozenset[int]) -> frozenset[int]:
    """The shingles that are not common; all of them if all are."""
    return one.shingles - common or one.shingles


def _common(case: Case, index: Snapshot) -> JSON:
    """The list of common shingles, and in a dry run the pairs that match only with it, or only without it."""
    share = case.given("--ignore-common", 0.0)
    common = _shingles_above(index, share)
    found: JSON = {"share": share, "documents": _frequencies(index)[1], "shingles": len(common)}
    found["texts"] = index.count(lambda one: one.shingles and one.shingles <= common)
    if "--dry-run" in case.line:
        minimum = case.given("--min", THRESHOLD)
        before, after = (one.similar_texts(minimum).keys() for one in (case.before, index))
        found["effect"] = {"without": len(before), "gained": len(after - before), "lost": len(before - after)}
    return found


def _unsuited(index: Snapshot) -> JSON:
    """The documents that are too short for the keys."""
    return _too_short([tokens for one in index if (tokens := one.stored.get("tokens") or 0) > 0], THRESHOLD)


def _words(documents: Iterable[Document]) -> list[int]:
    """The numbers of words of their current texts."""
    return [len(one.tokens) for one in documents if one.state in ("signed", "short")]


def _too_short(lengths: Sequence[int], threshold: float) -> JSON:
    """Texts with fewer words than one that a changed word leaves at the threshold."""
    words = next(
        number
        for number in range(1, 1000)
        if (shingles := number - SHINGLE + 1) > SHINGLE and (shingles - SHINGLE) / (shingles + SHINGLE) >= threshold
    )
    short = sum(one < words for one in lengths)
    return {"words": words, "unsuited": short, "documents": len(lengths), "threshold": threshold}


def _boilerplate(index: Snapshot, clusters: Iterable[set[str]]) -> JSON:
    """The clusters of five texts and more, and those whose rests outside of their common passages are unrelated."""
    examined = [texts for texts in clusters if len(texts) >= 5]
    held = [texts for texts in examined if _held_passages(index, texts)]
    assert len(held) <= 1  # if there were several, their passages could be equal
    documents = [sum(len(index.current(content)) for content in texts) for texts in held]
    return {
        "examined": len(examined),
        "clusters": len(held),
        "documents": sum(documents),
        "passages": [{"clusters": 1, "documents": number} for number in documents],
    }


def _groups_held(index: Snapshot, groups: Iterable[Iterable[str]], clusters: Iterable[set[str]], minimum: float) -> int:
    """The groups of which fewer than half of the other texts match the principal without the boilerplate."""
    common, held = _shingles_of_boilerplate(index, clusters), 0
    for first, *others in groups if common else ():
        texts = {index[id].content: index[id] for id in others if index[id].content != index[first].content}
        similar = [resemblance(_without(one, common), _without(index[first], common)) for one in texts.values()]
        held += 2 * sum(value >= minimum for value in similar) < len(similar)
    return held


def _group_facts(index: Snapshot, groups: Iterable[Iterable[str]]) -> JSON:
    """The groups in which facts differ. All are few and short enough to be examined."""
    pairs, left_out, overlapping, differing = 0, 0, 0, list[set[FactKind]]()
    for first, *others in groups:
        texts = {index[id].content: index[id].text for id in others if index[id].content != index[first].content}
        principal = fact_tokens(index[first].text or "")
        facts = [differing_facts(principal, fact_tokens(text or "")) for text in texts.values()]
        pairs, left_out = pairs + min(20, len(facts)), left_out + max(0, len(facts) - 20)
        keys = [fact_tokens(text or "").keys.tolist() for text in texts.values()]
        overlapping += sum(_are_windows(principal.keys.tolist(), one) for one in keys)
        differing += [{kind for some in facts for fact in some for kind in fact.kinds}] if facts else []
    figures = {FactKind.AMOUNT, FactKind.NUMBER, FactKind.DATE, FactKind.UNIT, FactKind.CODE}
    chosen = {"figures": figures, "names": {FactKind.NAME}, "negations": {FactKind.NEGATION}}
    return {
        "groups": len(differing),
        "examined": len(differing),
        "pairs": pairs,
        "pairs_left_out": left_out,
        "overlapping": overlapping,
        "differ": sum(bool(one & set().union(*chosen.values())) for one in differing),
        **{name: sum(bool(one & kinds) for one in differing) for name, kinds in chosen.items()},
        "copies": sum(number > 1 for some in groups for number in Counter(index[id].content for id in some).values()),
        "copies_differ": 0,
    }


def _are_windows(one: list[int], other: list[int]) -> bool:
    """Whether the end of one text is the beginning of the other, by half of the shorter or more, whatever the words at
    the cuts are; more than one word of each is left."""
    shortest = min(len(one), len(other))
    for first, second in ((one[:-1], other[1:]), (other[:-1], one[1:])):
        if any(2 * (k + 2) >= shortest and first[-k:] == second[:k] for k in range(3, shortest - 2)):
            return True
    return False


def _shingles_of_boilerplate(index: Snapshot, clusters: Iterable[set[str]]) -> frozenset[int]:
    passages = [one for texts in clusters if len(texts) >= 5 for one in _held_passages(index, texts)]
    return frozenset(shingle for one in passages for shingle in shingle_set(" ".join(one), SHINGLE))


def _held_passages(index: Snapshot, contents: Iterable[str]) -> list[tuple[str, ...]]:
    """The passages of a group that only boilerplate holds together, of 20 of its texts."""
    members = sorted((index.current(content)[0] for content in contents), key=in_order)
    return _passages_held([one.tokens for one in members])


def _passages_held(members: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    places = np.linspace(0, len(members) - 1, min(20, len(members))).astype(int).tolist()
    texts = [members[place] for place in places]
    windows = [[tuple(tokens[k : k + 5]) for k in range(len(tokens) - 4)] for tokens in texts]
    counts = Counter(window for some in windows for window in set(some))
    common = {window for window, number in counts.items() if 2 * number > len(texts)}
    flags = [
        [any(w in common for w in some[max(k - 4, 0) : k + 1]) for k in range(len(tokens))]
        for tokens, some in zip(texts, windows, strict=True)
    ]
    shown = ["".join("x" if one else "-" for one in some) for some in flags]
    rests = [set(some) - common for some in windows]
    pairs = [len(a & b) < 0.05 * len(a | b) if a | b else False for a, b in combinations(rests, 2)]
    covered = sum(2 * some.count("x") >= len(some) for some in shown)
    own = sum("-----" in some for some in shown)
    if not (2 * covered > len(texts) and 2 * own > len(texts) and sum(pairs) >= 0.9 * len(pairs)):
        return []
    return [
        tuple(tokens[match.start() : match.end()])
        for tokens, some in zip(texts, shown, strict=True)
        for match in re.finditer("x+", some)
    ]


def _evidence(case: Case) -> JSON:
    """The hidden index of pairs, before and after. A run over a part of the index reports only its own pairs."""
    before, after, whole = case.before.evidence, case.after.evidence, case.said["scope"]["whole"]
    written = [id for id, one in after.items() if id not in before or _texts_of(before[id]) != _texts_of(one)]
    judged = [id for id in after.keys() - set(written) if after[id] != before[id]]
    decided = Counter(one["decision"] for one in after.values())
    every: Callable[[int], Any] = (lambda number: number) if whole else at_most
    return {
        "pairs": every(len(after)),
        "accepted": every(decided["accepted"]),
        "rejected": every(decided["rejected"]),
        "written": len(written),
        "without_edit": sum(after[id].get("edit") is None for id in written),
        "without_passages": sum(after[id].get("jaccard") is None for id in written),
        "large": 0,
        "decided_again": len(judged),
        "unchanged": every(len(after) - len(written) - len(judged)),
        "left_out": 0,
        "removed": len(before.keys() - after.keys()),
        "refused": 0,
    }


def _texts_of(entry: JSON) -> tuple[str, str]:
    return entry["content_a"], entry["content_b"]


# Commands that look


def of_stats(case: Case) -> JSON:
    index = case.index
    processed = [one for one in index if one.processed]
    schemes = Counter(one.stored["scheme"] for one in index if one.stored.get("scheme"))
    known = [one for one in processed if one.stored["state"] in ("signed", "short")]
    sizes = index.sizes()
    keys = Counter(key for one in index for key in one.keys)
    shown = [one["key"] for one in case.said["buckets"]["largest"]]
    assert sorted((keys[key] for key in shown), reverse=True) == [size for _, size in keys.most_common(10) if size > 1]
    found = {
        "agree": 1,
        "threshold": THRESHOLD,
        "scope": {
            "documents": len(index.documents) + index.orphans,
            "skipped": 0,
            "states": {
                state: sum(one.stored["state"] == state for one in processed)
                for state in ("signed", "short", "empty", "too_large", "failed")
            },
            "numeric": sum(one.stored.get("numeric") is True for one in known),
            "unknown": sum(one.stored["state"] not in STATES for one in processed),
            "other_schemes": schemes.total() - len(processed),
            "schemes": schemes,
            "unprocessed": len(index.documents) - schemes.total(),
            # documents that were written since the last run of `group` are among them
            "ungrouped": between(*(index.count(one) for one in (lambda one: one.waits, lambda one: one.processed))),
            "deleted": 0,
        },
        "groups": {
            "count": len(sizes),
            "grouped": sizes.total(),
            "largest": max(sizes.values()),
            "sizes": Counter(sizes.values()),
        },
        "buckets": {
            "sampled": sum(SCHEME.id in one.stored["scheme"] for one in processed),
            "largest": [{"key": key, "documents": keys[key]} for key in shown],
        },
    }
    if case.said["bytes_per_document"] is not None:
        size = 2 * _bytes(case)  # the server may have joined segments since then
        found["bytes_per_document"] = dict.fromkeys(
            case.said["bytes_per_document"], at_most(size / len(index.documents))
        )
    return found


STATES = ("signed", "short", "empty", "too_large", "failed")


def _bytes(case: Case) -> int:
    """The size of all files of the index that holds the keys."""
    name = f"{case.world.index}-neardupe-sidecar" if case.world.sidecar else case.world.index
    answer = case.world.client.request("GET", path(name, "_stats", "store"))
    return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])


def of_groups(case: Case) -> Any:
    """Similarities are those of the texts when they were grouped."""
    if "--history" in case.line:
        return [_history(case, one) for one in case.said]
    if "--suggest-keep" in case.line:
        return [_kept(case, one) for one in case.said]
    then, grouped = case.world.grouped or case.index, []
    for group, size in case.index.sizes().items():
        members = [one for one in case.index if one.group == group]
        (first,) = (one for one in members if one.stored["principal"])
        values = {one.id: 1.0 if one is first else then.similarity(first.id, one.id) for one in members}
        grouped.append(
            {
                "group": group,
                "size": size,
                "min_similarity": about(min(values.values())),
                "members": [{"id": id, "similarity": about(value)} for id, value in values.items()],
                **(_bridges(then, list(values)) if case.world.chained else {}),
            }
        )
    wanted = {one["group"] for one in case.said} if "--group" in case.line else None
    least = case.given("--min-size", 2)
    return [one for one in grouped if one["size"] >= least and (wanted is None or one["group"] in wanted)]


def _kept(case: Case, one: JSON) -> JSON:
    """The members of a group with the text that was grouped, which match the document to keep."""
    members = [each for each in case.index if each.group == one["group"]]
    keep = case.index[one["keep"]["id"]]
    current = [each for each in members if each.made and each.made.content == each.stored.get("content")]
    values = {each.id: resemblance(keep.shingles, each.shingles) for each in current if each is not keep}
    matching = [each for each in current if each is not keep and values[each.id] >= THRESHOLD]
    return {
        "group": one["group"],
        "redundant": [
            {
                "id": each.id,
                "similarity": about(values[each.id]),
                "seq_no": each.own_version[0],
                "primary_term": 1,
            }
            for each in matching
        ],
        "changed": len(members) - len(current),
        "less_similar": len(values) - len(matching),
    }


def _history(case: Case, one: JSON) -> JSON:
    """The statistics of a group as of the last run."""
    then = case.world.grouped or case.index
    members = [each for each in then if each.group == one["group"]]
    (first,) = (each for each in members if each.stored["principal"])
    values = [then.similarity(first.id, each.id) for each in members if each is not first]
    return {
        "group": one["group"],
        "size": len(members),
        "texts": len({each.content for each in members}),
        "min_similarity": min(values),
        "mean_similarity": sum(values) / len(values),
        "pairs_below": _below(then, [each.id for each in members], THRESHOLD),
        "pairs_not_compared": 0,
        "held": 0,
        "settings": _rules(THRESHOLD, 200),
        **(_bridges(then, [each.id for each in members]) if case.world.chained else {}),
    }


def _bridges(index: Snapshot, ids: Sequence[str]) -> JSON:
    """Of a chained group: the maximum number of steps between two texts, and the highest threshold that keeps it
    together."""
    texts = list({index[id].content: id for id in ids}.values())
    edges = {
        pair: value
        for pair in combinations(texts, 2)
        if index[pair[0]].keys & index[pair[1]].keys and (value := index.similarity(*pair)) >= THRESHOLD
    }
    weakest = max((low for low in {1.0, *edges.values()} if _steps(texts, edges, low) is not None), default=1.0)
    return {"diameter": _steps(texts, edges, THRESHOLD), "weakest": weakest}


def _steps(texts: Sequence[str], edges: Mapping[tuple[str, str], float], minimum: float) -> int | None:
    """The maximum number of steps from one text to another along edges of this similarity; None: not connected."""
    longest = 0
    for first in texts:
        reached, steps, at = {first}, 0, {first}
        while (
            at := {
                b
                for a, b in [*edges, *((b, a) for a, b in edges)]
                if a in at and edges.get((a, b), edges.get((b, a), 0)) >= minimum
            }
            - reached
        ):
            reached |= at
            steps += 1
        if len(reached) < len(texts):
            return None
        longest = max(longest, steps)
    return longest


def of_pairs(case: Case) -> Any:
    """Pairs of documents that share keys, or are exact copies, and match by their current texts."""
    index, minimum = case.index, case.given("--min", THRESHOLD)
    found = [
        {"a": {"id": a.id}, "b": {"id": b.id}, "resemblance": value}
        for (one, other), value in index.similar_texts(minimum).items()
        for a in index.current(one)
        for b in index.current(other)
    ]
    copies = [combinations(index.current(content), 2) for content in index.texts]
    return found + [{"a": {"id": a.id}, "b": {"id": b.id}, "resemblance": 1.0} for some in copies for a, b in some]


def of_documents(case: Case) -> JSON:
    """Documents by the values of a field, and their texts that are similar to one of the other document."""
    index, by, minimum = case.index, case.given("--by", ""), case.given("--min", THRESHOLD)
    rows = [(one, str(one.source[by])) for one in index if one.content and not one.stale and one.source.get(by)]
    similar = set(index.similar_texts(minimum))
    similar |= {pair[::-1] for pair in similar} | {(content, content) for content in index.texts}
    names = sorted({name for _, name in rows})

    def side(name: str, other: str) -> JSON:
        own = [one for one, of in rows if of == name]
        others = {one.content for one, of in rows if of == other}
        matching = [one for one in own if any((one.content, content) in similar for content in others)]
        words, every = (sum(one.made.tokens for one in some if one.made) for some in (matching, own))
        return {
            "document": name,
            "chunks": len(own),
            "matching": len(matching),
            "share": len(matching) / len(own),
            "words": every,
            "matching_words": words,
            "word_share": words / every,
        }

    pairs = [{"a": side(a, b), "b": side(b, a)} for a, b in combinations(names, 2)]
    pairs = [one for one in pairs if one["a"]["matching"]]
    pairs.sort(key=lambda one: -round(max(one["a"]["word_share"], one["b"]["word_share"]), 12))
    return {
        "min": minimum,
        "detection": _by_keys(minimum),
        "documents": len(names),
        "chunks": len(rows),
        "without": index.count(lambda one: bool(one.content and not one.stale and not one.source.get(by))),
        "total": len(pairs),
        "pairs": pairs,
        "candidates": _compared_across(case, by),
        "skipped": 0,
        "stale": index.count(lambda one: one.stale),
        "unprocessed": index.count(lambda one: not one.processed),
    }


def _compared_across(case: Case, by: str) -> int:
    """Pairs of texts that share keys. A text that only one document has is compared with those of others, once for
    each of its chunks."""
    index, classes = case.index, dict[str, tuple[set[Any], int]]()
    for content, some in index.texts.items():
        documents = {one.source.get(by) for one in some}
        classes[content] = (documents, 1 if len(documents) > 1 or documents == {None} else len(some))
    return sum(
        classes[a][1] * classes[b][1]
        for a, b in index.candidates
        if not (classes[a][0] == classes[b][0] and len(classes[a][0]) == 1 and classes[a][0] != {None})
    )


def _probe(case: Case) -> tuple[Document, list[Document]]:
    """The text that is searched for, as a document, and all other documents."""
    if "--id" in case.line:
        probe = case.index[case.given("--id", "")]
    else:
        some = next(iter(case.index))
        probe = replace(some, id="", source={}, stored={}, text=case.given("--text", ""))
    return probe, [one for one in case.index if one.id != probe.id]


def of_similar(case: Case) -> JSON:
    (probe, others), minimum = _probe(case), case.given("--min", THRESHOLD)
    made = probe.made
    assert made is not None
    shared = {one.id: len(one.keys & set(made.bands)) for one in others}
    candidates = [one for one in others if shared[one.id]]
    first: dict[str, Document] = {}
    for one in candidates:
        first.setdefault(one.content or "", one)
    listed = {one["id"] for one in case.said["hits"]}
    value, shown = (
        (_measure(case), "similarity")
        if "--measure" in case.line
        else (lambda a, b: resemblance(a.shingles, b.shingles), "resemblance")
    )
    values = {one.id: value(probe, one) for one in candidates}
    hits = []
    for one in candidates:
        copies = [each for each in candidates if each.content == one.content and not each.stale]
        if one.id in listed or (values[one.id] >= minimum and not listed & {each.id for each in copies}):
            hit = {"id": one.id, shown: values[one.id], "shared_bands": shared[one.id]}
            hits.append({**hit, "copies": 0 if one.stale else len(copies) - 1})
    found = {"query": {"tokens": len(probe.tokens)}, "candidates": len(candidates), "max": 1.0}
    texts = min(len(first), case.given("--max-candidates", 1000))
    replaced = sum(
        one.stale and len([each for each in candidates if each.content == one.content]) > 1 for one in candidates
    )
    compared = sorted(sum(each.content == content for each in candidates) for content in first)
    missed = between(sum(compared[: len(first) - texts]), sum(compared[texts:])) if texts < len(first) else 0
    return found | {
        "hits": hits if texts == len(first) else [one for one in hits if one["id"] in listed],
        "texts": between(texts, texts + replaced),  # the current text of a changed copy was compared too
        "not_compared": missed,
        "other_facts": 0,
        "related": [],
        "detection": _detection(case, minimum, len(probe.tokens)),
        **_weights(case),
    }


def _tiles(a: Document, b: Document) -> list[Passage]:
    return passages(a.tokens, b.tokens, SHINGLE)


def _blocks(a: Document, b: Document, tiles: Iterable[Passage]) -> list[JSON]:
    """Passages by their places in the original texts."""
    in_a, in_b = places(a.text or ""), places(b.text or "")
    return [
        {"a": [in_a[i][0], in_a[i + size - 1][1]], "b": [in_b[j][0], in_b[j + size - 1][1]], "words": size}
        for i, j, size in tiles
    ]


def _exact(hits: int, number: int) -> JSON:
    found = scipy.stats.binomtest(hits, number).proportion_ci(method="exact")
    return {"value": hits / number, "low": found.low, "high": found.high}


def of_contained(case: Case) -> JSON:
    (probe, others), minimum = _probe(case), case.given("--min", 0.5)
    made = probe.made
    assert made is not None
    keys = set(made.samples or ())
    candidates = [one for one in others if keys & set(one.stored.get("samples") or ()) and one.processed]
    hits: list[JSON] = []
    for one in candidates:
        tiles = _tiles(probe, one)
        common = sum(size for *_, size in tiles)
        shares = common / len(probe.tokens), common / len(one.tokens)
        if max(shares) < minimum:
            continue
        matched = len(keys & set(one.stored["samples"]))
        hits.append(
            {
                "id": one.id,
                "of_probe": shares[0],
                "of_document": shares[1],
                "estimated_of_probe": _exact(matched, len(keys)),
                "estimated_of_document": _exact(matched, len(one.stored["samples"])),
                "matched_keys": matched,
                "common_words": common,
                "passages": _blocks(probe, one, tiles),
            }
        )
    shown = {one["id"] for one in case.said["hits"]}
    best = sorted((max(one["of_probe"], one["of_document"]) for one in hits), reverse=True)[:10]
    assert [max(one["of_probe"], one["of_document"]) for one in case.said["hits"]] == pytest.approx(best)
    chance, shingles = 1.0, 0
    while chance > 0.01:
        chance, shingles = chance * (1 - 1 / SAMPLE_MOD), shingles + 1
    return {
        "query": {"tokens": len(probe.tokens), "features": len(probe.shingles)},
        "hits": [one for one in hits if one["id"] in shown],
        "found": len(hits),
        "candidates": len(candidates),
        "not_compared": 0,
        "unreadable": 0,
        "unprocessed": sum(not one.processed for one in others),
        "keys": len(keys),
        "keys_ignored": 0,
        "keys_left_out": 0,
        "detection": {"min": minimum, "probability": 1 - math.prod([1 - minimum] * len(keys)), "shingles": shingles},
        "sample_mod": SAMPLE_MOD,
        "shingle": SHINGLE,
    }


def of_search(case: Case) -> JSON:
    """The query matches the documents whose title begins with "b", or all of them."""
    prefix = "" if "*" in case.line else "b"
    matching = [one for one in case.index if one.source["title"].startswith(prefix)]
    having = [one for one in matching if one.group]
    sizes = Counter(one.group for one in having)
    scores = {one["_id"]: one["_score"] for one in case.more["hits"]}
    hits = []
    for said in case.said["hits"]:
        group = case.index[said["id"]].group
        members = [one for one in having if one.group == group and one.id != said["id"]]
        hits.append(
            {
                "id": said["id"],
                "near_copies": len(members),
                **({"score": scores[said["id"]]} if prefix == "" else {}),
                "members": [
                    {"id": one.id, "similarity": about(one.stored["similarity"])}
                    for one in members
                    if one.stored["similarity"] is not None
                ],
            }
        )
    assert len(hits) == len({case.index[one["id"]].group for one in hits}) == min(10, len(sizes))
    apart = [one for one in matching if not one.group]
    return {
        "documents": len(having),
        "groups": len(sizes),
        "without_group": len(apart),
        "without_similarity": sum(one.stored.get("similarity") is None for one in matching),
        "start": 0,
        "size": 10,
        "hits": hits,
        "apart": [
            {"id": one.id, "near_copies": 0, **({"score": scores[one.id]} if not prefix else {})} for one in apart
        ],
    }


def of_moved(case: Case) -> JSON:
    """Documents at other addresses that share a key or the group with a document at this one: the latest for which
    there is one."""
    here = [one for one in case.index if one.source["url"] == case.line[2]]
    versions = sorted(here, key=lambda one: one.source["date"], reverse=True)
    each = [{"version": number, **_of_version(case, here, one)} for number, one in enumerate(versions, 1)]
    return next((one for one in each if one["places"]), each[0])


def _of_version(case: Case, here: Sequence[Document], last: Document) -> JSON:
    index, minimum = case.index, THRESHOLD
    made = last.made
    assert made is not None
    others = [one for one in index if one not in here]
    candidates = [one for one in others if one.keys & set(made.bands) or (one.group and one.group == last.group)]
    values = {one.id: resemblance(last.shingles, one.shingles) for one in candidates}
    near = [one for one in candidates if values[one.id] >= minimum]
    late = [one for one in near if one.source["date"] >= last.source["date"]]
    return {
        "versions": len(here),
        "notices": 0,
        "gone": 0,
        "places": [{"address": one.source["url"], "id": one.id, "similarity": values[one.id]} for one in late],
        "earlier": len(near) - len(late),
        "less_similar": sum(values[one.id] < minimum and one.group == last.group for one in candidates),
        "changed": 0,
        "candidates": len(candidates),
        "not_compared": 0,
        "unprocessed": index.count(lambda one: not one.processed),
        "min": minimum,
        "detection": _by_keys(minimum),
    }


def of_compare(case: Case) -> JSON:
    """All measures of two documents without repeated passages."""
    a, b = (case.index[id] for id in case.line[2:4])
    literal = _tiles(a, b)
    runs = _common_runs(a.tokens, b.tokens)
    sizes = len(a.tokens), len(b.tokens)
    bags = Counter(a.tokens), Counter(b.tokens)
    shared = (bags[0] & bags[1]).total()
    found = {
        "resemblance": resemblance(a.shingles, b.shingles),
        "bag": shared / (sum(sizes) - shared),
        "edit": 1 - word_edits(a.tokens, b.tokens) / max(sizes),
    }
    measures = [{"measure": name, "matching": None, "value": value} for name, value in found.items()]
    measures.append({"measure": "estimate", "matching": None, **_estimate(a, b)})
    matchings = {}
    for matching, tiles in (("literal", literal), ("information", runs)):
        common = min(len({at for i, _, n in tiles for at in range(i, i + n)}), sum(n for *_, n in tiles))
        values = {"jaccard": common / (sum(sizes) - common), "containment": common / min(sizes)}
        values["containment-longer"] = common / max(sizes)
        measures += [{"measure": name, "matching": matching, "value": value} for name, value in values.items()]
        matchings[matching] = {
            "longer": max(sizes),
            "shorter": min(sizes),
            "common": common,
            "chunks": len(tiles),
            "blocks": _blocks(a, b, tiles),
        }
    return {
        **{side: {"characters": len(one.text or ""), "words": len(one.tokens)} for side, one in (("a", a), ("b", b))},
        "shingle": SHINGLE,
        "passage": SHINGLE,
        "measures": measures,
        "matchings": matchings,
        "facts": [_fact(one, a, b, literal) for one in case.said["facts"]],
        "differences": [_fact(one, a, b, literal) for one in case.said["differences"]],
    }


def _common_runs(a: Sequence[str], b: Sequence[str]) -> list[Passage]:
    """The maximal runs of words that both texts have."""
    return [
        (i, j, size)
        for i in range(len(a))
        for j in range(len(b))
        if a[i] == b[j] and not (i and j and a[i - 1] == b[j - 1])
        if (
            size := next(
                (n for n in range(len(a)) if a[i + n : i + n + 1] != b[j + n : j + n + 1] or i + n >= len(a)), 0
            )
        )
        >= SHINGLE
    ]


def _fact(one: JSON, a: Document, b: Document, tiles: Sequence[Passage]) -> JSON:
    """A fact, or a difference, consists of whole words, at least one of which is outside of the common passages. The
    words that it shows are those at its place."""
    found = {}
    for side, document, start in (("a", a, 0), ("b", b, 1)):
        text, shown = document.text or "", one[f"words_{side}"]
        common = {at for tile in tiles for at in range(tile[start], tile[start] + tile[2])}
        low, high = one[side]
        touched = [(at, span) for at, span in enumerate(places(text)) if low < span[1] and span[0] < high]
        whole = all(low <= first and last <= high for _, (first, last) in touched)
        differs = not shown or any(at not in common for at, _ in touched)
        right = text[low:high] == shown and whole and differs
        found[side] = [low, high] if right else [-1, -1]
    return found


def _estimate(a: Document, b: Document) -> JSON:
    """Equal bytes of both signatures, corrected by those that are equal by chance."""
    signatures = [oracle_signature(set(one.shingles), SCHEME) for one in (a, b)]
    equal = sum(x == y for x, y in zip(*signatures, strict=True))
    exact = _exact(equal, len(signatures[0]))
    value, low, high = (max(0.0, (256 * exact[name] - 1) / 255) for name in ("value", "low", "high"))
    return {"value": value, "interval": [low, high]}


def of_shingles(case: Case) -> JSON:
    """Every step by the definition of the scheme."""
    one = case.index[case.line[2]]
    hashes = [oracle_token_hash(token) for token in one.tokens]
    windows = [_window(hashes[k : k + SHINGLE]) for k in range(max(1, len(hashes) - SHINGLE + 1))]
    made = one.made
    assert made is not None
    return {
        "settings": SCHEME.to_dict(),
        "features": len(one.shingles),
        "tokens": [{"characters": list(span)} for span in places(one.text or "")],
        "shingles": [{"units": [k, k + min(SHINGLE, len(hashes))]} for k in range(len(windows))],
        "slots": [{"shingle": _first_minimum(windows, p), "byte": byte} for p, byte in enumerate(made.signature)],
        "bands": [{"key": key, "slots": [k * ROWS, (k + 1) * ROWS]} for k, key in enumerate(made.bands)],
        "samples": [
            {"key": key, "shingle": windows.index(value)}
            for key, value in zip(
                made.samples or (), sorted(x for x in set(windows) if x % SAMPLE_MOD == 0), strict=True
            )
        ],
    }


def _window(hashes: Sequence[int]) -> int:
    value = len(hashes)
    for one in hashes:
        value = value * 0xD1342543DE82EF95 + one & M64
    return mix64(value)


def _first_minimum(windows: Sequence[int], p: int) -> int:
    """The shingle with the minimum of slot p; the second half of the slots takes maxima."""
    half = (SCHEME.permutations + 1) // 2
    shift = mix64(SCHEME.seed + GOLDEN * (1 + p % half % 8) & M64) >> 32
    factor = mix64(SCHEME.seed + GOLDEN * (9 + p % half) & M64) >> 32 | 1
    values = [((one & M32) + shift) * factor & M32 for one in windows]
    return values.index(min(values) if p < half else max(values))


def _sample(case: Case, documents: Sequence[Document], size: int) -> list[Document]:
    """The random sample of a command: the documents with the lowest hashes of their addresses."""
    return sorted(documents, key=lambda one: address_hash(one, 1))[:size]


def of_distribution(case: Case) -> JSON:
    index = case.index
    keyed = [one for one in index if one.keys and not one.corrupt]
    size = case.given("--sample", 2000)
    drawn = [one for one in _sample(case, keyed, size) if not one.stale]
    pairs = [
        pair
        for one, other in index.candidates
        for pair in ((a, b) for a in index.current(one) for b in index.current(other))
    ]
    pairs += [pair for content in index.texts for pair in combinations(index.current(content), 2)]
    labels = _labels(case) if "--labels" in case.line else []
    read = {one.id for one in drawn} | {
        one.id for pair in index.candidates for text in pair for one in index.texts[text]
    }
    read |= {one.id for some in index.texts.values() if len(some) > 1 for one in some}
    if "--whitespace" in case.line:  # copies may differ, so each document is compared
        candidates = sum(len(index.texts[one]) * len(index.texts[other]) for one, other in index.candidates)
        candidates += sum(math.comb(len(some), 2) for some in index.texts.values() if some[0].keys)
    else:
        candidates = len(index.candidates)
    distributions = [_of_measure(case, said, drawn, pairs, labels, len(keyed)) for said in case.said["distributions"]]
    return {
        "threshold": THRESHOLD,
        "seed": 1,
        "documents": len(keyed),
        "candidates": candidates,
        "skipped": index.skipped,
        "stale": sum(one.stale for one in keyed if one.id in read),
        "edges": [k / 50 for k in range(51)],
        "preset": {"texts": len(drawn)},
        # those with facts are counted by hand in test_preset_advice.py
        "presets": [*_tried([one.text or "" for one in drawn]), *(one for one in case.said["presets"] if one["facts"])],
        "distributions": distributions,
        **(_of_labels(case, labels, distributions) if labels else {}),
        "trials": _trials(case, labels, [one.text or "" for one in drawn]) if labels else [],
        "facts": _facts_separated(
            case, labels, _bag if case.said["distributions"][0]["measure"] == "bag" else index.measure
        ),
        **case.seconds,
    }


_VALUES = {name: parse_facts(name) for name in FACT_NAMES}
_TRIED = ("figures", "figures,names", "facts", "all", "names,words,titles")


def _kinds(a: Document, b: Document) -> set[FactKind]:
    facts = differing_facts(fact_tokens(a.text or ""), fact_tokens(b.text or ""))
    return {kind for one in facts for kind in one.kinds}


def _facts_separated(
    case: Case, labels: Sequence[LabelledPair], measure: Callable[[Document, Document], float]
) -> JSON:
    """What each value of ``--facts`` separates: of labelled pairs with the threshold, or of all candidates, which are
    few and short enough to be examined."""
    index = case.index
    if labels:
        pairs = [(index[a], index[b], same) for a, b, same in labels]
    else:
        texts = [(index.current(a), index.current(b)) for a, b in index.candidates]
        pairs = [(one[0], other[0], False) for one, other in texts if one and other]
    pairs = [(a, b, same) for a, b, same in pairs if measure(a, b) >= THRESHOLD]
    kinds = [_kinds(a, b) for a, b, _ in pairs]
    found = []
    for name, said in zip(_VALUES, case.said["facts"]["values"], strict=True):
        apart = [same for mine, (*_, same) in zip(kinds, pairs, strict=True) if mine & _VALUES[name]]
        counts = {"pairs": len(apart)} | ({"same": sum(apart), "different": apart.count(False)} if labels else {})
        shorter = {"facts": _VALUES["figures"], "all": _VALUES["facts"]}.get(name, frozenset())
        new = [mine for mine in kinds if mine & _VALUES[name] and not mine & shorter]
        shown = said["examples"]
        assert len(shown) == (min(10, len(new)) if name in ("figures", "facts", "all") and not labels else 0)
        found.append({"value": name, **counts, "examples": [_facts_shown(index, one, measure) for one in shown]})
    same = sum(one for *_, one in pairs)
    return {
        "pairs": len(pairs),
        "examined": len(pairs),
        "values": found,
        **({"same": same, "different": len(pairs) - same} if labels else {}),
    }


def _facts_shown(index: Snapshot, said: JSON, measure: Callable[[Document, Document], float]) -> JSON:
    a, b = (index[said[side]["id"]] for side in "ab")
    facts = differing_facts(fact_tokens(a.text or ""), fact_tokens(b.text or ""))
    right = {(one.words_a, one.words_b): {"a": list(one.a), "b": list(one.b)} for one in facts}
    shown = [right.get((one["words_a"], one["words_b"]), {}) for one in said["facts"]]
    return {"a": {"id": a.id}, "b": {"id": b.id}, "similarity": measure(a, b), "facts": shown}


def _tried(texts: Sequence[str]) -> list[JSON]:
    """Each preset, by the definition of its rule; the reader's keys are 17 bands of 4 rows. With a lower threshold,
    pairs of windows of one document do not count."""
    masked = Preparation(masks=tuple(Mask)).texts(texts)
    rules: dict[str, Callable[[str, str], bool]] = {
        "strict": lambda a, b: resemblance(shingle_set(a, 5), shingle_set(b, 5)) >= 0.8,
        "reader": lambda a, b: (
            detection(resemblance(shingle_set(a, 3), shingle_set(b, 3)), 17, 4) >= 0.5
            and _edit(tokens_of(a), tokens_of(b)) >= 0.71
        ),
        "supershingles": lambda a, b: resemblance(shingle_set(a, 8), shingle_set(b, 8)) >= 0.976,
        "scans": lambda a, b: _by_shapes(a, b) >= 0.25,
        "short": lambda a, b: _in_passages(tokens_of(a), tokens_of(b)) >= 0.6,
        "logs": lambda a, b: resemblance(shingle_set(a, 2), shingle_set(b, 2)) >= 0.5,
    }

    def lower(threshold: float) -> JSON:
        def matches(a: str, b: str) -> bool:
            alike = resemblance(shingle_set(a, 5), shingle_set(b, 5)) >= threshold
            return alike and not (_goes_on(a, b) or _goes_on(b, a))

        return {"preset": "strict", "shingle": None, "threshold": threshold, **_matched(texts, matches, examine=True)}

    return [
        *(
            {
                "preset": name,
                "threshold": None,
                **_matched(masked if name == "logs" else texts, rule, examine=name != "logs"),
            }
            for name, rule in rules.items()
        ),
        *map(lower, (0.6, 0.5)),
    ]


def _goes_on(a: str, b: str) -> bool:
    """Whether half of the shorter text, without a word at each cut, ends ``a`` and begins ``b``; the rests differ."""
    first, second = tokens_of(a)[:-1], tokens_of(b)[1:]
    for common in range(3, min(len(first) - 1, len(second) - 1)):
        if 2 * (common + 2) >= min(len(first), len(second)) + 1 and first[-common:] == second[:common]:
            rests = [
                set(zip(*(rest[k:] for k in range(5)), strict=False)) for rest in (first[:-common], second[common:])
            ]
            if not all(rests) or 2 * len(rests[0] & rests[1]) < min(map(len, rests)):
                return True
    return False


def _matched(texts: Sequence[str], matches: Callable[[str, str], bool], *, examine: bool) -> JSON:
    """Pairs, documents in them, and those of clusters of five different texts that only boilerplate holds together."""
    pairs = [(str(a), str(b)) for a, b in combinations(range(len(texts)), 2) if matches(texts[a], texts[b])]
    held = 0
    for cluster in _clusters(pairs) if examine else []:
        different = list(dict.fromkeys(texts[int(one)] for one in sorted(cluster, key=int)))
        if len(different) >= 5 and _passages_held([tokens_of(one) for one in different]):
            held += len(cluster)
    return {"pairs": len(pairs), "documents": len({one for pair in pairs for one in pair}), "held": held}


def _edit(a: Sequence[str], b: Sequence[str]) -> float:
    return 1 - word_edits(a, b) / max(len(a), len(b))


def _by_shapes(a: str, b: str) -> float:
    return set_resemblance(_shapes(a), _shapes(b))


def _shapes(text: str) -> frozenset[str]:
    """The runs of seven shapes of the words without blanks."""
    joined = "".join(oracle_shapes("".join(tokens_of(text))))
    return frozenset(joined[k : k + 7] for k in range(max(len(joined) - 6, 1)))


def _in_passages(a: Sequence[str], b: Sequence[str], minimum: float = 0.6) -> float:
    """Words in common passages of two words and more; 0 if even all common words were too few for the minimum."""
    most = (Counter(a) & Counter(b)).total()
    if most < minimum * (len(a) + len(b) - most):
        return 0.0
    common = sum(size for *_, size in passages(a, b, 2))
    return common / (len(a) + len(b) - common)


def _of_measure(
    case: Case,
    said: JSON,
    drawn: Sequence[Document],
    pairs: Sequence[tuple[Document, Document]],
    labels: Sequence[LabelledPair],
    documents: int,
) -> JSON:
    """One distribution."""
    value = _bag if said["measure"] == "bag" else case.index.measure
    sampled = {(a.id, b.id): value(a, b) for a, b in combinations(drawn, 2)}
    compared = {(a.id, b.id): value(a, b) for a, b in pairs}
    levels = [_level(case, level, sampled, compared, documents) for level in said["levels"]]
    found = {
        "measure": said["measure"],
        "matching": None,
        "shingle": SHINGLE,
        "sampled": len(drawn),
        "sample": _histogram(sampled.values()),
        "candidates": _histogram(compared.values()),
        "other_facts": 0,
        "levels": levels,
        **{side: [_example(case.index, one, value) for one in said[side]] for side in ("above", "below")},
    }
    values = [(value(case.index[a], case.index[b]), same) for a, b, same in labels]
    return found | (
        {"labels": _by_labels(case, labels, values, [one["threshold"] for one in levels])} if labels else {}
    )


def _bag(a: Document, b: Document) -> float:
    """Jaccard of the bags of runs of words that white space separates."""
    one, other = (_runs(each.text or "") for each in (a, b))
    return (one & other).total() / (one | other).total()


def _runs(text: str) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(tuple(words[k : k + SHINGLE]) for k in range(max(len(words) - SHINGLE, 0) + 1))


LabelledPair = tuple[str, str, bool]
"""Two ids, and whether they are labelled the same."""

LABELS: list[LabelledPair] = [
    *((f"ferry{a}", f"ferry{b}", True) for a, b in ((0, 2), (0, 3), (0, 4), (2, 5), (0, 1))),
    *((f"bridge{a}", f"bridge{a + 1}", True) for a in range(5)),
    *((f"near{a}", f"near{b}", a + b < 4) for a, b in combinations(range(4), 2)),
    *((f"page{a}", f"page{a + 1}", True) for a in range(3)),
    *((f"price{a}", f"price{a + 1}", False) for a in range(2)),
    *((f"footer{a}", f"footer{a + 1}", False) for a in range(5)),
    *(("alone0", "late", True), ("far0", "far1", True), ("chain0", "chain1", False), ("umlaut0", "alone2", False)),
    *(("list0", "list1", True), ("nobody", "alone0", True), ("alone1", "empty", False)),
]


def _labels(case: Case) -> list[LabelledPair]:
    """The labelled pairs of documents that are enriched and have not changed."""
    index = case.index
    known = {one.id for one in index if one.processed and not one.corrupt and not one.stale}
    return [(a, b, same) for a, b, same in LABELS if {a, b} <= known]


def _of_labels(case: Case, labels: Sequence[LabelledPair], distributions: Sequence[JSON]) -> JSON:
    """The pairs of the file; and the measure whose cross-validated F is highest, with its best threshold."""
    enriched = {one.id for one in case.index if one.processed and not one.corrupt}
    there = [pair for pair in LABELS if {*pair[:2]} <= enriched]
    same = sum(one for *_, one in labels)
    counts = {"pairs": len(LABELS), "same": same, "different": len(labels) - same}
    counts |= {"missing": len(LABELS) - len(there), "changed": len(there) - len(labels)}
    best = max(distributions, key=lambda one: one["labels"]["validated"]["f"])
    return {
        "labels": counts,
        "recommendation": {"shingle": SHINGLE, "threshold": best["labels"]["best"]["threshold"]},
    }


def _trials(case: Case, labels: Sequence[LabelledPair], drawn: Sequence[str]) -> list[JSON]:
    """Each preset on the labelled pairs; and those that compare sets, without the boilerplate of the sample."""
    pairs = [((case.index[a].text or "", case.index[b].text or ""), same) for a, b, same in labels]
    masked = Preparation(masks=tuple(Mask))
    two_of_six = [math.comb(6, k) for k in range(2, 7)]

    def of_super(value: float) -> float:
        return sum(n * value ** (14 * k) * (1 - value**14) ** (6 - k) for k, n in enumerate(two_of_six, 2))

    def of_scans(value: float) -> float:
        return detection(value, 80, 3)

    def values(similarity: Callable[[str, str], float]) -> list[tuple[float, bool]]:
        return [(similarity(*texts), same) for texts, same in pairs]

    def found_by(
        keys: Callable[[float], float], of_keys: Sequence[tuple[float, bool]], values: Sequence[tuple[float, bool]]
    ) -> list[tuple[float, bool]]:
        both = zip(of_keys, values, strict=True)
        return [(value if keys(found) >= 0.5 else 0.0, same) for (found, _), (value, same) in both]

    kinds = {"": [_kinds(case.index[a], case.index[b]) for a, b, _ in labels]}
    kinds["logs"] = [
        {kind for one in differing_facts(*map(fact_tokens, masked.texts(list(texts)))) for kind in one.kinds}
        for texts, _ in pairs
    ]
    with_facts = list[JSON]()

    def trial(name: str, decided: list[tuple[float, bool]], keys: float | Sequence[tuple[float, bool]] | None) -> JSON:
        tried = [decided]
        for value in _TRIED:
            chosen = parse_facts(value)
            both = zip(decided, kinds["logs" if name == "logs" else ""], strict=True)
            values = [(0.0 if mine & chosen else similarity, same) for (similarity, same), mine in both]
            if values not in tried:
                tried.append(values)
                with_facts.append({**of_one(name, values, keys), "facts": value})
        return of_one(name, decided, keys)

    def of_one(name: str, decided: list[tuple[float, bool]], keys: float | Sequence[tuple[float, bool]] | None) -> JSON:
        threshold, _ = _best_threshold(decided)
        if isinstance(keys, list):  # of similarities by the keys: those that nearly all right pairs reach
            reached = [
                key for (value, same), (key, _) in zip(decided, keys, strict=True) if same and value >= threshold
            ]
            steps = max(int(float(np.quantile(reached, 0.05)) / 0.05), 1)
            keys = min({"reader": 0.7, "strict": 0.8}[name], round(steps * 0.05, 2))
        found = {"preset": name, "clean": None, "ignore_common": None, "facts": None, "threshold": threshold}
        return {**found, "keys": threshold if keys is None else keys, "validated": _cross_validated(decided)}

    def by_sets(without: frozenset[int], size: int) -> list[tuple[float, bool]]:
        return values(lambda a, b: resemblance(shingle_set(a, size) - without, shingle_set(b, size) - without))

    def by_shapes(without: frozenset[str]) -> list[tuple[float, bool]]:
        return values(lambda a, b: set_resemblance(_shapes(a) - without, _shapes(b) - without))

    nothing: frozenset[Any] = frozenset()
    trials = [
        trial("strict", by_sets(nothing, 5), None),
        trial("reader", values(lambda a, b: _edit(tokens_of(a), tokens_of(b))), by_sets(nothing, 3)),
        trial("supershingles", found_by(of_super, by_sets(nothing, 8), by_sets(nothing, 8)), 0.976),
        trial("scans", found_by(of_scans, by_shapes(nothing), by_shapes(nothing)), 0.25),
        trial("short", values(lambda a, b: _in_passages(tokens_of(a), tokens_of(b), 0.0)), None),
        trial(
            "logs",
            values(lambda a, b: resemblance(*(shingle_set(one, 2) for one in masked.texts([a, b])))),
            None,
        ),
    ]
    passages = [" ".join(one) for one in _boilerplate_of(drawn)]
    if not passages:
        return [*trials, *with_facts]
    plain = len(with_facts)
    common = {size: frozenset[int]().union(*(shingle_set(one, size) for one in passages)) for size in (5, 8)}
    runs = frozenset[str]().union(*map(_shapes, passages))
    ignoring = [
        trial("strict", by_sets(common[5], 5), by_sets(nothing, 5)),
        trial("supershingles", found_by(of_super, by_sets(nothing, 8), by_sets(common[8], 8)), 0.976),
        trial("scans", found_by(of_scans, by_shapes(nothing), by_shapes(runs)), 0.25),
    ]
    ignored = [{**one, "ignore_common": "auto"} for one in (*ignoring, *with_facts[plain:])]
    return [*trials, *ignored[: len(ignoring)], *with_facts[:plain], *ignored[len(ignoring) :]]


def _boilerplate_of(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The passages that hold clusters of matches together, of each preset that compares sets."""
    rules: list[Callable[[str, str], bool]] = [
        lambda a, b: resemblance(shingle_set(a, 5), shingle_set(b, 5)) >= 0.8,
        lambda a, b: resemblance(shingle_set(a, 8), shingle_set(b, 8)) >= 0.976,
        lambda a, b: _by_shapes(a, b) >= 0.25,
    ]
    for matches in rules:
        pairs = [(str(a), str(b)) for a, b in combinations(range(len(texts)), 2) if matches(texts[a], texts[b])]
        for cluster in _clusters(pairs):
            different = list(dict.fromkeys(texts[int(one)] for one in sorted(cluster, key=int)))
            if len(different) >= 5:
                yield from _passages_held([tokens_of(one) for one in different])


def _by_labels(
    case: Case, labels: Sequence[LabelledPair], values: Sequence[tuple[float, bool]], thresholds: Sequence[float]
) -> JSON:
    """Labelled pairs by threshold, and the best threshold of all pairs, and of all folds but one for the others."""
    shared = [bool(case.index[a].keys & case.index[b].keys) for a, b, _ in labels]

    def level(threshold: float) -> JSON:
        reached = [(same, key) for (value, same), key in zip(values, shared, strict=True) if value >= threshold]
        hits = sum(same for same, _ in reached)
        found = {"same": hits, "different": len(reached) - hits, "found": sum(same and key for same, key in reached)}
        return {"threshold": threshold, **found, **_rates(hits, len(reached), sum(same for *_, same in labels))}

    best, below = _best_threshold(values)
    return {
        "levels": [level(one) for one in thresholds],
        "best": level(best),
        "above": below,
        "validated": _cross_validated(values),
    }


def _rates(hits: int, reached: int, same: int) -> JSON:
    rates = {"recall": hits / same, "f": 2 * hits / (reached + same)}
    return {**rates, "precision": hits / reached} if reached else rates


def _best_threshold(values: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """Of all similarities the one with the highest F, the highest of several; rounded towards the next lower one. And
    this one."""
    every = sorted({value for value, _ in values} | {0.0})

    def f(threshold: float) -> Fraction:
        reached = [same for value, same in values if value >= threshold]
        return Fraction(2 * sum(reached), len(reached) + sum(same for _, same in values))

    top = max(every[1:], key=lambda one: (f(one), one))
    below = every[every.index(top) - 1]
    rounded = (round((top + below) / 2, digits) for digits in range(2, 18))
    return next(one for one in rounded if below < one <= top), below


def _cross_validated(values: Sequence[tuple[float, bool]]) -> JSON:
    """Each fold is decided by the best threshold of all others. Which pairs are in a fold is drawn by the seed."""
    chance, fold = np.random.default_rng(1), {}
    folds = min(10, *Counter(same for _, same in values).values())
    for label in (True, False):
        some = [place for place, (_, same) in enumerate(values) if same is label]
        for number, place in enumerate(chance.permutation(some).tolist()):
            fold[place] = number % folds
    thresholds, results = [], []
    for k in range(folds):
        threshold, _ = _best_threshold([one for place, one in enumerate(values) if fold[place] != k])
        own = [one for place, one in enumerate(values) if fold[place] == k]
        reached = [same for value, same in own if value >= threshold]
        thresholds.append(threshold)
        results.append((sum(reached), len(reached), sum(same for _, same in own)))
    each = [_rates(*one)["f"] for one in results]
    return {
        "folds": folds,
        **_rates(*(sum(column) for column in zip(*results, strict=True))),
        "lowest_f": min(each),
        "highest_f": max(each),
        "lowest_threshold": min(thresholds),
        "highest_threshold": max(thresholds),
    }


def _example(index: Snapshot, one: JSON, value: Callable[[Document, Document], float] | None = None) -> JSON:
    similarity = (value or index.measure)(*(index[one[side]["id"]] for side in "ab"))
    return {"a": one["a"], "b": one["b"], "similarity": similarity}


def _histogram(values: Iterable[float]) -> JSON:
    values = list(values)
    bins = Counter(math.floor(round(value * 50, 9)) for value in values if 0 < value < 1)
    return {
        "pairs": len(values),
        "zero": values.count(0),
        "counts": [bins[k] for k in range(50)],
        "one": values.count(1),
    }


def _level(case: Case, said: JSON, sampled: Mapping[Any, float], pairs: Mapping[Any, float], documents: int) -> JSON:
    """``said``: a level of the report, which knows its threshold, and whether the bands were made for the measure."""
    index, threshold = case.index, said["threshold"]
    reached = [pair for pair, value in pairs.items() if value >= threshold]
    near = [pair for pair, value in sampled.items() if value >= threshold]
    sizes = _star_sizes(index, {pair: pairs[pair] for pair in reached})
    return {
        "threshold": threshold,
        **({} if said["detection"] is None else {"detection": detection(threshold, BANDS, ROWS)}),
        "pairs": len(reached),
        "documents": len({id for pair in reached for id in pair}),
        "groups": len(sizes),
        "largest": max(sizes, default=0),
        "sample_pairs": len(near),
        "sample_found": sum(bool(index[a].keys & index[b].keys) for a, b in near),
        "expected": _expected(near, len({id for pair in sampled for id in pair}), documents),
    }


def _star_sizes(index: Snapshot, pairs: Mapping[Any, float]) -> list[int]:
    """The sizes of star groups; copies are one text."""
    texts: dict[str | None, list[Document]] = {}
    for one in sorted((index[id] for id in {id for pair in pairs for id in pair}), key=in_order):
        texts.setdefault(one.content, []).append(one)
    place = {content: number for number, content in enumerate(texts)}
    matches = {}
    for (a, b), value in pairs.items():
        first, other = sorted(place[index[id].content] for id in (a, b))
        if first != other:
            matches[first, other] = value
    documents = [len(some) for some in texts.values()]
    sizes = Counter[int]()
    for first, number in zip(star_model(matches, documents), documents, strict=True):
        sizes[first] += number
    return [size for size in sizes.values() if size > 1]


def _expected(near: Sequence[tuple[str, str]], size: int, documents: int) -> JSON:
    """The number of pairs among all documents: the sum over pairs of sampled pairs of Horvitz and Thompson."""
    if size >= documents:
        return dict.fromkeys(("pairs", "low", "high"), len(near))

    def drawn(number: int) -> float:
        return math.comb(documents - number, size - number) / math.comb(documents, size)

    both = drawn(2)
    variance = sum(1 - both**2 / drawn(len({*one, *other})) for one in near for other in near)
    ratio = max(variance / len(near) if near else 0, 1 - both)
    count = len(near) / ratio
    low = scipy.stats.chi2.ppf(0.025, 2 * count) / 2 if near else 0.0
    high = scipy.stats.chi2.ppf(0.975, 2 * count + 2) / 2
    every = math.comb(documents, 2)
    return {
        "pairs": len(near) / both,
        "low": max(ratio * low / both, len(near)),
        "high": min(ratio * high / both, every),
    }


def of_what_if(case: Case) -> JSON:
    index = case.index
    processed = [one for one in index if one.processed]
    readable = [one for one in processed if not one.corrupt]
    sizes = Counter(one.group for one in readable if one.group)
    sizes = Counter({group: size for group, size in sizes.items() if size > 1})
    thresholds = []
    for minimum in (0.5, 0.8):
        made = index.star(minimum)
        together = {id: members for members in made.groups for id in members}
        now = {one.id for one in readable if one.group is not None and sizes[one.group]}
        thresholds.append(
            {
                "min": minimum,
                **made.numbers(),
                "joined": len(together.keys() - now),
                "left": len(now - together.keys()),
                "moved": _moved(index, made, now),
                "detection": _by_keys(minimum),
            }
        )
    return {
        "min": THRESHOLD,
        "max": 1.0,
        "documents": len(processed) + index.orphans,
        "corrupt": len(processed) - len(readable),
        "groups": len(sizes),
        "grouped": sizes.total(),
        "largest": max(sizes.values()),
        "candidates": len(index.candidates),
        "unprocessed": len(index.documents) - len(processed),
        "thresholds": thresholds,
        **case.seconds,
    }


def _moved(index: Snapshot, made: Star, now: set[str]) -> int:
    """Documents of groups that would have another id: it stays with the group of its former principal."""
    moved = 0
    for members in made.groups:
        ids = Counter(index[id].group for id in members)
        led = {index[id].group for id in members if index[id].stored.get("principal")}
        kept = max(led, key=lambda group: (ids[group], group), default=None)
        moved += sum(id in now and index[id].group != kept for id in members)
    return moved


def of_audit(case: Case) -> JSON:
    index, minimum = case.index, case.given("--min", THRESHOLD)
    size = case.given("--sample", 2000)
    drawn = {one.id for one in _sample(case, list(index), size)}
    whole = len(drawn) == len(index.documents)
    every = {pair: value for pair, value in _true_pairs(index, minimum).items() if drawn & set(pair)}
    claims = [
        pair
        for pair in index.similar_texts(minimum)
        if drawn & {one.id for text in pair for one in index.current(text)}
    ]
    clusters = _clusters(claims)
    common = _shingles_of_boilerplate(index, clusters)
    apart = {pair for pair in every if resemblance(*(_without(index[id], common) for id in pair)) < minimum}
    true = {pair: value for pair, value in every.items() if pair not in apart}
    candidates: set[frozenset[str | None]] = set(map(frozenset, index.candidates))
    found = {pair for pair in every if _is_found(index, candidates, *pair)}
    shorter = {pair: min((index[id] for id in pair), key=lambda one: len(one.tokens)) for pair in true}

    def recall(chosen: Iterable[tuple[str, str]]) -> JSON:
        some = list(chosen)
        number = sum(pair in found for pair in some)
        ends = Counter(id for pair in some for id in pair if id in drawn)
        return {"pairs": len(some), "found": number} | _interval(number, len(some), ends.values(), whole)

    lost = Counter(_why_lost(index, *pair) for pair in true if pair not in found)
    lengths = ("under 20", "20 to 99", "100 to 499", "500 to 1,999", "2,000 and more")
    by_length = {pair: lengths[bisect_right((20, 100, 500, 2000), len(one.tokens))] for pair, one in shorter.items()}
    by_script = {pair: _script(one.text or "") for pair, one in shorter.items()}
    leading = {one.group: one for one in index if one.stored.get("principal") and one.processed}
    members = [
        one
        for one in index
        if one.id in drawn and one.stored.get("principal") is False and (one.stored.get("similarity") or 0) >= minimum
        if all(each.processed and not each.corrupt and not each.stale for each in (one, leading[one.group]))
    ]
    alone = sum(resemblance(*(_without(index.current(text)[0], common) for text in pair)) >= minimum for pair in claims)
    advice = {"advice": _advice(minimum, true.values())} if case.said["advice"] else {}
    return {
        **advice,
        "min": minimum,
        "max_bucket": case.given("--max-bucket", 200),
        "seed": 1,
        "documents": len(index.documents),
        "sampled": len(drawn),
        "recall": recall(true),
        "within": recall(pair for pair in true if drawn >= set(pair)),
        "boilerplate": _boilerplate(index, clusters),
        **({"only_boilerplate": recall(apart), "precision_without_boilerplate": alone / len(claims)} if common else {}),
        "promised": detection(minimum, BANDS, ROWS),
        "expected": _found_on_average(true.values(), BANDS, ROWS),
        "lengths": [
            {"name": name, "recall": recall(pair for pair in true if by_length[pair] == name)}
            for name in dict.fromkeys(by_length.values())
        ],
        "scripts": [
            {"name": name, "recall": recall(pair for pair in true if by_script[pair] == name)}
            for name in dict.fromkeys(by_script.values())
        ],
        "lost": [
            {
                "reason": one["reason"],
                "pairs": lost[one["reason"]],
                "examples": [_example(index, pair) for pair in one["examples"]],
            }
            for one in case.said["lost"]
        ],
        "claims": len(claims),
        "members": len(members),
        "denied": 0,
        "precision": 1.0,
        "related": _related_records(case),
        **case.seconds,
    }


def _clusters(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """The texts that chains of pairs connect."""
    clusters: list[set[str]] = []
    for pair in pairs:
        joined = [one for one in clusters if one & set(pair)]
        clusters = [*(one for one in clusters if one not in joined), set(pair).union(*joined)]
    return clusters


def _found_on_average(similarities: Iterable[float], bands: int, rows: int) -> float:
    """The mean probability of the pairs; similarities are rounded down to thousandths."""
    found = [detection(math.floor(value * 1000) / 1000, bands, rows) for value in similarities]
    return sum(found) / len(found)


def _advice(minimum: float, similarities: Iterable[float]) -> JSON:
    """The first of some bands that find 99 % of the pairs."""
    for wanted in (0.99, 0.995, 0.999, 0.9995, 0.9999):
        bands, rows = chosen_bands(minimum, wanted)
        if (expected := _found_on_average(similarities, bands, rows)) >= 0.99:
            found = {"bands": bands, "rows": rows, "detection": wanted, "expected": expected}
            return {**found, "shingle": SHINGLE, "permutations": 128}
    return {}


def _true_pairs(index: Snapshot, minimum: float) -> dict[tuple[str, str], float]:
    """All pairs of documents by their current texts, however long these are."""
    known = [one for one in index if one.shingles]
    found = {(a.id, b.id): resemblance(a.shingles, b.shingles) for a, b in combinations(known, 2)}
    return {pair: value for pair, value in found.items() if value >= minimum}


def _is_found(index: Snapshot, candidates: set[frozenset[str | None]], a: str, b: str) -> bool:
    one, other = index[a], index[b]
    contents = frozenset((one.content, other.content))
    same = len(contents) == 1 and bool(one.keys)
    return (same or contents in candidates) and not one.stale and not other.stale


def _why_lost(index: Snapshot, a: str, b: str) -> str:
    """The first reason in the order of the report."""
    both = index[a], index[b]
    for reason, holds in (
        ("unprocessed", lambda one: not one.processed),
        ("too_large", lambda one: one.stored["state"] == "too_large"),
        ("failed", lambda one: one.stored["state"] == "failed"),
        ("corrupt", lambda one: one.corrupt),
        ("stale", lambda one: one.stale),
    ):
        if any(map(holds, both)):
            return reason
    return "bucket" if both[0].keys & both[1].keys else "bands"


def _interval(found: int, pairs: int, degrees: Iterable[int], whole: bool) -> JSON:
    """Wilson's interval, by its definition: shares from which the one found differs by 1.96 standard deviations."""
    if not pairs:
        return {}
    share = found / pairs
    if whole:
        return {"recall": share, "low": share, "high": share}
    ends = list(degrees)
    size = min(max(sum(ends) ** 2 / sum(one**2 for one in ends), 1), pairs)

    def distance(p: float) -> float:
        return abs(share - p) - 1.959963984540054 * math.sqrt(p * (1 - p) / size)

    # Between a share and itself the distance is negative; of 0 and 1, it is also 0 at the share itself.
    low = scipy.optimize.brentq(distance, 0, share - 1e-12, xtol=1e-14) if found else 0.0
    high = scipy.optimize.brentq(distance, share + 1e-12, 1, xtol=1e-14) if found < pairs else 1.0
    return {"recall": share, "low": low, "high": high}


def _script(text: str) -> str:
    letters = Counter(unicodedata.name(char).split()[0].title() for char in text if char.isalpha())
    return max(letters, key=lambda name: letters[name], default="none")


TITLES = "ferry0 ferry1 ferry2 ferry3 ferry5 price0 price1 price2 price3 chain0 chain1 bridge0 bridge1 empty short0"
MAX_GROUP, MAX_VALUE = 3, 50
GROUPS_OF_PAIRS = "pairs"


def of_duplicates(case: Case) -> JSON:
    """The pairs of a request, the beginnings of their documents, and their common passages."""
    scope = [one for one in case.index if one.source["title"] in TITLES.split()]
    grams = {
        one.id: {one.tokens[k : k + SHINGLE] for k in range(max(len(one.tokens) - SHINGLE + 1, bool(one.tokens)))}
        for one in scope
    }
    having = Counter(gram for some in grams.values() for gram in some)
    small = [gram for gram, number in having.items() if 1 < number <= MAX_GROUP]
    by_gram = {gram: sorted(id for id, some in grams.items() if gram in some) for gram in having}
    candidates = {pair for gram in small for pair in combinations(by_gram[gram], 2)}
    ratio = {pair: _word_ratio(*(case.index[id] for id in pair)) for pair in candidates}
    passing = {pair: value for pair, value in ratio.items() if value >= 0.8}
    shown = {id for pair in passing for id in pair}
    pairs = {
        "pairs": [{"pair": [{"id": id} for id in pair], "similarity": value} for pair, value in passing.items()],
        "diagnostics": {
            "Computing feature hashes": {
                "Documents": len(scope),
                "Documents without features": sum(not some for some in grams.values()),
                "Hash count": having.total(),
                **_lap(case),
            },
            "Aggregating results": {
                "Maximum size of hash collision groups": MAX_GROUP,
                "Hash collision groups": sum(number > 1 for number in having.values()),
                "Skipped large hash collision groups": sum(number > MAX_GROUP for number in having.values()),
                "Pairwise hash comparisons": sum(math.comb(having[gram], 2) for gram in small),
                "Skipped pairwise hash comparisons": sum(math.comb(n, 2) for n in having.values() if n > MAX_GROUP),
                "Candidate pairs": len(candidates),
                "Out of scope pairs": 0,
                **_lap(case),
            },
            next(name for name in _stage(case, "similarPairs")["diagnostics"] if name.startswith("Validating")): {
                "Similarity thresholds": [0.8, 1.0],
                "Pairs passing": len(passing),
                "Pairs failing": len(candidates) - len(passing),
                "Documents read": len({id for pair in candidates for id in pair}),
                "Documents deleted or changed": 0,
                **_lap(case),
            },
        },
        "skipped_groups": [
            {"size": having[tuple(oracle_tokens(one["example"]))]}
            for one in _stage(case, "similarPairs")["skipped_groups"]
        ],
    }
    content = {
        "values_cut": sum(len(str(case.index[id].source.get("text", ""))) > MAX_VALUE for id in shown),
        "documents_missing": 0,
        "documents_not_read": 0,
    }
    overlaps = {
        "overlaps": [_overlap(case.index[pair[0]], case.index[pair[1]], value) for pair, value in passing.items()],
        "pairs_missing": 0,
        "pairs_too_long": 0,
        "pairs_not_compared": 0,
    }
    stages = {"similarPairs": pairs, "content": content, "overlaps": overlaps}
    groups = {"groups": _groups_of_pairs(case, scope, passing)} if "--write-groups" in case.line else {}
    return {"stages": stages, **groups, **case.seconds}


def _groups_of_pairs(case: Case, scope: Sequence[Document], pairs: Mapping[tuple[str, str], float]) -> JSON:
    """Star groups. They are compared with those that the documents have before the run and, if it was none on trial,
    after it."""
    ordered = sorted(scope, key=lambda one: (-len(one.text or ""), one.id))
    place = {one.id: number for number, one in enumerate(ordered)}
    matches = {}
    for (a, b), value in pairs.items():
        one, other = sorted((place[a], place[b]))
        matches[one, other] = value
    documents, found = len(ordered), dict[int, list[Document]]()
    for number, first in enumerate(star_model(matches, [1] * len(ordered))):
        found.setdefault(first, [ordered[first]]).extend([ordered[number]] * (number != first))
    groups = [some for some in found.values() if len(some) > 1]
    grouped = sum(map(len, groups))
    together = [*groups, *([one] for one in scope if not any(one in some for some in groups))]
    right = {
        one.id: (some[0].id, about(1.0 if one is some[0] else _word_ratio(some[0], one)))
        for some in together
        for one in some
    }
    if "--dry-run" not in case.line:
        assert {one.id for one in case.after if one.source.get(GROUPS_OF_PAIRS)} == right.keys()
        assert not _with_other_groups(case.after, right)
    missing = _with_other_groups(case.before, right)
    return {
        "count": len(groups),
        "documents": documents,
        "grouped": grouped,
        "alone": documents - grouped,
        "changed": 0,
        "min_similarity": min(_word_ratio(some[0], one) for some in groups for one in some[1:]),
        "pairs_below": sum(_word_ratio(a, b) < 0.8 for some in groups for a, b in combinations(some, 2)),
        "pairs_not_compared": 0,
        "writes": {"written": len(missing), "unchanged": documents - len(missing)} | dict.fromkeys(DISTURBED, 0),
    }


def _with_other_groups(index: Snapshot, right: Mapping[str, tuple[str, Callable[[float], bool]]]) -> list[str]:
    """Documents that have not their principal, or not the similarity to it."""
    stored = {id: index[id].source.get(GROUPS_OF_PAIRS, {}) for id in right}
    return [
        id
        for id, (first, is_right) in right.items()
        if stored[id].get("group") is None
        or stored[id]["group"] != stored[first].get("group")
        or stored[id].get("principal") != (id == first)
        or stored[id].get("similarity") is None
        or not is_right(stored[id]["similarity"])
    ]


def _stage(case: Case, name: str) -> JSON:
    found: JSON = case.said["stages"][name]
    return found


def _lap(case: Case) -> JSON:
    return {"Seconds": at_most(case.wall)}


def _word_ratio(a: Document, b: Document) -> float:
    one, other = set(a.tokens), set(b.tokens)
    return len(one & other) / len(one | other)


def _overlap(a: Document, b: Document, similarity: float) -> JSON:
    tiles = _tiles(a, b)
    return {
        "pair": [{"id": a.id}, {"id": b.id}],
        "similarity": similarity,
        "words": sum(size for *_, size in tiles),
        "blocks": _blocks(a, b, tiles),
    }


def of_watch(case: Case) -> JSON:
    """One round: all documents without keys get them, and then a group."""
    before, after = case.before, case.after
    fresh = [one for one in after if not before[one.id].processed]
    grouped = [one for one in after if _group_fields(one.stored) != _before_group(case, one)]
    waited = replace(after, documents={one.id: _waiting(one) if one in fresh else one for one in after})
    least, most = (len(_pairs_of(after, some)) for some in _affected(waited, set()))
    return {
        "round": 1,
        "scope": {
            "documents": len(before.documents),
            "new": len(fresh),
            "changed": between(0, sum(one.processed for one in before)),
        },
        "pairs": {"candidates": between(least, most), "skipped": 0},
        "writes": {"enriched": len(fresh), "grouped": len(grouped), "left": 0},
        "lag": 0.0,
        **case.seconds,
    }


def _group_fields(stored: JSON) -> tuple[Any, ...]:
    return tuple(stored.get(name) for name in ("group", "principal", "similarity"))


def _before_group(case: Case, one: Document) -> tuple[Any, ...]:
    """The group fields of a document between ``enrich`` and ``group``: inline, a new one is alone."""
    former = case.before[one.id]
    if former.processed or case.world.sidecar:
        return _group_fields(former.stored)
    return own_group(case.world.index, one.id), True, 1.0


def _waiting(one: Document) -> Document:
    """A document as it is between ``enrich`` and ``group``."""
    return replace(one, stored={**one.stored, "similarity": None, "group": one.id})


def _pairs_of(index: Snapshot, affected: set[str]) -> list[tuple[str, str]]:
    """The candidates with a text of these documents."""
    texts = {index[id].content for id in affected}
    return [pair for pair in index.candidates if texts & set(pair)]


def of_migrate(case: Case) -> JSON:
    """All documents get new keys, which then replace the old ones; the groups by the ids before and after."""
    before, after = case.before, case.after
    number = len(before.documents)
    moves = Counter((one.group, after[one.id].group) for one in before if one.group)
    sizes = [Counter[str](), Counter[str]()]
    for ids, documents in moves.items():
        for place, id in enumerate(ids):
            sizes[place][str(id)] += documents
    parts = _parts(moves, sizes)
    kinds = {name: [0, 0, 0] for name in KINDS}
    for kind, olds, news, documents in parts:
        for place, one in enumerate((len(olds), len(news), documents)):
            kinds[kind][place] += one
    threshold = case.given("--threshold", THRESHOLD)
    return {
        "documents": number,
        "unrelated": _unrelated(*chosen_bands(threshold)),
        "groups": {
            "documents": moves.total(),
            "moved": sum(documents for (old, new), documents in moves.items() if old != new),
            "before": sum(size > 1 for size in sizes[0].values()),
            "after": sum(size > 1 for size in sizes[1].values()),
            "kinds": [
                {"kind": name, **dict(zip(("before", "after", "documents"), three, strict=True))}
                for name, three in kinds.items()
            ],
            "examples": [
                one | {side: {id: sizes[k][id] for id in one[side]} for k, side in enumerate(("before", "after"))}
                for one in case.said["groups"]["examples"]
            ],
        },
        "writes": {
            "enriched": number,
            "switched": number,
            "cleaned": 0 if case.world.sidecar else number,
            "left": 0,
        },
        **case.seconds,
    }


KINDS = ("unchanged", "grown", "shrunk", "exchanged", "split", "merged", "mixed", "new", "gone")


def _parts(moves: Mapping[Any, int], sizes: Sequence[Counter[str]]) -> list[tuple[str, set[str], set[str], int]]:
    """Groups before and after that share documents, with their kind and the number of their documents."""
    open_groups = {(place, id) for place in (0, 1) for id, size in sizes[place].items() if size > 1}
    found = []
    while open_groups:
        part = {open_groups.pop()}
        while more := {
            other
            for move in moves
            for one, other in (((0, move[0]), (1, move[1])), ((1, move[1]), (0, move[0])))
            if one in part and other in open_groups
        }:
            part |= more
            open_groups -= more
        olds, news = ({id for side, id in part if side == place} for place in (0, 1))
        documents = sum(number for (old, new), number in moves.items() if old in olds or new in news)
        if not olds or not news:
            kind = "new" if news else "gone"
        elif len(olds) > 1 or len(news) > 1:
            kind = "mixed" if len(olds) > 1 and len(news) > 1 else "merged" if len(olds) > 1 else "split"
        else:
            (old,), (new,) = olds, news
            lost, gained = sizes[0][old] > moves[old, new], sizes[1][new] > moves[old, new]
            kind = {(False, False): "unchanged", (False, True): "grown", (True, False): "shrunk"}.get(
                (lost, gained), "exchanged"
            )
        found.append((kind, olds, news, documents))
    return found


def of_clean(case: Case) -> JSON:
    """Inline, the documents that lose their ``neardupe`` field."""
    having = 0 if case.world.sidecar else case.before.count(lambda one: one.stored)
    left = case.after.count(lambda one: one.stored)
    assert left == (having if "--dry-run" in case.line else 0) or case.world.sidecar
    outcomes = {"written": having, "unchanged": 0} | dict.fromkeys(DISTURBED, 0)
    languages = case.world.client.request("GET", "/_script_language")["language_contexts"]
    if all(one["language"] != "painless" for one in languages):  # an update cannot remove a field without a script
        outcomes["whole"] = having
    return {"documents": having, "writes": outcomes, "kept_decisions": 0, **case.seconds}  # nobody has decided


def of_doctor(case: Case) -> JSON:
    """Its numbers are in messages."""
    messages = {one["name"]: one["message"] for one in case.said["checks"]}
    others = case.index.count(lambda one: not one.processed)
    total = len(case.index.documents)
    assert (
        f"{others} of {total} are not enriched" in messages["documents"] or f"all {total} are" in messages["documents"]
    )
    first = messages["groups"].split()[0]  # documents written since the last run of `group` are among them
    assert case.index.count(lambda one: one.waits) <= (0 if first == "no" else int(first)) <= total
    return {}


def of_fold(case: Case) -> JSON:
    """The index has no group field, so no document has a value in it."""
    total = len(case.index.documents)
    return {"documents": total, "without_group": total}


def of_pipeline(case: Case) -> JSON:
    """Nothing was compared."""
    return {"texts": 0, "different": 0}


COUNTED: dict[str, Callable[[Case], Any]] = {
    "init": of_init,
    "bands": of_bands,
    "version": of_version,
    "load": of_load,
    "enrich": of_enrich,
    "group": of_group,
    "stats": of_stats,
    "groups": of_groups,
    "pairs": of_pairs,
    "documents": of_documents,
    "similar": of_similar,
    "contained": of_contained,
    "search": of_search,
    "moved": of_moved,
    "compare": of_compare,
    "shingles": of_shingles,
    "distribution": of_distribution,
    "what-if": of_what_if,
    "audit": of_audit,
    "duplicates": of_duplicates,
    "watch": of_watch,
    "migrate": of_migrate,
    "clean": of_clean,
    "doctor": of_doctor,
    "fold": of_fold,
    "pipeline": of_pipeline,
}

NUMBER = re.compile(r"(?<![\w.,:/-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?(?![\w:/-])")
"""A number in printed text, without those that are parts of ids, dates and names."""

NO_REPORT = re.compile(r"\.\.\. \d+ words|\[1 \.\.\.\]|Seconds|[█▁▂▃▄▅▆▇]|[\d.]+ s$")
"""Parts of a page, plots, and durations."""


def _unexplained(case: Case, done: Run) -> Iterator[str]:
    """Printed numbers that are not in the JSON of the same command, nor derived from one of its numbers."""
    known = {number for text in _texts_in([case.said, list(case.line)]) for number in NUMBER.findall(text)}
    derived = DERIVED[case.line[0]](case) if case.line[0] in DERIVED else ()
    known.update(f"{size:,}" for size in _lengths(case.said))
    for value in (95, *derived, *(value for _, value in numbers(case.said))):  # 95 %: the level of all intervals
        forms = (f"{value:.{places}f}" for places in range(5))
        known.update((f"{value:,}", f"{value:g}", f"{value:.0%}", f"{value:.1%}", *forms))
        if 0.99995 <= value < 1:
            known.add("0.9999")  # what is less than 1 is not shown as 1.0000
    for line in (done.out + done.err).splitlines():
        left = [one for one in NUMBER.findall(line) if one not in known]
        if left and not NO_REPORT.search(line):
            yield f"{case.line[0]} {case.line[2:]!r:.60}: {left} printed: {line[-150:]!r}"


DERIVED: dict[str, Callable[[Case], Iterable[Any]]] = {
    "groups": lambda case: [sum(len(one.get("redundant", ())) for one in case.said)],
    "pairs": lambda case: (
        case.given("--min", THRESHOLD),
        len(case.index.candidates),
        case.index.count(lambda one: one.stale),
        *_lengths(buckets := _large_buckets(case, case.given("--max-bucket", 200))),
        *(value for _, value in numbers(buckets)),
    ),
    "shingles": lambda case: (band["slots"][1] - 1 for band in case.said["bands"]),
}
"""Numbers that a command prints in addition to those of its JSON."""


def _lengths(value: Any) -> Iterator[int]:
    """The lengths of all lists."""
    if isinstance(value, list):
        yield len(value)
    for one in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _lengths(one)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values()) + list(value)
    if isinstance(value, list):
        for one in value:
            yield from _texts_in(one)
    elif isinstance(value, str):
        yield value


NOT_COUNTED = {"demo", "help", "node start", "node stop", "node status", "mcp", "serve"}
"""Commands without an index. The numbers of ``node`` are a port and a process: `test_node` uses both. Those of
``serve`` and ``mcp`` are the ones of other commands: `test_serve` and `test_mcp` compare them."""


STORAGES = [
    pytest.param(False, marks=pytest.mark.product("elasticsearch"), id="inline"),
    pytest.param(True, marks=pytest.mark.product("opensearch"), id="sidecar"),
]
"""`test_storage` and the golden files of all commands compare both storages on each product."""


@pytest.mark.either("sidecar")
@pytest.mark.parametrize("sidecar", STORAGES)
def test_every_number(sidecar: bool, client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    world = World(client, index_name, server_cli, tmp_path, sidecar=sidecar, printed=not sidecar)
    _live(world)
    assert world.ran | NOT_COUNTED == set(names()) - ({"load"} if world.sidecar else set())
    assert not world.wrong, "\n" + "\n".join(world.wrong)


def _live(world: World) -> None:
    index = world.index
    make_index(world.client, index, PROPERTIES, settings={"number_of_shards": 2, "number_of_replicas": 0})
    put(world.client, index, DOCUMENTS)
    put(world.client, index, ROUTED, routing="elsewhere")
    world.check("bands")
    world.check("bands", "--threshold", "0.35")
    world.check("version")
    chosen = ["--field", "text"]
    storage = ["--sidecar"] if world.sidecar else []
    world.check("init", index, *chosen, "--sample-keys", "20", "--dry-run", *storage)
    world.check("init", index, *chosen, "--preset", "short", "--dry-run", *storage)
    world.check("init", index, *chosen, "--threshold", str(THRESHOLD), "--sample-mod", str(SAMPLE_MOD), *storage)
    _read_fields(world, *FIELDS)
    if world.sidecar:
        with world.changing() as client:
            put(client, index, LOADED)
    else:
        lines = world.folder / "lines.jsonl"
        entries = [*LOADED.items(), *LOADED.items(), ("alone2", DOCUMENTS["alone2"])]
        lines.write_text("\n".join([*(json.dumps({"id": id, **one}) for id, one in entries), '{"id": ']), "utf-8")
        world.check("load", index, str(lines))
    limit = ["--max-chars", str(MAX_CHARS)]
    world.check("enrich", index, *limit, "--dry-run")
    world.check("enrich", index, *limit, "--query", '{"term": {"source": "a"}}')
    world.check("enrich", index, *limit)
    world.check("group", index, "--evidence")
    with world.unchanged():
        world.check("group", index, "--min", "0.8", "--dry-run")
        world.check("group", index, "--measure", "jaccard", "--min", "0.6", "--dry-run")
        world.check("group", index, "--measure", "weighted", "--min", "0.6", "--dry-run")
    world.grouped = world.seen
    _look_at_all(world)
    written = f"{index}-neardupe-sidecar" if world.sidecar else index
    with world.changing() as client:
        change(client, index, "bridge5", {"text": f"{DOCUMENTS['bridge5']['text']} changed by another client"})
        change(client, index, "ferry1", {"text": " ".join(words("other", 60))})
        change(client, index, "chain2", {"title": "bchanged"})
        put(client, index, LATE)
        for id, forged in FORGED.items():
            change(client, written, id, {"neardupe": forged})
    _look_at_all(world)
    _look(world)
    pairs = ["duplicates", index, "--request", str(world.folder / "request"), "--write-groups", GROUPS_OF_PAIRS]
    world.check(*pairs)
    with world.changing() as client:
        change(client, index, "price2", {GROUPS_OF_PAIRS: {"similarity": None}})
    world.check(*pairs, "--dry-run")
    world.check(*pairs)
    world.check("group", index, "--rebuild", "--dry-run")
    with world.changing() as client:
        for id in FORGED:  # as an application repairs them
            change(client, written, id, {"neardupe": {"scheme": None}})
    world.check("enrich", index, *limit, "--check")
    world.check("group", index, "--evidence", lost=set())
    world.grouped = world.look()
    with world.changing() as client:
        put(client, index, ADDED)
    world.check("watch", index, "--once")
    lost = {str(world.look()[id].group) for id in ("bridge4", "near1")}
    with world.changing() as client:
        for id in ("bridge4", "near1"):
            client.request("DELETE", path(index, "_doc", id), params={"refresh": True})
    world.check("enrich", index)
    world.check("group", index, "--check", lost=lost)
    world.check("group", index, "--rebuild", "--linkage", "chain")
    world.grouped, world.chained = world.look(), True
    world.check("groups", index)
    world.check("groups", index, "--history", str(world.grouped["chain0"].group))
    world.check("group", index, "--default-rules")
    world.check("clean", index, "--dry-run")
    _read_fields(world, "text")
    bands, rows = chosen_bands(0.3)
    coming = Scheme(bands=bands, rows=rows, sample_mod=SAMPLE_MOD)
    world.check("migrate", index, "--threshold", "0.3", "--evidence", "--yes", scheme=coming)
    world.check("clean", index, "--yes")


def _look_at_all(world: World) -> None:
    """Run the commands that look at all documents and groups."""
    index = world.index
    group = str(world.look()["bridge0"].group)
    lines = [
        ["stats", index, "--buckets", "10", "--disk-usage"],
        ["groups", index],
        ["groups", index, "--suggest-keep"],
        ["groups", index, "--group", group],
        ["groups", index, "--history", group],
        ["pairs", index],
        ["documents", index, "--by", "url"],
        ["documents", index, "--by", "source", "--min", "0.5"],
        ["distribution", index, "--sample", "30"],
        ["what-if", index, "--min", "0.5,0.8"],
        ["audit", index],
    ]
    with world.unchanged():
        for line in lines:
            world.check(*line)


def _look(world: World) -> None:
    """Run the other commands that only read."""
    index, probe = world.index, str(DOCUMENTS["bridge2"]["text"])
    files = {
        "dsl": {"query": {"prefix": {"title": "b"}}, "sort": ["url"]},
        "request": request_of_all_stages(f"title:({TITLES})", max_group=MAX_GROUP, max_value=MAX_VALUE),
    }
    for name, content in files.items():
        (world.folder / name).write_text(json.dumps(content), "utf-8")
    lines = [json.dumps({"a": a, "b": b, "label": "same" if same else "different"}) for a, b, same in LABELS]
    (world.folder / "labels.jsonl").write_text("\n".join(lines), "utf-8")
    labelled = ["--labels", str(world.folder / "labels.jsonl"), "--measure", "resemblance", "--measure", "bag"]
    everything = _hits_of(world, {"query_string": {"query": "*", "fields": ["text", "title"]}})
    calls = [
        ["pairs", index, "--min", "0.8"],
        ["similar", index, "--id", "bridge0", "--min", "0.1"],
        ["similar", index, "--id", "ferry2", "--max-candidates", "2"],
        ["similar", index, "--text", probe, "--min", "0.6"],
        ["similar", index, "--id", "bridge0", "--measure", "containment", "--min", "0.6"],
        ["contained", index, "--id", "bridge0", "--min", "0.1"],
        ["contained", index, "--text", probe],
        ["search", index, "*", "--field", "text", "--expand"],
        ["search", index, "--dsl", str(world.folder / "dsl"), "--expand"],
        ["moved", index, f"{SITE}/old"],
        ["moved", index, f"{SITE}/used"],
        ["compare", index, "bridge0", "bridge1"],
        ["compare", index, "price0", "price1"],
        ["shingles", index, "umlaut0"],
        ["distribution", index],
        ["distribution", index, *labelled, "--whitespace", "--sample", "30", "--thresholds", "0.3,0.8"],
        ["duplicates", index, "--request", str(world.folder / "request")],
        [
            "duplicates",
            index,
            "--request",
            str(world.folder / "request"),
            "--write-groups",
            GROUPS_OF_PAIRS,
            "--dry-run",
        ],
        ["doctor", index],
        ["fold", index],
        ["pipeline", index],
        ["audit", index, "--sample", "25", "--min", "0.3"],
    ]
    with world.unchanged():
        for line in calls:
            world.check(*line, hits=everything)


def _hits_of(world: World, query: JSON) -> list[JSON]:
    """The scores that the server gives to the documents that match."""
    body = {"size": 1000, "query": query, "_source": False}
    found: list[JSON] = world.client.request("POST", path(world.index, "_search"), body=body)["hits"]["hits"]
    return found


def _read_fields(world: World, *fields: str) -> None:
    """Let the settings name these fields. ``init`` and ``migrate`` refuse one that accepts objects."""
    name = f"{world.index}-neardupe-sidecar" if world.sidecar else world.index
    meta = mapping(world.client, name)["_meta"]
    meta["neardupe"]["fields"] = list(fields)
    world.client.request("PUT", path(name, "_mapping"), body={"_meta": meta})


def _mails() -> dict[str, JSON]:
    """Different mails with one notice, some with a near-copy; the notice alone, twice; and short texts without it. So
    pairs of mails share many keys."""
    notice = " ".join(words("notice", 50))
    texts = {f"mail{n:02}": f"{' '.join(words(('mail', n), 8 + n % 4))} {notice}" for n in range(30)}
    for n in range(0, 30, 6):
        texts[f"mail{n:02}-copy"] = texts[f"mail{n:02}"].replace(notice, f"{notice} {n}")
    texts |= {"notice": notice, "notice-again": notice.upper()}
    texts |= {f"short{n}": " ".join(words(("short", n), 6)) for n in range(70)}
    return {id: {"text": text} for id, text in texts.items()}


MAILS = _mails()


@pytest.mark.either("sidecar")
@pytest.mark.parametrize("sidecar", STORAGES)
def test_every_number_of_boilerplate(
    sidecar: bool,
    client: Client,
    index_name: str,
    server_cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Buckets that are too large, boilerplate, common shingles, and group ids written into documents."""
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path))  # with the frequencies of shingles
    world = World(client, index_name, server_cli, tmp_path, sidecar=sidecar, printed=not sidecar)
    make_index(client, index_name)
    put(client, index_name, MAILS)
    storage = ["--sidecar", "--write-group"] if sidecar else []
    init = ["init", index_name, "--field", "text", "--threshold", str(THRESHOLD), "--sample-mod", str(SAMPLE_MOD)]
    assert not server_cli(*init, *storage).code
    bucket = ["--max-bucket", "8"]
    world.check("enrich", index_name)
    listed = server_cli("pairs", index_name, *bucket, "--min", "0.001", "--json").lines
    index = world.look()
    world.compared = frozenset(frozenset(index[one[side]["id"]].content for side in "ab") for one in listed)
    run = world.check("group", index_name, "--evidence", *bucket).said
    assert (run["writes"]["mirrored"] is not None) == sidecar
    assert run["boilerplate"]["clusters"] == 1
    assert sum(one["skipped"] for one in run["pairs"]["large_buckets"]) > 2 * run["pairs"]["skipped"] > 0
    with world.unchanged():
        world.check("group", index_name, "--rebuild", "--dry-run", *bucket)
        complete = world.check("group", index_name, "--rebuild", "--dry-run", "--linkage", "complete", *bucket).said
        assert complete["pairs"]["compared_to_link"] > 0
        world.check("group", index_name, "--ignore-common", "0.15", "--dry-run", *bucket)
        world.check("pairs", index_name, "--min", "0.8", *bucket)
        world.check("distribution", index_name, *bucket)
        world.check("audit", index_name, *bucket)
    world.check("group", index_name, "--ignore-common", "0.15", *bucket)
    assert not world.wrong, "\n" + "\n".join(world.wrong)
