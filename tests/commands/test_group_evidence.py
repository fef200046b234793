"""Evidence on real servers: each text of a group and its principal is stored, judged again, and deleted when stale."""

from __future__ import annotations

from typing import Any

import pytest
from evidence_tools import prepared
from server_tools import JSON, change, family, hits, jaccard, ours, put, versions, words

from es_neardupe import NearDupe
from es_neardupe.errors import SettingsError
from es_neardupe.server.client import Client, path
from es_neardupe.verification.evidence_entries import EvidenceReport

BASE = words("base", 120)


def corpus() -> dict[str, str]:
    """Near texts, exact copies, a text within another, a revision, texts that are alone or without words."""
    texts = {f"f{k}": text for k, text in enumerate(family(1, 4, edits=3))}
    texts |= {"copy-a": " ".join(BASE), "copy-b": " ".join(BASE).upper(), "copy-c": " ".join(BASE)}
    texts |= {"long": " ".join(BASE + words("more", 45))}
    texts |= {"revised": " ".join([*BASE[:60], "not", *BASE[60:]])}
    return texts | {"alone": " ".join(words("alone", 60)), "empty": "..."}


def run(client: Client, index: str, **chosen: Any) -> EvidenceReport:
    """What a run stores."""
    report = NearDupe(index, client).group(evidence=True, **({"rebuild": True} | chosen)).evidence
    assert report is not None
    return report


def kept(client: Client, evidence: str) -> dict[frozenset[str], JSON]:
    """The entries by the ids of their documents; each pair has one."""
    sources = [hit["_source"] for hit in hits(client, evidence)]
    found = {frozenset((one["a"]["id"], one["b"]["id"])): one for one in sources}
    assert len(found) == len(sources)
    return found


def pair(a: str, b: str) -> frozenset[str]:
    return frozenset((a, b))


def members(client: Client, index: str) -> dict[frozenset[str], str]:
    """Each document of a group that is not the principal, with it or with the first document of the same words."""
    stored = ours(client, index)
    principals = {one["group"]: id for id, one in stored.items() if one["principal"]}
    found: dict[frozenset[str], str] = {}
    texts: dict[tuple[str, str], str] = {}
    for id in sorted(stored, key=lambda id: (not stored[id]["principal"], id)):
        group = stored[id]["group"]
        first = texts.setdefault((group, stored[id].get("content") or id), id)
        if id != principals[group]:
            found[pair(id, principals[group] if first == id else first)] = group
    return found


def test_each_text_of_a_group_is_kept_with_its_principal(client: Client, index_name: str) -> None:
    texts = corpus()
    evidence = prepared(client, index_name, texts)
    report = run(client, index_name, min=0.8)
    entries = kept(client, evidence)
    assert set(entries) == set(members(client, index_name))
    assert report.pairs == report.written == report.accepted == len(entries) == 6
    assert (report.rejected, report.decided_again, report.unchanged, report.removed, report.refused) == (0, 0, 0, 0, 0)
    assert (report.left_out, report.without_edit) == (0, 0)
    contents = {hit["_id"]: hit["_source"]["neardupe"]["content"] for hit in hits(client, index_name)}
    for ids, one in entries.items():
        assert one["value"] == one["resemblance"] == pytest.approx(jaccard(*(texts[id] for id in ids)), abs=0)
        assert (one["decision"], one["min"], one["max"], one["measure"]) == ("accepted", 0.8, 1.0, "resemblance")
        assert [one[f"content_{side}"] for side in "ab"] == [contents[one[side]["id"]] for side in "ab"]
        assert {one[side]["index"] for side in "ab"} == {index_name}
    assert {entries[pair("copy-a", other)]["relation"] for other in ("copy-b", "copy-c")} == {"exact"}
    assert entries[pair("copy-a", "revised")]["relation"] == "revision"
    wide = run(client, index_name, min=0.6)
    assert (wide.written, wide.removed) == (len(set(kept(client, evidence)) - set(entries)), 1)
    assert kept(client, evidence)[pair("long", "copy-a")]["relation"] == "contained"


def test_a_pair_that_does_not_match_is_rejected(client: Client, index_name: str) -> None:
    """A chain holds it in the group."""
    long = words("chain", 180)
    evidence = prepared(client, index_name, {f"c{k}": " ".join(long[12 * k : 12 * k + 120]) for k in range(4)})
    report = run(client, index_name, min=0.7, linkage="chain")
    assert (report.pairs, report.rejected) == (3, 2)
    entries = kept(client, evidence).values()
    assert all((one["decision"] == "accepted") == (one["value"] >= 0.7) for one in entries)


def test_a_second_run_writes_nothing(client: Client, index_name: str) -> None:
    """Other limits are another decision on the same pairs."""
    evidence = prepared(client, index_name, corpus())
    first = run(client, index_name, min=0.8)
    before = versions(client, evidence)
    again = run(client, index_name, min=0.8)
    assert (again.unchanged, again.written, again.removed) == (first.pairs, 0, 0)
    assert versions(client, evidence) == before

    lost = hits(client, evidence)[0]["_id"]  # as after a run that was killed while writing
    client.request("DELETE", path(evidence, "_doc", lost), params={"refresh": True})
    rest = run(client, index_name, min=0.8)
    assert (rest.written, rest.unchanged) == (1, first.pairs - 1)
    assert lost in {hit["_id"] for hit in hits(client, evidence)}

    lower = run(client, index_name, min=0.79)
    assert (lower.written, lower.decided_again) == (0, first.pairs)
    assert {one["min"] for one in kept(client, evidence).values()} == {0.79}


def test_other_measures_have_evidence_of_their_own(client: Client, index_name: str) -> None:
    evidence = prepared(client, index_name, corpus())
    run(client, index_name)
    other = run(client, index_name, measure="jaccard")
    assert (other.written, other.unchanged) == (other.pairs, 0)
    entries = kept(client, evidence).values()
    assert all(one["measure"] == "jaccard (literal)" and one["value"] == one["jaccard"] for one in entries)
    with pytest.raises(SettingsError, match="depends on more than these"):
        run(client, index_name, measure="bag", whitespace=True)


@pytest.mark.product("each")
def test_an_incremental_run_stores_what_changed(client: Client, index_name: str) -> None:
    """It writes the new pairs, and deletes those of documents that were changed or deleted, or have left their group;
    a rebuild has nothing to add."""
    texts = corpus() | {f"other-{k}": text for k, text in enumerate(family(2, 4, edits=3))}
    evidence = prepared(client, index_name, texts)
    assert run(client, index_name).written == len(kept(client, evidence))
    untouched = dict(versions(client, evidence))
    client.request("DELETE", path(index_name, "_doc", "f0"), params={"refresh": True})
    change(client, index_name, "f1", {"text": texts["f1"].replace("edited", "changed")})
    change(client, index_name, "copy-b", {"text": "something else now"})
    put(client, index_name, {"again": {"text": texts["f2"]}})
    NearDupe(index_name, client).enrich(check=True)
    report = NearDupe(index_name, client).group(evidence=True)
    assert not report.scope.whole
    assert report.evidence is not None
    assert (report.evidence.left_out, report.evidence.refused) == (0, 0)
    assert report.evidence.removed > 0
    entries = kept(client, evidence)
    assert set(entries) == set(members(client, index_name))
    now = {id: stored.get("content") for id, stored in ours(client, index_name).items()}
    for one in entries.values():
        assert [one["content_a"], one["content_b"]] == [now[one[side]["id"]] for side in "ab"]
    others = {id for id, version in versions(client, evidence).items() if untouched.get(id) == version}
    assert len(others) >= 3  # of the other family
    whole = run(client, index_name)
    assert (whole.written, whole.removed, whole.decided_again) == (0, 0, 0)
