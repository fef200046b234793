"""A client over another one: what it says of the connection is what that one says."""

from __future__ import annotations

from es_neardupe.clients.protocol import Client
from es_neardupe.pacing import Pace
from es_neardupe.records import Server

__all__ = ["ClientOver"]


class ClientOver:
    """The part of a :class:`~es_neardupe.clients.protocol.Client` that asks nothing of the server."""

    def __init__(self, client: Client) -> None:
        self.plain = client
        """The client below."""

    @property
    def server(self) -> Server:
        """See ``Client.server``."""
        return self.plain.server

    @property
    def url(self) -> str:
        """See ``Client.url``."""
        return self.plain.url

    @property
    def login(self) -> str:
        """See ``Client.login``."""
        return self.plain.login

    @property
    def pace(self) -> Pace:
        """See ``Client.pace``."""
        return self.plain.pace
