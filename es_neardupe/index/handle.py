"""A handle of an index as its parts need it: its name, the connection to it, and once opened, its concrete indices; and
an index that gets keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from es_neardupe.index.mapping import Fields
from es_neardupe.index.settings import Settings
from es_neardupe.index.target import MAX_WINDOW, Definitions, IndexTarget
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.server.client import JSON, Client
from es_neardupe.server.documents import Documents


class IndexHandle:
    """An index, alias, data stream or pattern on a server, and once opened, its target. It knows no storage: storages
    are made of it."""

    def __init__(
        self, name: str, client: Client, prefix: str = DEFAULT_PREFIX, *, target: IndexTarget | None = None
    ) -> None:
        self.name = name
        self.server = client
        """The connection itself."""
        self.client = client
        """The connection that shows documents with their `neardupe` fields, wherever these are stored."""
        self.prefix = prefix if target is None else target.settings.prefix
        """The object field that holds all `neardupe` fields."""
        self._target = target
        self.small_documents: bool | None = None
        """See `es_neardupe.index.document_text.are_small`; None if it was not asked yet."""
        self.hidden: dict[str, tuple[bool, float]] = {}
        """Name of a hidden index -> whether it exists, and when that was found; see
        `es_neardupe.index.hidden_indices.find`."""

    @property
    def target(self) -> IndexTarget:
        """The concrete indices and their settings. Only an `opened` index has one."""
        if self._target is None:
            raise RuntimeError(f"the index {self.name} was not opened")
        return self._target

    @property
    def settings(self) -> Settings:
        """The settings of `init`."""
        return self.target.settings

    @property
    def fields(self) -> Fields:
        """The full names of the `neardupe` fields."""
        return self.target.fields

    @property
    def path(self) -> str:
        """The concrete indices, as a part of a request path."""
        return self.target.path

    @property
    def scheme_id(self) -> str:
        """The id of the scheme that fingerprints must have."""
        return self.target.scheme_id

    @property
    def definitions(self) -> Definitions:
        """The mappings and settings of the indices that its name has now."""
        return Definitions(self.server, self.name)

    @property
    def documents(self) -> Documents:
        """Its documents with their `neardupe` fields: those of the concrete indices, or of the name until it is
        opened."""
        return Documents(self.client, self.name if self._target is None else self.path)

    @property
    def plain_documents(self) -> Documents:
        """Its documents as they are, without the fields of sidecar entries."""
        return replace(self.documents, client=self.server)

    def with_target(self, target: IndexTarget) -> IndexHandle:
        """The same connection for another target."""
        return IndexHandle(target.name, self.server, target=target)


@dataclass(frozen=True)
class UnpreparedIndex:
    """An index, alias, data stream or pattern that `init` or `migrate` prepares."""

    name: str
    client: Client
    """The connection to prepare it, such as that of a dry run."""
    mappings: Mapping[str, JSON]
    """Concrete index -> its mapping; empty if it does not exist yet."""
    settings: Settings
    """Those that it gets."""
    max_result_window: int = MAX_WINDOW
    """The maximum size of a page."""

    @property
    def definitions(self) -> Definitions:
        """The mappings and settings of the indices of the name."""
        return Definitions(self.client, self.name)

    @property
    def documents(self) -> Documents:
        """The documents of the name."""
        return Documents(self.client, self.name)
