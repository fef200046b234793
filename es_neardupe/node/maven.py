"""Maven coordinates to jars. The only place that imports jgo."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from xml.etree.ElementTree import ParseError

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from es_neardupe.errors import NodeError

__all__ = ["download"]

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
