"""Stage: the stored fingerprints of a whole index -> columns. Keys and counts, never texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.records import Address, Classes, Corpus, Grouping, Hit, Reference, State
from es_neardupe.schema import Fields

__all__ = ["classes_of", "read_corpus", "source_of"]

_READ = ("scheme", "state", "content", "bands", "tokens", "features", "group", "principal", "similarity")


def source_of(fields: Fields) -> list[str]:
    """What `read_corpus` has to read of a document."""
    return [f"{fields.prefix}.{name}" for name in _READ]


def read_corpus(pages: Iterable[Sequence[Hit]], prefix: str, bands: int) -> Corpus:
    """Take the pages apart into columns."""
    references: list[Reference] = []
    versions: list[tuple[int, int]] = []
    content: list[str] = []
    tokens: list[int] = []
    keys: list[NDArray[np.uint64]] = []
    group_ids: list[str | None] = []
    groupings: list[Grouping | None] = []
    states = dict.fromkeys((state.value for state in State), 0)
    corrupt: list[Address] = []
    for page in pages:
        page_keys: list[str] = []
        for hit in page:
            stored = documents.stored_fields(hit.source, prefix)
            try:
                fingerprint = documents.decode(stored)
                page_keys.append(_joined(fingerprint.bands, bands, fingerprint.state))
            except CorruptFingerprint:
                corrupt.append(hit.address)
                continue
            references.append((intern(hit.index), hit.id, hit.routing))
            versions.append((hit.seq_no or 0, hit.primary_term or 0))
            content.append(fingerprint.content)
            tokens.append(fingerprint.tokens)
            group_ids.append(_group_id(stored))
            groupings.append(documents.decode_grouping(stored))
            states[fingerprint.state.value] += 1
        keys.append(np.frombuffer("".join(page_keys).encode("latin-1"), np.uint64).reshape(-1, bands))
    return Corpus(
        references=references,
        versions=np.array(versions, np.int64).reshape(-1, 2),
        content=np.array(content, "S32"),
        tokens=np.array(tokens, np.int64),
        keys=np.concatenate(keys) if keys else np.zeros((0, bands), np.uint64),
        group_ids=group_ids,
        groupings=groupings,
        states=states,
        corrupt=corrupt,
    )


def _joined(keys: Sequence[str], bands: int, state: State) -> str:
    """The keys of one document in one string of ``8 * bands`` characters; NULs for a document without keys."""
    if state not in (State.SIGNED, State.SHORT):
        return "\0" * (8 * bands)
    if len(keys) != bands:
        raise CorruptFingerprint(f"{len(keys)} band keys where the scheme has {bands}.")
    return "".join(keys)


def _group_id(stored: Mapping[str, Any]) -> str | None:
    group = stored.get("group")
    return intern(group) if isinstance(group, str) else None


def classes_of(corpus: Corpus, copies: bool = True) -> Classes:
    """Gather the rows that have keys by their content hash; without ``copies`` each is a class of its own."""
    rows = np.flatnonzero(corpus.keys.any(axis=1))
    if not len(rows):
        return Classes([])
    by_id = np.array(sorted(rows.tolist(), key=lambda row: (corpus.references[row][1], corpus.references[row][0])))
    # Stable sorts, the least important key first: within a class by id, classes by length and then first id.
    same = corpus.content[by_id] if copies else np.arange(len(by_id))
    _, first, inverse = np.unique(same, return_index=True, return_inverse=True)
    order = np.lexsort((first, -corpus.tokens[by_id][first]))
    number = np.empty(len(order), np.intp)
    number[order] = np.arange(len(order))
    class_of = number[inverse.reshape(-1)]
    sorted_rows = by_id[np.argsort(class_of, kind="stable")]
    sizes = np.bincount(class_of)
    return Classes(np.split(sorted_rows, np.cumsum(sizes)[:-1]))
