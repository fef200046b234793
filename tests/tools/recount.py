"""The numbers of an index, counted again in plain Python from its raw documents: keys, pairs, groups, passages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import combinations
from typing import Any

import pytest
from scheme_oracle import oracle, oracle_features, oracle_tokens
from server_tools import JSON, hits
from star_model import star_model
from xxhash import xxh3_64_intdigest

from es_neardupe.keys.scheme import Scheme
from es_neardupe.records import Fingerprint
from es_neardupe.server.client import Client

Number = int | float


# Numbers of a report


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number of a report with its path. Elements of lists are named by what they are about, not by their place.

    In an expected report, a function in place of a number checks it.
    """
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from numbers(one, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        names = [_name(one) for one in value]
        for place, (name, one) in enumerate(zip(names, value, strict=True)):
            unique = name is not None and names.count(name) == 1
            yield from numbers(one, f"{path}[{name if unique else place}]")
    elif callable(value) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield path, value


_NAMES = ("id", "name", "kind", "reason", "key", "shape", "group", "measure", "threshold", "min", "address")


def _name(one: Any) -> str | None:
    """What an element of a list is about."""
    if not isinstance(one, Mapping):
        return None
    if isinstance(one.get("pair"), list):
        return "|".join(sorted(side["id"] for side in one["pair"]))
    if isinstance(one.get("a"), Mapping) and "id" in one["a"]:
        return "|".join(sorted(one[side]["id"] for side in "ab"))
    if "measure" in one and "matching" in one:
        return f"{one['measure']} {one['matching']}"
    return next((str(one[name]) for name in _NAMES if name in one), None)


def differences(said: Any, expected: Any) -> list[str]:
    """Numbers of a report that nobody has counted again, that are missing, or that are wrong."""
    found, counted = dict(numbers(said)), dict(numbers(expected))
    lines = [f"{path} = {found[path]}: not counted again" for path in found if path not in counted]
    lines += [f"{path}: missing, counted {counted[path]}" for path in counted if path not in found]
    for path in found.keys() & counted.keys():
        one, right = found[path], counted[path]
        if not (right(one) if callable(right) else one == pytest.approx(right, rel=1e-9, abs=1e-9)):
            lines.append(f"{path} = {one}: {getattr(right, '__doc__', None) if callable(right) else right} counted")
    return sorted(lines)


def between(low: Number, high: Number) -> Callable[[Number], bool]:
    """A check of a number that cannot be known exactly."""

    def lies_between(number: Number) -> bool:
        return low - 1e-9 <= number <= high + 1e-9

    lies_between.__doc__ = f"{low} to {high}"
    return lies_between


def at_most(high: Number) -> Callable[[Number], bool]:
    """Between 0 and this number."""
    return between(0, high)


def about(number: Number) -> Callable[[Number], bool]:
    """A stored similarity, which a server may return as a 32-bit float."""
    return between(number - 1e-6, number + 1e-6)


# Formulas


def detection(similarity: float, bands: int, rows: int) -> float:
    """Probability that two signatures with this share of equal slots have an equal band, added up over the number of
    equal bands."""
    equal = math.prod([similarity] * rows)
    return math.fsum(math.comb(bands, k) * equal**k * (1 - equal) ** (bands - k) for k in range(bands, 0, -1))


def chosen_bands(threshold: float, wanted: float = 0.99, slots: int = 128) -> tuple[int, int]:
    """Of all bands that reach the wanted probability: those with most rows, and of these the fewest."""
    reached = [
        (rows, -bands)
        for bands in range(1, slots + 1)
        for rows in range(1, min(32, slots // bands) + 1)
        if detection(threshold, bands, rows) >= wanted
    ]
    rows, bands = max(reached)
    return -bands, rows


# Texts


def joined(source: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """The text of a document; None if a field has an object."""
    parts: list[str] = []
    for name in fields:
        value = source.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                return None
            if one is not None:
                parts.append(one if isinstance(one, str) else str(one))
    return "\n".join(parts)


def places(text: str) -> list[tuple[int, int]]:
    """Where the words of a text are, in a language that separates them by blanks."""
    return [one.span() for one in re.finditer(r"\w+", text)]


Passage = tuple[int, int, int]
"""First word in a, first word in b, number of words."""


def passages(a: Sequence[str], b: Sequence[str], minimum: int = 5) -> list[Passage]:
    """Greedy string tiling by its definition: again and again the longest run of words that are still free."""
    if a == b:
        return [(0, 0, len(a))] if a else []
    free_a, free_b = [True] * len(a), [True] * len(b)
    where: dict[str, list[int]] = {}
    for j, word in enumerate(b):
        where.setdefault(word, []).append(j)
    found: list[Passage] = []
    while True:
        longest = (0, 0, 0)
        for i, word in enumerate(a):
            for j in where.get(word, ()):
                size = 0
                while (
                    i + size < len(a)
                    and j + size < len(b)
                    and a[i + size] == b[j + size]
                    and free_a[i + size]
                    and free_b[j + size]
                ):
                    size += 1
                longest = max(longest, (size, i, j), key=lambda one: (one[0], -one[1] - one[2]))
        size, i, j = longest
        if size < minimum:
            return sorted(found)
        found.append((i, j, size))
        free_a[i : i + size] = free_b[j : j + size] = [False] * size


def word_edits(a: Sequence[object], b: Sequence[object]) -> int:
    """Words to insert, delete or replace, by the table of Wagner and Fischer."""
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


@cache
def shingle_set(text: str, size: int) -> frozenset[int]:
    return frozenset(oracle_features(list(tokens_of(text)), size))


@cache
def tokens_of(text: str) -> tuple[str, ...]:
    return tuple(oracle_tokens(text))


@lru_cache
def scheme_id(scheme: Scheme) -> str:
    return scheme.id


@cache
def fingerprint_of(text: str, scheme: Scheme, max_chars: int) -> Fingerprint:
    return oracle(text, scheme, max_chars)


# The index


@dataclass(frozen=True)
class Document:
    """A document with its current text, and what is stored about it."""

    id: str
    index: str
    source: JSON
    stored: JSON
    version: tuple[int, int]
    """Changed by each write of what is stored."""
    own: JSON
    """All ``neardupe`` fields in the document itself."""
    own_version: tuple[int, int]
    """Changed by each write of the document."""
    text: str | None
    scheme: Scheme
    max_chars: int

    @cached_property
    def made(self) -> Fingerprint | None:
        """The fingerprint of the current text; None if it has an object."""
        return None if self.text is None else fingerprint_of(self.text, self.scheme, self.max_chars)

    @property
    def state(self) -> str:
        return "failed" if self.made is None else self.made.state.value

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tokens_of(self.text or "")

    @cached_property
    def shingles(self) -> frozenset[int]:
        return shingle_set(self.text or "", self.scheme.shingle)

    @cached_property
    def processed(self) -> bool:
        """Whether it has a fingerprint of the scheme."""
        return self.stored.get("scheme") == scheme_id(self.scheme)

    @property
    def corrupt(self) -> bool:
        """Whether it has a fingerprint of the scheme that no program has written."""
        state, content = self.stored.get("state"), self.stored.get("content")
        keyed = state in ("signed", "short")
        known = keyed or state in ("empty", "too_large", "failed")
        return self.processed and not (known and bool(re.fullmatch("[0-9a-f]{32}", content or "")) == keyed)

    @cached_property
    def content(self) -> str | None:
        return self.stored.get("content") if self.processed and not self.corrupt else None

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(self.stored.get("bands") or ()) if self.content else frozenset()

    @cached_property
    def stale(self) -> bool:
        """Whether the text is not the one that the keys were made from."""
        return bool(self.content) and (self.made is None or self.made.content != self.content)

    @property
    def waits(self) -> bool:
        return self.processed and self.stored.get("similarity") is None

    @property
    def group(self) -> str | None:
        return self.stored.get("group")


@dataclass(frozen=True)
class Snapshot:
    """All documents of an index, read by one plain search."""

    documents: dict[str, Document]
    scheme: Scheme
    orphans: int
    """Entries of a sidecar index whose documents were deleted."""
    evidence: dict[str, JSON]
    """The hidden index of pairs."""
    measure: Callable[[Document, Document], float]
    """What decides about a match."""
    compared: frozenset[frozenset[str | None]] | None = None
    """The pairs of texts that were compared, if others of large buckets were skipped."""
    allowed: Callable[[Document, Document], bool] = lambda one, other: True
    """Whether two texts may match, however similar they are."""

    @classmethod
    def of(
        cls,
        client: Client,
        index: str,
        fields: Sequence[str],
        scheme: Scheme,
        max_chars: int,
        *,
        keys_apart: bool,
        prefix: str = "neardupe",
    ) -> Snapshot:
        """``keys_apart``: in a sidecar index."""
        sidecar, pairs = (f"{index}-{prefix}-{name}" for name in ("sidecar", "pairs"))
        found: dict[str, dict[str, JSON]] = {name: {} for name in (index, sidecar, pairs)}
        for hit in hits(client, f"{index},{sidecar},{pairs}", ignore_unavailable=True):
            found[hit["_index"]][hit["_id"]] = hit
        raw = found[index]
        stored = found[sidecar] if keys_apart else raw
        documents = {}
        for id, hit in sorted(raw.items()):
            there = stored.get(id)
            documents[id] = Document(
                id,
                hit["_index"],
                {name: value for name, value in hit["_source"].items() if name != prefix},
                there["_source"].get(prefix, {}) if there else {},
                (there["_seq_no"], there["_version"]) if there else (-1, -1),
                hit["_source"].get(prefix, {}),
                (hit["_seq_no"], hit["_version"]),
                joined(hit["_source"], fields),
                scheme,
                max_chars,
            )
        evidence = {id: hit["_source"] for id, hit in found[pairs].items()}
        return cls(documents, scheme, len(stored.keys() - raw.keys()), evidence, _resemblance)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents.values())

    def __getitem__(self, id: str) -> Document:
        return self.documents[id]

    def count(self, condition: Callable[[Document], Any]) -> int:
        """Number of documents with a property."""
        return sum(bool(condition(one)) for one in self)

    @cached_property
    def texts(self) -> dict[str, list[Document]]:
        """Content hash -> the documents with it, in the order of principals."""
        found: dict[str, list[Document]] = {}
        for one in sorted(self, key=in_order):
            if one.content and not one.corrupt:
                found.setdefault(one.content, []).append(one)
        return found

    @cached_property
    def sharing(self) -> list[tuple[str, str]]:
        """Pairs of different texts, by their content hashes, that share a band key, in the order of principals."""
        keys = {content: some[0].keys for content, some in self.texts.items()}
        return [(a, b) for a, b in combinations(self.texts, 2) if keys[a] & keys[b]]

    @cached_property
    def candidates(self) -> list[tuple[str, str]]:
        """Those of them that were not skipped."""
        return [pair for pair in self.sharing if self.compared is None or frozenset(pair) in self.compared]

    @cached_property
    def skipped(self) -> int:
        """Each pair once, however many keys it shares."""
        return len(self.sharing) - len(self.candidates)

    def current(self, content: str) -> list[Document]:
        """The documents with this text whose text has not changed."""
        return [one for one in self.texts[content] if not one.stale]

    def similarity(self, a: str, b: str) -> float:
        """Resemblance of two documents by their current texts."""
        return resemblance(self[a].shingles, self[b].shingles)

    def similar_texts(self, minimum: float, maximum: float = 1.0) -> dict[tuple[str, str], float]:
        """The candidates that match."""
        found = {}
        for a, b in self.candidates:
            one, other = self.current(a), self.current(b)
            if not (one and other and self.allowed(one[0], other[0])):
                continue
            if minimum <= (value := self.measure(one[0], other[0])) <= maximum:
                found[a, b] = value
        return found

    def sizes(self) -> Counter[str]:
        """Stored group id -> number of its documents, for groups of two or more."""
        every = Counter(one.group for one in self if one.group)
        return Counter({group: size for group, size in every.items() if size > 1})

    def changed(self, earlier: Snapshot) -> list[Document]:
        """Documents whose stored fields were written since."""
        return [one for one in self if one.version != earlier[one.id].version] if earlier else list(self)

    def star(self, minimum: float, maximum: float = 1.0) -> Star:
        """The groups by star linkage of the current texts."""
        return star(self, self.similar_texts(minimum, maximum))

    def clusters(self, minimum: float) -> dict[str, str]:
        """The name of the cluster of each text: of everything that a chain of matches connects."""
        group = {content: content for content in self.texts if self.current(content)}
        for a, b in self.similar_texts(minimum):
            one, other = group[a], group[b]
            group = {content: one if name == other else name for content, name in group.items()}
        return group

    def complete(self, minimum: float) -> tuple[Star, int]:
        """The groups by complete linkage, and the number of pairs that had to be compared although they are no
        candidates: in the order of principals, each free text joins if it matches all members, in the order in which
        they joined."""
        cluster, candidates = self.clusters(minimum), set(map(frozenset, self.candidates))
        free = sorted(cluster, key=lambda content: in_order(self.current(content)[0]))
        members: dict[str, dict[str, float]] = {}
        compared = 0
        while free:
            joined = [free[0]]
            for other in free[1:]:
                for one in joined if cluster[other] == cluster[joined[0]] else ():
                    a, b = self.current(one)[0], self.current(other)[0]
                    compared += frozenset((one, other)) not in candidates
                    if self.measure(a, b) < minimum or not self.allowed(a, b):
                        break
                else:
                    joined += [other] if cluster[other] == cluster[joined[0]] else []
            free = [content for content in free if content not in joined]
            first = self.current(joined[0])[0]
            found = {
                one.id: 1.0 if content == joined[0] else self.measure(first, one)
                for content in joined
                for one in self.current(content)
            }
            members[first.id] = found
        return Star(members), compared

    def chain(self, minimum: float) -> Star:
        """The groups by chain linkage."""
        group = self.clusters(minimum)
        members: dict[str, dict[str, float]] = {}
        for name in set(group.values()):
            some = [one for content, mine in group.items() if mine == name for one in self.current(content)]
            first, *others = sorted(some, key=in_order)
            others.sort(key=lambda one: one.content != first.content)
            members[first.id] = {
                one.id: 1.0 if one.content == first.content else self.measure(first, one) for one in [first, *others]
            }
        return Star(members)


def resemblance(a: frozenset[int], b: frozenset[int]) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


def _resemblance(a: Document, b: Document) -> float:
    return resemblance(a.shingles, b.shingles)


def in_order(one: Document) -> tuple[int, str, str]:
    """The order of principals: the longest text first, then by id."""
    return -one.stored.get("tokens", 0), one.id, one.index


@dataclass(frozen=True)
class Star:
    """Groups: the id of the principal -> the ids of its members, the principal first, and their similarities to it."""

    members: dict[str, dict[str, float]]

    @property
    def groups(self) -> list[dict[str, float]]:
        """Those of two or more documents."""
        return [one for one in self.members.values() if len(one) > 1]

    @property
    def sizes(self) -> list[int]:
        return [len(one) for one in self.groups]

    def numbers(self) -> JSON:
        """As `what-if` and `distribution` report them."""
        return {"groups": len(self.groups), "grouped": sum(self.sizes), "largest": max(self.sizes, default=0)}


def star(
    index: Snapshot, matches: Mapping[tuple[str, str], float], *, stale: bool = False, containment: bool = False
) -> Star:
    """The groups by star linkage.

    ``stale``: documents with changed texts count too, as for a command that reads no texts.
    """
    documents = {content: index.texts[content] if stale else index.current(content) for content in index.texts}
    order = sorted(
        (content for content, some in documents.items() if some), key=lambda one: in_order(documents[one][0])
    )
    place = {content: number for number, content in enumerate(order)}
    values = {(min(place[a], place[b]), max(place[a], place[b])): value for (a, b), value in matches.items()}
    sizes = [len(documents[content]) for content in order]
    members: dict[str, dict[str, float]] = {}
    principal = star_model(values, sizes, containment=containment)
    for first in sorted(set(principal)):
        texts = [first, *(text for text, one in enumerate(principal) if one == first != text)]
        found = {
            one.id: 1.0 if text == first else values[min(text, first), max(text, first)]
            for text in texts
            for one in documents[order[text]]
        }
        members[next(iter(found))] = found
    return Star(members)


def address_hash(one: Document, seed: int) -> int:
    """What decides about a random sample: a hash of the address."""
    return xxh3_64_intdigest(f"{one.index}\0{one.id}".encode(), seed)
