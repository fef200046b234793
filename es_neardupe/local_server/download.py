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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from xml.etree.ElementTree import ParseError

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.local_server import state
from es_neardupe.local_server.versions import Release

__all__ = ["MANIFEST", "download", "ensure", "folder", "problem", "sha256", "write_manifest"]


_THREADS = 8
_HTTP_TIMEOUT = 30
_Result = TypeVar("_Result")
# What jgo raises for an answer that is missing, late or not XML; the errors of requests are OSErrors.
_JGO_ERRORS = (OSError, RuntimeError, ValueError, ParseError)


def download(coordinates: str, repository: Path) -> list[Path]:
    """Fetch the jars of ``group:artifact:version[+...]`` and all they need into a repository folder."""
    try:
        artifacts = _resolve(coordinates, repository)
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(_fetch, artifacts))
    except _JGO_ERRORS as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise NodeError(f"the server's jars could not be fetched from the Maven repository: {reason}") from error


def _patiently(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Three tries: a repository now and then drops one of a hundred connections."""
    return retry(
        retry=retry_if_exception_type(_JGO_ERRORS),
        stop=stop_after_attempt(3),
        wait=wait_random_exponential(multiplier=0.5, max=5),
        reraise=True,
    )(function)


@_patiently
def _resolve(coordinates: str, repository: Path) -> list[Any]:
    from jgo.maven import MavenContext
    from jgo.parse import Endpoint

    # jgo.build would do the same, and then have a full JDK sort the jars into modules: not needed here.
    context = MavenContext(repo_cache=repository, remote_repos=_remotes(), timeout=_HTTP_TIMEOUT)
    asked = [replace(c, scope="compile") for c in Endpoint.parse(coordinates).coordinates]
    inputs, others = context.resolver.resolve([context.create_dependency(c) for c in asked])
    needed = [*inputs, *(d for d in others if d.scope in ("compile", "runtime"))]
    return [dependency.artifact for dependency in needed]


def _remotes() -> dict[str, str]:
    """Maven Central and what the user's jgo configuration names; a mirror goes there under ``central``."""
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL

    return {"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories}


@_patiently
def _fetch(artifact: Any) -> Path:
    try:
        return Path(artifact.resolve())
    except _JGO_ERRORS:
        # jgo writes to the final name at once: what it leaves behind would count as complete next time.
        artifact.cached_path.unlink(missing_ok=True)
        raise


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
    with state.hold(lock, timeout=_DOWNLOAD_TIMEOUT, doing=f"fetching {release.slug}"):
        wrong = problem(place)
        if wrong and offline:
            raise NodeError(
                f"{release.server} {release.version} cannot be started offline: {wrong}; "
                "start it once without --offline"
            )
        if wrong:
            say(f"fetching {release.server} {release.version} ({wrong})")
            _download(release, place)
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
    with folders.replaced(place / MANIFEST) as draft:
        draft.write_text(json.dumps({"files": files}, indent=1), "utf-8")


def _download(release: Release, place: Path) -> None:
    """Fetch into a folder beside the final one, then put the whole in place."""
    staging = place.with_name(place.name + ".part")
    for old in (staging, place):
        shutil.rmtree(old, ignore_errors=True)
    jars = download(release.coordinates, staging / "repository")
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
