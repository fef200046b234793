"""``es-neardupe init``: choose the keys of an index and add fields for them to its mapping."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import options_for, with_options_of
from es_neardupe.cli.messages import show_first, show_unrelated, warn_of_texts
from es_neardupe.cli.output import print_json, say, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.bands import bands
from es_neardupe.commands.init import init as library
from es_neardupe.display_text import score_text
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.candidates.detection import BandsByLengths
    from es_neardupe.commands.init.prepared_sample import PreparedSample
    from es_neardupe.commands.init.report import InitReport
    from es_neardupe.index.settings import Settings
    from es_neardupe.keys.prepare.preparation import Preparation


_HOW_TO_USE = (
    "Store it with PUT /_component_template/{prefix}, and add {prefix} to `composed_of` of the index template of your "
    "indices: new indices then have the fields from the beginning. Nothing was written."
)


GroupField = Annotated[
    str | None,
    typer.Option(
        "--group-field", metavar="NAME", help="Keep a copy of the group id in this keyword field at the top level."
    ),
]


def _with_presets(command: Callable[..., None]) -> Callable[..., None]:
    """The help lists the presets, as they are described in `options`."""
    lines = "\n\n".join(f"      {preset}: {words}" for preset, words in options.PRESETS_IN_WORDS.items())
    command.__doc__ = (command.__doc__ or "").replace("      (presets)", lines)
    return command


@with_options_of(bands, library)
@_with_presets
def init(
    index: IndexName,
    fields: Annotated[
        list[str],
        typer.Option("--field", metavar="FIELD", help="Text field; repeat it to join several in this order."),
    ],
    preset: options.Preset = None,
    shingle: options.Shingle = None,
    sample_mod: options.SampleMod = 0,
    *,
    clean: options.CleanTexts = None,
    mask: options.MaskTexts = None,
    relations: Annotated[
        list[str] | None,
        typer.Option(
            "--relation",
            metavar="NAME",
            help="Relation of a join field to process. Repeatable.",
            show_default="all but children",
        ),
    ] = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    group_field: GroupField = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Presets:

      (presets)

    Examples:

      es-neardupe init news --field title --field body

      es-neardupe init news --field body --preset reader

      es-neardupe init articles --field text --threshold 0.6 --create

      es-neardupe init titles --field title --preset short --measure S_L --threshold 0.7

      es-neardupe init titles --field title --preset short --shingle 5c

      es-neardupe init archive --field body --preset supershingles

      es-neardupe init mails --field body --sample-keys 20

      es-neardupe init pages --field html --clean html-main

      es-neardupe init logs --field message --template

      es-neardupe init records --field text --sidecar

      es-neardupe init news --field body --group-field neardupe_group
    """

    from es_neardupe.index.settings import Settings

    given["measure"] = given["measure"] or options.preset_measure(preset)
    settings = Settings.chosen(
        tuple(fields),
        preset=preset,
        measure=given["measure"],
        shingle=shingle,
        clean=clean,
        mask=mask,
        sample_mod=sample_mod,
        relations=tuple(relations or ()),
        prefix=prefix,
        group_field=group_field,
        **options_for(bands, given),
    )
    report = library(open_index(index, prefix), settings, **options_for(library, given))
    result(report)
    if as_json:
        print_json(report)
        return
    if report.template is not None:
        print_json(report.template)
        say(_HOW_TO_USE.format(prefix=prefix))
        return
    if preset is not None:
        show(f"Preset {preset}: {options.PRESETS_IN_WORDS[preset]}.")
    _show(report, advise=preset is None and report.unprepared is None)
    show_first(report.requests)
    if report.by_lengths is not None:
        _show_lengths(report.by_lengths, settings.detection)
    _show_rules(report.chosen(settings))
    at_its_own = preset is not None and given["threshold"] is None
    if report.by_lengths is None and report.detection < settings.detection and not at_its_own:
        source = "--bands and --rows" if preset is None else f"the preset {preset}, which is for higher thresholds"
        warn(f"That is less than --detection {settings.detection:g}: the bands are those of {source}.")
    if report.preparation is not None:
        _show_preparation(report.preparation, settings.scheme.preparation)
    warn_of_texts(index, report.unprepared, report.unsuited)
    _show_sampling(report)
    if given["sample_keys"] is not None and report.sampling is None:
        warn(f"The index keeps its --sample-mod: --sample-keys {given['sample_keys']:,} was ignored.")
    _show_skipped_relations(report)
    _show_rollover(report)
    if (
        given["versions"] is None
        and report.versions == "internal"
        and report.prepared
        and not (report.created or report.sidecars)
    ):
        say("Updates raise the versions of documents: if another system sets these, add --versions external.")
    if not given["dry_run"]:
        following = f"{command('load', index)} FILE" if report.created else command("enrich", index)
        say(f"Next: {following}")


def _show(report: InitReport, *, advise: bool) -> None:
    from es_neardupe.keys.scheme import agreement

    done = "would be " if report.dry_run else ""
    if report.created:
        show(f"Index {report.index} {done}created, with text fields {', '.join(report.fields)}.")
    elif report.prepared and report.sidecars:
        show(f"Keys of {', '.join(report.prepared)} {done}stored in the sidecar index {', '.join(report.sidecars)}.")
        if report.write_group:
            show(f"Only group ids {done}written into its documents.")
    elif report.prepared:
        show(f"Fields {done}added to the mapping of {', '.join(report.prepared)}.")
    else:
        show(f"Index {report.index} already has these settings: nothing to do.")
    if report.group_field is not None:
        show(f"Each document gets a copy of its group id in the field {report.group_field}.")
    if report.versions == "external":
        show("Documents are written as a whole, with the versions that they have.")
    show(
        f"Scheme {report.scheme}: {counted(report.bands, 'band')} of "
        f"{counted(report.rows, 'row')}{agreement(report.agree)}; a pair exactly {report.threshold:g} similar becomes "
        f"a candidate with probability {score_text(report.detection)}."
    )
    show_unrelated(report.unrelated, advise=advise)


def _show_rules(settings: Settings) -> None:
    """The rules of the index for matches, if they are not those of most."""
    from es_neardupe.verification.match_rules import MatchRules

    rules = [] if settings.min is None else [f"--measure {settings.measure.value} --min {settings.min:g}"]
    rules += [f"--facts {one}s" for one in MatchRules.of(settings).facts]
    if rules:
        say(f"Without other options, group, pairs and similar use {' '.join(rules)}.")


def _show_lengths(found: BandsByLengths, wanted: float) -> None:
    """Explain what the bands find, for texts of these lengths."""
    from es_neardupe.keys.unit import shingle_text

    low, median, high = found.words
    texts = "Without texts, documents of usual lengths have"
    if found.documents:
        texts = counted(found.documents, "random document has", "random documents have")
    least, middle, most = found.resemblance
    pair = f"a pair exactly {found.min:g} similar by {found.measure.value}"
    show(
        f"{texts} {low:,} to {counted(high, 'word')}, the median is {median:,}. For these lengths, {pair} shares "
        f"{least:.2f} to {most:.2f} of its shingles of {shingle_text(found.shingle, found.unit)}, the median is "
        f"{middle:.2f}, and becomes a candidate with probability {score_text(found.detection)} on average."
    )
    others = ", ".join(f"{score_text(share)} {changes}" for changes, share in found.detection_by_changes.items())
    say(f"By where the changes are: {others}.")
    if found.changes.value != "throughout":
        warn("Changes throughout leave so few common shingles that their keys would make unrelated texts meet.")
    if found.only_copies:
        short = counted(found.only_copies, "of these texts is", "of these texts are")
        say(f"{short} so short that only exact copies are {found.min:g} similar.")
    if found.detection < wanted:
        warn(f"That is less than --detection {wanted:g}: the index keeps its bands. To choose others, use `migrate`.")


def _show_preparation(sample: PreparedSample, preparation: Preparation) -> None:
    """Say what the preparation leaves of texts, with examples."""
    clean = "" if preparation.clean is None else f"--clean {preparation.clean.value}"
    mask = f"--mask {preparation.mask}" if preparation.masks else ""
    if sample.documents:
        texts = counted(sample.documents, "random document", "random documents")
        show(
            f"{f'{clean} {mask}'.strip()} leaves out {sample.left_out:,} of {counted(sample.words, 'word')} of {texts}."
        )
    for one in sample.examples:
        show(f"Example{'' if one.id is None else f', document {one.id}'}, before: {one.before}")
        show(f"{' ' * 8}after: {one.after}")


def _show_skipped_relations(report: InitReport) -> None:
    for name, relations in report.skipped.items():
        say(f"Documents whose {name} is {' or '.join(relations)} are skipped (--relation selects relations).")


def _show_rollover(report: InitReport) -> None:
    if not report.rolls_over:
        return
    if report.next_prepared:
        say(f"New indices of {report.index} will have the fields, from its index template.")
        return
    certain = "may not" if report.next_prepared is None else "will not"
    say(
        f"New indices of {report.index} {certain} have the fields, because index templates are not changed. `enrich` "
        f"prepares new indices after a rollover; the same command with --template prints a component template."
    )


def _show_sampling(report: InitReport) -> None:
    if not report.sample_mod:
        return
    show(f"Sampled keys for `contained`: one in {counted(report.sample_mod, 'shingle')}.")
    if (chosen := report.sampling) is not None:
        say(
            f"{counted(chosen.documents, 'random document has', 'random documents have')} "
            f"{counted(round(chosen.mean_words), 'word')} on average and "
            f"{counted(round(chosen.mean_shingles), 'different shingle')}: one in {chosen.sample_mod:,} of them is "
            f"closest to {counted(chosen.wanted, 'key')}. {chosen.without:.2%} of such documents have no sampled key "
            f"and cannot be found."
        )
