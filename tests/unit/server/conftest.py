"""Fake servers that stop after a test, as each product answers."""

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
