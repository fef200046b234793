"""``es-neardupe similar``: the near-duplicates of a document or a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, Output, TextFile, probe_text
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import say_measure, warn_of_candidates, warn_of_detection
from es_neardupe.cli.output import check_output, print_json, print_table, say, value_cells, warn, write_output
from es_neardupe.commands.similar import similar as library
from es_neardupe.display_text import named
from es_neardupe.json_results import similar_json
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import counted

if TYPE_CHECKING:
    from es_neardupe.commands.similar.report import SimilarReport


@with_options_of(library)
def similar(
    index: IndexName,
    file: TextFile = None,
    *,
    output: Output = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Examples:

      es-neardupe similar news --id 4711

      es-neardupe similar news --file letter.txt --min 0.8 --query '{"term": {"language": "en"}}'

      es-neardupe similar news --id 4711 --measure containment --matching information
    """

    given["text"] = probe_text(given["id"], given["text"], file)
    check_output(output)
    found = library(open_index(index, prefix), **given)
    if as_json:
        print_json(similar_json(found))
    if output is not None:
        write_output(output, found.table())
    elif not as_json:
        show_similar(found)
    say_measure(found.measure, found.weights, given=given["measure"])
    warn_of_detection(found.detection)
    if found.other_facts:
        documents = counted(found.other_facts, "more document is", "more documents are")
        say(f"{documents} as similar, but with other facts.")
    warn_of_candidates(found.not_compared)


def show_similar(found: SimilarReport) -> None:
    """Print hits as a table, and related documents as another."""
    from es_neardupe.similarity.facts.differing import in_words

    if found.without_keys is not None:
        warn(found.without_keys)
    several = len(found.indices) > 1
    folded = any(hit.copies for hit in (*found.hits, *found.related))
    if found.hits:
        names = list(found.hits[0].fields)
        rows = [
            (
                named(hit, several),
                *value_cells(hit.fields, names, 2),
                hit.similarity,
                hit.shared_bands,
                *([hit.copies] if folded else []),
                hit.group,
            )
            for hit in found.hits
        ]
        print_table(["id", *names, found.measure, "shared keys", *(["copies"] if folded else []), "group"], rows)
    if found.related:
        names = list(found.related[0].fields)
        related = (
            (
                named(hit, several),
                *value_cells(hit.fields, names, 3),
                hit.similarity,
                in_words(hit.facts),
                *([hit.copies] if folded else []),
                hit.group,
            )
            for hit in found.related
        )
        facts = "facts: of the given text / of this one"
        columns = ["id", *names, found.measure, facts, *(["copies"] if folded else []), "group"]
        print_table(columns, related, title="Same form, different facts")
    texts = counted(found.texts, "different text")
    texts = "" if found.texts + found.not_compared == found.candidates else f" with {texts}"
    say(f"{len(found.hits)} shown, {counted(found.candidates, 'candidate')}{texts}, each compared by its current text")
