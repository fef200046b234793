"""Commands that prepare documents: load and enrich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from es_neardupe.cli.output import ExitCode, escaped, say, warn

if TYPE_CHECKING:
    from es_neardupe.candidates.detection import DetectionCase
    from es_neardupe.candidates.join import Bucket
    from es_neardupe.server.dry_run import ShownRequest
    from es_neardupe.verification.common_shingles import CommonShinglesUsed
    from es_neardupe.verification.criterion import WeightsUsed

__all__ = [
    "fail_on",
    "range_text",
    "say_next",
    "show_first",
    "tell_of_common",
    "tell_of_large_buckets",
    "tell_of_prepared",
    "tell_of_tuning",
    "tell_of_weights",
    "warn_of_candidates",
    "warn_of_detection",
]


_BUCKETS = 3


def tell_of_large_buckets(large: Sequence[Bucket]) -> None:
    """Say what was not compared, and what the texts of the largest buckets share."""
    skipped = sum(one.skipped for one in large)
    if not skipped:
        return
    warn(
        f"{len(large):,} keys are shared by more distinct texts than --max-bucket: {skipped:,} comparisons in them "
        f"were left out."
    )
    passages = {one.passage: one for one in reversed(large) if one.passage}
    largest = sorted(passages.values(), key=lambda one: -one.documents)[:_BUCKETS]
    for one in largest:
        say(f"  {one.documents:,} documents share: '{one.passage}' ({one.skipped:,} left out by key {one.key})")


def tell_of_common(common: CommonShinglesUsed | None) -> None:
    """Say which shingles were ignored, and in a dry run what that changes."""
    if common is None:
        return
    say(
        f"{common.shingles:,} shingles were ignored: more than {common.share:g} of {common.documents:,} random "
        f"documents have them (list {common.version} of {common.at})."
    )
    if common.texts:
        say(f"{common.texts:,} documents have no other shingles, and keep them.")
    if (effect := common.effect) is not None:
        say(f"Without that {effect.without:,} pairs match; it gains {effect.gained:,} and loses {effect.lost:,}.")
        for example in effect.examples:
            say(f"  ignored: '{example}'")


def show_first(requests: Iterable[ShownRequest]) -> None:
    """Requests of a dry run on stdout, as they would be sent; what could steer a terminal as JSON escapes it."""
    for request in requests:
        sys.stdout.write(f"{request.method} {request.path}\n")
        sys.stdout.writelines(f"{escaped(line)}\n" for line in request.body.rstrip("\n").split("\n"))


def tell_of_prepared(index: str, prepared: Sequence[str], *, dry_run: bool = False) -> None:
    """Say which indices a rollover made, where some did not have our fields."""
    if prepared:
        done = "would be" if dry_run else "were"
        say(f"New behind {index} since a rollover, and {done} prepared like the others: {', '.join(prepared)}.")


def say_speed(states: Mapping[str, int], read: int, seconds: float) -> None:
    counted = ", ".join(f"{number:,} {state}" for state, number in states.items()) or "nothing written"
    rate = f", {read / seconds:,.0f} documents a second" if read and seconds else ""
    say(f"{counted}; {seconds:.1f} s{rate}")


def tell_of_tuning(tuned: Mapping[str, Mapping[str, str | None]] | None) -> None:
    """Say what was lowered for the run, and that it is back."""
    for index, before in (tuned or {}).items():
        values = ", ".join(f"{name.removeprefix('index.')} {value or 'default'}" for name, value in before.items())
        say(f"Index {index} has again: {values or 'what it had; there was nothing to lower'}.")
        if "index.number_of_replicas" in before:
            say("Its replicas are being built now; till then the cluster is yellow.")


def say_next(command: str, dry_run: bool) -> None:
    """What to do with the result; a dry run has none."""
    say("Nothing was written: this was a dry run." if dry_run else f"Next: {command}")


def fail_on(refused: int, refusals: tuple[str, ...], what: str = "documents") -> None:
    """Say what the server refused; then the command has failed."""
    for reason in refusals:
        warn(f"The server refused: {reason}")
    if refused:
        warn(f"{refused:,} {what} were refused by the server.")
        raise typer.Exit(ExitCode.FAILED)


def range_text(measure: str, minimum: float, maximum: float) -> str:
    """What a pair must fulfil, in words."""
    range = f"at least {minimum:g} similar" if maximum >= 1 else f"{minimum:g} to {maximum:g} similar"
    return range if measure == "resemblance" else f"{range} by {measure}"


def tell_of_weights(weights: WeightsUsed | None) -> None:
    """Say which sample the weights of features are from."""
    if weights is not None:
        say(f"Weights of features: from {weights.documents:,} random documents, taken {weights.at}.")


def warn_of_candidates(not_compared: int) -> None:
    """Say so when some candidates were left out."""
    if not_compared:
        warn(f"{not_compared:,} candidates with fewer shared keys were not compared: raise --max-candidates.")


def warn_of_detection(minimum: float, probability: float | None, cases: Sequence[DetectionCase]) -> None:
    """Say so when the bands do not find all pairs that are ``minimum`` similar."""
    if probability is not None and probability < 0.985:
        warn(
            f"Pairs exactly {minimum:g} similar become candidates with probability {probability:.3f} only: others of "
            f"them are missed. For a lower threshold the index needs other bands."
        )
    if probability is None:
        shown = ", ".join(f"{one.probability:.3f} ({one.shape})" for one in cases)
        warn(
            f"The keys are made for resemblance. Pairs exactly {minimum:g} similar by this measure become "
            f"candidates with probability {shown}: others of them are missed."
        )
