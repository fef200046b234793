"""Parameters of the HTTP interface: their types, bounds and descriptions, as its OpenAPI document has them.

A value that no index can take is not valid by the schema. Where only the command can say what is wrong, the schema has
a pattern, and the command the message.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BeforeValidator, WithJsonSchema

from es_neardupe.commands.group_pages import MAX_WHOLE
from es_neardupe.groups.decisions import Verdict
from es_neardupe.groups.listing import GroupOrder
from es_neardupe.groups.reviewed import ReviewState
from es_neardupe.json_models import CommonShare, FactNames
from es_neardupe.similarity.pair_relation import Relation


def _digits(given: object) -> object:
    """A whole number as it is written everywhere: Python would also read 3_0."""
    if isinstance(given, str) and not given.strip().lstrip("+-").isdecimal():
        raise ValueError("not a whole number")
    return given


Whole = BeforeValidator(_digits)

Id = Annotated[str, Query(min_length=1, description="Id of a document.")]
ConcreteIndex = Annotated[
    str | None, Query(min_length=1, description="Concrete index of the document, if several have its id.")
]
Minimum = Annotated[
    float | None, Query(gt=0, le=1, description="Minimum similarity; by default the threshold of the index.")
]
Top = Annotated[int, Query(ge=1, le=1000, description="Maximum number of hits."), Whole]
Across = Annotated[
    str | None,
    Query(min_length=1, description="Field: only documents with other values of it than the document itself."),
]
Facts = Annotated[
    FactNames | None,
    Query(
        description="Texts that differ in these facts are no hits: figures, facts, all, or kinds such as names, "
        "separated by commas. May be repeated."
    ),
]
By = Annotated[str, Query(min_length=1, description="Field with the document that a chunk is from.")]
TopPairs = Annotated[int, Query(ge=1, le=1000, description="Maximum number of pairs of documents."), Whole]
MinimumShare = Annotated[
    float, Query(gt=0, le=1, description="Minimum share of the words of either text that are in common passages.")
]
IgnoreCommon = Annotated[
    CommonShare | None,
    Query(
        description="Words in shingles of more than this share of the documents do not count; auto: those of "
        "boilerplate that unrelated texts share."
    ),
]

# -- groups -----------------------------------------------------------------------------------------------------------

Group = Annotated[str, Path(description="Id of the group.")]
MinSize = Annotated[int, Query(ge=2, le=MAX_WHOLE, description="Minimum number of documents."), Whole]
MaxSize = Annotated[int | None, Query(ge=2, le=MAX_WHOLE, description="Maximum number of documents."), Whole]
MinSimilarity = Annotated[
    float | None, Query(ge=0, le=1, description="Lower bound of the least similarity of a member to the principal.")
]
Below = Annotated[float | None, Query(ge=0, le=1, description="Only groups whose least similarity is lower than this.")]
QueryString = Annotated[str, Query(description="Query string: groups with a document that matches.")]
Values = Annotated[
    list[Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[^:]+:"})]] | None,
    Query(
        description="FIELD:VALUE: groups with a document that has this value in a keyword, boolean or IP field. May be "
        "repeated, for one document with all of them."
    ),
]
ByRelation = Annotated[
    Relation | None,
    Query(description="Groups with two documents that have this relation by the stored evidence."),
]
ByReview = Annotated[ReviewState | None, Query(description="State of the review.")]
ByReviewer = Annotated[
    str | None, Query(min_length=1, description="Groups about which this reviewer has decided something.")
]
Order = Annotated[GroupOrder, Query(description="Order of the groups.")]
After = Annotated[str | None, Query(description="`after` of the previous answer: continues there.")]
Size = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items in the answer."), Whole]

# -- collation --------------------------------------------------------------------------------------------------------

Start = Annotated[int, Query(ge=0, le=MAX_WHOLE, description="Number of the first member, from 0."), Whole]
Reference = Annotated[
    str | None,
    Query(min_length=1, description="Id of the member whose text is the reference; by default the principal."),
]
ReferenceIndex = Annotated[
    str | None, Query(min_length=1, description="Concrete index of the reference, if several members have its id.")
]
FirstPlace = Annotated[
    int, Query(ge=1, le=MAX_WHOLE, description="Number of the first of up to 40 places, from 1."), Whole
]
Sort = Annotated[
    str,
    Query(
        description="Order of the rows: similarity, id, the number of a place, or `field.` and a field to show; with - "
        "in front, descending. By default that of the group."
    ),
    WithJsonSchema({"type": "string", "pattern": r"^(-?(similarity|id|[1-9][0-9]*|field\..+))?$"}),
]

# -- decisions --------------------------------------------------------------------------------------------------------

DecisionId = Annotated[str, Path(description="Id of the decision.")]
Author = Annotated[str | None, Query(min_length=1, description="Decisions of this reviewer.")]
ByVerdict = Annotated[Verdict | None, Query(description="Decisions with this verdict.")]
Withdrawn = Annotated[bool | None, Query(description="true: only withdrawn decisions; false: only those that hold.")]
