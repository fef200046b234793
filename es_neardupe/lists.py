"""Arguments that are lists: any collection, or an iterator, but never one text, which would be a list of letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from es_neardupe.errors import SettingsError
from es_neardupe.wording import option

_Item = TypeVar("_Item")


def as_list(name: str, values: Iterable[_Item]) -> Sequence[_Item]:
    """The values of the argument ``name``; an iterator is read. Raises `SettingsError` for any other value."""
    check_list(name, values)
    return values if isinstance(values, Sequence) else list(values)


def check_list(name: str, values: object) -> None:
    """Raises `SettingsError` for a value that is no list, such as one text. Does not read an iterator."""
    if isinstance(values, str | bytes):
        raise SettingsError(f"{option(name)} must be a list, not one text: [{values!r:.100}].")
    if not isinstance(values, Iterable):
        raise SettingsError(f"{option(name)} must be a list, not {values!r}.")
