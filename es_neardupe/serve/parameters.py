"""Parameters of the HTTP interface: their types, bounds and descriptions, as its OpenAPI document has them. Those that
are options of a command have the description and the bounds of the command.

A value that no index can take is not valid by the schema. Where only the command can say what is wrong, the schema has
a pattern, and the command the message.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, StringConstraints, WithJsonSchema

from es_neardupe.commands.contained import contained
from es_neardupe.commands.documents import documents
from es_neardupe.commands.groups import groups
from es_neardupe.commands.similar import similar
from es_neardupe.groups.collate import MAX_MEMBERS
from es_neardupe.groups.decisions import Verdict
from es_neardupe.groups.listing import GroupFilter, GroupOrder
from es_neardupe.groups.reviewed import ReviewFilter, ReviewState
from es_neardupe.json_models import CommonShare, FactNames
from es_neardupe.query_strings import MAX_CHARACTERS
from es_neardupe.signatures import defaults_of, meaning_of
from es_neardupe.similarity.comparison import MAX_CHARS
from es_neardupe.similarity.pair_relation import Relation
from es_neardupe.views.group_pages import MAX_WHOLE, DocumentFilter, GroupSelection, read_values


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
FirstCharacter = Annotated[
    int, Query(ge=0, le=MAX_WHOLE, description="Number of the first character of the text, from 0."), Whole
]
Characters = Annotated[int, Query(ge=1, le=MAX_CHARS, description="Maximum number of characters of the text."), Whole]
Minimum = Annotated[float | None, Query(**meaning_of(similar, "min"))]
Top = Annotated[int, Query(**meaning_of(similar, "top", le=1000)), Whole]
Within = Annotated[list[Annotated[str, StringConstraints(min_length=1)]] | None, Query(**meaning_of(similar, "within"))]
Across = Annotated[str | None, Query(**meaning_of(similar, "across", min_length=1))]
Facts = Annotated[FactNames | None, Query(**meaning_of(similar, "facts"))]
By = Annotated[str, Query(**meaning_of(documents, "by", min_length=1))]
TopPairs = Annotated[int, Query(**meaning_of(documents, "top", le=1000)), Whole]
MinimumShare = Annotated[float, Query(**meaning_of(contained, "min"))]
IgnoreCommon = Annotated[CommonShare | None, Query(**meaning_of(contained, "ignore_common"))]

# -- groups -----------------------------------------------------------------------------------------------------------

Group = Annotated[str, Path(description="Id of the group.")]
MinSize = Annotated[int, Query(**meaning_of(groups, "min_size", le=MAX_WHOLE)), Whole]
MaxSize = Annotated[int | None, Query(ge=2, le=MAX_WHOLE, description="Maximum number of documents."), Whole]
MinSimilarity = Annotated[
    float | None, Query(ge=0, le=1, description="Lower bound of the least similarity of a member to the principal.")
]
Below = Annotated[float | None, Query(ge=0, le=1, description="Only groups whose least similarity is lower than this.")]
QueryString = Annotated[
    str,
    Query(description="Query string: groups with a document that matches."),
    WithJsonSchema({"type": "string", "maxLength": MAX_CHARACTERS}),
]
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


class GroupsQuery(BaseModel):
    """Which groups, in which order, and which page of them."""

    min_size: MinSize = defaults_of(groups)["min_size"]
    max_size: MaxSize = None
    min_similarity: MinSimilarity = None
    below: Below = None
    q: QueryString = ""
    value: Values = None
    relation: ByRelation = None
    review: ByReview = None
    reviewer: ByReviewer = None
    order: Order = GroupOrder.LARGEST
    after: After = None
    size: Size = 50

    @property
    def selection(self) -> GroupSelection:
        """The groups and their order."""
        numbers = GroupFilter(
            min_size=self.min_size, max_size=self.max_size, min_similarity=self.min_similarity, below=self.below
        )
        documents = DocumentFilter(self.q.strip(), read_values(self.value or []), self.relation)
        return GroupSelection(numbers, documents, ReviewFilter(self.review, self.reviewer), self.order)


# -- collation --------------------------------------------------------------------------------------------------------

Start = Annotated[int, Query(ge=0, le=MAX_WHOLE, description="Number of the first member, from 0."), Whole]
Members = Annotated[int, Query(ge=1, le=MAX_MEMBERS, description="Maximum number of members in the answer."), Whole]
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
