"""Texts that should be prepared are recognised by their kind, other texts are of none."""

from __future__ import annotations

import textwrap
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from server_tools import words

from es_neardupe.candidates.unprepared import _DIVIDED, _MISREAD, _SIGN, UnpreparedTexts, unprepared_texts
from es_neardupe.index.settings import Settings

SCHEME = Settings(("text",)).scheme
PAGE = (
    "<!doctype html><html><body><nav><a href=/>Home</a></nav>"
    "<p>The bridge is open.</p><footer>2026</footer></body></html>"
)
FRAGMENT = "<p>The <b>new</b> bridge<br>is <i>open</i> since Monday.</p>"
MAIL = "Monday suits me.\n\nOn 3 Mar 2026 at 09:10, Ann Example wrote:\n> Shall we meet on Monday?\n\n-- \nBob Example"
ESCAPED = "&lt;p&gt;The &lt;b&gt;new&lt;/b&gt; bridge&lt;br&gt;is &lt;i&gt;open&lt;/i&gt; since Monday.&lt;/p&gt;"
REFERENCES = "Die Br&uuml;cke f&#252;hrt &uuml;ber den Flu&szlig;, und &#8222;sie ist offen&rdquo;."
XML = '<?xml version="1.0"?>\n<doc id="x1">' + '<s id="s{}"><seg ref="#a">The bridge is open.</seg></s>' * 2 + "</doc>"
RECORD = (
    "<record>\n" + "".join(f"<{one}>bridge</{one}>" for one in ("dc:title", "creator", "year", "note")) + "</record>"
)
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
CUES = [f"00:{one:02},{one}50 --> 00:{one + 1:02},{one}20\nThis is what she says in a film." for one in range(1, 7)]
SUBTITLES = "\n\n".join(f"{number}\n00:{cue.replace('> ', '> 00:')}" for number, cue in enumerate(CUES, 1))
WEBVTT = "\n\n".join(["WEBVTT", *(cue.replace(",", ".") for cue in CUES)])
TRANSCRIPT = "Call of Monday\n\n" + "\n".join(
    f"[00:{one}:12] Agent: How may I help you, please?" for one in range(10, 16)
)
LINKING = "The new bridge over the harbour is open since Monday https://t.example/aB3dE5fG7h"
TRACKED = "The bridge is open.\n\nhttps://x.example/bridge-open?utm_source=mail&utm_id=4711\n\nThe tunnel is closed."
SCAN = "The harbour com-\nmission has re-\nfused to build a bridge, and the c0uncil will vote on it in spring."
HYPHENATED = (
    "The harbour com-\nmission has re-\nfused to build a bridge of\ufb01cially, and the council will vote in spring."
)
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


def kind_of(text: str) -> str | None:
    found = unprepared_texts([text], SCHEME)
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("text", "kind", "options"),
    [
        (PAGE, "pages", "--clean html-main"),
        (FRAGMENT, "pages", "--clean html"),
        (ESCAPED, "pages", "--clean html"),
        (REFERENCES, "pages", "--clean html"),
        (XML, "pages", "--clean html"),
        (RECORD, "pages", "--clean html"),
        (MAIL, "mails", "--clean mail"),
        (MESSAGE, "mails", "--clean mail"),
        (MAIL_PAGE, "mails", "--clean mail"),
        (CITED_PAGE, "mails", "--clean mail"),
        (ATTRIBUTED_PAGE, "mails", "--clean mail"),
        (ARTICLE, "pages", "--clean html"),
        (LINE, "log lines", "--preset logs"),
        (JSON_LINE, "log lines", "--preset logs"),
        (TRACE, "log lines", "--preset logs"),
        (SUBTITLES, "texts full of times", "--mask time,digits"),
        (WEBVTT, "texts full of times", "--mask time,digits"),
        (TRANSCRIPT, "texts full of times", "--mask time,digits"),
        (LINKING, "texts full of links", "--mask url"),
        (TRACKED, "texts full of links", "--mask url"),
        (SCAN, "scans", "--preset scans"),
        (HYPHENATED, "hyphenated texts", "--preset reader"),
    ],
    ids=[
        *(
            "page",
            "fragment",
            "escaped page",
            "references",
            "XML",
            "record in XML",
            "mail",
            "message",
            "page of Gmail",
            "page with type=cite",
        ),
        *("page with an attribution", "page with a quotation", "log line", "log line in JSON", "stack trace"),
        *("subtitles", "WebVTT", "transcript", "short link", "link with parameters", "scan"),
        "hyphenated text",
    ],
)
def test_kinds(text: str, kind: str, options: str) -> None:
    """A third of the documents with words is enough, a seventh is not, unless they begin as pages do."""
    found = unprepared_texts([text, *PLAIN, ["", text], text, ""], SCHEME)
    assert found is not None
    assert (found.kind, found.found, found.documents, found.options) == (kind, 3, len(PLAIN) + 3, options)
    fewer = unprepared_texts([text, *PLAIN, *PLAIN, text], SCHEME)
    assert (None if fewer is None else fewer.found) == (2 if text == PAGE else None)


LAYOUT = (
    '<LinearLayout xmlns="http://x.example/a">' + '<TextView text="@string/open"></TextView>' * 6 + "</LinearLayout>"
)
STORY = " ".join(f"word{number}" for number in range(50))


@pytest.mark.parametrize(
    "texts",
    [[LAYOUT], [f"{STORY} https://www.x.example/story?id=123"], [*["std::map<std::string, int> f;\n" * 9] * 9, PAGE]],
    ids=["XML with values in attributes", "one link", "source code"],
)
def test_other_texts_are_of_no_kind(texts: list[str]) -> None:
    assert unprepared_texts(texts, SCHEME) is None


@pytest.mark.parametrize("page", [PAGE, escape(PAGE), PAGE.replace("<!doctype html>", '<?xml version="1.0"?>\n')])
def test_few_pages_among_other_texts(page: str) -> None:
    """A twentieth is enough. Fragments, and texts that show pages, are not taken for pages as surely."""
    plain = [f"{text} {number}" for number in range(5) for text in PLAIN]
    found = UnpreparedTexts(kind="pages", found=3, documents=48, clean="html-main")
    assert unprepared_texts([*plain, page, page, page], SCHEME) == found
    assert unprepared_texts([*plain, page, page], SCHEME) is None, "less than a twentieth"
    assert unprepared_texts([*plain, *[FRAGMENT] * 3, *[f"A page begins so: {page}"] * 3], SCHEME) is None


def test_pages_of_mails_that_are_no_replies() -> None:
    """They look as other pages do, but hardly any other page has a quote of a mail."""
    found = UnpreparedTexts(kind="mails", found=4, documents=4, clean="mail")
    assert unprepared_texts([MAIL_PAGE, *[FRAGMENT] * 3], SCHEME) == found
    pages = UnpreparedTexts(kind="pages", found=4, documents=5, clean="html")
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
    found = UnpreparedTexts(kind="scans", found=3, documents=10, preset="scans")
    assert unprepared_texts([*scans, *plain], SCHEME) == found
    assert unprepared_texts([*scans[:2], *plain], SCHEME) is None, "less than a quarter"
    assert unprepared_texts(scans, SCHEME) is None, "no word is usual"


def test_hyphenated_texts_among_scans() -> None:
    """A scan may have no other sign. Hyphenated texts with some misread words are no scans."""
    found = UnpreparedTexts(kind="scans", found=4, documents=4, preset="scans")
    assert unprepared_texts([SCAN, *[HYPHENATED] * 3], SCHEME) == found
    found = UnpreparedTexts(kind="hyphenated texts", found=4, documents=5, preset="reader")
    assert unprepared_texts([SCAN, *[HYPHENATED] * 4], SCHEME) == found


def post(number: int, *quoted: int) -> str:
    """A post of a forum, with the beginning of others as quotes."""
    quotes = [f"> {line}" for one in quoted for line in textwrap.wrap(" ".join(words(one, 20)), 60)]
    return "\n".join([*quotes, "", *textwrap.wrap(" ".join(words(number, 40)), 60)])


def test_replies_without_a_date() -> None:
    """What some of them quote is said in another text; for the others, that text is not among those examined."""
    posts = [post(number) for number in range(10)]
    replies = [post(10, 0), *[post(number, 100 + number) for number in range(11, 30)]]
    found = UnpreparedTexts(kind="mails", found=20, documents=30, clean="mail")
    assert unprepared_texts([*posts, *replies], SCHEME) == found
    assert unprepared_texts([*posts, *replies, post(30, 130)], SCHEME) is None, "one reply is less than a twentieth"
    assert unprepared_texts([*posts, *posts, *posts, *posts, post(40, 1)], SCHEME) is None, "most texts quote nothing"


def test_quotations_of_books() -> None:
    """They are quotations in all texts on a book, and a copy without marks is no text that was answered."""
    reviews = [post(number, 100) for number in range(10)]
    assert unprepared_texts(reviews, SCHEME) is None
    assert unprepared_texts([*reviews, *[one.replace("> ", "") for one in reviews]], SCHEME) is None


MISREAD = [
    "com-\nmission",
    "com\u00ac\n  mission",
    "com\u00ad\n\nmission",
    "c0uncil",
    "\u00e91\u00e9",
    "a5\u00df",
]
AROUND = st.text("015 9a\u00e9z-\u00ac\u00ad\n.", max_size=12)


@pytest.mark.parametrize("misread", MISREAD)
@given(before=AROUND, after=AROUND)
def test_each_divided_or_misread_word_has_a_sign(misread: str, before: str, after: str) -> None:
    assert _MISREAD.search(misread) or _DIVIDED.search(misread)
    for text in (misread, f"{before}{misread}{after}"):
        assert _SIGN.search(text) or not (_MISREAD.search(text) or _DIVIDED.search(text))


def test_other_words_are_no_misreadings() -> None:
    """In many languages, words differ only in a vowel at their end."""
    texts = ["la casa rossa della signora bella", *["il muro rosso del bello signore caso"] * 6]
    texts += [f"{one} nera e alta con la porta chiusa" for one in ("una casa rosse", "la cosa", "le case")]
    assert unprepared_texts(texts, SCHEME) is None


DATED = [
    "Jazz concert with the Miller trio, 2026-12-03 20:00, town hall, tickets 12 euros",
    "1\n00:00:01,000 --> 00:00:04,000\nHello, my name is Anna.\n\n2\n00:00:04,500 --> 00:00:07,000\nAnd this is Bob.",
    "00:00:01.000 --> 00:00:04.000\nHello, my name is Anna.",
    "\n".join(f"10:15:{one},4711,Miller,Leeds,149.00" for one in range(10, 20)),
    "\n".join(f"{one}. Miller, Leeds 2:03:{one + 20}" for one in range(10, 20)),
    "\n".join(
        f"  * Closes the bridge.\n -- Ann <a@x.example>  Mon, 0{one} Jun 2026 10:11:12 +0000" for one in range(1, 8)
    ),
    "4711,2026-11-03 10:15:22,Miller,Leeds,149.00,EUR,paid",
    "2026-11-03 10:15:22,4711,Miller,Leeds,149.00,EUR,paid",
    "4711\t2026-11-03 10:15:22\tMiller\tLeeds\t149.00",
    "VPN does not connect since Monday, error 809, my address is 10.1.2.3, please help",
    "Spare part 550e8400-e29b-41d4-a716-446655440000 for the pump of the washing machine",
    '{"level": "advanced", "title": "Course of German", "text": "We read and write and speak."}',
    '{"id": 12, "time": "2026-11-03T10:15:00Z", "title": "Bridge closed", "body": "The council has decided it."}',
    "1-0 Kane 12', 1-1 Messi 45+2', 2-1 Kane 78'. Attendance 61,234. Kick-off 20:45:00.",
    "The ratio was 10:20:30 in the mixture of sand, lime and water for the plaster.",
    "Breaking at 10:15:22 UTC: earthquake of magnitude 5.1 near the coast of Chile",
    "Departure 2026-11-03T10:15:00 Leeds, arrival 2026-11-03T12:30:00 London, seat 12A",
    "WARNING: small parts. Keep this toy away from children below the age of three.",
]
CODE = [
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <a.h>\n#include <b>\n#include <i>",
    "Map<Article, Section> all(List<Article> a, Set<Section> s, List<A> b, List<B> c, Optional<Table> t, List<P> p)",
    "swap(&a, &b); int *p = &copy; *q = &reg; *r = &sum; *s = &node; struct list *t = &list; f(&left, &right);",
    "<Anna> hi\n<Ben> hello, how is <Cem>?\n<Anna> fine, and <Dan> too\n<Ben> great </3\n<Anna> see you at </home/ben>",
    '<bean id="a" class="x.A"/>\n<bean id="b" class="x.B"/>\n<bean id="c" class="x.C"><property name="n"/></bean>',
    "See https://x.example/bridge and https://y.example/harbour/2026/bridge-open, or write to the council.",
    "New: https://t.example/aB3dE5fG7h",
    "See ?a=1&amp;b=2&amp;c=3&amp;d=4&amp;e=5&amp;f=6 &amp; the other one.",
    "Author: Ann <a@x.example>\nSigned-off-by: Ann <a@x.example>\nCc: Bob <b@x.example>, <c@x.example>, <d@x.example>",
]
QUOTING = [
    "# Plans\n\nThe plans are ready.\n\n> **Note**\n> Some of them have changed since Monday, so read them.\n",
    "As the author writes:\n\n> The bridge was built in 1930 and is 120 m long.\n\nThis is not quite true.",
    "Q: How are you?\n> I am fine, thank you for asking.\nQ: What next?\n> We will see what the next year brings.",
    "Release notes for the week\n\n--\nNew: dark mode\nFixed: crash on start\nChanged: icons of the toolbar",
    "Pancakes\n\n250 g flour\n3 eggs\n1/2 l milk\n\n--\nMix and fry.",
    "MEMORANDUM\n\nTo: All staff\nFrom: Jane Miller\nDate: 3 May 2026\nSubject: Hours\n\nWe open at eight.",
]


@pytest.mark.parametrize("text", [*PLAIN, *DATED, *CODE, *QUOTING])
def test_other_texts(text: str) -> None:
    assert unprepared_texts([text], SCHEME) is None


@pytest.mark.parametrize(
    "line",
    [
        "Nov  3 10:15:22 web1 sshd[4711]: Accepted publickey for deploy",
        "<34>1 2026-11-03T10:15:22.003Z web1.example su - ID47 - failed for root",
        "[2026-11-03 10:15:22] starting up",
        "INFO  2026-11-03 10:15:22,123 [main] starting up",
        "web-1 2026-11-03T10:15:22Z starting up",
        '10.0.0.7 - frank [03/Nov/2026:10:15:22 +0000] "GET / HTTP/1.1" 200 2326',
        '10.0.0.7:4711 [03/Nov/2026:10:15:22.123] http-in web/srv1 0/0/1/2/3 200 512 "GET / HTTP/1.1"',
        "2026/11/03 10:15:22 [error] 12#12: *4711 connect() failed, client: 10.0.0.7",
        'I1103 10:15:22.123456   4711 reconciler.go:224] "volume attached"',
        "1764210041.123     45 10.0.0.7 TCP_MISS/200 512 GET http://x.example/",
        "2016-09-28 04:30:30, Info                  CBS    Loaded Servicing Stack v6.1",
        "- 1131566461 2005.11.09 dn228 Nov 9 12:01:01 dn228/dn228 crond[2915]: session closed for user root",
        "[http-1] WARN c.e.Shop - request df1461aa-f8eb-18b9-0074-513021da8978 is late",
        'ts=2026-11-03T10:15:22Z caller=head.go:488 msg="done"',
        'caller=head.go:488 level=info msg="done"',
        '{"time":"2026-11-03T10:15:22Z","msg":"request done"}',
        '{"level":30,"msg":"request done"}',
        "java.io.IOException: Broken pipe\n\tat com.example.Order.load(Order.java:52)",
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nKeyError: 1',
        "panic: runtime error: index out of range [3] with length 2\n\ngoroutine 7 [running]:",
    ],
)
def test_lines_of_many_logs(line: str) -> None:
    assert kind_of(line) == "log lines"


@pytest.mark.parametrize(
    "text",
    [
        "Monday suits me.\n\n-----Original Message-----\nFrom: Ann\nSubject: Monday\n\nShall we meet on Monday?",
        "Monday suits me very well.\n\nFrom: Ann\nSent: Monday, 2 March 2026 09:10\nTo: Bob\nSubject: x\n\nWhen?",
        "From: Ann <ann@x.example>\nTo: bob@x.example\nSubject: Monday\n\nShall we meet on Monday, or later?",
        "Monday suits me.\n\nSent from my phone",
        "Monday suits me.\n\n-- \nBob Example, Leeds",
    ],
)
def test_lines_of_mails(text: str) -> None:
    assert kind_of(text) == "mails"


def test_texts_that_are_prepared_already() -> None:
    assert unprepared_texts([PAGE], Settings.chosen(("text",), clean="html").scheme) is None
    for text, preset in ((SCAN, "scans"), (HYPHENATED, "scans"), (HYPHENATED, "reader")):
        assert unprepared_texts([text], Settings.chosen(("text",), preset=preset).scheme) is None
    assert unprepared_texts([SCAN], Settings.chosen(("text",), preset="reader").scheme) is not None
    assert unprepared_texts([], SCHEME) is None
