"""A migration of an alias of two indices that was killed in the switch, and continued."""

from __future__ import annotations

from es_neardupe import NearDupe
from es_neardupe.groups.read import Group
from es_neardupe.server.client import Client


def check_continued(client: Client, alias: str, before: Group) -> None:
    """The killed migration finds and groups as before, ends with the same group, and leaves nothing to write."""
    near = NearDupe(alias, client).similar(id="a0").hits
    assert ({hit.id for hit in near} <= {"a1", "b0", "b1"}, sum(1 + hit.copies for hit in near)) == (True, 3)
    assert NearDupe(alias, client).migrate().state == "done"
    (after,) = NearDupe(alias, client).groups()
    assert (after.group, {one.id for one in after.members}) == (before.group, {"a0", "a1", "b0", "b1"})
    assert (
        NearDupe(alias, client).enrich(check=True).writes.written
        == NearDupe(alias, client).group(check=True).writes.written
        == 0
    )
