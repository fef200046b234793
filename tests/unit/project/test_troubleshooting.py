"""The troubleshooting page is complete: it lists every error message, and no other. No server."""

from __future__ import annotations

import re
from pathlib import Path

from error_messages import KINDS, messages

PAGE = Path(__file__).parents[3] / "docs" / "troubleshooting.md"


def listed() -> list[str]:
    """The messages of the page: its list items that consist of code only."""
    found = re.findall(r"^- (`+)( ?)(.+?)\2\1$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [text for _, _, text in found]


def item(message: str) -> str:
    """A message as the page lists it."""
    return f"- `` {message} ``" if "`" in message else f"- `{message}`"


def test_the_page_lists_every_message_of_the_program() -> None:
    made, there = messages(), listed()
    assert len(made) > 200
    missing = [f"{item(text)}    (made in {place})" for text, place in made.items() if text not in there]
    assert not missing, (
        f"{len(missing)} messages are missing in docs/troubleshooting.md. Add each of these lines to the section whose "
        "advice fits it (without the place), or write a section:\n" + "\n".join(missing)
    )


def test_the_page_lists_no_message_that_is_gone() -> None:
    made = messages()
    gone = [item(text) for text in listed() if text not in made]
    assert not gone, "No error says this any more; take these lines out of docs/troubleshooting.md:\n" + "\n".join(gone)


def test_no_message_is_listed_twice() -> None:
    there = listed()
    assert sorted(there) == sorted(set(there))


def test_every_list_of_messages_has_its_advice_and_its_kinds() -> None:
    """A heading, then words, then the kinds, then the list."""
    sections = re.split(r"^###? .*$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    with_lists = [text for text in sections if re.search(r"^Kinds: ", text, re.MULTILINE)]
    assert len(with_lists) > 15
    named = set()
    for text in with_lists:
        parts = re.fullmatch(r"\s*(\S.+?)\n\nKinds: (.+?)\.\n\n((?:- .+\n)+)\s*", text, re.DOTALL)
        assert parts is not None
        advice, kinds, _ = parts.groups()
        assert len(advice) > 60
        named |= set(re.findall(r"`(\w+)`", kinds))
    assert named <= KINDS


def test_the_collector_sees_all_ways_to_make_a_message(tmp_path: Path) -> None:
    """Plain and composed strings, either of two, those of a function or a method, those of a kind of its own."""
    (tmp_path / "a.py").write_text(
        "def f(x):\n"
        "    raise InputError(f'{x} is bad'\n"
        "        f' in {x}.')\n"
        "    raise SettingsError('one' if x else 'two')\n"
        "    error = LeaseHeld(_who(x), x)\n"
        "    raise LeaseHeld(x.held_by(x))\n"
        "    raise SettingsError(str(x))\n"
        "def _who(x):\n"
        "    return f'{x}{x} works'\n"
        "class Held:\n"
        "    def held_by(self, x):\n"
        "        return f'{x} is held'\n"
        "class Own(RequestError):\n"
        "    def __init__(self):\n"
        "        super().__init__('own words', status=1)\n",
        "utf-8",
    )
    assert set(messages(tmp_path)) == {"… is bad in ….", "one", "two", "… works", "… is held", "own words"}
