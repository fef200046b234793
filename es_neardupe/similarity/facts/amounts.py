"""Amounts of money: a number with its currency, its hundredths, or in brackets."""

from __future__ import annotations

import re

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import currencies
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.fact_keys import NUMBER, SHARE, amount_key, value_of, with_value
from es_neardupe.similarity.facts.numerals import is_loss
from es_neardupe.similarity.facts.raw_tokens import BLANKS
from es_neardupe.similarity.facts.reader import Reader
from es_neardupe.similarity.facts.spelled_numbers import spelled

_BEFORE_CELL = re.compile(r".?(?:[\t|]|[ \t][ |]|[\t|:] )", re.DOTALL)
_AFTER_CELL = re.compile(r"\)(?: ?[\t|\n]|  | ?$)")


class AmountReader(Reader):
    """Reads the currency of a number. Methods that read return the number of the next raw token, or 0."""

    def _amount(self, value: str, k: int, currency: str, start: int) -> int:
        """A number with its currency, which is given or at ``k``; 0 if there is none."""
        if not currency:
            currency, k = self._currency(k)
            if currency:
                value, k = self._with_cents(value, k)
            elif (currency := currencies.CENTS.get(self.near(k), "")) and self._is_cent(k):
                value, k = f"{float(value) / 100:.12g}", k + 1
            else:
                return 0
        self._add(FactKind.AMOUNT, amount_key(currency, value), start, self.raw[k - 1].end())
        return k

    def _is_cent(self, k: int) -> bool:
        """Whether a hundredth of a currency is at ``k``: ``50p`` is one, ``1080p`` and ``50 p.`` are none."""
        if self.raw[k][0] in ("p", "P"):
            return self._is_penny(k)
        return self.only_blanks_before(k)

    def _is_penny(self, k: int) -> bool:
        return self.raw[k][0] == "p" and self.is_adjacent(k) and len(self.raw[k - 1][0]) <= 2

    def _currency(self, k: int) -> tuple[str, int]:
        """The currency at ``k``, and what follows it; the empty string if there is none."""
        at = k
        if self.near(k) in ("de", "of", "d", "di") and self.has(k + 1):  # 5 millions d'euros
            at += self.text[self.raw[k].end() : self.raw[k + 1].start()] in (*BLANKS, "'", "’")
        currency = currencies.currency_named(self.raw[at][0]) if self.near(k) else ""
        is_abbreviated = self.raw[k - 1][0].lower() in words.MAGNITUDES  # 5 Mrd. Euro
        if not currency or not self.only_blanks_before(at, "'’." if is_abbreviated else "'’"):
            return "", k
        belongs_to_the_next = (
            self.raw[at].lastgroup == "sign" and self.is_adjacent(at + 1) and self.raw[at + 1].lastgroup == "number"
        )
        return ("", k) if belongs_to_the_next else (currency, at + 1)

    def _with_cents(self, value: str, k: int) -> tuple[str, int]:
        """An amount and what follows it, with ``and fifty cents`` at ``k``."""
        at = k + (self.near(k) in words.AND)
        written = self.near(at)
        if not (value.isdigit() and (written in words.SPELLED_NUMBERS or (written.isdigit() and len(written) <= 2))):
            return value, k
        cents, end = (int(written), at + 1) if written.isdigit() else spelled(self, at)
        return (
            (f"{value}.{cents:02}".rstrip("0").rstrip("."), end + 1)
            if self.near(end) in currencies.CENTS
            else (value, k)
        )

    def _bracketed(self) -> None:
        """An amount in brackets may be a negative one, and is one in a cell of a table."""
        tokens = self.tokens
        end = tokens.ends[-1]
        if not self.text.startswith(")", end):
            return
        last, start, key = len(tokens) - 1, tokens.starts[-1], tokens.keys[-1]
        if self.text[start - 1 : start] != "(" or ":-" in key:
            return
        is_amount = tokens.kinds.get(last) is FactKind.AMOUNT
        before = max(start - 3, 0), start - 1
        if _BEFORE_CELL.fullmatch(self.text, *before) and _AFTER_CELL.match(self.text, end):
            if is_amount or (key.startswith(NUMBER) and is_loss(self.text[start:end])):
                tokens.change_last(with_value(key, f"-{value_of(key)}"))
                tokens.starts[last], tokens.ends[last] = start - 1, end + 1
        elif is_amount or key.startswith(SHARE):
            tokens.change_last(with_value(key, f"({value_of(key)}"))
