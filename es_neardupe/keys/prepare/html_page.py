"""Pages of HTML as trees, and ``html``: the text as readers see it.

Pages are parsed as browsers do, by lexbor. A *piece* is a text node, or a newline at an edge of an element that
separates words; an element has the pieces from its first to its last one. What is left out of a page is a set of
pieces. A *word* that an inline element cuts counts in each of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from selectolax.lexbor import LexborHTMLParser

from es_neardupe.keys.prepare.html_guard import names
from es_neardupe.keys.text import word_counts

UNSEEN = names(
    "head script style template noscript noembed noframes iframe object audio video canvas svg select datalist rp"
    " rt annotation annotation-xml"
)
"""Elements whose content is never text of the page."""

INLINE = names(
    "a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd mark nobr q ruby rb s samp small"
    " span strike strong sub sup time tt u var wbr"
)
"""Elements that do not separate words. All others do, also unknown ones."""

WITHOUT_CHILDREN = ("script", "style", "template")

Pieces = Sequence[bool]
"""Whether each piece is left out."""


@dataclass(slots=True)
class Element:
    """An element of a page."""

    name: str
    attributes: Mapping[str, str | None]
    parent: int
    """Number of its parent; -1 for the outermost ones."""
    first: int
    """Its first piece."""
    last: int = 0
    """The piece after its last."""
    end: int = 0
    """Number of the next element that is not within it."""

    @property
    def role(self) -> str:
        """The first of its roles."""
        return (self.attributes.get("role") or "").lower().split(" ")[0]

    @property
    def is_link(self) -> bool:
        return self.name == "a" and "href" in self.attributes

    @property
    def is_hidden(self) -> bool:
        """Whether it says itself that it is not shown. Style sheets are not read."""
        if self.name in ("html", "body"):
            return False
        if self.name == "dialog" and "open" not in self.attributes:
            return True
        if "hidden" in self.attributes and (self.attributes["hidden"] or "").lower() != "until-found":
            return True
        style = self.attributes.get("style")
        return bool(style) and _hides(style or "")


def _hides(style: str) -> bool:
    """Whether declarations hide an element; the last one of a property counts."""
    hidden = {}
    for declaration in style.lower().split(";"):
        key, _, value = declaration.partition(":")
        value = value.replace("!important", "").strip()
        if key.strip() == "display":
            hidden["display"] = value == "none"
        elif key.strip() == "visibility":
            hidden["visibility"] = value in ("hidden", "collapse")
    return any(hidden.values())


@dataclass
class Page:
    """The elements of a page in the order of the document, and its pieces."""

    elements: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @classmethod
    def parsed(cls, html: str) -> Page:
        """A page as browsers read it, without scripts. The caller has checked that it is not too costly."""
        page = cls()
        open_elements: list[int] = []
        node = LexborHTMLParser(html).root
        while node is not None:
            child = None
            if node.tag == "-text":
                page.pieces.append(node.text_content or "")
            elif node.is_element_node:
                name = (node.tag or "").lower()
                page._open(name, node.attributes, open_elements)
                child = None if name in WITHOUT_CHILDREN else node.first_child
                if child is None:
                    page._close(open_elements)
            while child is None and node is not None:
                child = node.next
                if child is None:
                    node = node.parent
                    if node is None or not open_elements:
                        return page
                    page._close(open_elements)
            node = child
        return page

    def _open(self, name: str, attributes: Mapping[str, str | None], open_elements: list[int]) -> None:
        parent = open_elements[-1] if open_elements else -1
        open_elements.append(len(self.elements))
        self.elements.append(Element(name, attributes, parent, len(self.pieces)))
        if name not in INLINE:
            self.pieces.append("\n")

    def _close(self, open_elements: list[int]) -> None:
        element = self.elements[open_elements.pop()]
        if element.name not in INLINE:
            self.pieces.append("\n")
        element.last, element.end = len(self.pieces), len(self.elements)

    @cached_property
    def words(self) -> list[int]:
        """The number of words of each piece."""
        return word_counts(self.pieces)

    @cached_property
    def seen(self) -> Pieces:
        """What ``html`` leaves out. If nothing else has words, hidden elements count."""
        shown = self.without(lambda element: element.name in UNSEEN or element.is_hidden)
        return shown if self.sums(shown)[-1] else self.without(lambda element: element.name in UNSEEN)

    def without(self, rule: Callable[[Element], bool], also: Pieces | None = None) -> list[bool]:
        """Leave out the elements of a rule, in addition to some pieces. The rule is not asked for elements within
        them."""
        left_out = [False] * len(self.pieces) if also is None else list(also)
        number = 0
        while number < len(self.elements):
            element = self.elements[number]
            if rule(element):
                left_out[element.first : element.last] = [True] * (element.last - element.first)
                number = element.end
            else:
                number += 1
        return left_out

    def sums(self, left_out: Pieces) -> list[int]:
        """The number of words before each piece, and of all, without those that are left out."""
        counts = [0 if out else words for words, out in zip(self.words, left_out, strict=True)]
        return list(accumulate(counts, initial=0))

    def kept(self, left_out: Pieces, first: int = 0, last: int | None = None) -> Kept:
        """The pieces of a range that are not left out."""
        pieces = range(first, len(self.pieces) if last is None else last)
        return Kept(self, [-1 if left_out[piece] else piece for piece in pieces])

    @property
    def title(self) -> Kept:
        """The content of the first ``title``."""
        title = next((element for element in self.elements if element.name == "title"), None)
        return Kept(self, [] if title is None else list(range(title.first, title.last)))


@dataclass(frozen=True)
class Kept:
    """What is kept of a page."""

    page: Page
    pieces: list[int]
    """Numbers of the pieces; -1 for one that is left out, which separates words."""

    @cached_property
    def text(self) -> str:
        """The words with single blanks, and the lines that have any."""
        return tidy("".join("\n" if piece < 0 else self.page.pieces[piece] for piece in self.pieces))

    @cached_property
    def words(self) -> int:
        (count,) = word_counts([self.text])
        return count


def tidy(text: str) -> str:
    """The lines that have words, with single blanks between these."""
    return "\n".join(line for line in (" ".join(line.split()) for line in text.split("\n")) if line)


def seen_of(page: Page) -> Kept:
    """``html``: what a browser shows, or else the title."""
    kept = page.kept(page.seen)
    return kept if kept.words else page.title


def names_of(element: Element) -> Iterator[str]:
    """The names that an element has by its id and classes, and by its own name if it is a custom element."""
    for key in ("id", "class"):
        yield from (element.attributes.get(key) or "").split()
    if "-" in element.name:
        yield element.name.rpartition("-")[2]
