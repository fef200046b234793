"""Groups of an index, history of a group, and suggestions which document of each group to keep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.progress import Progress, silent
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.groups.keep import SuggestKeepReport
    from es_neardupe.commands.groups.report import GroupsReport
    from es_neardupe.groups.registry import GroupRecord
    from es_neardupe.index.index import Index


MinSize = Annotated[int, typer.Option("--min-size", min=2, help="Minimum number of documents in a group.")]
TopGroups = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        help="Maximum number of groups shown, largest first.",
        show_default="20; all with --json or --suggest-keep",
    ),
]
GroupId = Annotated[str | None, typer.Option("--group", metavar="ID", help="Show only this group.", show_default=False)]
Related = Annotated[
    bool,
    typer.Option(
        "--related",
        help="With --group: also show the groups and documents that its texts match, or match but for the facts.",
    ),
]


def groups(
    index: Index,
    *,
    min_size: MinSize = 2,
    top: TopGroups = None,
    group: GroupId = None,
    related: Related = False,
    fields: options.TitleFields = (),
) -> GroupsReport:
    """List the groups of two or more documents, largest first.

    With ``group`` only this one; with ``related`` also all others that matches connect with it, directly or through
    others, and those with texts of the same form, but other facts, as far as there is evidence; each document that is
    alone is a group of one. Reads only grouped documents. ``fields`` are shown of all members; None: none. Raises
    `SettingsError` for ``related`` without ``group``.

    >>> for group in news.groups():
    ...     print(group.principal.id, [member.id for member in group.members], group.size)
    1004 ['1004', '1001', '1003', '1002'] 4
    """
    from es_neardupe.commands.groups.report import GroupsReport
    from es_neardupe.commands.groups.steps import with_fields
    from es_neardupe.groups.read import known_records, matching_record, read_groups
    from es_neardupe.index.index import opened
    from es_neardupe.index.shown_fields import shown_fields

    if related and group is None:
        raise SettingsError(f"{option('related')} needs {option('group')}, the id of a group.")
    index = opened(index, groups=True)
    shown = shown_fields(index, fields)
    index.documents.refresh_if_allowed()
    if related and group is not None:
        from es_neardupe.groups.related import related_groups  # which compares facts

        found = related_groups(index, group)
    else:
        found = read_groups(index, min_size=min_size, top=top, group=group)
    records = known_records(index, [one.group for one in found])
    described = [replace(one, known=matching_record(records.get(one.group), one.size)) for one in found]
    return GroupsReport(with_fields(index, described, shown), shown.names)


def group_history(index: Index, group: str) -> GroupRecord:
    """The record of a group in the registry, even if it has ended. Raises `NotFound` for an unknown id.

    >>> [group] = news.groups(top=1)
    >>> record = news.group_history(group.group)
    >>> record.size, record.principal.id, [event.event for event in record.history]
    (4, '1004', ['founded'])
    """
    from es_neardupe.groups.read import unknown_group
    from es_neardupe.groups.registry import Registry
    from es_neardupe.index.index import opened
    from es_neardupe.index.permissions import check_sees_all

    index = opened(index, groups=True)
    check_sees_all(index, "the history of groups")
    record = Registry(index).records({group}).get(group)
    if record is None:
        raise unknown_group(index, group)
    return record


def suggest_keep(
    index: Index,
    *,
    policy: options.KeepPolicy = None,
    min_size: MinSize = 2,
    top: TopGroups = None,
    group: GroupId = None,
    progress: Progress = silent,
) -> SuggestKeepReport:
    """For each group, largest first, the document to keep, and the others in the order of ``policy``. Deletes nothing.

    All texts are read and compared with that of the document to keep, by the measure and minimum of the last run (for a
    user who may not read it, and gives a policy: those of the index): documents that were changed since, or are less
    similar, are left out and counted.

    A document that reviewers decided to *keep* is kept; if there is none, or they disagree, or this user may not read
    their decisions, the first one by ``policy`` is.

    The policies are those of ``group --principal``; the default is that of the last run. Raises `SettingsError` for an
    invalid policy or an unknown field.

    >>> for advice in news.suggest_keep(policy="newest"):
    ...     print(advice.keep.id, [redundant.id for redundant in advice.redundant])
    1004 ['1003', '1002', '1001']
    """
    from es_neardupe.commands.groups.keep import TERMS, SuggestKeepReport, advice
    from es_neardupe.groups.read import read_groups
    from es_neardupe.groups.registry import Registry, remembered
    from es_neardupe.groups.rules import policy_of, remembered_rules
    from es_neardupe.index.index import opened
    from es_neardupe.server.bulk import chunked
    from es_neardupe.verification.criterion import match_criterion

    index = opened(index, groups=True)
    try:
        last = Registry(index).last_run()
    except Forbidden:
        if policy is None:
            raise
        last = None
    match, rules = remembered(last, index.settings)
    chosen = policy_of(index, rules.principal.name if policy is None else policy)
    with remembered_rules(index, match, rules):
        criterion = None if index.settings.groups_only else match_criterion(index, match)
    index.documents.refresh_if_allowed()
    found = read_groups(index, min_size=min_size, top=top, group=group)
    advised = SuggestKeepReport()
    for part in chunked(found, TERMS):
        progress("comparing documents of groups", len(advised), len(found))
        advised += advice(index, chosen, criterion, part)
    return advised
