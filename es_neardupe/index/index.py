"""One index: the connection to it, and what its name stands for there."""

from __future__ import annotations

from functools import cached_property

from es_neardupe.errors import IndexUnusable, NotInitialised, RolledOver
from es_neardupe.index.inline.storage import InlineStorage
from es_neardupe.index.mapping import Fields
from es_neardupe.index.settings import Settings
from es_neardupe.index.sidecar.open import hidden_sidecar, open_sidecar_target
from es_neardupe.index.sidecar.storage import SidecarStorage
from es_neardupe.index.storage import Storage
from es_neardupe.index.target import IndexTarget, open_target
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = ["Index", "opened", "opened_inline"]


class Index:
    """An index, alias, data stream or pattern on a server: what every command and most functions work on.

    A new one is a name and a connection. `opened` resolves the name and gives one with a `target`; every command opens
    its index anew, because indices come and go behind a name, and settings and rights change.
    """

    def __init__(
        self, name: str, client: Client, prefix: str = DEFAULT_PREFIX, *, target: IndexTarget | None = None
    ) -> None:
        self.name = name
        self.plain = client
        """The connection itself."""
        self.prefix = prefix if target is None else target.settings.prefix
        """The object field that is ours."""
        self._target = target
        self.client: Client = client if target is None else self.storage.client
        """The connection that shows our fields in the user's documents, wherever they are stored."""

    @property
    def target(self) -> IndexTarget:
        """The concrete indices and their settings; only of an index that was `opened`."""
        if self._target is None:
            raise RuntimeError(f"the index {self.name} was not opened")
        return self._target

    @cached_property
    def storage(self) -> Storage:
        """Where keys and groups are; only of an index that was `opened`."""
        layout = self.target.sidecar
        return InlineStorage(self) if layout is None else SidecarStorage(self, layout)

    @property
    def settings(self) -> Settings:
        """The settings of `init`."""
        return self.target.settings

    @property
    def fields(self) -> Fields:
        """The full names of our fields."""
        return self.target.fields

    @property
    def path(self) -> str:
        """The indices as requests name them."""
        return self.target.path

    @property
    def scheme_id(self) -> str:
        """The scheme that fingerprints must have."""
        return self.target.scheme_id

    def through(self, client: Client) -> Index:
        """The same index by another connection, such as one that only pretends to write."""
        return Index(self.name, client, self.prefix, target=self._target)

    def with_target(self, target: IndexTarget) -> Index:
        """The same connection for another target."""
        return Index(target.name, self.plain, target=target)


def opened(
    index: Index, *, texts: bool = False, adopting: bool = False, writes: bool = False, prefix: str | None = None
) -> Index:
    """Resolve the name of an index, and check that all indices behind it were initialised alike.

    ``texts``: the caller compares texts, so this user must see the fields that they are in. ``adopting``: the caller
    prepares the indices that a rollover made. ``writes``: the caller writes. ``prefix``: another one than that of the
    index. Raises what `open_target` does.
    """
    client, name, prefix = index.plain, index.name, prefix or index.prefix
    try:
        target = open_target(client, name, prefix, texts=texts, adopting=adopting, writes=writes)
    except NotInitialised as error:
        found = open_sidecar_target(client, name, prefix, texts=texts, adopting=adopting, writes=writes)
        if found is None:
            if not isinstance(error, RolledOver) and (hidden := hidden_sidecar(client, name, prefix)):
                raise NotInitialised(f"{error} If it has a sidecar index: this user may not read {hidden}.") from error
            raise
        target = found
    return Index(name, client, target=target)


def opened_inline(index: Index, what: str, *, writes: bool = False) -> Index:
    """As `opened`, for commands that work in the user's documents only. Raises `IndexUnusable` for any other index."""
    found = opened(index, writes=writes)
    if found.storage.sidecars:
        raise IndexUnusable(
            f"{what} writes keys into documents, and those of {index.name} are in a sidecar index: index documents as "
            f"usual, then run `es-neardupe enrich {index.name}`."
        )
    return found
