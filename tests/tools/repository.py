"""Copies of the repository, which tests build packages from."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def copied(source: Path) -> Path:
    """A copy without what was built in it."""
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.so", "build", "dist", "*.egg-info")
    return shutil.copytree(ROOT, source, ignore=ignored)
