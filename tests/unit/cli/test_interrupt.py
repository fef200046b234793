"""An interrupt before a command begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
runpy.run_module("es_neardupe", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process there")
@pytest.mark.parametrize("module", ["typer", "es_neardupe.cli.app", "es_neardupe.cli.commands.version"])
def test_an_interrupt_during_the_imports_prints_no_traceback(module: str) -> None:
    command = [sys.executable, "-c", _PROGRAM, "version", module]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
