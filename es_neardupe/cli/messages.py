"""Messages of several commands: skipped work, texts that do not suit the keys, detection, and the next command."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from es_neardupe.cli.output import escaped, say, show, warn
from es_neardupe.options import AUTO, JACCARD, MeasureName
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.candidates.detection import Detection, UnsuitedTexts
    from es_neardupe.candidates.large_buckets import Bucket
    from es_neardupe.candidates.unprepared import UnpreparedTexts
    from es_neardupe.candidates.unrelated import UnrelatedCandidates
    from es_neardupe.groups.clusters import RelatedCounts
    from es_neardupe.groups.rules import RunRules
    from es_neardupe.index.index import Index
    from es_neardupe.report_parts import WriteCounts
    from es_neardupe.server.dry_run import ShownRequest
    from es_neardupe.verification.boilerplate import Boilerplate
    from es_neardupe.verification.common_shingles import CommonShinglesList, CommonShinglesUsed
    from es_neardupe.verification.match_rules import WeightsUsed


_MAX_BUCKETS = 3
"""Maximum number of large buckets shown with their passage."""


def warn_of_buckets(skipped: int, large: Sequence[Bucket]) -> None:
    """Warn of skipped comparisons, and show the passages that the texts of the largest buckets share."""
    if not skipped:
        return
    warn(
        f"{counted(len(large), 'key is shared by', 'keys are shared by')} more distinct texts than --max-bucket: "
        f"{counted(skipped, 'comparison was', 'comparisons were')} skipped."
    )
    passages = {one.passage: one for one in reversed(large) if one.passage}
    largest = sorted(passages.values(), key=lambda one: -one.documents)[:_MAX_BUCKETS]
    for one in largest:
        say(
            f"  {counted(one.documents, 'document shares', 'documents share')}: '{one.passage}' "
            f"({counted(one.skipped, 'comparison')} skipped, key {one.key})"
        )


def warn_of_unprocessed(number: int, index: str, *, missing_in: str = "", noun: str = "document") -> None:
    """Warn of documents without keys: they are in no group or pair, and no search by keys finds them."""
    if number:
        one, several = (f"{are} in no {missing_in}" if missing_in else "cannot be found" for are in ("is", "are"))
        documents = counted(number, f"{noun} is not enriched and {one}", f"{noun}s are not enriched and {several}")
        warn(f"{documents}: run `{command('enrich', index)}`.")


def warn_of_stale(number: int, index: str, *, noun: str = "document") -> None:
    """Warn of documents whose texts are not those of their keys any more."""
    if number:
        changed = counted(number, f"{noun} changed since it got its keys", f"{noun}s changed since they got their keys")
        warn(f"{changed}: run `{command('enrich', index)}`.")


def warn_of_corrupt(number: int, index: str) -> None:
    """Warn of documents whose keys cannot be read."""
    if number:
        documents = counted(number, "document has unreadable keys", "documents have unreadable keys")
        warn(f"{documents}: run `{command('enrich', index)} --all`.")


def rules_of_last_run(index: Index) -> RunRules | None:
    """The rules of the last run of ``group``; None if there was none, or if this user may not read them."""
    from es_neardupe.errors import Forbidden, NameTaken, SettingsError
    from es_neardupe.groups.registry import Registry
    from es_neardupe.index.index import opened

    try:
        last = Registry(opened(index)).last_run()
    except (Forbidden, NameTaken, SettingsError):
        return None
    return None if last is None else last.rules


def warn_of_boilerplate(index: str, found: Boilerplate, *, group_options: str | None = "--ignore-common auto") -> None:
    """Warn of clusters that only boilerplate holds together. ``group_options``: those of ``group`` that compare them by
    the rest; None: the last run had them already."""
    if not found.clusters:
        return
    examined = counted(found.examined, "cluster")
    remedy = "the last run of `group` left it out"
    if group_options is not None:
        remedy = f"run `{command('group', index)} {group_options}`"
    warn(
        f"Of {examined} of five texts and more, {found.clusters:,} with {counted(found.documents, 'document')} "
        f"{'is' if found.clusters == 1 else 'are'} held together only by boilerplate: {remedy}."
    )
    for one in found.passages:
        say(f"  {counted(one.documents, 'document shares', 'documents share')}: '{one.passage}'")


def say_ignored(common: CommonShinglesList) -> None:
    """Show how many shingles were ignored."""
    ignored = counted(common.shingles, "shingle was ignored", "shingles were ignored")
    listed = f"list {common.version} of {common.at}"
    if common.share == AUTO and not common.shingles:
        say(f"No boilerplate was found that holds texts together, so nothing was ignored ({listed}).")
    elif common.share == AUTO:
        say(f"{ignored}: boilerplate of a sample of {counted(common.documents, 'text')} with candidates ({listed}).")
    else:
        say(
            f"{ignored}: more than {common.share:g} of {counted(common.documents, 'random document')} "
            f"{'contains' if common.documents == 1 else 'contain'} {'it' if common.shingles == 1 else 'them'} "
            f"({listed})."
        )
    for passage in common.passages:
        say(f"  ignored: '{passage}'")


def say_common(common: CommonShinglesUsed | None) -> None:
    """Show how many shingles were ignored, and in a dry run the effect."""
    if common is None:
        return
    say_ignored(common)
    if common.texts:
        documents = counted(
            common.texts,
            "document has no other shingles and keeps them",
            "documents have no other shingles and keep them",
        )
        say(f"{documents}.")
    if (effect := common.effect) is not None:
        say(
            f"Without --ignore-common {counted(effect.without, 'pair matches', 'pairs match')}; the option adds "
            f"{effect.gained:,} and removes {effect.lost:,}."
        )
        for example in () if common.passages else effect.examples:
            say(f"  ignored: '{example}'")


def show_first(requests: Iterable[ShownRequest]) -> None:
    """Print requests of a dry run on stdout as they would be sent, with control characters escaped as in JSON."""
    for request in requests:
        sys.stdout.write(f"{request.method} {request.path}\n")
        sys.stdout.writelines(f"{escaped(line)}\n" for line in request.body.rstrip("\n").split("\n"))


def say_prepared(index: str, prepared: Sequence[str], *, dry_run: bool = False) -> None:
    """Show which indices of a rollover got the `neardupe` fields."""
    if prepared:
        done = "would be prepared" if dry_run else "were prepared"
        say(f"New indices of {index} after a rollover, which {done} like the others: {', '.join(prepared)}.")


def say_speed(states: Mapping[str, int], read: int, seconds: float) -> None:
    """Show the written documents by state, and the speed."""
    written = ", ".join(f"{number:,} {state}" for state, number in states.items()) or "nothing written"
    rate = f", {counted(round(read / seconds), 'document')} a second" if read and seconds else ""
    say(f"{written}; {seconds:.1f} s{rate}")


def warn_of_empty(index: str, states: Mapping[str, int]) -> None:
    """Warn if most of the written documents have no text: perhaps their texts are in other fields."""
    written, empty = sum(states.values()), states.get("empty", 0)
    if 2 * empty > written:
        warn(
            f"{empty:,} of {counted(written, 'document')} {'has' if empty == 1 else 'have'} no text: "
            f"`{command('doctor', index)}` shows {'its' if empty == 1 else 'their'} fields."
        )


def show_unrelated(found: UnrelatedCandidates | None, *, advise: bool = True) -> None:
    """Show how many unrelated texts the keys make meet, and warn if these are many. ``advise``: unless other advice
    comes first, or the keys are those of a preset for such texts."""
    if found is None:
        return
    number = f"{found.of_a_million:,.0f}" if found.of_a_million >= 1 else "fewer than 1"
    show(f"Of a million unrelated texts, {number} {'becomes a candidate' if number == '1' else 'become candidates'}.")
    if found.boilerplate:
        warn(
            "Passages that many documents have in common make unrelated texts meet: larger shingles do not help, but "
            "`group` and `pairs` leave these passages out with --ignore-common auto."
        )
    elif found.too_many and advise:
        warn(
            "These keys make unrelated texts meet, each of which is compared: use larger shingles, a higher threshold, "
            "or bands of more rows."
        )


def warn_of_texts(index: str, found: UnpreparedTexts | None, unsuited: UnsuitedTexts | None) -> None:
    """Warn of texts that should be prepared, and name the options that do it; otherwise of lengths.

    Texts that are too short are no longer without what is masked.
    """
    if found is None:
        warn_of_lengths(index, unsuited)
        return
    alike = found.mask is None and found.preset not in ("scans", "reader")
    hides = "hide near-copies and make others look alike" if alike else "hide near-copies"
    options = found.options
    if found.mask is not None and unsuited is not None and unsuited.too == "short" and unsuited.preset is not None:
        options = f"--preset {unsuited.preset} {options}"
    warn(
        f"{found.found:,} of {counted(found.documents, 'document is', 'documents are')} {found.kind}: "
        f"their keys are also made of {found.not_their_own}, which {hides}. "
        f"`{command('migrate', index)} {options}` makes keys that suit them."
    )


def warn_of_lengths(index: str, found: UnsuitedTexts | None) -> None:
    """Warn if many documents are too short or too long for the keys, and name the preset that suits them."""
    if found is None or found.preset is None:
        return
    logs = ", those of log lines --preset logs" if found.preset == "short" else ""
    words = f"fewer than {counted(found.words, 'word')}"
    why = f"one changed word makes two such texts less than {found.threshold:g} similar, so these keys miss near-copies"
    if found.too == "long":
        words = f"{counted(found.words, 'word')} or more"
        why = "these keys are for shorter texts, and of such they also find different ones with common phrases"
    warn(
        f"{found.unsuited:,} of {counted(found.documents, 'document')} {'has' if found.unsuited == 1 else 'have'} "
        f"{words}: {why}. `{command('migrate', index)} --preset {found.preset}` makes keys that suit "
        f"them{logs}."
    )


def say_tuning(tuned: Mapping[str, Mapping[str, str | None]] | None) -> None:
    """Show the settings of the index that were lowered for the run and are restored."""
    for index, before in (tuned or {}).items():
        values = ", ".join(f"{name.removeprefix('index.')} {value or 'default'}" for name, value in before.items())
        if values:
            say(f"Settings of index {index} restored: {values}.")
        else:
            say(f"Settings of index {index} unchanged: there was nothing to lower.")
        if "index.number_of_replicas" in before:
            say("Its replicas are being rebuilt; until then the cluster is yellow.")


def say_pipelines(pipelines: Sequence[str]) -> None:
    """Show why `enrich` reads loaded documents again."""
    if pipelines:
        names = ", ".join(map(repr, pipelines))
        say(
            f"The index has {'an ingest pipeline' if len(pipelines) == 1 else 'ingest pipelines'} ({names}), which may "
            f"change texts: the next enrich makes keys of the texts as they are stored."
        )


def say_next(following: str, dry_run: bool) -> None:
    """Suggest the next command, unless this was a dry run."""
    say("Nothing was written: this was a dry run." if dry_run else f"Next: {following}")


def outcome_rows(writes: WriteCounts, *, dry_run: bool) -> list[tuple[str, int]]:
    """The rows of a table for written and unwritten documents; those of rare outcomes only if there are any."""
    rows = [("    as whole documents", writes.whole), ("  not written: another field could change", writes.failed)]
    return [(f"  {'would be written' if dry_run else 'written'}", writes.written), *(row for row in rows if row[1])]


def say_reread(reread: Mapping[str, str]) -> None:
    """Say why all documents of indices were read."""
    for names, reason in _by_reason(reread):
        say(f"All documents of {names} were read, since it is unknown which have changed: {reason}.")


def warn_of_unnoticed(index: str, unnoticed: Mapping[str, str]) -> None:
    """Warn that changed texts were not noticed, and why."""
    for names, reason in _by_reason(unnoticed):
        warn(
            f"Texts of {names} that were changed before this run, without their keys, were not noticed: {reason}. "
            f"`{command('enrich', index)}` reads all texts."
        )


def _by_reason(reasons: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each reason once, with the first of its indices and the number of the others."""
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, why in reasons.items() if why == reason]
        others = counted(len(names) - 1, "more index", "more indices")
        yield f"{names[0]} and {others}" if len(names) > 1 else names[0], reason


def match_range(measure: str, minimum: float, maximum: float) -> str:
    """The condition for a match in words, such as "at least 0.8 similar"."""
    range = f"at least {minimum:g} similar" if maximum >= 1 else f"{minimum:g} to {maximum:g} similar"
    return range if measure == "resemblance" else f"{range} by {measure}"


def say_measure(label: str, weights: WeightsUsed | None = None, *, given: object) -> None:
    """Say how a measure that the user has ``given`` differs from another of a similar name, and from which sample its
    weights are."""
    if given and label.startswith(MeasureName.JACCARD.value):
        say(JACCARD)
    if weights is not None:
        say(f"Feature weights: from {counted(weights.documents, 'random document')}, sampled {weights.at}.")


def warn_of_candidates(not_compared: int) -> None:
    """Warn of candidates that were not compared."""
    if not_compared:
        candidates = counted(
            not_compared,
            "candidate with fewer shared keys was",
            "candidates with fewer shared keys were",
        )
        warn(f"{candidates} not compared: raise --max-candidates.")


def warn_of_detection(detection: Detection) -> None:
    """Warn if the keys do not find all pairs that are similar enough; if they were made for such pairs, only say it."""
    if words := detection.words:
        (say if detection.keys_made_for else warn)(words)


def related_rows(counts: RelatedCounts, alone: str) -> Iterator[tuple[str, int | float | None]]:
    """Rows about matches that are not in one group. ``alone``: the name of the row with documents alone."""
    if counts.alone:
        indent = " " * (len(alone) - len(alone.lstrip()))
        yield alone, counts.alone
        yield f"{indent}  highest similarity", counts.alone_similarity
    if counts.pairs:
        yield "matching pairs in different groups", counts.pairs
        yield "  highest similarity", counts.similarity
