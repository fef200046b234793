"""Comparisons of large texts, one at a time in this process: each takes seconds and hundreds of megabytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Semaphore

from starlette.exceptions import HTTPException

LARGE = 1_000_000
"""Characters of texts that are compared without waiting: that takes less than two seconds."""

WAITING = 4
"""Comparisons that wait for another one."""

PATIENCE = 30
"""Seconds that they wait."""

_turn = Lock()
_places = Semaphore(1 + WAITING)


@contextmanager
def large_work(characters: int) -> Iterator[None]:
    """Wait until texts with so many characters may be compared. Smaller ones do not wait, so other pages have threads
    and memory left.

    Raises `HTTPException` 503, with the seconds after which to try again, if too many others wait already, or if they
    take too long.
    """
    if characters <= LARGE:
        yield
        return
    if not _places.acquire(blocking=False):
        raise _busy()
    try:
        if not _turn.acquire(timeout=PATIENCE):
            raise _busy()
        try:
            yield
        finally:
            _turn.release()
    finally:
        _places.release()


def _busy() -> HTTPException:
    return HTTPException(
        503,
        f"Texts with more than {LARGE:,} characters are compared one after the other, and others are being compared "
        f"now: try again in {PATIENCE} seconds.",
        {"Retry-After": str(PATIENCE)},
    )
