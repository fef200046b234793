"""Fixtures of tests that start fake servers.

A test file assigns those that it uses to names of its own. They are in no ``conftest.py`` of a folder, because the test
files import names from the module ``conftest``, of which there can be only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fake_servers import ROOT, Fake, fake_servers, opened

from es_neardupe.records import Product
from es_neardupe.server.client import Client


@pytest.fixture
def start() -> Iterator[Callable[..., Fake]]:
    with fake_servers() as run:
        yield run


@pytest.fixture(params=Product)
def product(request: pytest.FixtureRequest) -> Product:
    return Product(request.param)


@pytest.fixture
def fake(start: Callable[..., Fake], product: Product) -> Fake:
    fake = start()
    fake.on("GET /", ROOT[product])
    return fake


@pytest.fixture
def client(fake: Fake) -> Iterator[Client]:
    client = opened(fake)
    yield client
    client.close()
