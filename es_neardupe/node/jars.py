"""The jars of a server: fetched once into the user's cache, checked at every start.

Each release has a folder of its own in the cache. Its manifest is written last and atomically, so a
folder without one is a download that never ended; it is thrown away and fetched again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from es_neardupe.errors import NodeError
from es_neardupe.node import folders, locks, maven
from es_neardupe.node.versions import Release

__all__ = ["MANIFEST", "ensure", "folder", "problem", "sha256", "write_manifest"]

MANIFEST = "manifest.json"
_DOWNLOAD_TIMEOUT = 900.0


def folder(release: Release) -> Path:
    """Where the jars of this release lie."""
    return folders.cache() / "servers" / release.slug


def ensure(release: Release, *, offline: bool = False, say: Callable[[str], None] = lambda _: None) -> tuple[Path, ...]:
    """The verified jars of a release, sorted by name; fetched first if they are missing or damaged.

    Raises :class:`NodeError` if they cannot be fetched, or must not be (``offline``).
    """
    place = folder(release)
    lock = place.with_name(place.name + ".lock")
    with locks.hold(lock, timeout=_DOWNLOAD_TIMEOUT, doing=f"fetching {release.slug}"):
        wrong = problem(place)
        if wrong and offline:
            raise NodeError(
                f"{release.server} {release.version} cannot be started offline: {wrong}; "
                "start it once without --offline"
            )
        if wrong:
            say(f"fetching {release.server} {release.version} ({wrong})")
            _fetch(release, place)
        return tuple(sorted(place.glob("*.jar")))


def problem(place: Path) -> str:
    """What is wrong with the jars in a folder, in a few words; "" if each is as its manifest says."""
    try:
        files = json.loads((place / MANIFEST).read_text("utf-8"))["files"]
        wanted = {entry["name"]: (entry["size"], entry["sha256"]) for entry in files}
    except FileNotFoundError:
        return f"its jars are not in the cache {place}"
    except (ValueError, KeyError, TypeError):
        return f"the manifest in {place} is damaged"
    present = {path.name for path in place.glob("*.jar")}
    if present != set(wanted):
        return f"the jars in {place} are not those of the manifest: {min(present ^ set(wanted))}"
    for name, (size, digest) in sorted(wanted.items()):
        if (place / name).stat().st_size != size or sha256(place / name) != digest:
            return f"{place / name} is damaged (its checksum has changed)"
    return ""


def write_manifest(place: Path) -> None:
    """Record name, size and SHA-256 of each jar in a folder."""
    files = [
        {"name": path.name, "size": path.stat().st_size, "sha256": sha256(path)} for path in sorted(place.glob("*.jar"))
    ]
    draft = place / f"{MANIFEST}.new"
    draft.write_text(json.dumps({"files": files}, indent=1), "utf-8")
    draft.replace(place / MANIFEST)


def _fetch(release: Release, place: Path) -> None:
    """Fetch into a folder beside the final one, then put the whole in place."""
    staging = place.with_name(place.name + ".part")
    for old in (staging, place):
        shutil.rmtree(old, ignore_errors=True)
    jars = maven.download(release.coordinates, staging / "repository")
    _refuse_broken(jars)
    finished = staging / "jars"
    finished.mkdir(parents=True)
    for jar in jars:
        jar.replace(finished / jar.name)
    write_manifest(finished)
    finished.replace(place)
    shutil.rmtree(staging, ignore_errors=True)


def _refuse_broken(jars: list[Path]) -> None:
    """Every member of a jar carries a CRC; a truncated or mangled download does not get past it."""
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                bad = archive.testzip()
        except zipfile.BadZipFile as error:
            raise NodeError(f"{jar.name} was not downloaded whole: {error}; try again") from error
        if bad:
            raise NodeError(f"{jar.name} was not downloaded whole: {bad} is damaged; try again")


def sha256(path: Path) -> str:
    """The SHA-256 of a file as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
