"""Golden vectors of the schemes: their folder and their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "golden"


def golden_text(case: dict[str, Any]) -> str:
    """The given text, or the numbers 0, 1, 2, ... as words in base 26 until the size is reached."""
    if "text" in case:
        return str(case["text"])
    words: list[str] = []
    size = 0
    while size < case["size"]:
        number, word = len(words) * 7919 % 20_011, ""
        while number or not word:
            number, digit = divmod(number, 26)
            word += chr(ord("a") + digit)
        words.append(word)
        size += len(word) + 1
    return " ".join(words)[: case["size"]]
