"""How texts are prepared before they are normalised: what is left out of them, and what is masked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from es_neardupe.errors import SettingsError
from es_neardupe.keys.prepare import masks
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.options import Clean, Mask
from es_neardupe.wording import option

_PLACED_CHARACTERS = 1 << 22
_PLACED_WORDS = 1 << 18
"""Of a page, with its references, and its tags twice. With more, finding the places of its words takes seconds."""
_PLACED_MASKED = 1 << 20
"""Characters of a text with masks, likewise."""

Text = str | Sequence[str]
"""A text, or the values of the fields that it consists of; each value is prepared by itself."""


def length(text: Text) -> int:
    """The number of characters of a text, with one between values."""
    return len(text) if isinstance(text, str) else sum(map(len, text)) + max(len(text) - 1, 0)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is left out of texts, and what is masked then. Part of a scheme."""

    clean: Clean | None = None
    masks: tuple[Mask, ...] = ()
    """In the order in which they are tried."""

    @classmethod
    def named(cls, clean: str | None, mask: str | Iterable[str]) -> Preparation:
        """By names. ``mask``: some kinds, also separated by commas, or ``all``. Raises `SettingsError` for unknown
        names."""
        cleans, kinds = [one.value for one in Clean], [one.value for one in Mask]
        if clean is not None and clean not in cleans:
            raise SettingsError(f"{option('clean')} must be one of {', '.join(cleans)}, not {clean!r}.")
        given = [
            part.strip() for name in ([mask] if isinstance(mask, str) else mask) for part in name.split(",") if part
        ]
        given = kinds if given == ["all"] else given
        if unknown := [name for name in given if name not in kinds]:
            raise SettingsError(f"{option('mask')} knows all, {', '.join(kinds)}, not {', '.join(unknown)}.")
        return cls(None if clean is None else Clean(clean), tuple(one for one in Mask if one in given))

    def __bool__(self) -> bool:
        """Whether it changes any text."""
        return self.clean is not None or bool(self.masks)

    def __str__(self) -> str:
        """As the options that choose it."""
        clean = [] if self.clean is None else [f"{option('clean')} {self.clean.value}"]
        return ", ".join([*clean, *([f"{option('mask')} {self.mask}"] if self.masks else [])]) or "none"

    @property
    def mask(self) -> str:
        """The names of the masks, as in the scheme."""
        return ",".join(one.value for one in self.masks)

    @property
    def keeps_only_places(self) -> bool:
        """Whether the only numbers that are left are those of places in source code, such as ``Name.java:52``, and
        the status of HTTP."""
        return {Mask.SOURCE, Mask.DIGITS} <= {*self.masks}

    @property
    def whole(self) -> Preparation:
        """That for passages: all that readers see stays, also quotes and furniture of pages, and nothing is masked."""
        return Preparation(Clean.HTML if self.clean in (Clean.HTML, Clean.HTML_MAIN) else None)

    def text(self, text: Text) -> str:
        """A text as its keys are made of it: the prepared values, one per line."""
        return self._value(text) if isinstance(text, str) else "\n".join(map(self._value, text))

    def texts(self, texts: Iterable[Text]) -> list[str]:
        """Each of some texts."""
        if self:
            return [self.text(text) for text in texts]
        return [text if isinstance(text, str) else "\n".join(text) for text in texts]

    def placed(self, text: Text) -> PlacedText:
        """The same with the place of each character in the original."""
        values = [text] if isinstance(text, str) else text
        return PlacedText.joined([self._placed(value) for value in values]) if values else PlacedText("", "")

    def _value(self, value: str) -> str:
        return self._masked(self._cleaned(value))

    def _masked(self, cleaned: str) -> str:
        return masks.masked(cleaned, self.masks) if self.masks else cleaned

    def _cleaned(self, value: str) -> str:
        return value if self.clean is None else _cleaner(self.clean)(value)

    def _placed(self, value: str) -> PlacedText:
        if self._takes_long_to_place(value):
            return _as_prepared(self._value(value))
        if self.clean is None:
            cleaned = PlacedText(value, value)
        elif self.clean is Clean.MAIL:
            from es_neardupe.keys.prepare import mail, mime

            if mime.text_of(value) is not None:  # whose words are none of the original
                return _as_prepared(self._value(value))
            cleaned = PlacedText.of_pieces(value, mail.own_pieces(value))
        else:
            from es_neardupe.keys.prepare import html

            cleaned = html.placed(value, main=self.clean is Clean.HTML_MAIN)
        if not self.masks:
            return cleaned
        return cleaned.then(PlacedText.of_pieces(cleaned.prepared, masks.masked_pieces(cleaned.prepared, self.masks)))

    def _takes_long_to_place(self, value: str) -> bool:
        if self.clean in (Clean.HTML, Clean.HTML_MAIN) and len(value) > _PLACED_WORDS:
            if len(value) > _PLACED_CHARACTERS:
                return True
            if len(value.split()) + 2 * value.count("<") + value.count("&") > _PLACED_WORDS:
                return True
        return bool(self.masks) and len(value) > _PLACED_MASKED


@cache
def _cleaner(clean: Clean) -> Callable[[str], str]:
    """What a rule leaves of a value."""
    if clean is Clean.MAIL:
        from es_neardupe.keys.prepare import mail, mime  # phrases are loaded for mails only

        def own_text(value: str) -> str:
            message = mime.text_of(value)
            return mail.own_text(value) if message is None else mail.own_text(message, passes_on=mime.passes_on(value))

        return own_text
    from es_neardupe.keys.prepare import html  # the parser is loaded for pages only

    return partial(html.text, main=clean is Clean.HTML_MAIN)


def _as_prepared(text: str) -> PlacedText:
    return PlacedText(text, text, as_prepared=True)


AS_IT_IS = Preparation()
"""It changes nothing."""
