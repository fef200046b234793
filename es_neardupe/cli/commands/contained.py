"""``es-neardupe contained``: documents that contain a text, or are contained in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, TextFile, probe_text
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import say_ignored, warn_of_unprocessed
from es_neardupe.cli.output import print_json, print_table, progress_bars, say, show, warn
from es_neardupe.commands.contained import contained as library
from es_neardupe.display_text import named, score_text
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.contained.report import ContainedHit, ContainedReport


@with_options_of(library)
def contained(
    index: IndexName,
    file: TextFile = None,
    *,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Needs init --sample-mod.

    Examples:

      es-neardupe contained mails --id 4711

      es-neardupe contained mails --file quoted.txt --min 0.9 --query '{"term": {"language": "en"}}'
    """

    given["text"] = probe_text(given["id"], given["text"], file)
    with progress_bars() as progress:
        found = library(open_index(index, prefix), progress=progress, **given)
    if as_json:
        print_json(found)
    else:
        _show(found)
    _warn(found, index)


def _show(found: ContainedReport) -> None:
    several = len(found.indices) > 1
    heads = ["id", "the document", "of the probe", "estimated", "of the document", "words", "passages"]
    if found.hits:
        print_table(heads, [_row(hit, several) for hit in found.hits])
        for hit in found.hits:
            show(f"{named(hit, several)}: {hit.excerpt}")
    compared = found.candidates - found.not_compared
    passages = f"passages of {counted(found.shingle, 'word')} or more"
    say(
        f"{len(found.hits):,} of {found.found:,} shown; {counted(found.candidates, 'candidate')} by "
        f"{counted(found.keys, 'key')}, {compared:,} compared by their current texts: {passages}"
    )
    if found.common is not None:
        say_ignored(found.common)
    if found.keys and found.sample_mod > 1:
        from es_neardupe.commands.contained.steps import SURE

        say(
            f"One in {found.sample_mod:,} shingles is sampled: a document that is contained completely is found with "
            f"probability {SURE:g} if it has {counted(found.detection.shingles, 'different shingle')}."
        )


def _row(hit: ContainedHit, several: bool) -> tuple[object, ...]:
    id, passages = named(hit, several), len(hit.passages)
    estimated = str(hit.estimated_of_probe)
    return id, hit.direction.value, hit.of_probe, estimated, hit.of_document, hit.common_words, passages


def _warn(found: ContainedReport, index: str) -> None:
    """Warn of documents that the keys cannot find, and of skipped keys and candidates."""
    _warn_of_few_keys(found)
    if found.keys_left_out:
        skipped_keys = counted(
            found.keys_left_out,
            "key that too many documents share was",
            "keys that too many documents share were",
        )
        warn(f"{skipped_keys} skipped: raise --max-candidates.")
    if found.not_compared:
        candidates = counted(
            found.not_compared,
            "candidate with lower estimates was",
            "candidates with lower estimates were",
        )
        warn(f"{candidates} not compared: raise --max-candidates.")
    warn_of_unprocessed(found.unprocessed, index)
    if found.unreadable:
        warn(
            f"{counted(found.unreadable, 'candidate has sampled keys', 'candidates have sampled keys')} that cannot be "
            f"read: run `{command('enrich', index)} --all`."
        )


def _warn_of_few_keys(found: ContainedReport) -> None:
    from es_neardupe.commands.contained.steps import SURE
    from es_neardupe.records import State

    state, shingles, sure = found.query["state"], found.query["features"], found.detection
    if not State(state).has_keys:
        warn(f"The text is {state}: it has no keys, so nothing can be found.")
        return
    if not found.keys and found.keys_ignored:
        warn(f"All sampled keys of the text are of ignored shingles ({found.keys_ignored:,}): nothing can be found.")
        return
    if not found.keys:
        warn(
            f"None of the {counted(shingles, 'shingle')} of the text is sampled (one in {found.sample_mod:,}): nothing "
            f"can be found. Use a longer text, or migrate the index to a smaller --sample-mod."
        )
        return
    if state == "short":
        warn("The text is shorter than a shingle: only exact copies can be found.")
    if sure.probability < SURE:
        warn(
            f"Sampled keys of the text: {found.keys:,} (of {counted(shingles, 'shingle')}, one in "
            f"{found.sample_mod:,}). A document with {sure.min:g} of its shingles shares a used key with probability "
            f"{score_text(sure.probability)}."
        )
