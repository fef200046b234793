"""Fields with the URL, the date and the title of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.groups.rules import DATES, column_of, field_types
from es_neardupe.index.index import Index
from es_neardupe.index.target import IndexTarget, mappings_of

__all__ = ["AddressFields", "address_fields"]


_NAMES = {"url", "uri", "link", "permalink", "href", "address"}
"""What fields of addresses are called."""


@dataclass(frozen=True)
class AddressFields:
    """Fields that were named, or that are the only ones of their kind."""

    address: str
    """The keyword field, or the keyword part of a text field."""
    date: str
    longest: int | None
    """Longer addresses are not indexed (``ignore_above``); None: all are."""


def address_fields(index: Index, url_field: str | None, date_field: str | None) -> AddressFields:
    """Check the fields that were named, and find those that were not.

    Raises `SettingsError` for fields of another type, and where none or several could be meant: it names them.
    """
    kinds = field_types(index)
    address = _address(index.target, sorted(name for name, kind in kinds.items() if kind == "keyword"), url_field)
    date = (
        _date(index.target, kinds)
        if date_field is None
        else column_of(date_field, kinds, index.target, only=DATES).field
    )
    return AddressFields(address, date, _longest(index, address))


def _address(target: IndexTarget, keywords: Sequence[str], given: str | None) -> str:
    """The given field, or that of its parts which is a keyword; else the only one that is called like an address."""
    there = f"Keyword fields there: {', '.join(keywords)}." if keywords else "It has no keyword field at all."
    if given is not None:
        fitting = [name for name in keywords if name == given or name.rpartition(".")[0] == given]
        if given in fitting:
            return given
        if len(fitting) != 1:
            raise SettingsError(
                f"Index {target.name} has no keyword field {given!r}, nor a text with one keyword part; addresses "
                f"are found by their whole value. {there}"
            )
        return fitting[0]
    called = {_plain(name): name for name in keywords if _plain(name).rpartition(".")[2].lower() in _NAMES}
    if len(called) != 1:
        told = f"{len(called)} fields could hold addresses" if called else "No field is called like an address"
        raise SettingsError(f"{told} in index {target.name}: name one with `url_field`. {there}")
    return next(iter(called.values()))


def _plain(name: str) -> str:
    """``url`` of ``url.keyword``, as servers call the keyword part of a text that nobody mapped."""
    return name.removesuffix(".keyword")


def _date(target: IndexTarget, kinds: Mapping[str, str]) -> str:
    dates = sorted(name for name, kind in kinds.items() if kind in DATES)
    if not dates:
        raise SettingsError(
            f"Index {target.name} has no date field, so that nobody can say what came later. "
            f"`es-neardupe similar` lists near-duplicates of any age."
        )
    if len(dates) > 1:
        raise SettingsError(
            f"Several fields of index {target.name} are dates: name one with `date_field`. There: {', '.join(dates)}."
        )
    return dates[0]


def _longest(index: Index, name: str) -> int | None:
    """The least ``ignore_above`` of the field in any of the indices."""
    found = (_mapped(mapping, name).get("ignore_above") for mapping in mappings_of(index.client, index.path).values())
    return min((int(one) for one in found if one is not None), default=None)


def _mapped(mapping: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field, or a part of one, in a mapping; empty where it has no such."""
    for part in name.split("."):
        mapping = mapping.get("properties", {}).get(part) or mapping.get("fields", {}).get(part) or {}
    return mapping
