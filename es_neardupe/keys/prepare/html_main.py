"""``html-main``: the main text of a page, without its furniture.

Five stages, each of which removes more: what is not shown; parts that say what they are, around the main element or the
one article; parts with a known name; lists of links; and, without a main element or an article, parts around the text
that have many links, or are short and have no values. A stage that leaves too little is undone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, groupby, pairwise

from es_neardupe.keys.prepare.html_guard import names
from es_neardupe.keys.prepare.html_page import INLINE, Element, Kept, Page, Pieces, names_of, seen_of

APART = names("nav aside dialog menu footer search button textarea label legend optgroup option output progress meter")
APART_ROLES = names(
    "navigation banner contentinfo complementary dialog alertdialog search menu menubar toolbar tablist"
)
_NAVIGATION = names(
    "nav navs navbar navigation navlist navlinks navpath navpanel navheader navfooter navrow navtree navcontainer"
)
_OF_NAVIGATION = names(
    "top sub bottom side main site page global primary secondary mobile footer header foot head user post skip"
)
_FURNITURE = names(
    "advert advertisement breadcrumb breadcrumbs comment comments consent cookie cookies crosssell crossselling footer"
    " gdpr mostread newsletter pagination paywall recommendations recommended related reviews share sharing sidebar"
    " social sponsored subscribe trending upsell"
)
_BEFORE = names("article c content customer entry js l m o page post product site story user widget")
_AFTER = names(
    "area articles banner bar block body box container content dialog form inner item items layer links list message"
    " modal notice overlay panel popup posts region section teaser title widget wrap wrapper"
)
APART_NAMES = (
    _NAVIGATION
    | {of + name for of in _OF_NAVIGATION for name in _NAVIGATION}
    | names(
        "mainmenu sitemenu topmenu sidemenu mobilemenu pagemenu menubar pager globalsidebar mainsidebar"
        " leftsidebar rightsidebar sphinxsidebar bssidebar toc tableofcontents skiplink siteheader pageheader"
        " globalheader globalfooter masthead colophon copyright cookieconsent cookielaw newslettersignup signup"
        " socialbuttons socialicons socialtools sharebuttons shareicons sharetools socialshare sharedaddy"
        " relatedstories readalso readmore morestories respond disqusthread ad ads adbox adslot adunit promo"
        " promobox outbrain taboola popup modal overlay printfooter catlinks noprint onetrustbannersdk"
        " onetrustconsentsdk cybotcookiebotdialog usercentricsroot didomihost qccmp2container cookielawinfobar"
        " ccwindow ckyconsentcontainer borlabscookie tarteaucitronroot cmplzcookiebannercontainer iubendacsbanner"
        " osanocmwindow cmpwrapper cmpbox fbcomments readercomments alsobought recentlyviewed minicart"
    )
    | _FURNITURE
    | {before + name for before in _BEFORE for name in _FURNITURE}
    | {before + name + after for before in ("", "c", "l") for name in _FURNITURE for after in _AFTER}
)
"""Of ids and classes, in lower case without ``-`` and ``_``."""
OUTER = ("html", "body")
MAIN, ARTICLE = ("main",), ("article",)
SECTIONS = ("main", "article", "section")
LIST_BLOCKS = names("ul ol dl table div section p td center form")
_LINKS = 3
"""Links of a list of links."""
_PARAGRAPH = 5
"""Words of a paragraph, at least."""
_SHORT = 10
"""Parts around the text with fewer words are removed, unless they have values."""
_LABELS = ("dt", "th")
_VALUE = re.compile(
    "[0-9\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\uff10-\uff19]|[:\uff1a][\x00-\x20]*[^\x00-\x20:\uff1a]"
)
"""A figure, or a colon before more text."""
_COPYRIGHT = re.compile(r"\u00a9|copyright|\(c\)", re.ASCII | re.IGNORECASE)
_ENOUGH = 20
"""Words that are enough to remain, whatever was left out."""


def main_of(page: Page) -> Kept:
    """The main text: the last of the stages that leaves enough."""
    kept, *more = _Stages(page).kept()
    if not kept.words:
        return seen_of(page)
    for following in more:
        if following.words < _ENOUGH and following.words * 3 < kept.words:
            break
        kept = following
    return kept


class _Stages:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.elements = page.elements
        self.roles = [element.role for element in self.elements]
        self.numbers = {id(element): number for number, element in enumerate(self.elements)}
        self.in_section = self._in_section()
        self.holds_main = self._holds(lambda number: self._is(number, MAIN + ARTICLE))

    def kept(self) -> Iterator[Kept]:
        """What the stages keep, after what is not shown was left out."""
        page = self.page
        parts = page.without(self._says_apart, page.seen)
        sums = page.sums(parts)
        main = self._main(sums)
        first, last = (0, len(page.pieces)) if main is None else (main.first, main.last)
        yield page.kept(parts, first, last)
        most = (sums[last] - sums[first]) / 2
        named = page.without(lambda element: self._is_named_apart(element, sums, most), parts)
        yield page.kept(named, first, last)
        sums_named, linked = page.sums(named), self._words_in_links(named)
        unlinked = page.without(lambda element: self._is_list_of_links(element, sums_named, linked, most), named)
        yield page.kept(unlinked, first, last)
        if main is None:
            yield page.kept(self._without_parts_around(unlinked, most))

    def _is(self, number: int, names: Sequence[str]) -> bool:
        return self.elements[number].name in names or self.roles[number] in names

    def _in_section(self) -> list[bool]:
        """Whether each element is in a main element, an article or a section."""
        inside: list[bool] = []
        for element in self.elements:
            parent = element.parent
            inside.append(parent >= 0 and (inside[parent] or self.elements[parent].name in SECTIONS))
        return inside

    def _holds(self, sought: Callable[[int], bool]) -> list[bool]:
        """Whether each element is, or holds, one that is sought."""
        holds = [False] * len(self.elements)
        for number in range(len(self.elements)):
            if sought(number):
                up = number
                while up >= 0 and not holds[up]:
                    holds[up] = True
                    up = self.elements[up].parent
        return holds

    def _says_apart(self, element: Element) -> bool:
        number = self.numbers[id(element)]
        if element.name in OUTER or self.holds_main[number]:
            return False
        named = element.name in APART or (element.name == "header" and not self.in_section[number])
        return named or self.roles[number] in APART_ROLES

    def _is_named_apart(self, element: Element, sums: Sequence[int], most: float) -> bool:
        if element.name in INLINE or element.name in OUTER or self.holds_main[self.numbers[id(element)]]:
            return False
        if sums[element.last] - sums[element.first] > most:
            return False
        names = (name.lower().replace("-", "").replace("_", "") for name in names_of(element))
        return not APART_NAMES.isdisjoint(names)

    @cached_property
    def _links(self) -> list[int]:
        """The number of links in each element, with itself."""
        counts = [int(element.is_link) for element in self.elements]
        for number in range(len(self.elements) - 1, -1, -1):
            if (parent := self.elements[number].parent) >= 0:
                counts[parent] += counts[number]
        return counts

    @cached_property
    def _linked(self) -> Pieces:
        """Whether each piece is in a link."""
        return self.page.without(lambda element: element.is_link)

    def _words_in_links(self, left_out: Pieces) -> Sequence[int]:
        """The words in links before each piece, and of all, without those that are left out."""
        return self.page.sums([out or not link for out, link in zip(left_out, self._linked, strict=True)])

    def _is_list_of_links(self, element: Element, sums: Sequence[int], linked: Sequence[int], most: float) -> bool:
        number = self.numbers[id(element)]
        if element.name not in LIST_BLOCKS or self.holds_main[number]:
            return False
        size = sums[element.last] - sums[element.first]
        in_links = linked[element.last] - linked[element.first]
        return self._links[number] >= _LINKS and in_links * 10 >= size * 8 and size <= most

    def _without_parts_around(self, left_out: Pieces, most: float) -> Pieces:
        """Remove parts around the text that are short and have no values, or that have many links; nothing if this is
        more than half of the words. The text is the element with most of the words of paragraphs."""
        sums, linked = self.page.sums(left_out), self._words_in_links(left_out)

        def has_links(element: Element) -> bool:
            words = sums[element.last] - sums[element.first]
            return (linked[element.last] - linked[element.first]) * 5 >= words

        def is_teaser(element: Element) -> bool:
            is_small = sums[element.last] - sums[element.first] <= most
            return element.name not in INLINE and is_small and has_links(element)

        text = self._most(self._paragraphs(self.page.without(is_teaser, left_out)))
        if text is None:
            return left_out
        holds_heading = self._holds(lambda number: self.elements[number].name == "h1")

        def is_apart(element: Element) -> bool:
            is_around = element.first < text.last and text.first < element.last
            return element.name not in INLINE and not is_around and not holds_heading[self.numbers[id(element)]]

        with_values = self._with_values(text, left_out, sums, is_apart)

        def is_beside(element: Element) -> bool:
            if not is_apart(element) or self.numbers[id(element)] in with_values:
                return False
            parent = self.elements[element.parent]
            is_short = sums[element.last] - sums[element.first] < _SHORT
            return has_links(element) or (is_short and parent.first <= text.first and text.last <= parent.last)

        without = self.page.without(is_beside, left_out)
        return without if self.page.sums(without)[-1] * 2 >= sums[-1] else left_out

    def _with_values(
        self, text: Element, left_out: Pieces, sums: Sequence[int], is_apart: Callable[[Element], bool]
    ) -> set[int]:
        """Short parts without links that have values, such as prices, dates and specifications, with those directly
        before and after them; but no notices of copyright."""
        holds_label = self._holds(lambda number: self.elements[number].name in _LABELS)
        found: set[int] = set()

        def content(number: int) -> str:
            element = self.elements[number]
            return "\n".join(self.page.pieces[k] for k in range(element.first, element.last) if not left_out[k])

        def words(number: int) -> int:
            return sums[self.elements[number].last] - sums[self.elements[number].first]

        def is_short(number: int) -> bool:
            alone = words(number) < _SHORT and not self._links[number] and is_apart(self.elements[number])
            return alone and _COPYRIGHT.search(content(number)) is None

        def has_value(number: int) -> bool:
            return holds_label[number] or _VALUE.search(content(number)) is not None

        for number, parent in enumerate(self.elements):
            if parent is not text and parent.first <= text.first and text.last <= parent.last:
                parts = [part for part in self._children(number) if words(part)]
                for short, adjacent in groupby(parts, is_short):
                    together = list(adjacent)
                    if short and any(map(has_value, together)):
                        found.update(together)
        return found

    def _children(self, number: int) -> Iterator[int]:
        """The blocks that an element consists of, apart from those within them."""
        child, end = number + 1, self.elements[number].end
        while child < end:
            if self.elements[child].name not in INLINE:
                yield child
            child = self.elements[child].end

    def _paragraphs(self, left_out: Pieces) -> Sequence[int]:
        """The words of paragraphs before each piece: of what no edge divides."""
        sums = self.page.sums(left_out)
        edges = {edge for element in self.elements if element.name not in INLINE for edge in _edges(element)}
        counts = [0] * len(self.page.pieces)
        for first, last in pairwise(sorted(edges)):
            if sums[last] - sums[first] >= _PARAGRAPH:
                counts[last - 1] = sums[last] - sums[first]
        return list(accumulate(counts, initial=0))

    def _most(self, paragraphs: Sequence[int]) -> Element | None:
        """The innermost element with at least 4/5 of the words of paragraphs that is no paragraph itself."""
        around, most = None, None
        for element in self.elements:
            words = paragraphs[element.last] - paragraphs[element.first]
            if words and element.name not in INLINE and words * 5 >= paragraphs[-1] * 4:
                around, most = most, element
        if most is None:
            return None
        within = self.elements[self.numbers[id(most)] + 1 : most.end]
        return around if all(element.name in INLINE for element in within) else most

    def _main(self, sums: Sequence[int]) -> Element | None:
        """The main element, or the one article, that holds enough of the words."""
        total = sums[-1]
        sizes = [sums[element.last] - sums[element.first] for element in self.elements]
        for number, element in enumerate(self.elements):
            if self._is(number, MAIN) and sizes[number] > 0 and sizes[number] * 5 >= total:
                return element
        articles = sorted(self._outermost_articles(), key=lambda number: -sizes[number])
        if not articles or not sizes[articles[0]]:
            return None
        longest = sizes[articles[0]]
        second = sizes[articles[1]] if len(articles) > 1 else 0
        return self.elements[articles[0]] if longest * 3 >= total and longest >= 2 * second else None

    def _outermost_articles(self) -> Iterator[int]:
        """The articles that hold at most one other, without those within them."""
        within = [0] * len(self.elements)
        for number in range(len(self.elements) - 1, -1, -1):
            if (parent := self.elements[number].parent) >= 0:
                within[parent] += within[number] + self._is(number, ARTICLE)
        end = 0
        for number, element in enumerate(self.elements):
            if number >= end and within[number] <= 1 and self._is(number, ARTICLE):
                end = element.end
                yield number


def _edges(element: Element) -> tuple[int, int]:
    """The pieces at the edges of an element that separates words."""
    return element.first, element.last - 1
