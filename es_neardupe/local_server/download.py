"""Jars of the local servers: downloaded once into the user's cache.

After the download and at every start, they are compared with the checksums of the release, which are part of this
package: the repository, or a mirror, cannot replace them. Each release has its own folder in the cache.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.local_server import state
from es_neardupe.local_server.versions import Release
from es_neardupe.wording import option

_THREADS = 8
_HTTP_TIMEOUT = 30
# jgo raises these for an answer that is missing, late or not XML; failed requests are OSErrors.
_JGO_ERRORS = (OSError, RuntimeError, ValueError, ParseError)


def download(coordinates: Iterable[str], repository: Path) -> list[Path]:
    """Download the files ``group:artifact:version[:classifier[:packaging]]`` into a repository folder, without their
    dependencies."""
    from jgo.maven import MavenContext

    context = MavenContext(repo_cache=repository, remote_repos=remotes(), timeout=_HTTP_TIMEOUT)
    artifacts = [context.create_dependency(one).artifact for one in coordinates]
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(_fetch, artifacts))
    except _JGO_ERRORS as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise NodeError(
            f"The server's jars could not be downloaded from the Maven repository ({reason}). "
            "Check the network connection, then try again."
        ) from error


def remotes() -> dict[str, str]:
    """Maven Central and the repositories of the user's jgo configuration, where ``central`` can be a mirror."""
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL

    return {"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories}


# Three tries: a repository sometimes drops one of a hundred connections.
@retry(
    retry=retry_if_exception_type(_JGO_ERRORS),
    stop=stop_after_attempt(3),
    wait=wait_random_exponential(multiplier=0.5, max=5),
    reraise=True,
)
def _fetch(artifact: Any) -> Path:
    try:
        return Path(artifact.resolve())
    except _JGO_ERRORS:
        # jgo writes directly to the final name, so a partial file would count as complete next time.
        artifact.cached_path.unlink(missing_ok=True)
        raise


_DOWNLOAD_TIMEOUT = 900.0


def folder(release: Release) -> Path:
    """The folder of the jars of a release."""
    return folders.cache() / "servers" / release.slug


def ensure(release: Release, *, offline: bool = False, say: Callable[[str], None] = lambda _: None) -> tuple[Path, ...]:
    """The verified jars of a release, sorted by name; downloaded first if they are missing or damaged.

    Raises :class:`NodeError` if they cannot be downloaded, or must not be (``offline``).
    """
    place = folder(release)
    lock = place.with_name(place.name + ".lock")
    with state.hold(lock, timeout=_DOWNLOAD_TIMEOUT, doing=f"downloading {release.slug}"):
        wrong = problem(release)
        if wrong and offline:
            raise NodeError(
                f"{release.server} {release.version} cannot be started offline: {wrong}. "
                f"Start it once without {option('offline')}."
            )
        if wrong:
            say(f"downloading {release.server} {release.version} ({wrong})")
            _download(release, place)
        return tuple(sorted(place.glob("*.jar")))


def problem(release: Release) -> str:
    """The difference between the jars of a release in the cache and its checksums, in a few words; "" if there is
    none."""
    place, checksums = folder(release), release.checksums()
    present = {jar.name for jar in place.glob("*.jar")}
    if not present:
        return f"its jars are not in the cache {place}"
    if present != set(checksums):
        return f"the jars in {place} are not those of the release: {min(present ^ set(checksums))}"
    for name, checksum in checksums.items():
        if sha256(place / name) != checksum:
            return f"{place / name} is damaged (its checksum has changed)"
    return ""


def _download(release: Release, place: Path) -> None:
    """Download into a temporary folder, then rename it. Raises `NodeError` for other files than those of the release,
    and removes them."""
    staging = place.with_name(place.name + ".part")
    for old in (staging, place):
        shutil.rmtree(old, ignore_errors=True)
    jars = download(release.jars(), staging / "repository")
    try:
        _check_downloaded(release, jars)
        finished = staging / "jars"
        finished.mkdir(parents=True)
        for jar in jars:
            jar.replace(finished / jar.name)
        finished.replace(place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check_downloaded(release: Release, jars: list[Path]) -> None:
    """Raise `NodeError` if jars are not those of the release."""
    checksums = release.checksums()
    for jar in jars:
        if (found := sha256(jar)) != checksums[jar.name]:
            raise NodeError(
                f"The downloaded {jar.name} is not the file that es-neardupe expects: its SHA-256 is {found}, not "
                f"{checksums[jar.name]}. It was removed: try again, and check the mirror if one is configured."
            )


def sha256(path: Path) -> str:
    """The SHA-256 of a file as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
