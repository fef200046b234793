"""Pages of synthetic fingerprints as a server returns them, without a server: of any number of documents.

Run it to group them: ``python synthetic_pages.py DOCUMENTS [MEMORY]`` prints documents, groups, seconds, processor time
(in all, and of it that to make the documents), peak memory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from peak_memory import peak
from unit_tools import AT, SETTINGS, FakeClient, index_of

from es_neardupe.candidates.fingerprints import read_corpus
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.candidates.spill_to_disk import scratch
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.groups.build import GroupingResult, form_groups, link
from es_neardupe.groups.incremental import RunScope
from es_neardupe.groups.rules import RunRules
from es_neardupe.index.stored_fields import own_group
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.text import contents
from es_neardupe.options import parse_size
from es_neardupe.records import Hit
from es_neardupe.verification.criterion import match_criterion
from es_neardupe.verification.match_rules import MatchRules
from es_neardupe.verification.verified_pairs import verified_pairs

_PAGE = 2000
_EVERY = 14
"""Of this number of documents, two are near-duplicates: 14 % are in groups, as in the measured articles."""

_FACTOR = 0x9E3779B97F4A7C15
_INVERSE = pow(_FACTOR, -1, 1 << 64)
BANDS = SETTINGS.scheme.bands


def _id(number: int) -> str:
    """An id in random order, as long as one that the server makes."""
    return f"{number * _FACTOR % (1 << 64):020x}"


def _text(number: int) -> str:
    """The text of a document: the second of 14 has the words of the first, but for the last one."""
    pair, place = divmod(number, _EVERY)
    words = [f"p{pair}w{k}" for k in range(30)] if place < 2 else [f"d{number}w{k}" for k in range(30)]
    return " ".join([*words[:-1], "other"] if place == 1 else words)


def pages(size: int, *, grouped: bool = False) -> Iterator[list[Hit]]:
    """Documents with random keys; near-duplicates share most of them. ``grouped``: as if each document held its own
    group, as ``enrich`` leaves it."""
    for start in range(0, size, _PAGE):
        with _making():
            page = _page(start, size, grouped)
        yield page


_making_seconds = [0.0]


@contextmanager
def _making() -> Iterator[None]:
    """Adds the processor time of making documents."""
    began = time.process_time()
    yield
    _making_seconds[0] += time.process_time() - began


def _page(start: int, size: int, grouped: bool) -> list[Hit]:
    numbers = range(start, min(start + _PAGE, size))
    random = np.random.default_rng(start)
    keys = random.integers(0, 1 << 62, (len(numbers), BANDS), np.uint64)
    hashes = random.bytes(16 * len(numbers)).hex()
    digests = [hashes[32 * place : 32 * place + 32] for place in range(len(numbers))]
    near = [place for place, number in enumerate(numbers) if number % _EVERY == 1 and place]
    keys[near, 2:] = keys[np.array(near, np.intp) - 1, 2:]
    keys &= np.uint64(0x3F3F3F3F3F3F3F3F)  # characters from "0" to "o"; the first one names the band
    keys += np.uint64(0x3030303030303030)
    keys.view(np.uint8).reshape(len(numbers), BANDS, 8)[:, :, 0] = np.arange(0x30, 0x30 + BANDS)
    bands = keys.view("S8").astype("U8").tolist()
    both = [place for place, number in enumerate(numbers) if number % _EVERY < 2]
    for place, content in zip(both, contents([_text(numbers[place]) for place in both]), strict=True):
        digests[place] = content
    return [_hit(*each, grouped) for each in zip(numbers, digests, bands, strict=True)]


def _hit(number: int, content: str, bands: list[str], grouped: bool) -> Hit:
    id = _id(number)
    stored = {
        "scheme": "s",
        "state": "signed",
        "content": content,
        "bands": bands,
        "tokens": 30,
        "features": 26,
        "group": own_group("i", id),
        "principal": True if grouped else None,
        "similarity": 1.0 if grouped else None,
        "at": AT,
    }
    return Hit("i", id, None, number, 1, {"neardupe": stored}, version=1)


class SyntheticClient(FakeClient):
    """Answers requests for current texts."""

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        assert path == "/_mget"
        with _making():
            return {"docs": [self._found(doc) for doc in body["docs"]]}

    def _found(self, doc: dict[str, Any]) -> dict[str, Any]:
        number = int(doc["_id"], 16) * _INVERSE % (1 << 64)
        head = {"_index": doc["_index"], "_id": doc["_id"], "_seq_no": number, "_primary_term": 1, "found": True}
        return head | {"_source": {"text": _text(number)}}


def grouped(size: int, *, memory: int | None = None, again: bool = False) -> GroupingResult:
    """The groups of so many documents, by the steps of `group` between reading and writing. ``memory``: maximum number
    of bytes; ``again``: see `pages`."""
    target = IndexTarget("i", ("i",), SETTINGS, 10_000)
    index = index_of(SyntheticClient(), target)
    match, registry = (
        MatchRules.of(SETTINGS),
        cast(Any, SimpleNamespace(living=dict, records=lambda ids: {}, clusters=lambda: {})),
    )
    criterion = match_criterion(index, match)
    rules = RunRules.of(match, GroupRules(), criterion, index.scheme_id)
    limit = None if memory is None else MemoryLimit(memory)
    with scratch() as files:
        spill = files if limit is not None and limit.holding(documents=size).spills(BANDS) else None
        verified = verified_pairs(
            index,
            criterion,
            read_corpus(pages(size, grouped=again), SETTINGS.prefix, BANDS, expected=size, spill=spill),
            limit=limit,
        )
        linked = link(rules.group, verified, criterion)
        scope = RunScope(True, "", size, settled=False)
        return form_groups(index, registry, scope, linked, rules=rules, limit=limit)


if __name__ == "__main__":
    documents, began = int(sys.argv[1]), time.monotonic()
    result = grouped(documents, memory=parse_size(sys.argv[2]) if sys.argv[2:] else None)
    # A few documents share a key by chance; their text is not the one of their hash, so they are alone.
    changed = int(result.linked.verified.verifier.documents.changed_or_deleted.sum())
    assert len(result.groupings) == documents
    assert changed <= documents // 10_000
    made = {"documents": documents, "groups": len(result.records), "writes": len(result.writes)}
    used = {"cpu": time.process_time(), "cpu_of_making": _making_seconds[0], "peak": peak()}
    print(json.dumps(made | {"seconds": time.monotonic() - began} | used))
