"""`distinct`: search hits, or any items, without near-duplicates. Needs no server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from es_neardupe.errors import SettingsError
from es_neardupe.index.document_text import readable_text, values_of
from es_neardupe.keys.arrays import U64
from es_neardupe.keys.shingles import features
from es_neardupe.lists import as_list
from es_neardupe.records import one_line
from es_neardupe.similarity.formulas import resemblance
from es_neardupe.wording import option

T = TypeVar("T")

_ROUNDING = 1e-9
"""So that a product that is a whole number is not rounded down to the one before."""


@dataclass(frozen=True)
class NearCopy(Generic[T]):
    """An item that was removed."""

    item: T
    kept: T
    """The item that is kept instead of it: the most similar one, the first of several."""
    similarity: float
    """Their resemblance."""


@dataclass(frozen=True)
class Distinct(Generic[T]):
    """Result of `distinct`: each item is in ``kept`` or in ``removed``, in the order in which they were given."""

    kept: tuple[T, ...]
    removed: tuple[NearCopy[T], ...]

    def __repr__(self) -> str:
        return one_line(self, kept=len(self.kept), removed=len(self.removed))


def distinct(
    items: Iterable[T],
    text: str | Callable[[T], str] | None = None,
    *,
    min: float = 0.8,
    shingle: int = 5,
    across: str | Callable[[T], Hashable] | None = None,
) -> Distinct[T]:
    """Remove each item whose text is a near-duplicate of that of an earlier item that is kept.

    The first of several near-duplicates is kept, so give the best items first, as a search returns them. Two items are
    near-duplicates if the resemblance of their texts is ``min`` or more: the share of common runs of ``shingle`` words
    (Broder 1997). It is computed exactly, and no pair is missed. Items whose text has no words are kept.

    ``text`` is a function that returns the text of an item, or the name of a field: of a mapping, or of the ``_source``
    of a search hit; dotted names refer to fields of objects. None: the items are texts. A missing field is no text.

    ``across``: a field, or a function that returns one value of an item: items with the same value, such as chunks of
    one document, are no near-duplicates of each other. An item without it (None) can be one of any other.

    Texts are compared only if they can be near-duplicates: with their features in one order, they then share one of the
    first ``|A| - min |A| + 1`` of each (prefix filter; Bayardo, Ma and Srikant 2007).

    Raises `SettingsError` for a wrong ``min`` or ``shingle``, and `TypeError` for an item without such a text.

    >>> news = ["a b c d e f g", "A B C D E F G!", "something else"]
    >>> found = distinct(news)
    >>> found.kept
    ('a b c d e f g', 'something else')
    >>> found.removed[0].kept, found.removed[0].similarity
    ('a b c d e f g', 1.0)
    """
    if not 0 < min <= 1:
        raise SettingsError(f"{option('min')} must be above 0, and at most 1.")
    if shingle < 1:
        raise SettingsError(f"{option('shingle')} must be 1 or more.")
    given = list(as_list("items", items))
    made = features([_text(item, text) for item in given], shingle)
    kept: list[int] = []
    removed: list[NearCopy[T]] = []
    values = [_values(item, across) for item in given]
    having: dict[int, list[int]] = defaultdict(list)
    """Feature -> the kept items that have it among their first ones."""
    for number, own in enumerate(made):
        first = own[: int((1 - min) * len(own) + _ROUNDING) + 1].tolist()
        found = {one for feature in first for one in having.get(feature, ())}
        candidates = sorted(one for one in found if values[number].isdisjoint(values[one]))
        similarity, twin = _most_similar(own, candidates, made, min)
        if twin is not None:
            removed.append(NearCopy(given[number], given[twin], similarity))
        else:
            kept.append(number)
            for feature in first:
                having[feature].append(number)
    return Distinct(tuple(given[number] for number in kept), tuple(removed))


def _most_similar(own: U64, candidates: Iterable[int], made: list[U64], min: float) -> tuple[float, int | None]:
    """The candidate with the greatest resemblance, if it is ``min`` or more."""
    best: tuple[float, int | None] = 0.0, None
    for one in candidates:
        similarity = resemblance(own, made[one])
        if similarity >= min and similarity > best[0]:
            best = similarity, one
    return best


def _text(item: Any, text: str | Callable[[Any], str] | None) -> str:
    found = text(item) if callable(text) else item if text is None else _field(item, text)
    if not isinstance(found, str):
        raise TypeError(f"{option('text')} must give a text for each item, not {type(found).__name__}.")
    return found


def _values(item: Any, across: str | Callable[[Any], Hashable] | None) -> frozenset[Hashable]:
    """The values by which two items can be of one kind; none for an item without a value."""
    if across is None:
        return frozenset()
    if not callable(across):
        return frozenset(values_of(_source(item, across, "across"), [across]))
    value = across(item)
    return frozenset() if value is None else frozenset([value])


def _field(item: Any, name: str) -> object:
    return readable_text(_source(item, name, "text"), [name])


def _source(item: Any, name: str, parameter: str) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise TypeError(
            f"Field {name!r} is for mappings, not for {type(item).__name__}: give a function as {option(parameter)}."
        )
    return item["_source"] if isinstance(item.get("_source"), Mapping) else item
