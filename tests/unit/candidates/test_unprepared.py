"""Texts that should be prepared: pages, mails, log lines and scans are recognised, other texts are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.candidates.unprepared import _MISREAD, _MISREAD_SIGN, UnpreparedTexts, unprepared_texts
from es_neardupe.index.settings import Settings

SCHEME = Settings(("text",)).scheme
PAGE = (
    "<!doctype html><html><body><nav><a href=/>Home</a></nav>"
    "<p>The bridge is open.</p><footer>2026</footer></body></html>"
)
FRAGMENT = "<p>The <b>new</b> bridge<br>is <i>open</i> since Monday.</p>"
MAIL = "Monday suits me.\n\nOn 3 Mar 2026 at 09:10, Ann Example wrote:\n> Shall we meet on Monday?\n\n-- \nBob Example"
ESCAPED = "&lt;p&gt;The &lt;b&gt;new&lt;/b&gt; bridge&lt;br&gt;is &lt;i&gt;open&lt;/i&gt; since Monday.&lt;/p&gt;"
MESSAGE = (
    "From: a@b.example\nContent-Type: multipart/alternative; boundary=x\n\n--x\nContent-Type: text/html\n"
    f"\n{PAGE}\n--x--"
)
MAIL_PAGE = (
    '<div dir="ltr">Monday suits me.</div><br><div class="gmail_quote"><div class="gmail_attr">On 3 Mar 2026 at 09:10, '
    'Ann Example wrote:<br></div><blockquote class="gmail_quote"><div>Shall we meet?</div></blockquote></div>'
)
CITED_PAGE = "<html><body><p>Monday suits me.</p><blockquote type=cite><p>Shall we meet?</p></blockquote></body></html>"
ATTRIBUTED_PAGE = (
    "<p>Monday suits me.</p><p>Ann Example &lt;a@b.example&gt; wrote:</p><blockquote><p>Shall we meet?</p></blockquote>"
)
ARTICLE = (
    "<p>The mayor was clear about it, and he wrote:</p><blockquote><p>The bridge is open.</p></blockquote>"
    "<p>So it is, since <b>Monday</b>.</p>"
)
LINE = "2026-06-21T10:00:16.759Z INFO [thread-46] GET /api/v1/items/90499 took 32319ms from 10.0.0.7"
JSON_LINE = '{"ts":1764210041.12,"level":"info","msg":"request done","dur":"12.5ms","status":200}'
TRACE = f"{LINE}\njava.io.IOException: Broken pipe\n" + "\tat com.example.Order.load(Order.java:52)\n" * 40
SCAN = "The harbour com-\nmission has re-\nfused to build a bridge, and the c0uncil will vote on it in spring."
PLAIN = [
    "The bridge over the harbour was opened on Monday, 3 March 2026, at 10:30, after two years of work.",
    "Samsung 55 inch television UE55AU7172, 4K, black",
    "Images a1b2c3d4 and 0f1e5d0c of the camera, object 65f1a2b3c4d5e6f7, are not sharp",
    "Spare part fade3791 for the pump baca4105, in stock",
    "if a < b and c > d: print('<none>')  # neither is a tag",
    "In HTML, <p> begins a paragraph and </p> ends it.",
    "She wrote: > is larger, < is smaller.\n\nFrom here on, the text has a second paragraph that says more.",
    "One word is di-\nvided at the end of a line, and no other one.",
    "日本語のテキストです。橋は月曜日に開通しました。",
]


@pytest.mark.parametrize(
    ("text", "kind", "options"),
    [
        (PAGE, "pages", "--clean html-main"),
        (FRAGMENT, "pages", "--clean html"),
        (ESCAPED, "pages", "--clean html"),
        (MAIL, "mails", "--clean mail"),
        (MESSAGE, "mails", "--clean mail"),
        (MAIL_PAGE, "mails", "--clean mail"),
        (CITED_PAGE, "mails", "--clean mail"),
        (ATTRIBUTED_PAGE, "mails", "--clean mail"),
        (ARTICLE, "pages", "--clean html"),
        (LINE, "log lines", "--preset logs"),
        (JSON_LINE, "log lines", "--preset logs"),
        (TRACE, "log lines", "--preset logs"),
        (SCAN, "scans", "--preset scans"),
    ],
    ids=[
        *("page", "fragment", "escaped page", "mail", "message", "page of Gmail", "page with type=cite"),
        *("page with an attribution", "page with a quotation", "log line", "log line in JSON", "stack trace", "scan"),
    ],
)
def test_kinds(text: str, kind: str, options: str) -> None:
    """A third of the documents with words is enough, a seventh is not."""
    found = UnpreparedTexts(kind=kind, found=3, documents=len(PLAIN) + 3, options=options)
    assert unprepared_texts([text, *PLAIN, ["", text], text, ""], SCHEME) == found
    assert unprepared_texts([text, *PLAIN, *PLAIN, text], SCHEME) is None


def test_pages_of_mails_that_are_no_replies() -> None:
    """They look as other pages do, but hardly any other page has a quote of a mail."""
    found = UnpreparedTexts(kind="mails", found=4, documents=4, options="--clean mail")
    assert unprepared_texts([MAIL_PAGE, *[FRAGMENT] * 3], SCHEME) == found
    pages = UnpreparedTexts(kind="pages", found=4, documents=5, options="--clean html")
    assert unprepared_texts([MAIL_PAGE, *[FRAGMENT] * 4], SCHEME) == pages


def test_scans_with_letters_that_were_misread() -> None:
    """Nothing in one text alone says that "bnilding" is no word, but other texts have "building" often."""
    words = "the harbour commission wanted another building with room for children, meetings and a library"
    scans = [
        words.replace("building", "bnilding").replace("commission", "comrnission"),
        words.replace("another", "anofher").replace("library", "librarv"),
        words.replace("building", "builcling").replace("meetings", "mcetings"),
    ]
    plain = [f"{words} in street {name}" for name in "ghijklm"]
    found = UnpreparedTexts(kind="scans", found=3, documents=10, options="--preset scans")
    assert unprepared_texts([*scans, *plain], SCHEME) == found
    assert unprepared_texts([*scans[:2], *plain], SCHEME) is None, "less than a quarter"
    assert unprepared_texts(scans, SCHEME) is None, "no word is usual"


MISREAD = [
    "com-\nmission",
    "com\u00ac\n  mission",
    "com\u00ad\n\nmission",
    "c0uncil",
    "\u00e91\u00e9",
    "a5\u00df",
    "of\ufb01ce",
]
AROUND = st.text("015 9a\u00e9z-\u00ac\u00ad\n.", max_size=12)


@pytest.mark.parametrize("misread", MISREAD)
@given(before=AROUND, after=AROUND)
def test_each_misread_word_has_a_sign(misread: str, before: str, after: str) -> None:
    assert _MISREAD.search(misread)
    for text in (misread, f"{before}{misread}{after}"):
        assert _MISREAD_SIGN.search(text) or not _MISREAD.search(text)


def test_other_words_are_no_misreadings() -> None:
    """In many languages, words differ only in a vowel at their end."""
    texts = ["la casa rossa della signora bella", *["il muro rosso del bello signore caso"] * 6]
    texts += [f"{one} nera e alta con la porta chiusa" for one in ("una casa rosse", "la cosa", "le case")]
    assert unprepared_texts(texts, SCHEME) is None


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts(text: str) -> None:
    assert unprepared_texts([text], SCHEME) is None


def test_texts_that_are_prepared_already() -> None:
    assert unprepared_texts([PAGE], Settings.chosen(("text",), clean="html").scheme) is None
    assert unprepared_texts([SCAN], Settings.chosen(("text",), preset="scans").scheme) is None
    assert unprepared_texts([], SCHEME) is None
