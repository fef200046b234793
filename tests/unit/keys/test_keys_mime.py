"""Messages in MIME: their text is that of their parts, decoded, as Python's own package writes them."""

from __future__ import annotations

from email import message_from_string, policy
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import in_seconds

from es_neardupe.keys.prepare import mime
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.options import Clean

MAIL = Preparation(Clean.MAIL)
TEXT = (
    "Gr\u00fc\u00dfe, the report for the north region is ready, please check = page 4.\n"
    "\nOn Mon, 2 Feb 2026 Ann <a@b.c> wrote:\n> Where?\n"
)
OWN = TEXT.split("\n", 1)[0]
PAGE = f"<html><style>p {{}}</style><p>{OWN.replace('=', '&#61;')}</p></html>"


def message(text: str, page: str = "", *, encoding: str = "8bit", charset: str = "utf-8") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["Date"], made["Subject"] = "a@b.example", "Mon, 2 Feb 2026 10:00:00 +0000", "Report"
    made.set_content(text, charset=charset, cte=encoding)
    if page:
        made.add_alternative(page, subtype="html", charset=charset, cte=encoding)
    return made


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1"])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_the_text_is_that_of_the_plain_mail(encoding: str, charset: str, end: str) -> None:
    plain, both = (
        message(TEXT, encoding=encoding, charset=charset),
        message(TEXT, PAGE, encoding=encoding, charset=charset),
    )
    attached = message(TEXT, PAGE, encoding=encoding, charset=charset)
    attached.add_attachment(b"x" * 100, maintype="application", subtype="pdf")
    attached.add_attachment("not read", filename="notes.txt")
    page = message("See the page", PAGE, encoding=encoding, charset=charset)
    for one in (plain, both, attached, page):
        stored = one.as_string(policy=policy.default.clone(linesep=end))
        assert MAIL.text(stored) == OWN
        without_headers = stored.split(end * 2, 1)[1]
        if one is not plain:
            assert MAIL.text(without_headers) == OWN
            assert MAIL.text(f"This is a message in MIME format.{end}{without_headers}") == OWN
        assert (MAIL.placed(stored).prepared, MAIL.placed(stored).as_prepared) == (OWN, True)


@pytest.mark.parametrize(
    "notice",
    [
        "This message requires an HTML viewer.",
        "Your email client does not support HTML messages.",
        "If you cannot see this message, view this\nemail in your browser: https://x.example/news/4711",
        "Your mail program doesn't support HTML. Please read the online version at https://x.example/news.",
        "Diese E-Mail enth\u00e4lt HTML. Ihr Programm kann keine HTML-Nachrichten anzeigen.",
        "Wird diese Nachricht nicht richtig dargestellt? Im Browser ansehen: https://x.example/",
        "Si ce message ne s'affiche pas, ouvrez-le dans votre navigateur.",
        "Si no ve bien este mensaje, \u00e1bralo en su navegador.",
    ],
)
def test_a_part_that_only_says_where_the_text_is_counts_last(notice: str) -> None:
    assert MAIL.text(message(notice, PAGE).as_string()) == OWN
    assert MAIL.text(message(notice, "<p>Hello!</p>").as_string()).split() == notice.split()
    longer = f"{notice} {' '.join(f'word{n}' for n in range(40))}"
    assert MAIL.text(message(longer, PAGE).as_string()).split() == longer.split()


def test_a_message_that_is_attached_is_passed_on() -> None:
    made = message("FYI, this is what Ann wrote yesterday.")
    made.add_attachment(message_from_string(message(TEXT, PAGE).as_string(), policy=policy.default))
    assert MAIL.text(made.as_string()) == f"FYI, this is what Ann wrote yesterday.\n\n{OWN}"


def test_the_messages_of_a_digest_are_read_without_their_headers() -> None:
    parts = [f"\n{message(f'Part {n} of the digest.').as_string()}" for n in (1, 2)]
    digest = "".join(f"--x\n{one}\n" for one in parts)
    stored = f"From: a@b.example\nContent-Type: multipart/digest; boundary=x\n\n{digest}--x--\n"
    assert MAIL.text(stored) == "Part 1 of the digest.\n\nPart 2 of the digest."


REPLY = "Hi Tom, I checked the figures and they look fine to me."
QUOTED = "The council has asked for another look at the figures."
WROTE = "On Tue, May 5, 2026 at 10:10 AM Anna Weber &lt;<a href='mailto:a@x.example'>a@x.example</a>&gt; wrote:"
ATTRIBUTED = f'<div dir="ltr" class="gmail_attr">{WROTE}<br></div>'
CITED = f'<blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;border-left:1px solid">{QUOTED}</blockquote>'
REPLIES = {
    "Gmail": f'<div dir="ltr">{REPLY}</div><br><div class="gmail_quote">{ATTRIBUTED}{CITED}</div>',
    "Gmail, below the quote": f'<div class="gmail_quote">{ATTRIBUTED}{CITED}<div>{REPLY}</div>{CITED}</div>',
    "Gmail, another language": f"<div>{REPLY}</div><div class=gmail_quote><div>5. Mai 2026, 10:10 Uhr, Anna Weber "
    f"&lt;a@x.example&gt; kirjutas:</div>{CITED}</div>",
    "Thunderbird": f"<html><body><p>{REPLY}</p><div class='moz-cite-prefix'>On 5/5/26 10:10, Anna Weber wrote:<br>"
    f"</div><blockquote type='cite' cite='mid:1@x.example'><p>{QUOTED}</p></blockquote></body></html>",
    "Apple": f"<html><body>{REPLY}<br><div><br><blockquote type='cite'><div>On May 5, 2026, at 10:10, Anna Weber "
    f"&lt;a@x.example&gt; wrote:</div><br><div>{QUOTED}</div></blockquote></div></body></html>",
    "Yahoo": f"<div>{REPLY}</div><div id=yahoo_quoted_1 class=yahoo_quoted><div>On Tuesday, May 5, 2026 at 10:10:00 "
    f"AM GMT+2, Anna Weber &lt;a@x.example&gt; wrote: </div><div><br></div><div>{QUOTED}</div></div>",
    "Outlook": f"<html><body><div>{REPLY}</div><hr><div id=divRplyFwdMsg><b>From:</b> Anna Weber<br><b>Sent:</b> "
    f"Tuesday, May 5<br><b>To:</b> Tom<br><b>Subject:</b> Figures</div><div>{QUOTED}</div></body></html>",
    "without classes": f"<p>{REPLY}</p><p>{WROTE}</p><blockquote><p>{QUOTED}</p></blockquote>",
    "without a quote": f"<p>{REPLY}</p><p>{WROTE}</p><p>{QUOTED}</p>",
}


@pytest.mark.parametrize("page", REPLIES.values(), ids=REPLIES)
def test_quotes_of_pages_are_left_out(page: str) -> None:
    made = message(page, encoding="quoted-printable")
    made.set_type("text/html")
    for stored in (made.as_string(), page, f"\n<!DOCTYPE html>\n<div>{page}</div>"):
        assert MAIL.text(stored) == REPLY
        assert (MAIL.placed(stored).prepared, MAIL.placed(stored).as_prepared) == (REPLY, True)


@pytest.mark.parametrize(
    "mail",
    [
        "<p> begins a paragraph, and the next one ends it.",
        "<anna@x.example> is her address, and <b>bold</b> is no page.",
        "The markup is <div>one two</div> on our page, as it was.",
        "<div> is what I would write here, with two <br> at most.",
    ],
)
def test_mails_that_mention_tags_are_no_pages(mail: str) -> None:
    assert MAIL.text(mail) == mail
    assert not mime.is_page(mail)


def test_a_page_without_words_stays() -> None:
    assert MAIL.text("<p><img src=x></p>") == "<p><img src=x></p>"


HEADED = "<b>From: </b>Anna Weber<br><b>Subject: </b>Figures<br><b>Date: </b>5 May 2026<br>"


@pytest.mark.parametrize(
    "rest",
    [
        f"<blockquote type=cite><div>Begin forwarded message:</div><br>{HEADED}<br>{REPLY}</blockquote>",
        f"<div class=gmail_quote>---------- Forwarded message ---------<br>{HEADED}<br>{REPLY}</div>",
        f"<div class=yahoo_quoted>----- Forwarded Message -----<br>{HEADED}<br>{REPLY}</div>",
        f"<blockquote style='margin: 0 0 0 40px; border: none; padding: 0px'>{REPLY}</blockquote>",
    ],
    ids=["Apple", "Gmail", "Yahoo", "indented"],
)
def test_what_is_passed_on_and_what_is_indented_stays(rest: str) -> None:
    made = message(f"<div>This is what I propose for May.</div>{rest}", encoding="quoted-printable")
    made.set_type("text/html")
    assert MAIL.text(made.as_string()) == f"This is what I propose for May.\n{REPLY}"


def test_a_page_without_words_of_its_own_keeps_what_it_quotes() -> None:
    inner = "<blockquote type=cite>What do the others say?</blockquote>"
    made = message(f"Thanks!<blockquote type=cite>{QUOTED}{inner}</blockquote>", encoding="base64")
    made.set_type("text/html")
    assert mime.decoded(made.as_string()) == f"Thanks!\n> {QUOTED}\n> > What do the others say?"
    assert MAIL.text(made.as_string()) == f"Thanks!\n{QUOTED}"


@pytest.mark.parametrize(
    ("subject", "stays"),
    [
        ("FW: Figures", True),
        ("=?utf-8?Q?WG:_Gr=C3=BC=C3=9Fe?=", True),
        ("=?utf-8?B?Rlc6IEdyw7zDn2U=?=", True),
        ("Re: FW: Figures", False),
        ("=?utf-8?B?R3LDvMOfZQ==?=", False),
    ],
)
def test_a_message_whose_subject_says_so_passes_on_the_next_one(subject: str, stays: bool) -> None:
    lead = "Please find below what I received this morning."
    headers = "From: Anna Weber\nSent: Monday\nTo: Tom\nSubject: Figures"
    stored = message(f"{lead}\n\n{headers}\n\n{QUOTED}", encoding="quoted-printable").as_string()
    stored = stored.replace("Subject: Report", f"Subject: {subject}")
    kept = MAIL.text(stored)
    assert kept.split() == (f"{lead} {QUOTED}" if stays else lead).split()
    assert MAIL.placed(stored).prepared == kept


@pytest.mark.parametrize(
    "page", ["<blockquote>", "<blockquote>x", "<blockquote>x</blockquote>", "<br><blockquote> <p>"]
)
def test_pages_with_many_quotes_take_linear_time(page: str) -> None:
    with in_seconds(10):
        MAIL.text(f"Content-Type: text/html\n\n{page * 900}<p>{'word<br>' * 20_000}")


@pytest.mark.parametrize(
    "mail",
    [
        "",
        "The plans are ready.",
        "Note: the plans are ready.\n--\nAnn",
        "--\nAnn",
        message("Plain text of a mail.", encoding="7bit").as_string(),
        "From: a\nContent-Type: multipart/mixed\n\nno boundary",
        "From: a\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\nAAAA",
        "From: a\nContent-Transfer-Encoding: base64\n\n",
    ],
)
def test_mails_that_stay(mail: str) -> None:
    assert mime.decoded(mail) is None


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=200),
    st.sampled_from(["base64", "quoted-printable"]),
    st.sampled_from(["utf-8", "iso-8859-15", "koi8-r", "shift_jis", "gb2312", "big5", "windows-1252", "iso-2022-jp"]),
)
def test_what_is_encoded_is_decoded(text: str, encoding: str, charset: str) -> None:
    known = "word " + text.encode(charset, "ignore").decode(charset)
    stored = message(known, encoding=encoding, charset=charset).as_string()
    assert mime.decoded(stored) == known.strip()


@pytest.mark.parametrize(
    "part",
    [
        "a:b\n",
        " x;",
        "--x\n",
        "--x\nContent-Type: multipart/mixed; boundary=x\n\n",
        "= ",
        "=\t",
        "; a = ",
        "A=",
        '; a="',
    ],
)
@pytest.mark.parametrize(
    "before", ["From: a\nContent-Type: multipart/mixed; boundary=x", "Content-Transfer-Encoding: quoted-printable\n\n"]
)
def test_hostile_messages_take_linear_time(before: str, part: str) -> None:
    with in_seconds(5):
        mime.decoded(before + part * 20_000)
