"""What uses a pipeline, as servers without any other pipeline answer."""

from __future__ import annotations

from typing import Any

import pytest
from unit_tools import FakeClient

from es_neardupe.errors import NotFound
from es_neardupe.index.on_server.ingest_pipeline import User, users


class Answering(FakeClient):
    """An index with the pipeline, and no template. ``pipelines``: the answer, or None for the status 404."""

    def __init__(self, pipelines: Any) -> None:
        super().__init__()
        self.pipelines = pipelines

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        if path == "/_ingest/pipeline":
            if self.pipelines is None:
                raise NotFound("GET http://fake/_ingest/pipeline: 404 no reason given.", status=404)
            return self.pipelines
        return {"news": {"settings": {"index.default_pipeline": "keys"}}} if "/_settings/" in path else {}


@pytest.mark.parametrize("pipelines", [None, {}, {"keys": {"processors": []}}])
def test_a_server_without_other_pipelines(pipelines: Any) -> None:
    client: Any = Answering(pipelines)
    assert users(client, "keys") == [User("index", "news")]
