"""Pages of one document, and of two side by side, on which reviewers decide as on the page of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from es_neardupe.commands.compare import compare
from es_neardupe.commands.similar import similar
from es_neardupe.errors import SettingsError
from es_neardupe.groups.read import with_other_documents
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import shown_fields
from es_neardupe.options import Matching
from es_neardupe.pages.application import Site
from es_neardupe.pages.bar import DecisionBar
from es_neardupe.pages.site import DocumentText, comparison_page, document_page
from es_neardupe.serve.answers import page_answer
from es_neardupe.serve.large_work import large_work
from es_neardupe.serve.site_pages import chosen, said_before
from es_neardupe.verification.texts_to_compare import read_document
from es_neardupe.views.document_pages import DocumentReview, by_address, review_of_documents

_SIMILAR = 20
"""Documents below the threshold that are listed."""

_LOWEST = 0.1
"""Their least similarity."""


def document_pages(
    index_of: Callable[[Request], Index], fields: Sequence[str], site: Callable[[Request], Site]
) -> APIRouter:
    """The routes. ``index_of``: the index with the login of a request. ``fields`` are shown of documents."""
    routes = APIRouter(default_response_class=HTMLResponse)

    def bar_of(request: Request, index: Index, review: DocumentReview, link: str) -> DecisionBar:
        """The bar of the page with this address."""
        given, own = request.query_params, site(request).of(index)
        made = given.get("stored") or given.get("withdrawn") or ""
        documents = [(one.address, one.content) for one in review.documents if one.content is not None]
        return DecisionBar(
            page=own.below_root(link),
            group=review.group or "",
            queue=review.queue,
            documents=documents if review.decidable else [],
            pair=review.decidable and len(documents) == 2 and not review.copies,
            last=review.last,
            said=said_before(index, own, fields, made, given.get("of", "")),
        )

    @routes.get("/compare")
    def two_documents(
        request: Request, a: str = "", b: str = "", a_index: str | None = None, b_index: str | None = None
    ) -> HTMLResponse:
        if not a or not b:
            raise SettingsError("Give the ids of two documents: a and b.")
        matching = chosen(Matching, request.query_params.get("matching") or Matching.LITERAL.value)
        index = opened(index_of(request), texts=True)
        own = site(request).of(index)
        # What can be decided about is read before the texts: a text that changes meanwhile cannot be decided about.
        review = review_of_documents(index, [by_address(a, a_index), by_address(b, b_index)], own.reviewer)
        one, other = (each.address for each in review.documents)
        with large_work(review.characters):
            found = compare(index, one, other, fields=fields)
            bar = bar_of(request, index, review, own.compare_link(one, other))
            return page_answer(comparison_page(own, found, matching, review, bar))

    @routes.get("/document")
    def one_document(request: Request, id: str = "", index: str | None = None) -> HTMLResponse:
        if not id:
            raise SettingsError("Give the id of a document.")
        found = opened(index_of(request), texts=True)
        own = site(request).of(found)
        review = review_of_documents(found, [by_address(id, index)], own.reviewer)
        address = review.documents[0].address
        read = read_document(found, address, shown_fields(found, fields, origin=True))
        text = found.settings.scheme.preparation.placed(read.values).original
        threshold = found.settings.threshold_of(found.settings.measure)
        lowest = min(_LOWEST, threshold)
        hits = similar(index_of(request), id=address, min=lowest, max=threshold, top=_SIMILAR, fields=fields).hits
        below = [one for one in hits if one.similarity < threshold]
        groups = with_other_documents(found, {one.group for one in below if one.group is not None})
        document = DocumentText(text, read.fields, below, groups, threshold, _SIMILAR)
        bar = bar_of(request, found, review, own.document_link(address))
        return page_answer(document_page(own, document, review, bar))

    return routes
