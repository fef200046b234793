"""Models of the HTTP interface: the recorded JSON of the commands is valid, and returned as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from es_neardupe.json_models import (
    ComparisonAnswer,
    ContainedAnswer,
    GroupAnswer,
    SimilarAnswer,
    SimilarQuery,
    StatsAnswer,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "commands"
MODELS = {
    "compare": ComparisonAnswer,
    "contained": ContainedAnswer,
    "groups": GroupAnswer,
    "similar": SimilarAnswer,
    "stats": StatsAnswer,
}

OTHERS = {"--history", "--suggest-keep", "--disk-usage", "--html"}
"""Options with other results, or with numbers that are not recorded."""


def recorded(command: str) -> Iterator[Any]:
    """The JSON lines of a command, on each server and storage."""
    for file in sorted(GOLDEN.rglob("*.json")):
        for run in json.loads(file.read_text("utf-8")):
            words = run["command"]
            if words[0] == command and "--json" in words and not OTHERS & set(words):
                yield from run["out"]


@pytest.mark.parametrize("command", sorted(MODELS))
def test_recorded_answers_are_valid(command: str) -> None:
    model: Any = MODELS[command]
    lines = list(recorded(command))
    assert len(lines) >= 4
    for line in lines:
        found = model.model_validate(line)
        assert json.loads(found.model_dump_json(exclude_unset=True)) == line
    with pytest.raises(ValidationError, match="extra_forbidden"):
        model.model_validate(line | {"another": 1})


@pytest.mark.parametrize("given", [{"top": True}, {"top": "1"}, {"min": True}, {"min": "0.9"}])
def test_numbers_are_numbers(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="should be a valid"):
        SimilarQuery(text="any text", **given)
    assert SimilarQuery(text="any text", min=1, top=3).min == 1
