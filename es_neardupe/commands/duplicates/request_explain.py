"""Explanation of a request in plain words, with warnings about its cost and about pairs that it misses."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from es_neardupe.commands.duplicates.request_plan import (
    RATIO,
    ContentPlan,
    DuplicatesPlan,
    OverlapsPlan,
    RequestPlan,
    SchemeKeys,
    Validation,
)
from es_neardupe.options import MeasureName
from es_neardupe.similarity.features import (
    Characters,
    Combine,
    FeatureTree,
    Flatten,
    Leaf,
    Ngrams,
    Words,
    describe,
    fields_of,
)
from es_neardupe.similarity.measure import ALIGNED, MEANINGS
from es_neardupe.wording import counted

_FEW_CHARACTERS = 8
"""Shorter runs of characters are parts of words that occur in most texts."""


def explain(plan: RequestPlan, index: str) -> list[str]:
    """One line per step, indented below the name of the stage, then the warnings."""
    lines = [line for stage in plan.stages for line in _stage(stage, index)]
    return [*lines, *(f"Note: {warning}" for warning in warnings(plan))]


def _stage(stage: DuplicatesPlan | ContentPlan | OverlapsPlan, index: str) -> Iterator[str]:
    if isinstance(stage, DuplicatesPlan):
        yield from _duplicates(stage, index)
    elif isinstance(stage, ContentPlan):
        documents = "every document" if stage.limit is None else f"at most {counted(stage.limit, 'document')}"
        yield f"{stage.name}: read {documents} in the pairs of {stage.pairs}."
        fields = [
            name if maximum is None else f"{name} (at most {counted(maximum, 'character')})"
            for name, maximum in stage.fields.items()
        ]
        yield f"  Fields: {', '.join(fields)}. Truncated values are counted."
    else:
        pairs = "each pair" if stage.limit is None else f"the {counted(stage.limit, 'most similar pair')}"
        yield f"{stage.name}: find the text blocks that both documents have, for {pairs} of {stage.pairs}."
        yield f"  Blocks of {counted(stage.min_words, 'word')} or more in {_fields(stage.fields)}."


def _duplicates(stage: DuplicatesPlan, index: str) -> Iterator[str]:
    yield f"{stage.name}: find pairs of similar documents in {index}."
    scope = "all documents"
    if stage.query is not None:
        scope = f"the documents that match {json.dumps(stage.query, ensure_ascii=False)}"
    yield f"  1. Scope: {scope}."
    if isinstance(stage.grouping, SchemeKeys):
        yield "  2. Grouping: by the stored keys of the index, without reading texts."
        shared = "key"
    else:
        yield f"  2. Grouping: by {describe(stage.grouping)}."
        shared = "feature"
    across = " of two different indices" if stage.across_indices else ""
    yield (
        f"     Documents{across} that share a {shared} become candidate pairs. A {shared} shared by more than "
        f"{counted(stage.max_group, 'document')} is skipped and counted; the largest of these groups are listed."
    )
    for number, validation in enumerate(stage.validations):
        if number == 0:
            yield f"  3. Validation: the similarity of each candidate pair is {_similarity(validation)}."
        else:
            yield f"     Of the pairs that pass, a further similarity is {_similarity(validation)}."
        yield f"     A pair passes with {_range(validation)}."
    if stage.explanations:
        yield "  4. Output: each pair has an explanation of its similarity."


def _similarity(validation: Validation) -> str:
    if validation.features is not None:
        meaning = "the number of shared features"
        if validation.measure == RATIO:
            meaning += " divided by that of all features of both documents"
        return f"{meaning}, each counted once: {describe(validation.features)}"
    name = MeasureName(validation.measure)
    settings = [f"{validation.matching.value} matching"] * (name in ALIGNED)
    settings += [f"{validation.ngram}-grams"] * (name is MeasureName.BAG)
    settings += [f"w = {validation.shingle}"] * (name not in (MeasureName.BAG, MeasureName.EDIT))
    return f"{name.value} ({'; '.join([*settings, MEANINGS[name]])}), of the text in {_fields(validation.fields)}"


def _fields(names: tuple[str, ...]) -> str:
    return f"the field{'s' * (len(names) > 1)} {', '.join(names)}"


def _range(validation: Validation) -> str:
    if validation.min == validation.max:
        return f"a similarity of exactly {validation.min:g}"
    if math.isinf(validation.max):
        return f"a similarity of {validation.min:g} or more"
    return f"a similarity from {validation.min:g} to {validation.max:g}, both inclusive"


def warnings(plan: RequestPlan) -> list[str]:
    """Sentences on what is likely to be expensive or to miss pairs, for each stage that finds pairs."""
    finding = [stage for stage in plan.stages if isinstance(stage, DuplicatesPlan)]
    return [*range_warnings(plan), *(f"{stage.name}: {one}" for stage in finding for one in _warnings(stage))]


def range_warnings(plan: RequestPlan) -> list[str]:
    """Sentences on ranges of queries that leave out most of a year or month."""
    finding = [stage for stage in plan.stages if isinstance(stage, DuplicatesPlan)]
    return [f"{stage.name}: {warning}" for stage in finding for warning in _year_ranges(stage.query)]


def _warnings(stage: DuplicatesPlan) -> Iterator[str]:
    if not isinstance(stage.grouping, SchemeKeys):
        yield from _grouping_warnings(stage.grouping, stage.validations)
    else:
        yield (
            "two documents share a key with a probability that depends on their resemblance; `es-neardupe bands` "
            "shows it. Documents without a common key are never compared."
        )
    if all(validation.min == 0 for validation in stage.validations):
        yield "with min 0 every candidate pair passes, even if the documents have nothing in common."
    for validation in stage.validations:
        compared = validation.features
        if isinstance(compared, Leaf) and validation.min < 1 and len(fields_of(compared)) == 1:
            yield (
                f"the similarity compares {describe(compared)}, which are one feature per value: two values are either "
                "equal or different. Use featureSource:flatten to compare their parts."
            )


_PERIOD = re.compile(r"[0-9]{4}(-[0-9]{2})?")
"""A year or a month."""
_RANGE = re.compile(
    r"(?P<field>[^\s:()\[\]{}]+):\s*(?:"
    r'(?P<open>[\[{])\s*"?(?P<low>[^\s"\]}]+)"?\s+TO\s+"?(?P<high>[^\s"\]}]+)"?\s*(?P<close>[\]}])'
    r'|(?P<sign><=|>)\s*"?(?P<bound>[^\s"()]+)"?)'
)
"""A range in the syntax of ``query_string``."""


def _year_ranges(query: object) -> Iterator[str]:
    """Warnings for ranges that end or begin inside a year or month that a reader would take as a whole.

    Both servers complete a date that lacks month or day by the first one, also at the end of a range.
    """
    if isinstance(query, list):
        for one in query:
            yield from _year_ranges(one)
    elif isinstance(query, Mapping):
        for name, value in query.items():
            if name == "query_string" and isinstance(value, Mapping):
                yield from _ranges_in_text(str(value.get("query", "")))
            elif name == "range" and isinstance(value, Mapping):
                for field, bounds in value.items():
                    if isinstance(bounds, Mapping):
                        yield from _bounds(field, str(bounds.get("gt", "")), str(bounds.get("lte", "")))
            else:
                yield from _year_ranges(value)


def _ranges_in_text(text: str) -> Iterator[str]:
    for found in _RANGE.finditer(text):
        if found["open"]:
            excluded_low = found["low"] if found["open"] == "{" else ""
            included_high = found["high"] if found["close"] == "]" else ""
        else:
            excluded_low = found["bound"] if found["sign"] == ">" else ""
            included_high = found["bound"] if found["sign"] == "<=" else ""
        yield from _bounds(found["field"], excluded_low, included_high)


def _bounds(field: str, excluded_low: str, included_high: str) -> Iterator[str]:
    """Warnings for a lower bound that is excluded and an upper bound that is included, "" for none."""
    if _PERIOD.fullmatch(included_high):
        last_day = f"{included_high}-12-31" if len(included_high) == len("2017") else "its last day"
        yield (
            f"if {field} is a date, a range up to {included_high} ends with the first day of {included_high}. To "
            f"include all of it, write {last_day} as its end."
        )
    if _PERIOD.fullmatch(excluded_low):
        yield (f"if {field} is a date, a range after {excluded_low} excludes only the first day of {excluded_low}.")


def _grouping_warnings(grouping: FeatureTree, validations: Sequence[Validation]) -> Iterator[str]:
    if isinstance(grouping, Leaf | Combine):
        if not any(one.measure == RATIO and one.min == 1 and one.features == grouping for one in validations):
            what = "an equal value" if isinstance(grouping, Leaf) else "an equal combination"
            yield (
                f"grouping by {describe(grouping)} makes candidates only of documents with {what}; "
                "documents with similar values are never compared."
            )
    elif _single(grouping, Words):
        yield (
            "grouping by single words is inefficient: many documents share each word, so groups are large, many are "
            "skipped, and nearly all candidate pairs fail. Group by n-grams of words."
        )
    elif _single(grouping, Characters) or _short(grouping):
        yield (
            "grouping by characters or by short n-grams of them is inefficient: nearly all documents share them. "
            f"Group by n-grams of words, or of {_FEW_CHARACTERS} characters or more."
        )
    elif isinstance(grouping, Ngrams):
        yield (
            f"documents without a common run of {counted(grouping.window, 'element')} are never compared. A shorter "
            f"value is one feature, so only an equal value matches it."
        )


def _single(tree: FeatureTree, leaf: type[Words | Characters]) -> bool:
    """Whether the features are single elements of this kind of leaf."""
    if isinstance(tree, Ngrams):
        return tree.window == 1 and _made_of(tree, leaf)
    return isinstance(tree, Flatten) and _made_of(tree, leaf)


def _short(tree: FeatureTree) -> bool:
    return isinstance(tree, Ngrams) and tree.window < _FEW_CHARACTERS and _made_of(tree, Characters)


def _made_of(tree: FeatureTree, leaf: type[Words | Characters]) -> bool:
    while isinstance(tree, Ngrams | Flatten):
        tree = tree.source
    return isinstance(tree, leaf)
