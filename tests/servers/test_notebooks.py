"""The notebooks of docs/notebooks run without an error, leave nothing behind, and print what is stored in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import notebooks
import pytest
from nbformat import NotebookNode
from server_tools import delete_all

from es_neardupe.records import Product
from es_neardupe.server.client import Client

pytestmark = pytest.mark.product("opensearch")

INDICES = ("notebook-groups", "notebook-threshold")

ran = cache(notebooks.run)

every_notebook = pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=[pytest.mark.long] * (file.stem == "threshold")) for file in notebooks.NOTEBOOKS],
    ids=lambda file: file.stem,
)


@pytest.fixture
def opensearch(client: Client) -> Client:
    """The notebooks use the driver of OpenSearch."""
    if client.server.product is not Product.OPENSEARCH:
        pytest.skip("the notebooks use the driver of OpenSearch")
    return client


@pytest.fixture
def executed(opensearch: Client, file: Path) -> NotebookNode:
    """The notebook with the outputs of a run on this server."""
    try:
        return ran(file, opensearch.url)
    finally:
        for name in INDICES:
            delete_all(opensearch, name)  # if a cell failed


def test_there_are_notebooks() -> None:
    assert [file.stem for file in notebooks.NOTEBOOKS] == ["groups", "threshold"]


@every_notebook
def test_notebooks_run(executed: NotebookNode, file: Path) -> None:
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert len(code) > 7
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert "Warning" not in str(list(notebooks.outputs(executed)))
    assert list(notebooks.outputs(executed))[-1].endswith(": []")  # no index is left


@every_notebook
def test_stored_outputs_are_those_of_a_run(executed: NotebookNode, file: Path) -> None:
    saved = notebooks.stored(file)
    if not notebooks.texts_are_those_of(saved):
        pytest.skip("licensedcode-data has other texts than those of the stored outputs")
    assert list(notebooks.outputs(executed)) == list(notebooks.outputs(saved)), "scripts/notebooks --write"
