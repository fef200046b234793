"""Steps of ``groups``: the members of groups with their shown fields, and the report."""

from __future__ import annotations

from dataclasses import replace

from es_neardupe import options
from es_neardupe.groups.read import Group
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import ShownFields, read_shown_fields, shown_fields


def with_titles(index: Index, found: list[Group], fields: options.TitleFields = ()) -> list[Group]:
    """Some groups of an index with the ``fields`` to show of their principals, not of other members."""
    index = opened(index, groups=True)
    shown = shown_fields(index, fields)
    principals = [replace(one, members=one.members[:1]) for one in found]
    titled = with_fields(index, principals, shown)
    return [replace(one, members=(*head.members, *one.members[1:])) for one, head in zip(found, titled, strict=True)]


def with_fields(index: Index, found: list[Group], shown: ShownFields) -> list[Group]:
    """The groups with shown fields of all their members."""
    values = read_shown_fields(index, shown, [member.reference for one in found for member in one.members])
    return [
        replace(one, members=tuple(replace(two, fields=values.get(two.address, {})) for two in one.members))
        for one in found
    ]
