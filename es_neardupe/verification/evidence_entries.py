"""Stage: verified pairs -> the documents that keep them as evidence, one a pair, and back.

The id of such a document is made of the addresses of the two, so that a pair has one however often it is verified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import portions
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Corpus, Hit
from es_neardupe.similarity.pair_relation import ComparedText, PairDescription, compared_texts, describe_pair
from es_neardupe.verification.known_pairs import PairMemory, packed

__all__ = ["READ", "Basis", "Judged", "Kept", "Plan", "decisions", "entries", "plan", "read_kept", "standing"]

Ints = NDArray[np.intp]
Bytes = NDArray[np.bytes_]
Reader = Callable[[Ints], Iterable[tuple[int, str]]]

READ = ["content_a", "content_b", "scheme", "measure", "value", "min", "max"]
"""The parts of an entry that `read_kept` needs."""

_HASH = re.compile("[0-9a-f]{32}")

_BATCH_TOKENS = 5_000_000
"""Tokens of the texts held at a time, unless one cluster of pairs alone has more."""


class Basis(NamedTuple):
    """By what pairs are judged."""

    scheme: str
    measure: str
    """In words, with the sample of its weights if it has any: equal words mean equal numbers."""
    min: float
    max: float


class Judged(NamedTuple):
    """Verified pairs of documents, each once. p pairs."""

    left: Ints
    """Rows of the corpus."""
    right: Ints
    value: NDArray[np.float64]
    """What the deciding measure says."""
    accepted: NDArray[np.bool_]


@dataclass(frozen=True)
class Kept:
    """The evidence as it was stored. e entries."""

    memory: PairMemory
    """Values of this scheme and measure."""
    pairs: Bytes
    """The ids as bytes: two numbers of addresses, S16[e]."""
    contents: NDArray[np.bytes_]
    """Content hashes of both sides as bytes, S16[e, 2]."""
    current: NDArray[np.bool_]
    """Whether an entry is of this scheme, bool[e]."""
    mine: NDArray[np.bool_]
    """Whether it is of this measure too, bool[e]."""
    limits: NDArray[np.float64]
    """Least and greatest value that was accepted, float64[e, 2]."""
    broken: tuple[str, ...]
    """Ids of entries that our code cannot have written."""

    def __len__(self) -> int:
        return len(self.pairs) + len(self.broken)


class Plan(NamedTuple):
    """What has to be written."""

    fresh: Ints
    """Numbers of judged pairs without an entry that holds."""
    judged_anew: Ints
    """Those whose entry holds, but was judged by other limits."""
    unchanged: int
    stale: list[str]
    """Ids of entries about a document that changed or went, and of those of another scheme."""


def read_kept(pages: Iterable[Sequence[Hit]], scheme: str, measure: str, memory: PairMemory | None = None) -> Kept:
    """Take the pages of entries apart into columns, and add their values to a memory (default: a new one)."""
    broken: list[str] = []
    memory = PairMemory() if memory is None else memory
    columns: list[tuple[NDArray[Any], ...]] = [_columns([], scheme, measure)[1:]]
    for page in pages:
        fine = [hit for hit in page if _readable(hit)]
        broken += [hit.id for hit in page if not _readable(hit)]
        hashes, *part = _columns(fine, scheme, measure)
        values = np.array([hit.source["value"] for hit in fine], np.float64)
        mine = part[3]
        memory.add(hashes[mine, 0], hashes[mine, 1], values[mine])
        columns.append(tuple(part))
    pairs, contents, current, mine, limits = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Kept(memory, pairs, contents, current, mine, limits, tuple(broken))


def _readable(hit: Hit) -> bool:
    source = hit.source
    hashes = hit.id, source.get("content_a"), source.get("content_b")
    words = source.get("scheme"), source.get("measure")
    numbers = [source.get(name) for name in ("value", "min", "max")]
    return (
        all(isinstance(one, str) and _HASH.fullmatch(one) for one in hashes)
        and all(isinstance(one, str) for one in words)
        and all(isinstance(one, int | float) and 0 <= one < 2 for one in numbers)  # a sum of weights may be above 1
    )


def _columns(hits: Sequence[Hit], scheme: str, measure: str) -> tuple[NDArray[Any], ...]:
    """Content hashes as they are, then the columns of `Kept`."""
    sources = [hit.source for hit in hits]
    hashes = np.array([[one["content_a"], one["content_b"]] for one in sources], "S32").reshape(-1, 2)
    current = np.array([one["scheme"] == scheme for one in sources], np.bool_)
    return (
        hashes,
        packed(np.array([hit.id for hit in hits], "S32")),
        packed(hashes.reshape(-1)).reshape(-1, 2),
        current,
        current & np.array([one["measure"] == measure for one in sources], np.bool_),
        np.array([[one["min"], one["max"]] for one in sources], np.float64).reshape(-1, 2),
    )


def plan(kept: Kept, judged: Judged, corpus: Corpus, basis: Basis, *, away: Collection[int], whole: bool) -> Plan:
    """Compare what is kept with what was judged. ``away`` are rows whose document changed or went; ``whole`` says that
    the corpus holds all documents of the index, so that what is not in it is gone."""
    numbers = _numbers(corpus)
    stale = ~standing(kept, corpus, away=away, whole=whole)
    live = np.flatnonzero(~stale & kept.mine)
    ids = _ids(numbers[judged.left], numbers[judged.right])
    place = _places(kept.pairs[live], ids)
    known = place >= 0
    same = known.copy()
    same[known] = (kept.limits[live[place[known]]] == (basis.min, basis.max)).all(axis=1)
    fresh = np.flatnonzero(~known)
    removed = kept.pairs[stale]
    return Plan(
        fresh=fresh,
        judged_anew=np.flatnonzero(known & ~same),
        unchanged=int(same.sum()),
        stale=[*_texts(removed[~np.isin(removed, ids[fresh])]), *kept.broken],
    )


def standing(kept: Kept, corpus: Corpus, *, away: Collection[int] = (), whole: bool = True) -> NDArray[np.bool_]:
    """Which entries are of this scheme and about contents that both documents still bear, as far as that is known;
    bool[e]. ``away`` and ``whole`` as for `plan`."""
    content = packed(corpus.content)
    content[list(away)] = b""
    rows = _places(_numbers(corpus), kept.pairs.view(">u8").astype(np.uint64)).reshape(-1, 2)
    borne = np.where(rows >= 0, np.append(content, b"")[rows], b"" if whole else kept.contents)
    found: NDArray[np.bool_] = kept.current & (borne == kept.contents).all(axis=1)
    return found


def _numbers(corpus: Corpus) -> NDArray[np.uint64]:
    """A number for the address of each row. (Two with the same one would share entries, which are then written
    anew each time, as their contents differ.)"""
    addresses = ("\0".join(reference[:2]).encode("utf-8", "surrogatepass") for reference in corpus.references)
    return np.fromiter(map(xxhash.xxh3_64_intdigest, addresses), np.uint64, len(corpus))


def _ids(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> Bytes:
    """The id of each pair as bytes, the side with the lesser number first; S16[p]."""
    both = np.stack([np.minimum(left, right), np.maximum(left, right)], axis=1)
    return both.astype(">u8").view("S16").reshape(-1)


def _texts(ids: Bytes) -> list[str]:
    """Ids as they are stored: 32 hexadecimal digits."""
    digits = ids.tobytes().hex()
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def _places(known: NDArray[Any], wanted: NDArray[Any]) -> Ints:
    """Where each of the wanted stands in ``known``, -1 for those that do not."""
    if not len(known):
        return np.full(len(wanted), -1, np.intp)
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[place] == wanted, place, -1)


def entries(
    index: str,
    corpus: Corpus,
    judged: Judged,
    basis: Basis,
    *,
    read: Reader,
    shingle: int,
    at: str,
    progress: Progress = silent,
) -> Iterator[Action]:
    """What to write of pairs, described by their present texts. ``read`` gives (row, text) of rows, without those
    that are no longer as they were fingerprinted: their pairs are left out."""
    numbers = _numbers(corpus)
    made = _described(corpus, judged, read, shingle)
    for k, found in tracked(made, progress, "describing pairs", len(judged.left)):
        sides = sorted((int(judged.left[k]), int(judged.right[k])), key=lambda row: int(numbers[row]))
        (id,) = _texts(_ids(numbers[sides[:1]], numbers[sides[1:]]))
        verdict = _decision(bool(judged.accepted[k]), basis, at) | {"measure": basis.measure, "scheme": basis.scheme}
        body = {**_addresses(corpus, sides), **verdict, "value": float(judged.value[k]), **_measures(found)}
        yield Action(op="index", index=index, id=id, body=body)


def _described(corpus: Corpus, judged: Judged, read: Reader, shingle: int) -> Iterator[tuple[int, PairDescription]]:
    """Pairs in clusters, so that each text is read once however many pairs it is in."""
    for portion in portions(judged.left, judged.right, corpus.tokens, _BATCH_TOKENS):
        rows = np.unique([judged.left[portion], judged.right[portion]])
        texts = dict(read(rows))
        words: dict[int, ComparedText] = dict(zip(texts, compared_texts(list(texts.values()), shingle), strict=True))
        for k in portion.tolist():
            one, other = words.get(int(judged.left[k])), words.get(int(judged.right[k]))
            if one and other:
                yield k, describe_pair(one, other, shingle)


def _addresses(corpus: Corpus, sides: Sequence[int]) -> dict[str, Any]:
    (index_a, id_a, _), (index_b, id_b, _) = (corpus.references[row] for row in sides)
    content_a, content_b = (corpus.content[row].decode() for row in sides)
    return {
        "a": {"index": index_a, "id": id_a},
        "b": {"index": index_b, "id": id_b},
        "content_a": content_a,
        "content_b": content_b,
    }


def _measures(found: PairDescription) -> dict[str, Any]:
    return {**asdict(found), "relation": found.relation.value}


def decisions(index: str, corpus: Corpus, judged: Judged, basis: Basis, at: str) -> Iterator[Action]:
    """The updates of entries that hold but for their limits."""
    numbers = _numbers(corpus)
    ids = _texts(_ids(numbers[judged.left], numbers[judged.right]))
    for id, accepted in zip(ids, judged.accepted.tolist(), strict=True):
        yield Action(op="update", index=index, id=id, body={"doc": _decision(accepted, basis, at)})


def _decision(accepted: bool, basis: Basis, at: str) -> dict[str, Any]:
    return {"decision": "accepted" if accepted else "rejected", "min": basis.min, "max": basis.max, "at": at}
