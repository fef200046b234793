"""What the preparation of a scheme leaves of the texts of an index, with examples: for those who choose it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from es_neardupe.display_text import beginning
from es_neardupe.keys.prepare.preparation import Preparation, Text
from es_neardupe.keys.text import word_counts
from es_neardupe.options import Clean

_EXAMPLES = 3
_CHARACTERS = 300
_CONTEXT = 15
"""Words before the first difference."""

_PAGE = (
    "<html><head><title>Harbour news</title></head><body><nav><a href=/>Home</a> <a href=/news>News</a></nav>"
    "<main><h1>The bridge is open</h1><p>The <b>new</b> bridge was opened on Monday.</p></main>"
    "<footer>All rights reserved</footer></body></html>"
)
_MAIL = (
    "Monday at ten suits me, and I bring the plans.\n\nOn 3 Mar 2026 at 09:10, Ann Example wrote:\n"
    "> Shall we meet on Monday?\n\n-- \nBob Example"
)
_LINE = "2026-06-21T10:00:16.759Z INFO [thread-46] GET /api/v1/items/90499 took 32319ms from 10.0.0.7"


@dataclass(frozen=True)
class PreparedExample:
    """A text before and after its preparation, both from shortly before the first difference, and shortened."""

    id: str | None
    """Id of the document; None for a text of this program."""
    before: str
    after: str


@dataclass(frozen=True)
class PreparedSample:
    """What a preparation leaves of random documents."""

    documents: int
    """Random documents with words that were read; 0 if there are none."""
    words: int
    """Their words; of pages, those that a browser shows."""
    left_out: int
    """Words that are left out."""
    examples: tuple[PreparedExample, ...]


def prepared_sample(preparation: Preparation, texts: Sequence[tuple[str, Text]]) -> PreparedSample | None:
    """What a preparation leaves of the texts of documents, given by id; None if it changes nothing. Without texts, the
    example is one of this program."""
    if not preparation:
        return None
    seen = word_counts(preparation.whole.texts(text for _, text in texts))
    left = word_counts(preparation.texts(text for _, text in texts))
    rows = [(one, text, words, kept) for (one, text), words, kept in zip(texts, seen, left, strict=True) if words]
    chosen: list[tuple[str | None, Text]] = [(one, text) for one, text, *_ in _typical(rows)]
    return PreparedSample(
        documents=len(rows),
        words=sum(words for _, _, words, _ in rows),
        left_out=sum(max(words - kept, 0) for _, _, words, kept in rows),
        examples=tuple(_example(preparation, *one) for one in chosen or [(None, _own(preparation))]),
    )


_Row = tuple[str, Text, int, int]
"""Id, text, words, and words that are left."""


def _typical(rows: Sequence[_Row]) -> list[_Row]:
    """Documents of which little, a middle share and much is left out; those of which nothing is come last."""
    ordered = sorted(rows, key=lambda row: (row[3] < row[2], -row[3] / row[2], row[0]))
    changed = [row for row in ordered if row[3] < row[2]] or ordered
    places = {len(changed) * (2 * number + 1) // (2 * _EXAMPLES) for number in range(_EXAMPLES)}
    return [changed[place] for place in sorted(places)] if changed else []


def _own(preparation: Preparation) -> str:
    if preparation.clean is Clean.MAIL:
        return _MAIL
    return _LINE if preparation.clean is None else _PAGE


def _example(preparation: Preparation, id: str | None, text: Text) -> PreparedExample:
    before = (text if isinstance(text, str) else "\n".join(text)).split()
    after = preparation.text(text).split()
    same = next((number for number, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(after))
    return PreparedExample(id, _excerpt(before, same), _excerpt(after, same))


def _excerpt(words: Sequence[str], differs: int) -> str:
    """The words of a text from shortly before the first one that differs."""
    first = max(differs - _CONTEXT, 0)
    return "... " * (first > 0) + beginning(" ".join(words[first:]), _CHARACTERS)
