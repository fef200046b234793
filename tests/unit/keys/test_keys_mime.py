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


def test_a_message_that_is_attached_is_passed_on() -> None:
    made = message("FYI, this is what Ann wrote yesterday.")
    made.add_attachment(message_from_string(message(TEXT, PAGE).as_string(), policy=policy.default))
    assert MAIL.text(made.as_string()) == f"FYI, this is what Ann wrote yesterday.\n\n{OWN}"


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
