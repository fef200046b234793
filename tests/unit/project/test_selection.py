"""Which tests run: of those that need only one product, or one value of a parameter, each runs with one of them."""

from __future__ import annotations

import re
import subprocess
import sys

from repository import ROOT


def collected(servers: str) -> set[str]:
    """The tests of files with parameters of which one value is enough, without their parameters."""
    files = [ROOT / "tests" / "servers" / name for name in ("test_name_taken.py", "test_sidecar.py")]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--servers", servers, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(re.findall(r"::(\w+)", done.stdout))


def test_no_test_is_left_out() -> None:
    every = collected("opensearch-3.8")
    assert len(every) > 20
    assert collected("elasticsearch-9.5,opensearch-3.8") == every
