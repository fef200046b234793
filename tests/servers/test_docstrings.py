"""The examples in the docstrings of the methods of `NearDupe` run, and print what they say."""

from __future__ import annotations

import doctest
import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_tools import delete_all, make_index, new_name, put, runs_painless

from es_neardupe import NearDupe, Settings
from es_neardupe.reports import ScreenReport
from es_neardupe.server.client import Client

pytestmark = pytest.mark.product("opensearch")

DOCS = Path(__file__).parents[2] / "docs"
METHODS = {name: method for name, method in vars(NearDupe).items() if inspect.isfunction(method) and name[0] != "_"}

STEPS: dict[str, tuple[str, ...]] = {
    "init": (),
    "load": ("init",),
    "enrich": ("put", "init"),
    "clean": ("init", "load"),
    "decide": ("init", "load", "group"),
    "close": (),
}
"""Method that changes the index or the connection -> how an index of its own is prepared for its example."""


def prepared(client: Client, name: str, file: str, steps: tuple[str, ...], *, sample_mod: int = 0) -> NearDupe:
    found = NearDupe(name, url=client.url)
    texts = ("title", "body") if file == "articles.jsonl" else ("body",)
    if "put" in steps:
        lines = map(json.loads, (DOCS / file).read_text("utf-8").splitlines())
        make_index(client, name, {field: {"type": "text"} for field in texts})
        put(client, name, {line["id"]: line for line in lines})
    if "init" in steps:
        found.init(Settings.chosen(texts, threshold=0.8, sample_mod=sample_mod), create="put" not in steps)
    if "load" in steps:
        found.load([str(DOCS / file)])
    if "group" in steps:
        found.group(evidence=True)
    return found


ON_SERVER = ("fold", "pipeline")
"""Methods that need modules of the server, which Elasticsearch from pip does not have."""


@pytest.fixture(scope="module")
def shared(client: Client) -> Iterator[dict[str, NearDupe]]:
    """The indices of the methods that leave the groups as they are."""
    names = {"news": new_name(), "pages": new_name()}
    steps = ("init", "load", "group")
    yield {
        "news": prepared(client, names["news"], "articles.jsonl", steps, sample_mod=4),
        "pages": prepared(client, names["pages"], "pages.jsonl", steps),
    }
    for name in names.values():
        delete_all(client, name)


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[pytest.mark.product("opensearch")] * (name in ON_SERVER)) for name in METHODS]
)
def test_examples_of_methods(method: str, client: Client, index_name: str, shared: dict[str, NearDupe]) -> None:
    if method in ON_SERVER and not runs_painless(client):
        pytest.skip("this server has no modules for pipelines")
    names = {
        "NearDupe": NearDupe,
        "ScreenReport": ScreenReport,
        "Settings": Settings,
        "bridge": json.loads((DOCS / "articles.jsonl").read_text("utf-8").partition("\n")[0])["body"],
        **shared,
    }
    if method in STEPS:
        names["news"] = prepared(client, index_name, "articles.jsonl", STEPS[method])
    text = inspect.getdoc(METHODS[method]) or ""
    example = doctest.DocTestParser().get_doctest(text, names, method, None, None)
    assert example.examples, "the docstring has no example"
    assert not any(one.options.get(doctest.SKIP) for one in example.examples)
    printed: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(example, out=printed.append)
    assert failed == 0, "".join(printed)
