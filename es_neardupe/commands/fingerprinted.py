"""``fingerprinted``: adds the fingerprint fields to bulk actions before they are indexed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from es_neardupe import options
from es_neardupe.options import DEFAULT_MAX_CHARS

if TYPE_CHECKING:
    from es_neardupe.index.index import Index


def fingerprinted(
    index: Index, actions: Iterable[Mapping[str, Any]], *, max_chars: options.MaxChars = DEFAULT_MAX_CHARS
) -> Iterator[dict[str, Any]]:
    """Add the keys to your own bulk actions: pass the result to the driver's ``helpers.bulk``.

    See `fingerprinted_actions` for the kinds of actions. Actions without ``_index`` are assumed to go to this index.

    >>> actions = [{"_id": "2001", "title": "A new ferry", "body": "The ferry leaves at eight o'clock."}]
    >>> for action in news.fingerprinted(actions):
    ...     print(action["_id"], action["neardupe"]["state"], len(action["neardupe"]["bands"]))
    2001 signed 16
    """
    from es_neardupe.incoming.writes import fingerprinted_actions, of_their_own
    from es_neardupe.index.index import opened_inline
    from es_neardupe.index.updates import GroupIdsInUse

    found = opened_inline(index, "fingerprinted", writes=True)
    yield from fingerprinted_actions(
        actions,
        found.settings,
        index=index.name,
        max_chars=max_chars,
        skipped_relations=found.target.skipped_relations,
        choose_groups=of_their_own(GroupIdsInUse(found).among),
    )
