"""Ports of servers that tests start themselves: no other test gets the same ones, in whichever process or run."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from es_neardupe.local_server import control

_PORTS = range(9500, 9950)
"""Below those of outgoing connections, so that a restarted node finds its port free."""


@contextlib.contextmanager
def claimed_ports(number: int) -> Iterator[list[int]]:
    """Free ports for a ``with`` block. A UDP socket with the number of each, which the servers do not need, shows other
    processes that it is taken: before its server listens, and while it is restarted. However this process ends, the
    system closes these sockets."""
    with contextlib.ExitStack() as claims:
        ports: list[int] = []
        for port in _PORTS:
            claim = claims.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            try:
                claim.bind((control.HOST, port))
            except OSError:
                continue
            if control.is_free(port):
                ports.append(port)
            if len(ports) == number:
                break
        assert len(ports) == number, f"no {number} of the ports {_PORTS} are free"
        yield ports
