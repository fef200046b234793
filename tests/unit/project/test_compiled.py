"""The modules in C: which there are, and what happens without one or with a broken one."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path

import pytest
from repository import ROOT

import es_neardupe
from es_neardupe.compiled import MODULES, compiled

PACKAGE = ROOT / "es_neardupe"


def test_each_source_in_c_is_a_module() -> None:
    """`setup.py` builds each of the sources."""
    sources = sorted(PACKAGE.rglob("*.c"))
    assert list(MODULES) == [".".join(one.relative_to(PACKAGE).with_suffix("").parts) for one in sources]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_was_not_built(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, f"es_neardupe.{name}", None)
    assert compiled(name) is None


def test_a_module_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is an error that names the module: the work would only be slower without it."""
    (tmp_path / f"_broken{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"no library")
    (tmp_path / "_needy.py").write_text("import es_neardupe._missing\n", "utf-8")
    monkeypatch.setattr(es_neardupe, "__path__", [*es_neardupe.__path__, str(tmp_path)])
    for name in ("_broken", "_needy"):
        with pytest.raises(ImportError, match=rf"es_neardupe\.{name} cannot be loaded \(.+\): install es-neardupe"):
            compiled(name)
