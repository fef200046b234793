"""``es-neardupe stats``: what is in an index."""

from __future__ import annotations

from typing import Any

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.output import print_json, print_table, say
from es_neardupe.cli.run_log import result
from es_neardupe.commands.stats import stats as library
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import counted


@with_options_of(library)
def stats(index: IndexName, *, prefix: options.Prefix = DEFAULT_PREFIX, as_json: AsJson = False, **given: Any) -> None:
    """
    Examples:

      es-neardupe stats news

      es-neardupe stats news --buckets 10
    """
    report = library(open_index(index, prefix), **given)
    result(report)
    if as_json:
        print_json(report)
        return
    scope, groups = report.scope, report.groups
    rows = [(f"  {state}", number) for state, number in scope.states.items() if number or state == "signed"]
    if scope.numeric:
        rows.append(("  (of signed and short: only numbers)", scope.numeric))
    if scope.unknown:
        rows.append(("  of unknown state", scope.unknown))
    others = [("  of other schemes", scope.other_schemes), ("  unprocessed", scope.unprocessed)]
    skipped = [("in addition: of other relations, skipped", scope.skipped)] if scope.skipped else []
    waiting = [("waiting for group", scope.ungrouped)]
    grouped = [("groups of two or more", groups.count), ("documents in them", groups.grouped)]
    name = f"{index}, scheme {report.scheme}" + (f" ({report.agree} bands must agree)" if report.agree > 1 else "")
    print_table([name, "documents"], [("documents", scope.documents), *rows, *others, *skipped])
    if report.sidecars:
        say(f"Keys are stored in the sidecar index {', '.join(report.sidecars)}.")
    if scope.deleted:
        from es_neardupe.groups.waiting import of_deleted

        say(f"{of_deleted(scope.deleted, index)}.")
    print_table(["groups", "value"], [*waiting, *grouped, ("largest", groups.largest)])
    if groups.sizes:
        print_table(["documents in a group", "groups"], list(groups.sizes.items())[:10])
    if report.buckets is not None:
        print_table(["most shared keys", "documents"], [(one.key, one.documents) for one in report.buckets.largest])
        say(f"Found among the keys of {counted(report.buckets.sampled, 'document')}, and counted in all.")
    if report.bytes_per_document:
        sizes = [(name, round(size)) for name, size in report.bytes_per_document.items()]
        print_table(["field", "bytes on disk per document, without _source"], sizes)
    elif given["disk_usage"]:
        say("This server does not report disk usage per field.")
