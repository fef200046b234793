"""``es-neardupe stats``: what is in an index."""

from __future__ import annotations

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.output import print_json, print_table, progress_bars, say
from es_neardupe.cli.run_log import result
from es_neardupe.options import DEFAULT_PREFIX

__all__ = ["stats"]


def stats(
    index: IndexName,
    *,
    quick: options.Quick = False,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """Show what is in an index: documents by state, schemes, groups and their sizes, buckets, disk usage.

    Example:

      es-neardupe stats news --quick
    """
    from es_neardupe.commands.stats import stats as stats_

    with progress_bars() as progress:
        report = stats_(open_index(index, prefix), quick=quick, progress=progress)
    result(report)
    if as_json:
        print_json(report)
        return
    rows = [(f"  {state}", number) for state, number in report.states.items() if number or state == "signed"]
    if report.numeric:
        rows.append(("  (of signed and short: numbers only)", report.numeric))
    if report.unknown:
        rows.append(("  of no known state", report.unknown))
    others = [("  of other schemes", report.other_schemes), ("  unprocessed", report.unprocessed)]
    left_alone = [("besides: of other relations, left alone", report.left_alone)] if report.left_alone else []
    waiting = [("waiting for group", report.ungrouped)]
    grouped = [("groups of two or more", report.groups), ("documents in them", report.grouped)]
    name = f"{index}, scheme {report.scheme}" + (f" ({report.agree} bands must agree)" if report.agree > 1 else "")
    print_table([name, "documents"], [("documents", report.documents), *rows, *others, *left_alone])
    if report.sidecars:
        say(f"Keys are stored in the sidecar index {', '.join(report.sidecars)}.")
    print_table(["groups", ""], [*waiting, *grouped, ("largest", report.largest)])
    if report.sizes:
        print_table(["documents in a group", "groups"], list(report.sizes.items())[:10])
    if report.buckets:
        print_table(["most shared keys", "documents"], [(one.key, one.documents) for one in report.buckets])
    if report.bytes_per_document:
        sizes = [(name, round(size)) for name, size in report.bytes_per_document.items()]
        print_table(["field", "bytes on disk per document, without _source"], sizes)
    elif not quick:
        say("This server does not report disk usage per field.")
