"""What is read of a text: tokens as columns, which readers append to."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.raw_tokens import RawTokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """The words and facts of a text, in order, as columns: most are words, of which there is nothing to say."""

    keys: list[str]
    """Equal tokens have equal keys: a word in lower case, or the normalised value of a fact after its type."""
    starts: array[int]
    """The first character of each, of 64 bits."""
    ends: array[int]
    """The one after its last."""
    kinds: dict[int, FactKind]
    """The kind of each fact, by its number, in order."""
    values: dict[int, str]
    """The key of each token that is not that of a word as written, by its number."""

    def __len__(self) -> int:
        return len(self.keys)

    def change_last(self, key: str) -> None:
        """Give the last token the key of another fact of the same kind."""
        self.keys[-1] = self.values[len(self) - 1] = key

    def remove_last(self) -> None:
        """Remove the last token, which is a part of the next one."""
        self.keys.pop()
        self.starts.pop()
        self.ends.pop()
        self.kinds.pop(len(self), None)
        self.values.pop(len(self), None)


class Reader(RawTokens):
    """A text whose tokens are read from the left."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.tokens = Tokens([], array("q"), array("q"), {}, {})

    def _add(self, kind: FactKind | None, key: str, start: int, end: int) -> None:
        tokens = self.tokens
        number = len(tokens.keys)
        if kind is not None:
            tokens.kinds[number] = kind
        if kind is not None or key != self.text[start:end].lower():
            tokens.values[number] = key
        tokens.keys.append(key)
        tokens.starts.append(start)
        tokens.ends.append(end)

    def _follows_a_fact(self, kind: FactKind | None = None) -> bool:
        last = self.tokens.kinds.get(len(self.tokens) - 1)
        return last is not None and kind in (None, last)
