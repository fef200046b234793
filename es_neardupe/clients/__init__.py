"""Talking to Elasticsearch and OpenSearch: the only package that imports one of their drivers."""

from es_neardupe.clients.opening import connect, wrap
from es_neardupe.clients.over import ClientOver
from es_neardupe.clients.protocol import Client, path, to_json
from es_neardupe.clients.resolve import profiles_path, resolve_settings
from es_neardupe.clients.settings import ConnectionSettings, ConnectionWarning, Retries

__all__ = [
    "Client",
    "ClientOver",
    "ConnectionSettings",
    "ConnectionWarning",
    "Retries",
    "connect",
    "path",
    "profiles_path",
    "resolve_settings",
    "to_json",
    "wrap",
]
