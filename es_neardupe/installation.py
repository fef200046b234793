"""Installation of extras: the command that error messages name."""

from __future__ import annotations

import os
import shlex
import sys


def install_extra(extra: str) -> str:
    """A command that adds an extra to the environment of this process.

    It works for every installed es-neardupe, whether it came from a folder, a file, a repository or an index: pip finds
    it installed, and asks an index only for the packages of the extra. ``pip`` alone could be that of another
    environment.
    """
    return pip_install(f"es-neardupe[{extra}]")


def pip_install(requirement: str) -> str:
    """A command that installs a package into the environment of this process."""
    python = sys.executable
    if os.name == "nt":  # where single quotes are not special
        return f'"{python}" -m pip install "{requirement}"'
    return f"{shlex.quote(python)} -m pip install {shlex.quote(requirement)}"
