"""Pages of groups with titles, as the web application, the HTTP interface and agents read them, in bounded requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from es_neardupe.commands.groups import groups
from es_neardupe.commands.search import search
from es_neardupe.errors import SettingsError
from es_neardupe.groups.decisions import Decisions
from es_neardupe.groups.listing import GroupFilter, GroupOrder, list_groups
from es_neardupe.groups.read import Group, unknown_group
from es_neardupe.groups.registry import Registry
from es_neardupe.groups.reviewed import ReviewFilter, ReviewState, TitledPage, review_of_groups
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import ShownFields, shown_fields
from es_neardupe.records import Address
from es_neardupe.server.search import find

__all__ = [
    "MAX_FOUND",
    "group_of_id",
    "next_to_review",
    "page_of_groups",
    "read_after",
    "titles_of",
]

MAX_FOUND = 200
"""Groups found by a text search that a list can show."""


def page_of_groups(
    index: Index,
    only: GroupFilter,
    *,
    text: str = "",
    review: ReviewFilter | None = None,
    order: GroupOrder,
    after: str | None,
    size: int,
    fields: Sequence[str],
) -> TitledPage:
    """A page of groups, also those with documents that match a query string."""
    index = opened(index, groups=True)
    shown = shown_fields(index, fields)
    searched = None
    if text:
        window = min(MAX_FOUND, index.target.max_result_window)
        found = search(index, text, size=window, fields=shown.names)
        searched = found.groups
        only = only.among([hit.group for hit in found.hits if hit.group is not None])
    if review is not None:
        only = review.applied(index, only)
    page = list_groups(index, only, order=order, after=read_after(after), size=size)
    titles = titles_of(index, shown, [one.principal for one in page.groups])
    following = None if page.after is None else json.dumps(page.after)
    return TitledPage(page, titles, searched, following, review_of_groups(index, [one.group for one in page.groups]))


def next_to_review(index: Index, after: str | None, reviewer: str) -> str | None:
    """The largest group that is not reviewed, of those that come after the group ``after`` if it is given; None if
    there is none. Groups that another reviewer works on are left out."""
    index = opened(index, groups=True)
    only = ReviewFilter(ReviewState.OPEN).applied(index, GroupFilter())
    start = None
    if after is not None and (record := Registry(index).records({after}).get(after)) is not None:
        start = [record.size, record.group]
    while True:
        page = list_groups(index, only, after=start, size=50)
        claims = Decisions(index).claims([one.group for one in page.groups])
        free = [one.group for one in page.groups if one.group not in claims or claims[one.group].author == reviewer]
        if free:
            return free[0]
        if page.after is None:
            return None if after is None else next_to_review(index, None, reviewer)
        start = list(page.after)


def read_after(text: str | None) -> list[Any] | None:
    """The place to continue a list from. Raises `SettingsError` if it is not that of an earlier page."""
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str | int | float) for one in found):
        raise SettingsError("`after` must be that of the previous page.")
    return found


def titles_of(index: Index, shown: ShownFields, addresses: Sequence[Address]) -> dict[Address, dict[str, str]]:
    """The fields to show of documents whose routing is not known."""
    wanted, names = set(addresses), list(shown.names)
    if not names or not wanted:
        return {}
    hits = find(index.client, index.path, sorted({one.id for one in addresses}), names)
    found = ((Address(hit["_index"], hit["_id"]), hit.get("_source", {})) for hit in hits)
    return {address: shown.of(source) for address, source in found if address in wanted}


def group_of_id(index: Index, id: str, fields: Sequence[str] | None) -> Group:
    """One group with the ``fields`` of all members; None: none. Raises `NotFound` for an unknown id."""
    found = groups(index, group=id, fields=fields)
    if not found:
        raise unknown_group(index, id)
    return found[0]
