"""Evidence on real servers: every verified pair is stored, reused, judged again, and deleted when stale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from evidence_tools import prepared
from numpy.typing import NDArray
from server_tools import JSON, change, family, hits, jaccard, ours, put, versions, words
from unit_tools import index_of

from es_neardupe import NearDupe
from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.errors import SettingsError
from es_neardupe.index.target import Definitions, open_target
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.progress import silent
from es_neardupe.server.client import Client, path
from es_neardupe.verification.criterion import MatchRules, match_criterion
from es_neardupe.verification.evidence import EvidenceReport, evidence_of, write_evidence
from es_neardupe.verification.verify import Verified, verified_pairs

BASE = words("base", 120)


def corpus() -> dict[str, str]:
    """Near texts, exact copies, a text within another, a revision, texts that are alone or without words."""
    texts = {f"f{k}": text for k, text in enumerate(family(1, 4, edits=3))}
    texts |= {"copy-a": " ".join(BASE), "copy-b": " ".join(BASE).upper(), "copy-c": " ".join(BASE)}
    texts |= {"long": " ".join(BASE + words("more", 45))}
    texts |= {"revised": " ".join([*BASE[:60], "not", *BASE[60:]])}
    return texts | {"alone": " ".join(words("alone", 60)), "empty": "..."}


class Ran(NamedTuple):
    report: EvidenceReport
    found: Verified
    matches: NDArray[np.bool_]


def run(client: Client, index: str, *, whole: bool = True, **chosen: Any) -> Ran:
    """The steps of group with evidence, up to the pairs."""
    target = open_target(Definitions(client, index), DEFAULT_PREFIX)
    wanted = match_criterion(index_of(client, target), MatchRules().having(chosen))
    evidence = evidence_of(index_of(client, target), wanted)
    evidence.read_all()
    found = verified_pairs(
        index_of(client, target),
        wanted.measure,
        read_fingerprints(index_of(client, target)),
        copies=wanted.copies_match,
        memory=evidence.memory,
        progress=silent,
    )
    left, right = found.candidates.left, found.candidates.right
    matches = found.verifier.confirmed(left, right, wanted.matches(found.similarity))
    return Ran(write_evidence(index_of(client, target), wanted, evidence, found, whole=whole), found, matches)


def kept(client: Client, evidence: str) -> dict[frozenset[str], JSON]:
    """The entries by the ids of their documents; each pair has one."""
    sources = [hit["_source"] for hit in hits(client, evidence)]
    found = {frozenset((one["a"]["id"], one["b"]["id"])): one for one in sources}
    assert len(found) == len(sources)
    return found


def pair(a: str, b: str) -> frozenset[str]:
    return frozenset((a, b))


def test_every_verified_pair_is_kept(client: Client, index_name: str) -> None:
    texts = corpus()
    evidence = prepared(client, index_name, texts)
    report, found, matches = run(client, index_name, min=0.8)
    entries = kept(client, evidence)
    assert report.pairs == report.written == report.compared + 2 == len(found.candidates) + 2 == len(entries)
    assert (report.remembered, report.decided_again, report.unchanged, report.removed, report.refused) == (
        0,
        0,
        0,
        0,
        0,
    )
    assert (report.left_out, report.without_edit) == (0, 0)
    assert report.accepted == matches.sum() + 2
    assert report.accepted + report.rejected == report.pairs
    contents = {hit["_id"]: hit["_source"]["neardupe"]["content"] for hit in hits(client, index_name)}
    for ids, one in entries.items():
        similar = jaccard(*(texts[id] for id in ids))
        assert one["value"] == one["resemblance"] == pytest.approx(similar, abs=0)
        assert one["decision"] == ("accepted" if similar >= 0.8 else "rejected")
        assert (one["min"], one["max"], one["measure"]) == (0.8, 1.0, "resemblance")
        assert [one[f"content_{side}"] for side in "ab"] == [contents[one[side]["id"]] for side in "ab"]
        assert {one[side]["index"] for side in "ab"} == {index_name}
    assert {entries[pair("copy-a", other)]["relation"] for other in ("copy-b", "copy-c")} == {"exact"}
    assert pair("copy-b", "copy-c") not in entries
    assert entries[pair("copy-a", "long")]["relation"] == "contained"
    assert entries[pair("copy-a", "long")]["decision"] == "rejected"
    assert entries[pair("copy-a", "revised")]["relation"] == "revision"
    assert not {"alone", "empty"} & {id for ids in entries for id in ids}


def test_no_two_contents_are_verified_twice(client: Client, index_name: str) -> None:
    """A second run compares nothing and writes nothing; other limits are another decision on the same evidence."""
    evidence = prepared(client, index_name, corpus())
    first = run(client, index_name, min=0.8)
    before = versions(client, evidence)
    again = run(client, index_name, min=0.8)
    assert (again.report.compared, again.report.remembered) == (0, first.report.compared)
    assert (again.report.unchanged, again.report.written) == (first.report.pairs, 0)
    assert again.found.similarity.tolist() == first.found.similarity.tolist()
    assert again.matches.tolist() == first.matches.tolist()
    assert versions(client, evidence) == before

    lost = hits(client, evidence)[0]["_id"]  # as after a run that was killed while writing
    client.request("DELETE", path(evidence, "_doc", lost), params={"refresh": True})
    rest = run(client, index_name, min=0.8)
    assert (rest.report.written, rest.report.unchanged) == (1, first.report.pairs - 1)
    assert lost in {hit["_id"] for hit in hits(client, evidence)}

    lower = run(client, index_name, min=0.6)
    assert (lower.report.compared, lower.report.written, lower.report.decided_again) == (0, 0, first.report.pairs)
    assert lower.report.accepted > first.report.accepted
    entries = kept(client, evidence)
    assert {one["min"] for one in entries.values()} == {0.6}
    assert entries[pair("copy-a", "long")]["decision"] == "accepted"
    assert entries[pair("copy-a", "long")]["relation"] == "contained"


def test_other_measures_have_evidence_of_their_own(client: Client, index_name: str) -> None:
    evidence = prepared(client, index_name, corpus())
    first = run(client, index_name)
    other = run(client, index_name, measure="jaccard")
    assert (other.report.remembered, other.report.written) == (0, first.report.pairs)
    entries = kept(client, evidence).values()
    assert all(one["measure"] == "jaccard (literal)" and one["value"] == one["jaccard"] for one in entries)
    assert run(client, index_name, measure="jaccard").report.compared == 0
    with pytest.raises(SettingsError, match="depends on more than these"):
        run(client, index_name, measure="bag", whitespace=True)


def test_evidence_of_changed_and_deleted_documents_is_not_used(client: Client, index_name: str) -> None:
    texts = corpus()
    evidence = prepared(client, index_name, texts)
    first = run(client, index_name)
    before = kept(client, evidence)
    client.request("DELETE", path(index_name, "_doc", "f0"), params={"refresh": True})
    change(client, index_name, "f1", {"text": texts["f1"] + " with other words"})
    change(client, index_name, "copy-a", {"text": "something else now"})  # and no new keys
    put(client, index_name, {"new": {"text": texts["f2"].replace("edited", "changed")}})
    NearDupe(index_name, client).enrich(query={"ids": {"values": ["new"]}})
    NearDupe(index_name, client).enrich(query={"ids": {"values": ["f1"]}}, check=True)

    partly = run(client, index_name, whole=False)  # documents outside of the corpus may still exist
    gone = {ids for ids in before if "f0" in ids and "f1" not in ids}
    assert len(gone) == 2
    entries = kept(client, evidence)
    assert gone <= set(entries)
    assert not any("copy-a" in ids for ids in entries)
    assert 0 < partly.report.compared < first.report.compared
    present = {hit["_id"]: hit["_source"] for hit in hits(client, index_name)}
    for ids in set(entries) - gone:
        one = entries[ids]
        assert [one[f"content_{side}"] for side in "ab"] == [
            present[one[side]["id"]]["neardupe"]["content"] for side in "ab"
        ]
        assert one["value"] == jaccard(*(present[id]["text"] for id in ids))
    assert pair("new", "f2") in entries
    assert pair("copy-b", "copy-c") in entries  # the next one of the class has taken its place

    last = run(client, index_name)
    assert last.report.removed == len(gone)
    assert set(kept(client, evidence)) == set(entries) - gone
    assert last.report.compared == 0
    assert last.report.written == 0


@pytest.mark.product("each")
def test_an_incremental_run_reads_the_evidence_around_a_change(client: Client, index_name: str) -> None:
    """It reads the similarities that it needs, stores new pairs, and deletes stale entries that it finds."""
    texts = corpus() | {f"other-{k}": text for k, text in enumerate(family(2, 4, edits=3))}
    evidence = prepared(client, index_name, texts)
    first = NearDupe(index_name, client).group(evidence=True).evidence
    before = kept(client, evidence)
    assert first is not None
    assert first.written == len(before)
    change(client, index_name, "f1", {"text": texts["f1"].replace("edited", "changed")})
    put(client, index_name, {"again": {"text": texts["f2"]}})  # a content that is known
    NearDupe(index_name, client).enrich(query={"ids": {"values": ["again", "f1"]}}, check=True)
    report = NearDupe(index_name, client).group(evidence=True)
    ran, after = report.evidence, kept(client, evidence)
    assert not report.scope.whole
    assert ran is not None
    assert (ran.compared, ran.left_out, ran.refused) == (3, 0, 0)  # f1 with the other texts of its family
    assert ran.remembered == 3
    assert ran.removed == 1  # f1 with f2, now represented by "again"; the other two of f1 were written again
    assert set(after) == (set(before) | {pair("again", other) for other in ("f0", "f1", "f2", "f3")}) - {
        pair("f1", "f2")
    }
    now = {id: stored.get("content") for id, stored in ours(client, index_name).items()}
    for one in after.values():
        assert [one["content_a"], one["content_b"]] == [now[one[side]["id"]] for side in "ab"]
    whole = NearDupe(index_name, client).group(evidence=True, rebuild=True).evidence
    assert whole is not None
    assert (whole.compared, whole.written, whole.removed, whole.decided_again) == (0, 0, 0, 0)
