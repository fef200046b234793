"""Hints: the commands that messages name, which are run as they are written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Run


def complaints(done: Run) -> list[str]:
    """The messages of a run that name a command to run. "Next: ..." only says what comes after."""
    text = re.sub(r"\s+", " ", f"{done.out} {done.err}")
    return [
        one
        for one in re.findall(r"`(es-neardupe [^`]+)`", text)
        if f"Next: {one}" not in text
        and not re.search(r"\b(FIELD|ID)\b", one.partition(" ")[2].partition("--field")[0])
    ]


def followed(one: str, cli: Callable[..., Run]) -> Run:
    """The command of a hint, run as it is written, with a field for FIELD."""
    arguments = [{"FIELD": "text"}.get(word, word) for word in shlex.split(one)[1:]]
    return cli(*arguments, *(["--yes"] if arguments[0] in ("clean", "migrate") else []))
