"""The words and facts of one text as arrays, found once and compared with those of other texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from es_neardupe.keys.arrays import U64, Ints, Octets
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.keys.shingles import token_runs
from es_neardupe.keys.text import Range
from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.fact_keys import NUMBER, QUANTITY, code_key, number_key, value_of
from es_neardupe.similarity.facts.marks import marks_of
from es_neardupe.similarity.facts.readable import readable
from es_neardupe.similarity.facts.reader import Tokens
from es_neardupe.similarity.facts.scanner import scan
from es_neardupe.similarity.facts.token_flags import TokenFlag, flags_of

TITLE = 20
"""Maximum number of tokens of a title. A first line is a title if there are as many tokens below it."""

_LINES = 10
"""Lines that show how wide a text is."""

_PACK = re.compile(rf"(?P<each>{QUANTITY}.+)x(?P<count>[^x]+)")
"""The key of a pack with one number of pieces."""

_SPACED_CODE = 3
"""Maximum number of letters of a code that is written with a blank, such as ``A 12``."""


class SlotToken(NamedTuple):
    """A token of a part of a text."""

    number: int
    kind: FactKind | None
    """None: a word."""
    key: str
    hash: np.uint64
    flags: int
    mark: FactKind | None
    """Stamp, counter or contact."""
    start: int
    """The first character in the prepared text."""
    written: str
    """As in the prepared text."""
    has_stop: bool
    """Whether a full stop follows."""


@dataclass(frozen=True)
class FactTokens:
    """The tokens of a text. They take about 30 bytes a word, besides the text."""

    placed: PlacedText
    """The text, of which the prepared form in NFC is divided into tokens."""
    keys: U64
    """Hash of the key of each token: equal tokens have equal ones."""
    flags: Octets
    """uint8[tokens]: `TokenFlag`."""
    spans: Ints
    """int64[tokens, 2]: first character in the prepared text, and the one after the last."""
    kinds: Mapping[int, FactKind]
    """The kind of each token that is a fact, by its number."""
    values: Mapping[int, str]
    """The key of each token that is not that of a word as written, by its number."""
    marks: Mapping[int, FactKind]
    """The facts that are stamps, counters or contacts, by their number."""
    title: int
    """The number of tokens of the title; 0 without one."""
    spaced_codes: Mapping[str, tuple[int, ...]] = field(repr=False)
    """The keys of codes as which a word and a number, or a number and a code, may be read, such as ``A 12`` and
    ``55 R16``, with the numbers of the first tokens."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def text(self) -> str:
        """The prepared text in NFC."""
        return self.placed.prepared

    @cached_property
    def original_spans(self) -> Ints:
        """int64[tokens, 2]: the same in the original text."""
        places = (self.placed.original_range(start, end) for start, end in self.spans.tolist())
        return np.array(list(places), np.int64).reshape(-1, 2)

    @cached_property
    def codes(self) -> frozenset[str]:
        """The keys of all codes."""
        return frozenset(self.values[k] for k, kind in self.kinds.items() if kind is FactKind.CODE)

    @cached_property
    def lower(self) -> U64:
        """The words that occur in lower case, sorted."""
        return np.unique(self.keys[self.flags & TokenFlag.LOWER != 0])

    @cached_property
    def inner(self) -> U64:
        """The words that are capitalised inside a sentence, sorted."""
        return np.unique(self.keys[self.flags & TokenFlag.INNER != 0])

    @cached_property
    def all_keys(self) -> U64:
        """All keys, sorted."""
        return np.unique(self.keys)

    def characters(self, first: int, end: int) -> Range:
        """A range of tokens as a range of characters of the prepared text. An empty one is a position after a token."""
        if first == end:
            at = int(self.spans[first - 1, 1]) if first else 0
            return at, at
        return int(self.spans[first, 0]), int(self.spans[end - 1, 1])

    def part(self, first: int, end: int) -> Part:
        """A range of tokens."""
        return Part(self, first, end)

    def with_codes_joined(self, codes: frozenset[str]) -> FactTokens:
        """The same with ``A 12`` as one code, if ``codes`` has it."""
        joined = {k: key for key, its in self.spaced_codes.items() if key in codes for k in its}
        if not joined:
            return self
        kept = np.ones(len(self), np.bool_)
        keys, spans, flags = self.keys.copy(), self.spans.copy(), self.flags.copy()
        numbers = sorted(joined)
        kept[[k + 1 for k in numbers]] = False
        keys[numbers] = _hashes([joined[k] for k in numbers])
        spans[numbers, 1] = spans[[k + 1 for k in numbers], 1]
        flags[numbers] &= TokenFlag.START.value
        place = np.cumsum(kept) - 1

        def moved(its: Mapping[int, FactKind]) -> dict[int, FactKind]:
            return {int(place[k]): one for k, one in its.items() if kept[k]}

        return replace(
            self,
            keys=keys[kept],
            flags=flags[kept],
            spans=spans[kept],
            kinds=moved({**self.kinds, **dict.fromkeys(numbers, FactKind.CODE)}),
            values={int(place[k]): one for k, one in {**self.values, **joined}.items() if kept[k]},
            marks=moved(self.marks),
            spaced_codes={},
        )

    def with_packs_divided(self, other: FactTokens) -> FactTokens:
        """The same with ``24 x 85 g`` as ``85 g``, if another title has this and a number 24 elsewhere, as in ``85 g,
        pack of 24``."""
        packs = {k: match for k in self.kinds if (match := _PACK.fullmatch(self.values[k]))}
        others = frozenset(other.values.values()) if packs else frozenset()
        divided = {
            k: one["each"]
            for k, one in packs.items()
            if one["each"] in others and self.values[k] not in others and number_key(one["count"]) in others
        }
        if not divided:
            return self
        keys = self.keys.copy()
        keys[[*divided]] = _hashes(divided.values())
        return replace(self, keys=keys, values={**self.values, **divided})


class Part:
    """A range of tokens of one text."""

    def __init__(self, text: FactTokens, first: int, end: int) -> None:
        self.text, self.first, self.end = text, first, end
        self.characters = text.characters(first, end)
        """A range of characters of the prepared text."""
        self.written = text.placed.prepared[slice(*self.characters)]
        """The words as in the prepared text."""
        self._tokens: list[SlotToken] | None = None  # a cached_property takes a lock, which is slow before Python 3.12

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def tokens(self) -> list[SlotToken]:
        """The tokens."""
        if self._tokens is None:
            self._tokens = self._found()
        return self._tokens

    @property
    def facts(self) -> list[SlotToken]:
        """The tokens that are facts."""
        return [one for one in self.tokens if one.kind is not None]

    def _found(self) -> list[SlotToken]:
        text, places = self.text, slice(self.first, self.end)
        written = text.placed.prepared
        found = []
        for number, (start, end), key, flags in zip(
            range(self.first, self.end),
            text.spans[places].tolist(),
            text.keys[places],
            text.flags[places].tolist(),
            strict=True,
        ):
            word = written[start:end]
            value = text.values.get(number) or word.lower()
            kind, mark = text.kinds.get(number), text.marks.get(number)
            has_stop = written.startswith(".", end)
            found.append(SlotToken(number, kind, value, key, flags, mark, start, word, has_stop))
        return found


def fact_tokens(text: str | PlacedText) -> FactTokens:
    """Find the words and facts of a text, once for all comparisons. Of a prepared text, those that are left."""
    placed = readable(PlacedText(text, text) if isinstance(text, str) else text)
    tokens = scan(placed.prepared)
    kinds, marks = tokens.kinds, marks_of(placed.prepared, tokens)
    if not marks:  # a text that is only a contact
        for k, kind in kinds.items():
            if kind is FactKind.CONTACT:
                kinds[k] = FactKind.NUMBER if tokens.keys[k][0] == "p" else FactKind.CODE
    spans = np.stack([np.frombuffer(side, np.int64) for side in (tokens.starts, tokens.ends)], axis=1)
    keys, title = _hashes(tokens.keys), _title_size(placed.prepared, tokens)
    return FactTokens(
        placed,
        keys,
        flags_of(placed.prepared, tokens, title),
        spans,
        kinds,
        tokens.values,
        marks,
        title,
        _spaced_codes(tokens),
    )


def _hashes(keys: Iterable[str]) -> U64:
    hashes, _ = token_runs([" ".join(keys).encode("utf-8", "surrogatepass")])
    return hashes


def _title_size(text: str, tokens: Tokens) -> int:
    """The number of tokens of the first line if it is a title, and not the beginning of a paragraph: if a word in lower
    case follows, or one that has no room in the line, the line is wrapped."""
    end = text.find("\n")
    size = sum(one <= end for one in tokens.ends[: TITLE + 1])
    if not 0 < size <= TITLE <= len(tokens) - size:
        return 0
    following = tokens.starts[size]
    lines = text[end + 1 :].split("\n", _LINES)
    if lines[0].strip():
        width = max(map(len, lines[:_LINES]))
        if text[following].islower() or end + 1 + tokens.ends[size] - following > width:
            return 0
    return size


def _spaced_codes(tokens: Tokens) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for k, kind in tokens.kinds.items():
        before = tokens.keys[k - 1] if k else ""
        if kind is FactKind.NUMBER and k and k - 1 not in tokens.kinds and len(before) <= _SPACED_CODE:
            found.setdefault(code_key(before + value_of(tokens.keys[k])), []).append(k - 1)
        elif kind is FactKind.CODE and before.startswith(NUMBER):
            found.setdefault(code_key(value_of(before) + value_of(tokens.keys[k])), []).append(k - 1)
    return {key: tuple(its) for key, its in found.items()}
