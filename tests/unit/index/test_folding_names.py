"""Names of the search pipelines of `fold`."""

from __future__ import annotations

import pytest

from es_neardupe.index.on_server.folding import is_ours, pipeline_name


@pytest.mark.parametrize(
    ("name", "field", "ours"),
    [
        (pipeline_name("neardupe.group", 3), "neardupe.group", True),
        (pipeline_name("neardupe.group", 3), None, True),
        (pipeline_name("neardupe.group-x2", 3), "neardupe.group", False),
        (pipeline_name("neardupe", 3), "neardupe.group", False),
        ("es-neardupe-fold-neardupe.group-x", "neardupe.group", False),
        ("another", None, False),
        (None, None, False),
    ],
)
def test_pipelines_of_a_group_field(name: str | None, field: str | None, ours: bool) -> None:
    assert is_ours(name, field) == ours
