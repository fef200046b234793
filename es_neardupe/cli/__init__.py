"""The command line: a command converts arguments, calls the library function of the same name, prints."""

from es_neardupe.cli.app import app, main

__all__ = ["app", "main"]
