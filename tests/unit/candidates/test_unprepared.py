"""Texts that should be prepared: pages, mails and log lines are recognised, other texts are not."""

from __future__ import annotations

import pytest

from es_neardupe.candidates.unprepared import UnpreparedTexts, unprepared_texts
from es_neardupe.keys.prepare.preparation import AS_IT_IS, Preparation
from es_neardupe.options import Clean

PAGE = (
    "<!doctype html><html><body><nav><a href=/>Home</a></nav>"
    "<p>The bridge is open.</p><footer>2026</footer></body></html>"
)
FRAGMENT = "<p>The <b>new</b> bridge<br>is <i>open</i> since Monday.</p>"
MAIL = "Monday suits me.\n\nOn 3 Mar 2026 at 09:10, Ann Example wrote:\n> Shall we meet on Monday?\n\n-- \nBob Example"
LINE = "2026-06-21T10:00:16.759Z INFO [thread-46] GET /api/v1/items/90499 took 32319ms from 10.0.0.7"
PLAIN = [
    "The bridge over the harbour was opened on Monday, 3 March 2026, at 10:30, after two years of work.",
    "Samsung 55 inch television UE55AU7172, 4K, black",
    "Spare part fade3791 for the pump baca4105, in stock",
    "if a < b and c > d: print('<none>')  # neither is a tag",
    "In HTML, <p> begins a paragraph and </p> ends it.",
    "She wrote: > is larger, < is smaller.\n\nFrom here on, the text has a second paragraph that says more.",
    "日本語のテキストです。橋は月曜日に開通しました。",
]


@pytest.mark.parametrize(
    ("text", "kind", "options"),
    [
        (PAGE, "pages", "--clean html-main"),
        (FRAGMENT, "pages", "--clean html"),
        (MAIL, "mails", "--clean mail"),
        (LINE, "log lines", "--preset logs"),
    ],
    ids=["page", "fragment", "mail", "log line"],
)
def test_kinds(text: str, kind: str, options: str) -> None:
    """A third of the documents with words is enough, a seventh is not."""
    found = UnpreparedTexts(kind=kind, found=3, documents=10, options=options)
    assert unprepared_texts([text, *PLAIN, ["", text], text, ""], AS_IT_IS) == found
    assert unprepared_texts([text, *PLAIN, *PLAIN, text], AS_IT_IS) is None


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts(text: str) -> None:
    assert unprepared_texts([text], AS_IT_IS) is None


def test_texts_that_are_prepared_already() -> None:
    assert unprepared_texts([PAGE], Preparation(Clean.HTML)) is None
    assert unprepared_texts([], AS_IT_IS) is None
