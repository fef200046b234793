"""Documents that a run has written, or is about to write, and that searches may not see yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from es_neardupe.incoming.texts_by_key import Candidate, MayMatch, Nearest, TextsByKey
from es_neardupe.records import Reference
from es_neardupe.server.request_sizes import size_of


class RecentDocuments:
    """The last documents of a run, by their references and keys."""

    def __init__(self, slots: int, maximum: int = 16_384, max_bytes: int = 64_000_000, *, fold: bool = True) -> None:
        """``slots``, ``fold``: see `TextsByKey`. ``maximum``, ``max_bytes``: number and size of the documents beyond
        which `full` is true."""
        self.maximum = maximum
        self.max_bytes = max_bytes
        self._bytes = 0
        self._written: dict[Reference, Candidate] = {}  # the oldest first; without keys if the text is not known
        self._no_texts = partial(TextsByKey, slots, fold=fold)
        self._by_key = self._no_texts()
        self._leaders: dict[str, Candidate] = {}
        self._groups = Counter[str]()

    def __len__(self) -> int:
        return len(self._written)

    def __contains__(self, reference: object) -> bool:
        """Whether this run has written or deleted the document, so that its stored version does not count."""
        return reference in self._written

    def replaces(self, document: Candidate) -> bool:
        """Whether this run has written another version of the document, or deleted it."""
        return self._written.get(document.reference, document) is not document

    def current(self, documents: Iterable[Candidate]) -> list[Candidate]:
        """Those of which this run has not written another version, and which it has not deleted."""
        written = self._written
        return [one for one in documents if written.get(one.reference, one) is one]

    def nearest(self, document: Candidate, minimum: int, maximum: int, may_match: MayMatch | None = None) -> Nearest:
        """The texts that share keys with a new document; see `TextsByKey.nearest`."""
        return self._by_key.nearest(document, minimum, maximum, may_match)

    def exists(self, reference: Reference) -> bool:
        """Whether this run has written the document, and has not deleted it since."""
        return reference in self._written and self._written[reference].exists

    @property
    def references(self) -> Collection[Reference]:
        """All of them, also those that were deleted."""
        return self._written.keys()

    @property
    def full(self) -> bool:
        """Whether some documents should be forgotten."""
        return len(self._written) > self.maximum or self._bytes > self.max_bytes

    @property
    def documents(self) -> list[Candidate]:
        """The documents with keys, the oldest first."""
        return [one for one in self._written.values() if one.bands]

    def add(self, document: Candidate) -> None:
        """Remember a document that is about to be written, in place of its earlier version."""
        if (earlier := self._written.get(document.reference)) is not None:
            self.remove(earlier)
        self._written[document.reference] = document
        self._insert(document)

    def change(self, reference: Reference, *, deleted: bool) -> None:
        """Remember that a document gets a text which is not known here, or is deleted."""
        self.add(Candidate(reference, (), None, 0, None, None, exists=not deleted))

    def remove(self, document: Candidate) -> None:
        """A document is not written after all, or is written again with another text."""
        del self._written[document.reference]
        document.exists = False
        if document.bands:
            self._by_key.remove(document)
        self._bytes -= size_of(document.source)
        self._count(document, -1)

    def discard(self, reference: Reference) -> None:
        """Forget the version of a document that was not written."""
        if (document := self._written.get(reference)) is not None:
            self.remove(document)

    def regroup(self, document: Candidate, group: str) -> None:
        """The document joins another group than its own, and waits for ``group``."""
        self._count(document, -1)
        document.group, document.principal = group, None
        self._count(document, 1)

    def leader(self, group: str) -> Candidate | None:
        """The document that has founded a group."""
        return self._leaders.get(group)

    def groups_in_use(self, ids: Iterable[str]) -> set[str]:
        """Those of the group ids that documents have."""
        return {id for id in ids if self._groups[id]}

    def forget(self, documents: Iterable[Candidate]) -> None:
        """Forget these documents, which searches see now, and what is older than the last of them and has no keys."""
        forgotten = {one.reference for one in documents}
        newer = True
        kept = list[Candidate]()
        for one in reversed(self._written.values()):
            if one.reference in forgotten:
                newer = False
            elif one.bands or newer:
                kept.append(one)
        self._keep(kept)

    def forget_oldest(self) -> int:
        """Forget the oldest documents until at most half of the maximum is left. Returns how many had keys."""
        before = len(self.documents)
        kept, size = list[Candidate](), 0
        for one in reversed(self._written.values()):
            size += size_of(one.source)
            if len(kept) >= self.maximum // 2 or size > self.max_bytes // 2:
                break
            kept.append(one)
        self._keep(kept)
        return before - len(self.documents)

    def _keep(self, documents: Sequence[Candidate]) -> None:
        """Keep only these documents, the newest first."""
        self._written = {one.reference: one for one in reversed(documents)}
        self._by_key, self._leaders, self._bytes = self._no_texts(), {}, 0
        self._groups.clear()
        for one in self._written.values():
            self._insert(one)

    def _insert(self, document: Candidate) -> None:
        if document.bands:
            self._by_key.insert(document)
        self._bytes += size_of(document.source)
        self._count(document, 1)

    def _count(self, document: Candidate, number: int) -> None:
        """Note the group of a document, or that the document has left it."""
        if document.group is None:
            return
        self._groups[document.group] += number
        if document.principal and number > 0:
            self._leaders[document.group] = document
        elif document.principal and self._leaders.get(document.group) is document:
            del self._leaders[document.group]
