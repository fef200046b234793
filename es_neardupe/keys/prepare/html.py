"""``html`` and ``html-main``: the text of pages as readers see it, and the part of it that is no furniture."""

from __future__ import annotations

from functools import cache

from es_neardupe.errors import SettingsError
from es_neardupe.keys.prepare import escaped, html_kernel, html_places, html_quotes
from es_neardupe.keys.prepare.html_guard import without_tags
from es_neardupe.keys.prepare.html_main import main_of
from es_neardupe.keys.prepare.html_page import Kept, Page, seen_of, tidy
from es_neardupe.keys.prepare.placed import PlacedText

CONFORMANCE = (
    ("<p>Ex<b>am</b>ple<p>two", "Example\ntwo"),
    ("<ul><li>one<li>two</ul>H<sub>2</sub>O", "one\ntwo\nH2O"),
    ("a<!-- b -->c<script>'</script>'d", "ac\n'd"),
    ("<script>x='<!--<script></script>'</script>y--></script>z", "y-->z"),
    ("&lt;b&gt; &amp &copy2026 &notit; &#x80; &nosuch;", "<b> & ©2026 ¬it; € &nosuch;"),
    ("<table>x<tr><td>a<td>b</table>", "x\na\nb"),
    ("<p>a<![CDATA[x]]>b<svg><text>c</text></svg>d", "ab\nd"),
    ("<p>k<template>t</template><noscript>n</noscript>", "k"),
    ("<title>T</title><frameset><frame></frameset>", "T"),
    ("<div hidden>h</div><div style='color:red; DISPLAY : none !important'>n</div><p aria-hidden=true>v", "v"),
    ("<body style='visibility:hidden'><p hidden>only", "only"),
    ("<dialog>closed</dialog><dialog open>shown</dialog><details>d</details>", "shown\nd"),
    ("<img alt='alt' title='t'>a<input value=v><button>go</button><select><option>o</select>", "a\ngo"),
    ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp>字</ruby>", "漢\n字"),
    ("<textarea><p>raw &amp; text</textarea><plaintext></b>", "<p>raw & text\n</b>"),
    ("<amp-text>a</amp-text><x-y>b</x-y>", "a\nb"),
)
"""Pages with the text that ``html`` gives; parsers that follow other rules, or other versions of them, fail here."""


def text(html: str, *, main: bool) -> str:
    """The text of a page. Raises `SettingsError` if the installed parser reads pages in another way."""
    _check_parser()
    return _text(escaped.unescaped(html), main=main)


def mail_text(html: str) -> str:
    """The same of a mail, with marks before the lines of its quotes."""
    _check_parser()
    html = escaped.unescaped(html)
    if not html_quotes.may_quote(html) or html_kernel.is_too_costly(html):
        return _text(html, main=False)
    return html_quotes.with_marks(Page.parsed(html))


def _text(html: str, *, main: bool) -> str:
    made = html_kernel.text(html, main=main)
    if made is not None:
        return made
    return tidy(without_tags(html)) if html_kernel.is_too_costly(html) else _kept(html, main=main).text


def placed(html: str, *, main: bool) -> PlacedText:
    """The same with the place of each character in the source."""
    _check_parser()
    if (page := escaped.placed(html)) is not None:
        return page.then(_placed(page.prepared, main=main))
    return _placed(html, main=main)


def _placed(html: str, *, main: bool) -> PlacedText:
    if html_kernel.is_too_costly(html):
        return html_places.places_without_tags(html)
    return html_places.places_of(html, _kept(html, main=main))


def _kept(html: str, *, main: bool) -> Kept:
    page = Page.parsed(html)
    return main_of(page) if main else seen_of(page)


@cache
def _check_parser() -> None:
    """Raise `SettingsError` if the installed parser would give other keys than those of the scheme."""
    for html, expected in CONFORMANCE:
        found = _kept(html, main=False).text
        if found != expected or html_kernel.text(html, main=False) not in (None, expected):
            raise SettingsError(
                f"The installed version of selectolax reads HTML in another way than the scheme requires ({html!r} is "
                f"{found!r}, not {expected!r}): install another version with `pip install 'selectolax>=1.0'`."
            )
