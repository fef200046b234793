"""Prepared texts: frozen vectors, places in the original, hostile inputs, and the parser that is installed."""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from golden_vectors import FOLDER
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from unit_tools import in_seconds

from es_neardupe import fingerprints
from es_neardupe.errors import SettingsError
from es_neardupe.keys.prepare import html, html_guard, html_kernel, mail, mail_kernel
from es_neardupe.keys.prepare import mail_phrases as phrases
from es_neardupe.keys.prepare.html_kernel import is_too_costly
from es_neardupe.keys.prepare.mail import LineKind, line_kinds
from es_neardupe.keys.prepare.masks import EXPRESSIONS, PLACEHOLDERS, kernel, masked, masked_by_expressions
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.text import spans, tokenize
from es_neardupe.keys.unicode import EXPANDS, MARK, SINGLE, TARGET, WORD, table
from es_neardupe.options import Clean, Mask

GOLDEN = json.loads((FOLDER / "prepared_v1.json").read_text("ascii"))
SCHEMES = {name: Scheme.from_dict(one["settings"]) for name, one in GOLDEN["schemes"].items()}
VECTORS = GOLDEN["vectors"]
ALL = tuple(Mask)


def vector_text(vector: dict[str, Any]) -> str:
    return str(vector.get("before", "")) * int(vector.get("times", 0)) + str(vector["text"])


def test_scheme_ids() -> None:
    for name, one in GOLDEN["schemes"].items():
        assert SCHEMES[name].id == one["id"]
        assert SCHEMES[name].to_dict() == one["settings"]
    assert len({one["id"] for one in GOLDEN["schemes"].values()} | {Scheme(bands=16, rows=6).id}) == 5


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_vectors(vector: dict[str, Any]) -> None:
    scheme, text = SCHEMES[vector["scheme"]], vector_text(vector)
    assert scheme.preparation.text(text) == vector["prepared"]
    (made,) = fingerprints([text], scheme)
    assert (made.content, "".join(made.bands)) == (vector["content"], vector["bands"])
    assert made.tokens == len(tokenize(vector["prepared"]))


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_places_of_vectors(vector: dict[str, Any]) -> None:
    check_places(vector_text(vector), SCHEMES[vector["scheme"]].preparation)


def check_places(text: str, preparation: Preparation) -> None:
    """The placed text is the prepared one, and each word stands where its place says, or is a placeholder."""
    placed = preparation.placed(text)
    assert placed.prepared == preparation.text(text)
    assert placed.original == (placed.prepared if placed.as_prepared else text)
    words = tokenize(placed.prepared)
    assert len(words) == len(placed.spans)
    for word, (start, end) in zip(words, placed.spans.tolist(), strict=True):
        assert 0 <= start <= end <= len(placed.original)
        there = placed.original[start:end]
        placeholder = any(one in word for one in PLACEHOLDERS.values() if one)
        if start < end and not placeholder and not set("<&\\") & set(there):
            assert tokenize(there) == [word]
    ranges = [placed.original_range(*one) for one in spans(placed.prepared).tolist()]
    assert ranges == [(start, end) for start, end in placed.spans.tolist()]


def test_each_word_of_a_page_has_its_place() -> None:
    page = "<title>t</title><nav>a b</nav><main>One <b>t</b>wo &amp; caf&eacute; <!-- x -->three<p>four</main>"
    placed = Preparation(Clean.HTML_MAIN).placed(page)
    assert placed.prepared == "One two & café three\nfour"
    found = [page[start:end] for start, end in placed.spans.tolist()]
    assert found == ["One", "t</b>wo", "caf&eacute;", "three", "four"]


@pytest.mark.parametrize("number", ["\ue009\ue009", "\ue000", "\ue009" * 5_000])
def test_characters_for_numbers_of_words_stand_for_themselves(number: str) -> None:
    """A page may have the characters that number its words, also where no word of it is numbered."""
    for page in (f"<p>a b {number}\ue00a&#32;c", f"<p>a {number}\ue00a b<textarea><x {number}\ue00a></textarea>"):
        check_places(page, Preparation(Clean.HTML))


def test_values_are_prepared_one_by_one_and_keep_their_places() -> None:
    values = ["A <b> in a title", "<nav>menu</nav><main>body text</main>", "12"]
    preparation = Preparation(Clean.HTML_MAIN, (Mask.DIGITS,))
    placed = preparation.placed(values)
    assert placed.original == "\n".join(values)
    assert placed.prepared == preparation.text(values) == "A in a title\nbody text\n_num_"
    found = [placed.original[start:end] for start, end in placed.spans.tolist()]
    assert found == ["A", "in", "a", "title", "body", "text", "12"]
    scheme = Scheme(bands=16, rows=6, preparation=preparation)
    assert (
        fingerprints([values], scheme)[0].content
        == fingerprints([placed.prepared], Scheme(bands=16, rows=6))[0].content
    )


def some_of(text: str, *more: str) -> st.SearchStrategy[str]:
    """One of the words of a text, or of some others."""
    return st.sampled_from([*text.split(" "), *more])


PARTS = some_of(
    "a f 0 1 12 123 fe80 :: : - . / $ _ Jan \u00e9 dead beef 4711 % , \\ line Foo.java:52 0x1f C:\\x http:// x@y.zz"
    " 1.2.3.4 12:30:01 Z +0100 2026-01-02 T10:00:16 ab:cd:ef:ab:cd:ef 00:1a:2b:3c:4d:5e 04/Dec/2005: /a/b ab::cd a.b"
    " df1461aa-f8eb-18b9-0074-513021da8978 7d9c5b8f6-x2v4q 28391040-kzbtr _default",
    *(" ", "  ", "\n", "Mon, ", "line 5", "HTTP/1.1", "HTTP/2", "HTTP/_num_", '"', '" 200', '\\" 504', '" 600 200'),
)
LOG_LINES = st.lists(PARTS, max_size=14).map("".join)


def masked_place_by_place(text: str, kinds: Sequence[Mask]) -> str:
    """The rule as it is written: the kinds in their order at each place."""
    out, place = "", 0
    expressions = [(kind, re.compile(EXPRESSIONS[kind])) for kind in EXPRESSIONS if kind in kinds]
    while place < len(text):
        run = re.compile(r"[0-9A-Za-z_$]+|.", re.DOTALL).match(text, place)
        assert run is not None
        end, made = run.end(), run[0]
        for kind, expression in expressions:
            match = expression.match(text, place)
            if kind is Mask.DIGITS or match is None or re.compile("[0-9A-Za-z_]").match(text, match.end()):
                continue
            digit, letter = re.search("[0-9]", match[0]), re.search("[A-Fa-f]", match[0])
            prefixed = match[0].lower().startswith("0x")
            if kind is Mask.POD and not re.search("[a-z]", match[0]):
                continue
            if (kind is Mask.IP and not digit) or (kind is Mask.HEX and not prefixed and not (digit and letter)):
                continue
            end, made = match.end(), PLACEHOLDERS[kind] or match[0]
            if Mask.DIGITS in kinds and kind is Mask.SOURCE:
                made = re.sub("^HTTP/[0-9.]+", "HTTP/_num_", made)
            break
        else:
            amount = re.fullmatch("([$]*)[0-9]+", run[0])
            if Mask.DIGITS in kinds and amount:
                number = re.compile(EXPRESSIONS[Mask.DIGITS]).match(text, place + amount.end(1))
                assert number is not None
                end, made = number.end(), amount[1] + "_num_"
            elif Mask.DIGITS in kinds and not run[0].startswith("$"):
                made = re.sub("[0-9]+", "_num_", run[0])
        out, place = out + made, end
    return out


@given(LOG_LINES, st.sets(st.sampled_from(ALL), min_size=1))
@example("ab:cd:ef:ab:cd:ef:ab:cd:12 x", {*ALL})
@example("dead:beef:: ::add C::", {*ALL})
@example("web-7d9c5b8f6-x2v4q_a-b a-28391040-kzbtr 7d9c5b8f6-x2v4qz-a 45678945-46789 bcdfbc-x2v4q_", {*ALL})
@example("a-7d9c5b8f6-x2v4q-7d9c5b8f6-x2v4q-b -web-7d9c5b8f6-x2v4q --7d9c5b8f6--x2v4q a.7d9c5b8f6-x2v4q", {*ALL})
@example("0x1234g 12a 1.5dead1", {*ALL})
@example('"GET / HTTP/1.1" 200 12 "GET / HTTP/2\\" 504 HTTP/1.0" 2000 xHTTP/1.0" 200', {*ALL})
@example("$5,000.00 $1 $$12 $a1 $1a $ 5,000 a$1", {*ALL})
def test_masks_are_the_rule(text: str, kinds: set[Mask]) -> None:
    chosen = [kind for kind in Mask if kind in kinds]
    assert masked(text, chosen) == masked_by_expressions(text, chosen) == masked_place_by_place(text, chosen)
    check_places(text, Preparation(None, tuple(chosen)))


@pytest.mark.parametrize(
    ("line", "prepared"),
    [
        ('"GET /a HTTP/1.1" 200 512', '"GET /a HTTP/_num_" 200 _num_'),
        ('"GET /a HTTP/2" 500 512', '"GET /a HTTP/_num_" 500 _num_'),
        ('\\"GET /a HTTP/2.0\\" 404', '\\"GET /a HTTP/_num_\\" 404'),
        ('"GET /a HTTP/1.1" 999', '"GET /a HTTP/_num_" _num_'),
        ('"GET /a HTTP/1.1" 2000', '"GET /a HTTP/_num_" _num_'),
        ('"GET /a HTTP/1.1", 200', '"GET /a HTTP/_num_", _num_'),
        ("took 200 ms", "took _num_ ms"),
    ],
)
def test_the_status_of_an_access_log_stays(line: str, prepared: str) -> None:
    assert masked(line, ALL) == masked_by_expressions(line, ALL) == masked(prepared, ALL) == prepared
    assert masked(line, [Mask.SOURCE]) == line


def test_masks_are_built(built_kernel: None) -> None:
    assert kernel is not None


def test_masks_of_texts_that_are_not_utf_8() -> None:
    assert masked("\ud800 12 a\x0034 \U0001f600 5", ALL) == "\ud800 _num_ a\x00_num_ \U0001f600 _num_"
    assert masked("http://a\x00b\u00e9, 7", ALL) == "_url_, _num_"


@given(st.lists(st.sampled_from([*filter(None, PLACEHOLDERS.values()), "a", ",", "/", "$", ":"])))
def test_placeholders_stay_as_they_are(made: list[str]) -> None:
    text = " ".join(made)
    assert masked(text, ALL) == masked_by_expressions(text, ALL) == text


PHRASES = st.sampled_from(
    [
        *(*phrases.VERBS, *phrases.OPENERS, *phrases.VERBS_BETWEEN, *phrases.QUOTING, *phrases.VERBS_BEFORE_DATES),
        *(phrases.PASSED_ON, "heeft", "geschreven", "x den", "2026", "12:30", "1.30", "9h15", "3", "@", "a@b.test"),
        *("<a@b.test>", "(a@b.c)", "<a(b@c)", "name", ","),
    ]
)
HEADERS = st.sampled_from([*phrases.SENDERS, *phrases.SUBJECTS, *phrases.DATES, *phrases.OTHER_HEADERS])
MARKS = st.sampled_from([*phrases.ORIGINALS, *phrases.FORWARDS, *phrases.FORWARDS_WITHOUT_RULE, "forwarded by x"])
RULES = some_of("- -- --- -----  * _ == # + \u2010\u2010 \u2014 \u2500\u2500", "- -", "-- ", "_" * 20, "")
SPACES = st.sampled_from([" ", " ", " ", "", "  ", "\u00a0", "\t", "\u200b", "\u3000", ", "])
COLONS = some_of(": : \uff1a", " :", "", " (a) :")
FOOTERS = st.builds(
    lambda footer, middle: footer.begins + middle + footer.ends,
    st.sampled_from(phrases.FOOTERS),
    some_of("x iPhone", " x", "y" * 60, "y" * 61, "\u6f22" * 40, ""),
)
MAIL_LINES = st.builds(
    lambda quote, line, change: quote + change(line),
    some_of("> | > ＞", *[""] * 12, "> ", "| ", ">> ", " > ", "    > ", ">From ", "\u00a0>", "\u200b> ", "|| "),
    st.one_of(
        some_of(
            "Thanks! Name -- \u2014 __ \u200b \u6f22\u5b57 e\u0301 \u304b\u3099 a: a@b",
            "",
            "One two three four five.",
            "On 5 May 2026 it was",
            "at 10:30!",
            "x" * 130,
        ),
        some_of("Subject: FW: x", "*Betreff:* WG : x", "subject: [a] Fwd: x", "Subject: [a[ FW: x", "Subject: [a"),
        some_of(
            "10/13/2000 05:55 PM", "A on 13.10.2000 5:55:01pm CEST", "on 1/1/1 1:11", "1-1-1 1:11 pmst", "1/1/1 1:11 am"
        ),
        some_of("To: x", "to: y", "Sent by: x", "Please respond to x", "01:42 PM ---", "--- Forwarded by x on 1/1/1"),
        st.builds("{}{}{}".format, RULES, st.sampled_from(phrases.REPLY_ABOVE), some_of("- -## -- : .", "", " \u2014")),
        some_of("begin forwarded message:", "---- Forwarded message ----"),
        some_of("Message: 1", "message:22 ", "Message: ", "-" * 70, "-" * 30, "-" * 31),
        some_of("-- ", "| a | b |", "mailing list x", "word " * 20, "________________________", "-----", "foo;"),
        some_of(
            "=-=-=-= Unsubscribe Date:x DATE:x subject:x From:x Received:x x-2: 2x: \tby From\u00a0x", "From x", "  y"
        ),
        st.builds("{}{}".format, st.lists(st.builds("{}{}".format, PHRASES, SPACES), max_size=6).map("".join), COLONS),
        st.builds("{}{}{} {}".format, some_of("* ** ___", "", "   "), HEADERS, COLONS, some_of("x a@b.test")),
        st.builds("{}{}{}{}{}".format, RULES, SPACES, MARKS, SPACES, RULES),
        FOOTERS,
    ),
    st.sampled_from([str, str, str.title, str.upper]),
)
MAILS = st.builds(
    lambda lines, end: end.join(lines), st.lists(MAIL_LINES, max_size=14), st.sampled_from(["\n", "\r\n", "\r"])
)


def check_mail(text: str) -> None:
    """The module in C keeps what the expressions keep, or leaves the mail to them."""
    for passes_on in (False, True):
        by_expressions = mail.own_text_by_expressions(text, passes_on=passes_on)
        assert mail_kernel.own_text(text, passes_on=passes_on) in (None, by_expressions)


@pytest.mark.parametrize(("blank", "attribution"), [(0, True), (2, True), (3, False)])
def test_empty_lines_between_an_attribution_and_its_quote(blank: int, attribution: bool) -> None:
    text = "\n".join(["One two three four five.", "John Smith wrote:", *[""] * blank, "> A quote", "Six."])
    kind, _ = line_kinds(text)[1]
    assert (kind is LineKind.ATTRIBUTION) == attribution
    check_mail(text)


@given(MAILS)
def test_mails_read_in_c_have_the_text_of_the_expressions(built_kernel: None, text: str) -> None:
    check_mail(text)


@pytest.mark.long
@settings(max_examples=100_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(MAILS)
def test_many_mails_read_in_c_have_the_text_of_the_expressions(built_kernel: None, text: str) -> None:
    check_mail(text)


@pytest.mark.parametrize(
    "text",
    [
        "On 3 Mar 2026, A wrote (b):\n> x",
        "On 3 Mar 2026,\nA\n\u0130BRAHIM <a@b.test>\nwrote:\n\nx",
        "a b c d e\n--- on 3 Mar 2026, A\nwrote :\nx",
        "op 3 maart 2026 heeft A geschreven:\nx",
        "a 2026 b 12:30 (a(b@c):\nx",
        "a 2026 12:30 (@b) :\nx",
        "x" * 120 + " wrote:\n> x",
        "x" * 121 + "wrote:\n> x",
        "a\n" + "on " + "x" * 290 + " wrote:\n> y",
        "| \n| a\n| |\n||\n |a\n> | b",
        "\u3000> x\n \u00a0 > y\n\u200b> z",
        "sent via my\n> sent via my \n> \n> > sent from \u3000x",
        "\r\n\ufeff\r\n> sent via my \n\u53d1\u81ea x\n",
        "a\u0130\u0130\u0130\u0130\u0130\u023a" * 50 + ":",
        "one two three four five six\n-----\nFrom: a\n*Sent* : b\n  more\nTo: c;\nd\nx",
        "one two three four five six\n" + "_" * 20 + "\n\nX mailing list Y",
        "one two three four five six\n-- \n" + "\nx" * 29 + "\n-- \n" + "\nx" * 30,
        "\u00c0 : b\nFROM: a\nDate\uff1a c\n",
        "\r\nFrom x\nReceived: a\n\tb\nFrom:\nX-1: c\nSubject: d\n\nbody",
        "From: a\nX:\nDate: b\nnone",
        "From: a\nDate: b\n" + "X: c\n" * 498 + "\nbody",
        "From: a\nDate: b\n" + "X: c\n" * 499 + "\nbody",
        " From: a\nDate: b\nX: c\n\nbody",
        "one two three four five six\n=-=-=-=\nx\nx\nx\nx\nx\nto Unsubscribe",
        "one two three four five six\n- ---\nx\nx\nx\nx\nx\nx\nUnsubscribe",
        "one two three four five six\n=====\nunsubscribe" + "\nx" * 10 + "\n=====\nunsubscribe" + "\nx" * 11,
        "\x1c\x85 :\n\u2028--\n\x0b>",
    ],
)
def test_some_mails_read_in_c_have_the_text_of_the_expressions(built_kernel: None, text: str) -> None:
    assert mail_kernel.own_text(text) is not None
    check_mail(text)


@pytest.mark.parametrize("text", ["\ud800", "\u304b\u3099 a", "> \u304b\u3099"])
def test_mails_whose_words_are_not_certain_are_left_to_the_expressions(built_kernel: None, text: str) -> None:
    assert mail_kernel.own_text(text) is None


@given(
    st.text(
        st.sampled_from("ae\u0301\u0323\u00e9\u1ec7\u0e01\u0e38\u0e48\u0334\u1100\u1161\u11a8\u0915\u093c x\u6f22"),
        max_size=12,
    )
)
def test_words_of_decomposed_texts_are_counted_without_composition(built_kernel: None, text: str) -> None:
    check_mail(text + "\n> a")


def words_of(entries: Sequence[int], *, is_open: bool) -> tuple[int, bool]:
    """The number of words that mapped code points add to a text, and whether the last one can go on."""
    words = 0
    for entry in entries:
        if entry & SINGLE:
            words, is_open = words + 1, False
        elif not entry & MARK:
            words, is_open = words + (not is_open), True
    return words, is_open


def test_composition_changes_the_number_of_words_only_where_two_of_them_become_one() -> None:
    """Otherwise the modules in C could not count the words of decomposed texts."""
    entries = table().entries.tolist()
    for point, entry in enumerate(entries):
        if entry & (WORD | EXPANDS) != WORD or entry & TARGET != point:
            continue
        parts = [entries[ord(one)] for one in unicodedata.normalize("NFD", chr(point))]
        assert entry & (SINGLE | MARK) or not unicodedata.combining(chr(point))
        if sum(bool(one & SINGLE) for one in parts) < 2:
            for is_open in (False, True):
                assert words_of([entry], is_open=is_open) == words_of(parts, is_open=is_open)


def test_words_of_ascii_are_letters_digits_and_underscores() -> None:
    """The modules in C count them by that."""
    found = {chr(point) for point in range(128) if table().entries[point] & WORD}
    assert found == {*string.ascii_letters, *string.digits, "_"}


def test_what_the_module_for_mails_takes_for_granted() -> None:
    verbs = phrases.VERBS
    assert not [one for one in verbs for other in verbs if one != other and one.endswith(other)]
    changing = [point for point in range(0x110000) if chr(point).lower() != chr(point)]
    assert changing[-1] < mail_kernel._CASED
    assert [point for point in changing if len(chr(point).lower()) > 1] == [mail_kernel._CAPITAL_DOTTED_I]
    growth = [len(chr(point).lower().encode()) / len(chr(point).encode()) for point in changing]
    assert max(growth) <= 1.5


REPLIES = (
    "Hi Tom, I checked the figures and they look fine to me.",
    "Hi Tom,\nI checked the figures and they look fine to me.\n\nBest regards, Sue",
    "On the whole the figures look fine to me\nThanks, Tom",
)
QUOTE = "The council has asked for another look at the figures of the harbour."


@pytest.mark.parametrize("end", ["", "> "], ids=["bare", "quoted"])
@pytest.mark.parametrize("own", REPLIES)
@pytest.mark.parametrize(
    "attribution",
    [
        "On Tue, May 5, 2026 at 10:10\u202fAM Anna Weber <a@x.example> wrote:",
        "On Tue, May 5, 2026 at 10:10 AM Anna Weber <a@x.example>\nwrote:",
        "On Tue, May 5, 2026 at 10:10 a.m.\nAnna Weber <a@x.example>\nwrote:",
        "On 5/5/26 10:10, Anna Weber wrote:",
        "On Tuesday, May 5, 2026, 10:10 AM, Anna Weber <a@x.example> wrote:",
        "Am Di., 5. Mai 2026 um 10:10 Uhr schrieb Anna Weber <\na@x.example>:",
        "Am 05.05.26 um 10:10 schrieb Anna Weber:",
        "Anna Weber <a@x.example> schrieb am Di., 5. Mai 2026,\n10:10:",
        "Anna Weber schrieb am 05.05.2026 um 10:10:",
        "Anna Weber <a@x.example> wrote:",
        "Le mar. 5 mai 2026 à 10:10, Anna Weber <a@x.example> a écrit :",
        "El mar, 5 may 2026 a las 10:10, Anna Weber (<a@x.example>) escribió:",
        "wt., 5 maj 2026 o 10:10 Anna Weber <a@x.example> napisał(a):",
        "вт, 5 мая 2026 г. в 10:10, Anna Weber <a@x.example>:",
        "Anna Weber <a@x.example> 于2026年5月5日周二 10:10写道：",
    ],
)
def test_an_attribution_directly_below_the_own_text_leaves_this_text(attribution: str, own: str, end: str) -> None:
    text = f"{own}\n{attribution}\n{end}{QUOTE}"
    assert mail.own_text(text) == own
    check_mail(text)


@pytest.mark.parametrize(
    "text",
    [
        "The report is from last spring, and\non 5 May 2026 at 10:10 the harbour master wrote:\nThe gates are shut.",
        "Die Frist endet bald.\nFrau Weber schrieb am 5. Mai 2026:\nDie Tore bleiben zu, und das ist gut so.",
        "I asked for it at\n10:30, and this is what the harbour office wrote:\nThe gates are shut.",
        "Hi Tom, 10:30 is fine for all of us.\nAnna wrote:\nSee you there.",
    ],
)
def test_sentences_that_end_as_attributions_do_stay(text: str) -> None:
    assert mail.own_text(text) == text
    check_mail(text)


@pytest.mark.parametrize(
    ("own", "attribution"),
    [
        ("Am 05.05.2026 komme ich um 10:10 Uhr.", "Anna Weber <a@x.example> schrieb:"),
        ("On Monday I call them, that is early enough", "Anna Weber wrote:"),
        ("Yes, 10:30 is fine for all of us!", "Anna Weber wrote:"),
    ],
)
def test_own_lines_above_an_attribution_are_no_part_of_it(own: str, attribution: str) -> None:
    text = f"{own}\n{attribution}\n> When?"
    assert mail.own_text(text) == own
    check_mail(text)


OWN = "We will meet at the harbour office on Monday and bring the plans with us."


@pytest.mark.parametrize(
    "attribution",
    [
        "to 12. maalisk. 2026 klo 10.15 Anna Virtanen (anna@example.fi) kirjoitti:",
        "Anna Kaya <anna@example.tr>, 12 Mar 2026 Per, 10:15 tarihinde şunu yazdı:",
        "2026년 3월 12일 (목) 오전 10:15, 홍길동 <anna@example.kr>님이 작성:",
        "Nagy Anna <anna@example.hu> ezt írta (időpont: 2026. márc. 12., Cs, 10:15):",
        "În joi, 12 mar. 2026 la 10:15, Ana Pop <ana@example.ro> a scris:",
        "чт, 12 бер. 2026 р. о 10:15 Іван Франко\n<ivan@example.ua> пише:",
        "Στις Πέμ 12 Μαρ 2026 στις 10:15 π.μ., ο/η Άννα <anna@example.gr> έγραψε:",
        "Vào Th 5, 12 thg 3, 2026 vào lúc 10:15 Nguyen An <an@example.vn> đã viết:",
        "\u200fבתאריך יום ה׳, 12 במרץ 2026 ב-10:15 מאת \u202aאנה\u202c <anna@example.il\u200f>:\u202c",
        "* Anna Smith <anna@example.com> [2026-03-12 10:15]:",
    ],
)
def test_attributions_in_any_language_stand_before_a_quote(attribution: str) -> None:
    """With a date and an address in brackets; elsewhere such a line may be a sentence."""
    assert mail.own_text(f"{OWN}\n\n{attribution}\n\n> Which plans do you mean?\n") == OWN
    (dated, *_) = attribution.split("<")
    assert mail.own_text(f"{OWN}\n\n{dated}:\n\nWhich plans do you mean?") != OWN


@pytest.mark.parametrize(
    "headers",
    [
        "Lähettäjä: A\nLähetetty: torstai 12. maaliskuuta 2026 10.15\nVastaanottaja: B\nAihe: x",
        "Kimden: A\nGönderilme: 12 Mart 2026 Perşembe 10:15\nKime: B\nKonu: x",
        "Feladó: A\nElküldve: 2026. március 12. 10:15\nCímzett: B\nTárgy: x",
        "보낸 사람: A\n보낸 날짜: 2026년 3월 12일\n받는 사람: B\n제목: x",
        "ΑΠΌ: A\nΣΤΆΛΘΗΚΕ: 12 Μαρτίου 2026\nΠΡΟΣ: B\nΘΈΜΑ: x",
        "Від: A\nНадіслано: 12 березня 2026 р. 10:15\nКому: B\nТема: x",
        "מאת: A\nנשלח: 12 במרץ 2026\nאל: B\nנושא: x",
        "من: A\nتم الإرسال: 12 مارس 2026\nإلى: B\nالموضوع: x",
    ],
)
def test_headers_of_other_languages(headers: str) -> None:
    assert mail.own_text(f"{OWN}\n\n{headers}\n\nThe text of the other mail.") == OWN
    mark = "---------- Välitetty viesti ---------"
    assert mail.own_text(f"{OWN}\n\n{mark}\n{headers}\n\nPassed on.") == f"{OWN}\n\n\nPassed on."


@pytest.mark.parametrize(
    "block",
    [
        "From: Paris CDG\nTo: London LHR\nDate: 5 May 2026",
        "From: savings account 4711\nTo: current account 0815\nDate: 5 May 2026\nAmount: 250 euros",
        "Von: Köln Hbf\nAn: Hamburg-Altona\nDatum: 5. Mai 2026",
        "De: Madrid\nA: Lisboa\nFecha: 5 de mayo de 2026\nEquipaje: una maleta",
        "From: Paris CDG\nTo: London LHR\nDate: 5 May 2026\nContact: tom@x.example",
    ],
)
def test_own_lines_that_begin_as_headers_stay(block: str) -> None:
    """A flight and a transfer have no subject, and are from and to no address."""
    for text in (
        f"Hi Sue,\n\nplease book this for me:\n\n{block}\n\nI need to be at the client by noon.",
        f"{block}\n\nPlease book this, I need to be at the client by noon.",
    ):
        assert mail.own_text(text) == text
        check_mail(text)


@pytest.mark.parametrize(
    "headers",
    [
        "From: Anna Weber <a@x.example>\nDate: 5 May 2026 at 10:10\nTo: Tom",
        "From: Anna Weber\nSent: Tuesday, 5 May 2026 10:10\nTo: tom@x.example; sue@x.example",
        "From: Anna Weber\nTo: Tom\nSubject: Figures",
        "-----Original Message-----\nFrom: Anna Weber\nSent: 5 May 2026\nTo: Tom",
        "-----Original Message-----\nFrom: Anna Weber\nDate: 5 May 2026",
    ],
)
def test_headers_have_a_subject_or_an_address_or_are_announced(headers: str) -> None:
    text = f"{OWN}\n\n{headers}\n\nThe text of the other mail."
    assert mail.own_text(text) == OWN
    check_mail(text)


TOPICS = "Send Dev mailing list submissions to dev@x.example.\n\nToday's Topics:\n\n  1. Gates\n  2. Plans\n"
FIRST = "The gates of the harbour are shut since Monday."
SECOND = "The plans of the bridge are ready for the council."


def part_of_digest(above: str, text: str, *, more: str = "") -> str:
    headers = f"Date: Mon, 4 May 2026 10:10:00 +0000\nFrom: Anna Weber <a@x.example>\nSubject: Gates\n{more}"
    return f"{above}\n{headers}\n{text}\n\n{'-' * 30}\n\n"


@pytest.mark.parametrize(
    ("rule", "numbers", "more"),
    [
        (
            "-" * 70,
            ("Message: 1", "Message: 2"),
            "Message-ID: <1@x.example>\nContent-Type: text/plain; charset=utf-8\n",
        ),
        ("_" * 72, ("Message: 1", "Message: 2"), ""),
        ("-" * 70, ("", ""), ""),
    ],
    ids=["Mailman", "Yahoo", "RFC 1153"],
)
def test_the_parts_of_a_digest_stay(rule: str, numbers: tuple[str, str], more: str) -> None:
    one, other = numbers
    reply = f"{FIRST}\n\n-----Original Message-----\nFrom: Tom\nSubject: Gates\n\nAre the gates open?"
    for text in (FIRST, f"{FIRST}\n\n> Are the gates open?", reply):
        digest = f"{TOPICS}\n{rule}\n\n{part_of_digest(one, text, more=more)}{part_of_digest(other, SECOND, more=more)}"
        kept = [line for line in mail.own_text(digest).split("\n") if line.strip("-_")]
        assert kept == [*filter(None, TOPICS.split("\n")), FIRST, SECOND]
        check_mail(digest)
        answer = f"{OWN}\n\n-----Original Message-----\nFrom: Dev\nSubject: Dev Digest\n\n{digest}"
        assert mail.own_text(answer) == OWN
        check_mail(answer)


@pytest.mark.parametrize("size", [30, 31, 69])
def test_rules_above_headers_alone_make_no_digest(size: int) -> None:
    mail_below = part_of_digest("-" * size, SECOND)
    text = f"{OWN}\n\n{mail_below}{mail_below}"
    assert mail.own_text(text) == OWN
    check_mail(text)


@pytest.mark.parametrize("mark", ["Begin forwarded message:", "-------- Forwarded Message --------"])
def test_a_quote_that_is_a_forwarded_mail_stays(mark: str) -> None:
    inner = (
        f"{mark}\n\nFrom: Anna <a@x.example>\nSubject: Gates\nDate: 4 May 2026\nTo: Tom\n\n{FIRST}\n\n> Are they open?"
    )
    quoted = "".join(f"> {line}\n" for line in inner.split("\n"))
    forward = f"{OWN}\n\n{quoted}"
    assert mail.own_text(forward).split() == f"{OWN} {FIRST}".split()
    reply = f"{OWN}\n\nOn 5 May 2026 at 10:10, Tom wrote:\n\n{quoted}"
    assert mail.own_text(reply) == OWN
    for text in (forward, reply):
        check_mail(text)
        check_places(text, Preparation(Clean.MAIL))


SENT = "Date: Mon, 4 May 2026 10:10:00 +0000\nFrom: Tom <tom@x.example>\nTo: sue@x.example"
PASSED_ON = "From: Anna Weber <a@x.example>\nSent: Monday, 4 May 2026 09:10\nTo: Tom\nSubject: Gates"


@pytest.mark.parametrize(
    ("subject", "stays"),
    [
        *(("FW: Gates", True), ("Fwd: Re: Gates", True), ("[external] FW: Gates", True), ("WG: Gates", True)),
        *(("TR : Gates", True), ("RV: Gates", True), ("I: Gates", True), ("ENC: Gates", True), ("Doorst: Gates", True)),
        *(("转发：Gates", True), ("Re: FW: Gates", False), ("Gates", False), ("VS: Gates", False), ("FW Gates", False)),
    ],
)
@pytest.mark.parametrize("announced", ["", "-----Original Message-----\n", "________________________________\n"])
def test_the_subject_says_that_a_mail_passes_another_one_on(subject: str, stays: bool, announced: str) -> None:
    text = f"{SENT}\nSubject: {subject}\n\n{OWN}\n\n{announced}{PASSED_ON}\n\n{FIRST}"
    assert mail.own_text(text).split() == (f"{OWN} {FIRST}" if stays else OWN).split()
    check_mail(text)


@pytest.mark.parametrize("headers", ["Subject: FW: Gates", "From: Tom\nSubject: FW: Gates"])
def test_a_subject_is_enough_to_say_that_a_mail_passes_another_one_on(headers: str) -> None:
    text = f"{headers}\n\n{OWN}\n\n{PASSED_ON}\n\n{FIRST}"
    assert mail.own_text(text).split() == f"{headers} {OWN} {FIRST}".split()
    check_mail(text)
    answer = f"{OWN}\n{PASSED_ON}\n{headers}\n\n{FIRST}"
    assert mail.own_text(answer) == OWN
    check_mail(answer)


def test_a_mail_that_is_passed_on_passes_another_one_on() -> None:
    inner = f"{SECOND}\n\n{PASSED_ON}\n\nThis one was answered."
    text = f"{SENT}\nSubject: FW: Gates\n\n{OWN}\n\n{PASSED_ON}\n\n{FIRST}\n\n{PASSED_ON}\n\nThis one was answered."
    assert mail.own_text(text).split() == f"{OWN} {FIRST}".split()
    again = text.replace("Subject: Gates", "Subject: FW: Gates", 1).replace("This one was answered.", inner)
    assert mail.own_text(again).split() == f"{OWN} {FIRST} {SECOND}".split()
    for one in (text, again):
        check_mail(one)


@pytest.mark.parametrize(
    "sender",
    [
        "Jane Miller@ECT\n10/13/2000 05:55 PM",
        "Jane Miller\nSent by: Tom Weber\n10/13/2000 05:55 PM",
        '\t"Jane Miller" <jane@x.example>\n\t13.10.2000 17:55:12\n\t\t ',
        '"Miller, Jane" <jane@x.example> on 10/12/2000 01:12:21 PM',
        '"Miller, Jane" <jane@x.example> on 10/12/2000 01:12:21 PM CDT\nPlease respond to <jane@x.example>',
    ],
)
@pytest.mark.parametrize("copied", ["cc:  \n", "cc: Tom Weber/HOU/ECT@ECT, \nSue/HOU/ECT@ECT\n", ""])
def test_notes_writes_sender_and_date_above_the_headers(sender: str, copied: str) -> None:
    quoted = f"{sender}\nTo: Paul Roy/HOU/ECT@ECT\n{copied}Subject: Re: Gates  \n\n{FIRST}"
    text = f"{OWN}\n\n\n\n{quoted}"
    assert mail.own_text(text) == OWN
    check_mail(text)
    for mark in (
        "---------------------- Forwarded by Paul Roy/HOU/ECT on 10/16/2000 \n01:42 PM ---------------------------",
        "---------------------- Forwarded by Paul Roy/HOU/ECT on 10/16/2000 01:42 PM \n---------------------------",
        "---------------------- Forwarded by Paul Roy/HOU/ECT on 10/16/2000 01:42 PM ---------------------------",
    ):
        forwarded = f"{OWN}\n\n{mark}\n\n\n{quoted}"
        assert mail.own_text(forwarded).split() == f"{OWN} {FIRST}".split()
        check_mail(forwarded)


@pytest.mark.parametrize(
    "text",
    [
        "The minutes of the meeting on\n10/13/2000 05:55 PM\n\nare below, and the plans of the harbour too.",
        "We meet at the town hall\n10/13/2000 05:55 PM\n\nTo: the station, by bus\nThen on foot, for ten minutes.",
        "10/13/2000 05:55 PM\nTo: all who live at the harbour\nSubject: the gates, which are shut.",
    ],
)
def test_own_lines_with_a_date_stay(text: str) -> None:
    assert mail.own_text(text) == text
    check_mail(text)


@pytest.mark.parametrize(
    "line",
    [
        "##- Please type your reply above this line -##",
        "-- Please reply above this line --",
        "*** PLEASE REPLY ABOVE THIS LINE ***",
        "\u2014Reply above this line.",
        "=-=-=- Reply above this line -=-=-=",
        "##- Bitte geben Sie Ihre Antwort oberhalb dieser Zeile ein. -##",
        "## In replies all text above this line is added to the ticket ##",
    ],
)
def test_lines_of_ticket_systems_go_and_the_text_below_them_stays(line: str) -> None:
    assert mail.own_text(f"{line}\n\n{FIRST}") == FIRST
    assert mail.own_text(f"{OWN}\n\n{line}\n\n{FIRST}").split() == f"{OWN} {FIRST}".split()
    said = f"{OWN}\n\nThe form says: {line}\n\nI did."
    assert mail.own_text(said) == said
    for text in (f"{line}\n\n{FIRST}", f"{OWN}\n\n{line}\n\n{FIRST}", said):
        check_mail(text)


@pytest.mark.parametrize(
    "footer", ["从我的iPhone发送", "iPhone'umdan gönderildi", "Lähetetty iPhonesta", "나의 iPhone에서 보냄"]
)
def test_footers_of_other_languages(footer: str) -> None:
    assert mail.own_text(f"{OWN}\n\n{footer}") == OWN
    assert mail.own_text(f"{footer}\n\n{OWN}") == f"{footer}\n\n{OWN}"


@given(MAILS)
def test_mails_keep_whole_lines(text: str) -> None:
    check_places(text, Preparation(Clean.MAIL))
    kept = mail.own_text(text)
    assert bool(tokenize(kept)) == bool(tokenize(text))
    assert [line for _, line in line_kinds(text)] == re.split("\r\n|\n|\r", text)
    assert all(line.lstrip("> |＞\u00a0") in text for line in kept.split("\n"))


@pytest.mark.parametrize(
    "text", ["> x\n" * (2**16 + 1), "> x\r" * (2**16 + 1), "> " + "x" * 2**20], ids=["lines", "returns", "long"]
)
def test_mails_that_would_take_long_stay_as_they_are(text: str) -> None:
    assert mail.own_text("a b c d e\n" + text) == "a b c d e\n" + text
    check = Preparation(Clean.MAIL).placed(text)
    assert (check.prepared, check.original) == (text, text)


def test_a_line_end_with_a_mark_inside_is_two() -> None:
    text = "one two three\r\u200b\nfour five six"
    check_places(text, Preparation(Clean.MAIL))
    assert mail.own_text(text) == "one two three\n\u200b\nfour five six"


def test_a_line_says_what_it_is() -> None:
    text = "Yes, that is what I meant.\n\nOn 3 Mar 2026, A wrote:\n> old\n-- \nName"
    kinds = [kind for kind, _ in line_kinds(text)]
    own, signature = LineKind.OWN, LineKind.SIGNATURE
    assert kinds == [own, own, LineKind.ATTRIBUTION, LineKind.QUOTED, signature, signature]


TAGS = some_of(
    "<p> </p> <b> </b> <div> </div> <table> <tr> <td> </table> <script>x</script> <main> </main> <article> </article>"
    " <nav> </nav> <li> <a\thref=1> </a> <textarea> </textarea> <title> </title> <svg> </svg> <select> <option>"
    " </select> < & &amp; &lt;b&gt; word two \u00e9 &#32; <plaintext> </ <! <pre> \x00 <template> </template> <x-y>"
    " <h1\tclass=nav> <p\thidden>",
    "<!-- c -->",
)


@given(st.lists(TAGS, max_size=20).map(" ".join), st.sampled_from([Clean.HTML, Clean.HTML_MAIN]))
def test_places_of_pages(page: str, clean: Clean) -> None:
    check_places(page, Preparation(clean))


NAMES = some_of(
    "a b i p div span table tr td th tbody caption col colgroup li ul ol dd dt h1 h2 form button select option textarea"
    " title script style main article nav header section body html head svg math mi g path br hr img input object"
    " noscript ruby rt template x-y nobr font em pre dialog details iframe xmp desc DIV P"
)
ATTRIBUTES = st.sampled_from(
    [
        *("", " x", " hidden", " hidden=until-found", " open", " href=x", " type=hidden", " a=b/", " a='x", " /", "/"),
        *(" class=nav", " id='foo-nav x'", " class=\u00e9\u00a0toc", " role=main", " role='navigation x'"),
        *(" style='display:none'", ' style="visibility: hidden; display:block"'),
    ]
)
SOUP = st.lists(
    st.one_of(
        st.builds("<{}{}>".format, NAMES, ATTRIBUTES),
        st.builds("</{}>".format, NAMES),
        some_of(
            "a two\nwords \r &amp; &notit; &#32; &#x41; & &# \u00e9 \u6f22\u5b57 e\u0301 \u00a0 \x1c < </"
            " <!x> <? --> ]]> <![CDATA[y]]> <!-- <!--c--> <!doctype\thtml> \" ' = \ud800 \x00",
            *(
                " ",
                "one two three four five six seven",
                "word " * 25,
                "one  two three \t four five\n six se7en  e_ght@[`{/: nine",
            ),
        ),
    ),
    max_size=25,
).map("".join)
SAMPLES = (
    "<p><x hidden><p>o",
    "<p><font hidden><p><textarea>s",
    "<template><main>a</main></template><p>b",
    "<a href=1>b<svg><title>c</title></svg></a><table><tr><td>d<tr><td>e</table>f",
    "<script><!--<script></script>--></script>a<noscript><p>b</noscript>",
    "<b>a<p>b</b>c",
    "<b>a<p>b<i>c</b>d</i>e",
    "<i><b><div>a<p>b</i>c</b>d",
    "<h3><a name=x/>one</h3><pre>two</pre> <div><h3><a name=y/>three</h3> <p>four",
    "<b><div><p>one two</p><p>three four five six seven</b>" + "<p>eight nine ten" * 8,
    "<b>" + "<div>" * 8 + "a</b>b",
)


def check_soup(page: str) -> None:
    """The module in C gives the text of the tree, or none, and judges the costs as the scan in Python."""
    module = html_kernel.kernel()
    assert module is not None
    for main in (False, True):
        assert html_kernel.text(page, main=main) in (None, html._kept(page, main=main).text)
    assert module.is_too_costly(page) in (None, html_guard.is_too_costly(page))


@given(SOUP)
def test_pages_read_without_a_tree_have_the_text_of_the_tree(built_kernel: None, page: str) -> None:
    check_soup(page)


@pytest.mark.long
@settings(max_examples=100_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(SOUP)
def test_many_pages_read_without_a_tree_have_the_text_of_the_tree(built_kernel: None, page: str) -> None:
    check_soup(page)


@pytest.mark.parametrize("page", SAMPLES)
def test_some_pages_read_without_a_tree_have_the_text_of_the_tree(built_kernel: None, page: str) -> None:
    check_soup(page)


TEXT = "<div>" + "<p>one two three four five six seven eight nine ten</p>" * 3 + "</div>"


@pytest.mark.parametrize(
    "beside",
    [
        "<div>129,00 €</div>",
        "<div>١٢٩</div>",
        "<div>１２９</div>",
        "<table><tr><th>Colour<td>red</table>",
        "<table><tr><td>Weight<td>5 kg</table>",
        "<dl><dt>Colour<dd>red</dl>",
        "<ul><li>Leipzig<li>full time<li>from 12 May</ul>",
        "<ul><li>Colour: red</ul>",
        "<p><b>颜色：</b>红",
        "<div>12 May, 7 p.m.</div><div>Gewandhaus Leipzig</div>",
        "<div>Place</div><hr><div>Rent 700</div>",
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_values_next_to_the_text_stay(built_kernel: None, beside: str, is_first: bool) -> None:
    """Without a main element or an article. Without them, different products would be copies."""
    page = (
        f"<body><ul><li><a href=1>Home</a></ul><div><h1>Drill</h1>{beside + TEXT if is_first else TEXT + beside}</div>"
    )
    check_soup(page)
    prepared = Preparation(Clean.HTML_MAIN).text(page)
    for line in Preparation(Clean.HTML).text(beside).split("\n"):
        assert line in prepared.split("\n")
    assert "Home" not in prepared


@pytest.mark.parametrize(
    "beside",
    [
        "<div>Advertisement</div>",
        "<p>This site uses cookies</p>",
        "<div>Share this:</div>",
        "<div>© 2026 Example Press</div>",
        "<div>Copyright 2026</div>",
        "<div>Company</div><div>(C) 2026</div><div>Press</div>",
        "<div><a href=1>Drill B 12</a> <b>99 €</b></div>",
        "<div><a href=1><img></a><div>Drill B</div><div>99 €</div></div>",
        "<div><a href=1>Older stories</a> 1 of 7</div>",
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_furniture_next_to_the_text_goes(built_kernel: None, beside: str, is_first: bool) -> None:
    page = f"<body><div><h1>Drill</h1>{beside + TEXT if is_first else TEXT + beside}</div>"
    check_soup(page)
    prepared = Preparation(Clean.HTML_MAIN).text(page)
    assert prepared == Preparation(Clean.HTML).text(f"<h1>Drill</h1>{TEXT}")


@pytest.mark.parametrize(
    "page",
    ["<p>a", "<table><tr><td>a</table>", "<template>a</template><svg><g/></svg>", "&copy;\u6f22", "<b>a<p>b</b>c"],
)
def test_ordinary_pages_need_no_tree(built_kernel: None, page: str) -> None:
    assert html_kernel.text(page, main=True) is not None


@pytest.mark.parametrize(
    "page", ["<table>a", "<a href=x>a<p>b</a>c", "<b><div><p>b</p></b>c", "a\x00", "\ud800", "<svg><p>a", "<frameset>"]
)
def test_pages_whose_text_is_not_certain_are_left_to_the_parser(built_kernel: None, page: str) -> None:
    assert html_kernel.text(page, main=True) is None


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 1_001 + "x",
        "<p " + " ".join(f"a{number}" for number in range(1_001)) + ">x",
        "".join(f"<b id={number}>" for number in range(999)) + "</div><p>x</p>" * 2_000,
        "x" * (2**23 + 1),
        "<br>" * (2**18 + 1) + "x",
        "x<script " + "</script" * (2**18 + 1),
    ],
    ids=["nested", "attributes", "formats", "long", "tags", "scripts"],
)
def test_pages_that_would_take_long_are_read_without_a_tree(page: str) -> None:
    assert is_too_costly(page)
    assert html_guard.is_too_costly(page)
    for clean in (Clean.HTML, Clean.HTML_MAIN):
        assert set(Preparation(clean).text(page[:20_000_000]).split()) <= {"x", page}


@pytest.mark.parametrize(
    "page",
    [
        "<script><p " + "a " * 1_001 + "></script>",
        "<p " + "a " * 1_000 + ">",
        "<div>" * 1_000,
        "<p>" * 5_000,
        "<br>" * 5_000,
        "<div>x</div>" * 5_000,
        "<li>" * 2_000,
        "<table><tr><td>x" * 100,
        "<b>x</b>" * 5_000,
    ],
)
def test_ordinary_pages_have_trees(page: str) -> None:
    assert not is_too_costly(page)
    assert not html_guard.is_too_costly(page)


@pytest.mark.parametrize(
    "text", ["a:\n", "> ", "on x y z ", "from: a\n", "--\n", "\n", "ab:", "1.", "a@b.", "/a", "<b", "</p", "&"]
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    for preparation in (Preparation(Clean.MAIL), Preparation(Clean.HTML_MAIN), Preparation(None, ALL)):
        with in_seconds(10):
            preparation.text(text * 20_000)


def test_a_parser_that_reads_pages_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    html._check_parser.cache_clear()
    monkeypatch.setattr(html, "CONFORMANCE", (("<p>one", "another"),))
    try:
        with pytest.raises(SettingsError, match="selectolax reads HTML in another way than the scheme requires"):
            Preparation(Clean.HTML).text("<p>any")
    finally:
        html._check_parser.cache_clear()


def test_the_parser_is_checked_with_the_vectors() -> None:
    vectors = [(one["text"], one["prepared"]) for one in VECTORS if one["scheme"] == "html" and "times" not in one]
    assert list(html.CONFORMANCE) == vectors[: len(html.CONFORMANCE)]


@pytest.mark.parametrize(
    ("clean", "mask", "message"),
    [("htm", "", "must be one of html, html-main, mail, not 'htm'"), (None, "digits,digit", "not digit")],
)
def test_unknown_names(clean: str | None, mask: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Preparation.named(clean, mask)


def test_masks_have_an_order() -> None:
    assert Preparation.named(None, "digits,url") == Preparation.named(None, [Mask.URL, Mask.DIGITS])
    assert Preparation.named(None, "all").masks == ALL
    assert str(Preparation.named("mail", ["hex"])) == "`clean` mail, `mask` hex"
    assert (str(Preparation()), bool(Preparation())) == ("none", False)


def test_sampled_keys_are_those_of_whole_texts() -> None:
    """`contained` finds what was quoted, and what is outside of the main text."""
    text = "Yes, I am sure of that.\n\n> " + " ".join(f"word{number}" for number in range(40))
    plain = Scheme(bands=16, rows=6, sample_mod=2)
    cleaned = Scheme(bands=16, rows=6, sample_mod=2, preparation=Preparation(Clean.MAIL, ALL))
    (one,), (other,) = fingerprints([text], plain), fingerprints([text], cleaned)
    assert one.samples == other.samples != ()
    assert one.content != other.content


@pytest.mark.parametrize(
    ("text", "preparation"),
    [
        ("a " * (2**18 + 1), Preparation(Clean.HTML)),
        ("<p>x" + "&amp;" * 2**18, Preparation(Clean.HTML_MAIN)),
        ("x" * (2**22 + 1), Preparation(Clean.HTML)),
        ("1 " * (2**19 + 1), Preparation(None, ALL)),
    ],
    ids=["words", "references", "characters", "masks"],
)
def test_places_that_take_long_are_those_of_the_prepared_text(text: str, preparation: Preparation) -> None:
    placed = preparation.placed(text)
    assert placed.as_prepared
    assert placed.original == placed.prepared == preparation.text(text)
    both = preparation.placed([text, "<b>c</b> 3"])
    assert both.as_prepared
    assert (both.prepared, both.original) == (preparation.text([text, "<b>c</b> 3"]), placed.original + "\n<b>c</b> 3")
    assert not preparation.placed(text[:1_000]).as_prepared
