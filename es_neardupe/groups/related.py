"""Groups that are related: by matches that are not in one group, or as texts of the same form with other facts.

The registry knows the former. The latter are no matches if facts decide; the evidence has these pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from es_neardupe.candidates.pair_arrays import components
from es_neardupe.errors import Forbidden
from es_neardupe.groups.read import Group, groups_of_texts, groups_with_ids, known_records, texts_of_groups
from es_neardupe.groups.registry import Registry
from es_neardupe.index.index import Index
from es_neardupe.verification.evidence import pairs_with_other_facts

_TEXTS = 10_000
"""Maximum number of texts of groups whose evidence is read."""


def related_groups(index: Index, group: str) -> list[Group]:
    """A group of an opened index, and all others that are related to it, the largest first; each document that is alone
    is a group of one. Empty for an unknown id."""
    by_matches = {group} | Registry(index).related({group})
    by_form = same_form(index, group) - by_matches
    found = [replace(one, other_facts=one.group in by_form) for one in groups_with_ids(index, by_matches | by_form)]
    return sorted(found, key=lambda one: (one.other_facts, -one.size)) if len(found) > len(by_form) else []


def linked_groups(index: Index, group: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of the other groups of two or more documents that are related to a group: by matches, and only by the
    same form. Both are empty if this user may not read the registry."""
    try:
        clusters = Registry(index).clusters([group]).values()
    except Forbidden:
        return (), ()
    by_matches = {id for one in clusters if one is not None for id in one.groups} - {group}
    by_form = same_form(index, group) - by_matches
    living = {id for id, record in known_records(index, by_form).items() if record.ended is None}
    return tuple(sorted(by_matches)), tuple(sorted(living))


def same_form(index: Index, group: str) -> set[str]:
    """The ids of other groups, and of documents that are alone, with a text that is similar enough to one of a group,
    but has other facts; as far as there is evidence of the last run, and this user may read it."""
    contents = texts_of_groups(index, {"term": {index.fields.group: group}}, _TEXTS).get(group, set())
    pairs = pairs_with_other_facts(index, contents)
    return set(groups_of_texts(index, {one for pair in pairs for one in pair} - contents)) - {group}


def folded(index: Index, groups: Sequence[str]) -> list[str]:
    """Of some groups, such as those of the hits of a page, the first that each is related to, directly or through
    others of them; itself if it is the first."""
    place = {id: number for number, id in enumerate(groups)}
    related = [[place[id] for id in one.ids if id in place] for one in Registry(index).clusters(place).values() if one]
    groups_of: dict[str, list[int]] = defaultdict(list)
    for id, contents in texts_of_groups(index, {"terms": {index.fields.group: sorted(place)}}, _TEXTS).items():
        for one in contents:
            groups_of[one].append(place[id])
    related += [groups_of.get(a, []) + groups_of.get(b, []) for a, b in pairs_with_other_facts(index, groups_of)]
    pairs = [both for some in related for both in pairwise(some)]
    left, right = np.array(pairs, np.intp).reshape(-1, 2).T
    labels = components(len(groups), left, right).tolist()
    first: dict[int, str] = {}
    return [first.setdefault(label, id) for label, id in zip(labels, groups, strict=True)]
