"""Files that are replaced atomically, and private folders."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from es_neardupe.folders import make_private, replaced


def test_it_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old", "utf-8")
    with replaced(file) as draft:
        draft.write_text("new", "utf-8")
        assert file.read_text("utf-8") == "old"
    assert file.read_text("utf-8") == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_it_is_unchanged_after_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old", "utf-8")
    with pytest.raises(ZeroDivisionError), replaced(file) as draft:
        draft.write_text(str(1 / 0), "utf-8")
    assert file.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_permissions_are_kept(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "a.txt"
    file.touch()
    file.chmod(mode)
    with replaced(file) as draft:
        draft.write_text("new", "utf-8")
        assert not stat.S_IMODE(draft.stat().st_mode) & ~(mode | stat.S_IWUSR)
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with replaced(tmp_path / "a.txt"):
        pass
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replaced(tmp_path / "none" / "a.txt"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_private_folders(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_an_existing_folder_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o755)
    make_private(tmp_path / "a")
    make_private(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_a_private_folder_made_by_several_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make_private, [tmp_path / "a" / "b" / "c"] * 100))
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_a_file_instead_of_a_private_folder(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(NotADirectoryError):
            make_private(folder)
