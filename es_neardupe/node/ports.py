"""Which port a server gets."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection

from es_neardupe.errors import NodeError

__all__ = ["choose", "is_free"]

HOST = "127.0.0.1"
FIRST = 9200
LAST = 9299


def choose(wanted: int | None = None, taken: Collection[int] = ()) -> int:
    """The wanted port, or the first free one from 9200 on that is not ``taken`` by a server still starting.

    Raises :class:`NodeError` if the wanted port, or every port up to 9299, is busy.
    """
    if wanted is not None:
        if not 1 <= wanted <= 65535:
            raise NodeError(f"{wanted} is not a port; ports are 1 to 65535")
        if wanted in taken or not is_free(wanted):
            raise NodeError(f"port {wanted} is in use; choose another one, or leave --port out")
        return wanted
    for port in range(FIRST, LAST + 1):
        if port not in taken and is_free(port):
            return port
    raise NodeError(f"all ports from {FIRST} to {LAST} are in use; choose one with --port")


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of the loopback interface and it can be bound."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as caller:
        caller.settimeout(1)
        if caller.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            # As the servers do: connections of the last run that linger in TIME_WAIT are no obstacle.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True
