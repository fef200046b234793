"""Ports of servers that tests start themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ports import claimed_ports

from es_neardupe.local_server import control

_TOOLS = Path(__file__).parents[2] / "tools"


def test_no_port_is_chosen_twice() -> None:
    """Neither in this process nor in another one, although no server listens yet."""
    program = "from ports import claimed_ports\nwith claimed_ports(2) as ports: print(*ports)"
    with claimed_ports(3) as some, claimed_ports(3) as others:
        ran = subprocess.run([sys.executable, "-c", program], cwd=_TOOLS, capture_output=True, text=True, check=True)
        chosen = [*some, *others, *map(int, ran.stdout.split())]
        assert len(set(chosen)) == len(chosen) == 8
        assert all(map(control.is_free, chosen))
