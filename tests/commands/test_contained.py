"""The command contained on real servers."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, read_data
from server_tools import (
    change,
    make_index,
    mapping,
    one_line,
    ours,
    put,
    send,
    shared_and_own,
    shingles,
    versions,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.contained import steps
from es_neardupe.errors import IndexUnusable, SchemeMismatch, SettingsError
from es_neardupe.incoming.writes import fingerprinted_actions
from es_neardupe.index import queries
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.options import Matching
from es_neardupe.server.client import Client, path
from es_neardupe.similarity.alignment import align
from es_neardupe.similarity.comparison import Direction

SAMPLED = Settings(("text",), sample_mod=4)

MAILS = {f"mail{n}": " ".join(words(f"mail{n}", 120)) for n in range(10)}
REPLY = " ".join([*words("answer", 80), MAILS["mail0"], *words("signature", 20)])
TEXTS = MAILS | {"reply": REPLY, "anthology": "\n\n".join(MAILS.values()), "stranger": " ".join(words("no", 150))}


def prepared(client: Client, index: str, texts: dict[str, str], settings: Settings = SAMPLED) -> str:
    make_index(client, index, {"text": {"type": "text"}, "kind": {"type": "keyword"}})
    put(client, index, {id: {"text": text, "kind": id[0]} for id, text in texts.items()})
    NearDupe(index, client).init(settings)
    NearDupe(index, client).enrich()
    return index


mails, own = shared_and_own(lambda client, index: prepared(client, index, TEXTS))


def contained_in(one: str, other: str, matching: Matching = Matching.LITERAL, minimum: int = 5) -> tuple[float, float]:
    """Shares of the words of both that are in common passages."""
    tokens, others = token_hashes([one, other])
    found = align(tokens, others, matching, minimum)
    return found.common / found.words[0], found.common / found.words[1]


# The seed's example: 3-word shingles, one in three sampled

MESSAGE = "phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t!"
OTHER = (
    "xim123: @loonytoons Well I’ve booked train tickets for saturday now (despite thetrainline best efforts to "
    "prevent me), see you there #phpnw09"
)
RETWEETS = """\
phpnw08: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– w00t!
PHPNW: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– w00t!
phpcodemonkey: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– w00t!
juokaz: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– Woot!! :)
DragonBe: RT @phpnw: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– w00t!
jakub_zalas: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– w00t!
AnthonySterling: RT: @phpnw09 1 Week ‘til #phpnw09 - let me hear you say w00t! - w00t! :-D
ruby_gem: RT @phpcodemonkey: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t!
oatie: RT @phpcodemonkey: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– w00t!
DASPRiD: RT @DragonBe RT @phpnw: RT @phpnw09: 1 Week ‘til #phpnw09 - let me hear you say w00t! <– w00t! <– w00t
""".splitlines()


def test_the_ten_retweets(client: Client, index_name: str) -> None:
    prepared(
        client,
        index_name,
        {f"t{n}": text for n, text in enumerate(RETWEETS)} | {"other": OTHER, **MAILS},
        Settings(("text",), shingle=3, sample_mod=3),
    )
    found = NearDupe(index_name, client).contained(text=MESSAGE, top=20)
    assert {hit.id for hit in found.hits} == {f"t{n}" for n in range(10)}
    assert all(hit.of_probe == hit.estimated_of_probe.value == 1.0 for hit in found.hits)
    assert (found.keys, found.found, found.candidates) == (3, 10, 10)
    other = NearDupe(index_name, client).contained(id="other")
    assert (other.hits, other.candidates, other.keys) == ((), 0, 4)


# Mails, replies, anthologies


@pytest.mark.product("each")
def test_both_directions_are_named(mails: str, client: Client) -> None:
    found = NearDupe(mails, client).contained(id="mail0")
    assert {hit.id: hit.direction for hit in found.hits} == {
        "reply": Direction.BOTH,  # 120 of its 220 words are the mail
        "anthology": Direction.CONTAINS,
    }
    for hit in found.hits:
        assert (hit.of_probe, hit.common_words, len(hit.passages)) == (1.0, 120, 1)
        (passage,) = hit.passages
        assert MAILS["mail0"][slice(*passage.a)] == TEXTS[hit.id][slice(*passage.b)] == MAILS["mail0"]
        assert MAILS["mail0"].startswith(hit.excerpt.removesuffix("..."))
    whole = NearDupe(mails, client).contained(id="anthology", min=0.9)
    assert {hit.id: hit.direction for hit in whole.hits} == dict.fromkeys(MAILS, Direction.CONTAINED)
    assert all(hit.of_document == 1.0 and hit.of_probe == pytest.approx(0.1) for hit in whole.hits)
    assert {hit.estimated_of_document.value for hit in whole.hits} == {1.0}
    assert all(hit.estimated_of_probe.low <= 0.1 <= hit.estimated_of_probe.high for hit in whole.hits)


@pytest.mark.parametrize("linkage", ["star", "chain"])
def test_containment_makes_no_groups(linkage: str, own: str, client: Client) -> None:
    """Neither the command nor sampled keys change groups."""
    NearDupe(own, client).contained(id="anthology")
    before = versions(client, own)
    assert NearDupe(own, client).contained(id="mail0").found == 2
    assert versions(client, own) == before
    done = NearDupe(own, client).group(linkage=linkage)
    assert (done.groups.count, done.groups.alone) == (0, len(TEXTS))
    assert len({fields["group"] for fields in ours(client, own).values()}) == len(TEXTS)


@pytest.mark.parametrize("matching", list(Matching))
def test_against_comparing_everything(matching: Matching, client: Client, index_name: str) -> None:
    """Exactly the documents that share a key and enough words are found, without the probe."""
    rng = np.random.default_rng(6)
    parts = [" ".join(words(f"part{n}", 40)) for n in range(12)]
    texts = {f"d{n}": " ".join(parts[k] for k in rng.choice(12, rng.integers(1, 6))) for n in range(40)}
    prepared(client, index_name, texts)
    keys = {id: set(one[one % 4 == 0].tolist()) for id, one in zip(texts, features([*texts.values()], 5), strict=True)}
    for probe in ("d0", "d7", "d23"):
        found = NearDupe(index_name, client).contained(id=probe, min=0.3, matching=matching, top=100)
        shares = {id: contained_in(texts[probe], text, matching) for id, text in texts.items() if id != probe}
        expected = {id: both for id, both in shares.items() if max(both) >= 0.3 and keys[id] & keys[probe]}
        assert {hit.id: (hit.of_probe, hit.of_document) for hit in found.hits} == expected
        assert {hit.id: hit.matched_keys for hit in found.hits} == {id: len(keys[id] & keys[probe]) for id in expected}
        assert found.candidates == sum(bool(one & keys[probe]) for id, one in keys.items() if id != probe)
        assert [max(hit.of_probe, hit.of_document) for hit in found.hits] == sorted(map(max, expected.values()))[::-1]


def test_small_requests_find_the_same(own: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in many requests, each of few terms and a small window."""
    expected = NearDupe(own, client).contained(id="anthology", top=100)
    assert expected.keys > 100
    monkeypatch.setattr(queries, "MAX_CLAUSES", 7)
    monkeypatch.setattr(queries, "MAX_TERMS", 5)
    client.request("PUT", path(own, "_settings"), body={"index.max_result_window": 3})
    assert NearDupe(own, client).contained(id="anthology", top=100) == expected


def test_omissions_are_counted(mails: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    few = server_cli("contained", mails, "--id", "anthology", "--max-candidates", "4", "--top", "2", "--json")
    assert (len(few.json["hits"]), few.json["found"], few.json["not_compared"]) == (2, 4, 7)
    assert "7 candidates with lower estimates were not compared: raise --max-candidates." in few.err
    monkeypatch.setattr(steps, "_POSTINGS", 1)
    monkeypatch.setattr(steps, "_MIN_CANDIDATES", 1)
    cut = server_cli("contained", mails, "--id", "anthology", "--max-candidates", "10", "--json")
    assert 250 < cut.json["keys_left_out"] <= cut.json["keys"] - 10  # some are in no other document
    assert f"{cut.json['keys_left_out']} keys that too many documents share were skipped" in cut.err
    whole = server_cli("contained", mails, "--id", "anthology")
    assert "left out" not in whole.err
    assert "is found with probability 0.99 if it has 17 different shingles" in whole.err
    assert "is contained in the probe" in whole.out


def test_few_keys_are_reported(mails: str, server_cli: Cli) -> None:
    few = server_cli("contained", mails, "--text", " ".join(MAILS["mail3"].split()[:12]), "--json")
    keys, probability = few.json["keys"], few.json["detection"]["probability"]
    assert probability == 1 - 0.5**keys < 0.99
    assert f"Sampled keys of the text: {keys} (of 8 shingles, one in 4)." in few.err
    assert few.json["detection"]["shingles"] == 17  # 0.75 ** 17 < 0.01
    none = server_cli("contained", mails, "--text", " ".join(MAILS["mail3"].split()[:6]))
    assert "None of the 2 shingles of the text is sampled (one in 4): nothing can be found." in none.err
    short = server_cli("contained", mails, "--text", "no more words", "--json")
    assert (short.code, short.json["query"]["state"], short.json["hits"]) == (0, "short", [])
    assert "only exact copies can be found" in short.err
    empty = server_cli("contained", mails, "--text", "...")
    assert (empty.code, empty.out) == (0, "")
    assert "The text is empty" in empty.err


def test_documents_without_keys_are_counted(own: str, client: Client, server_cli: Cli) -> None:
    put(client, own, {f"late{n}": {"text": MAILS["mail0"], "kind": "l"} for n in range(3)})
    done = server_cli("contained", own, "--id", "late0")
    assert "2 documents are not enriched and cannot be found: run `es-neardupe enrich" in done.err
    other = server_cli("contained", own, "--id", "mail0", "--query", '{"term": {"kind": "r"}}', "--json")
    assert (other.json["unprocessed"], "no keys" in other.err) == (0, False)
    NearDupe(own, client).enrich()
    assert NearDupe(own, client).contained(id="late0").unprocessed == 0


def test_progress_of_many_keys(mails: str, client: Client) -> None:
    report: list[tuple[str, int, int | None]] = []
    found = NearDupe(mails, client).contained(id="anthology", progress=lambda *one: report.append(one))
    assert ("looking up keys", found.keys, found.keys) in report
    assert report[-1] == ("comparing", 11, 11)


def test_query_file_and_current_texts(own: str, client: Client, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "quoted.txt"
    file.write_text(MAILS["mail0"], "utf-8")
    done = server_cli("contained", own, "--file", str(file), "--query", '{"term": {"kind": "r"}}', "--json")
    assert [hit["id"] for hit in done.json["hits"]] == ["reply"]
    none = server_cli("contained", own, "--file", str(file), "--query", '{"term": {"kind": "x"}}', "--json")
    assert (none.code, none.json["hits"], none.json["candidates"]) == (0, [], 0)
    change(client, own, "reply", {"text": "something else by now"})
    send(client, [({"delete": {"_index": own, "_id": "anthology"}}, None)])
    assert {hit.id for hit in NearDupe(own, client).contained(text=MAILS["mail0"]).hits} == {"mail0"}


def test_malformed_keys(own: str, client: Client, server_cli: Cli) -> None:
    keys = ours(client, own)["reply"]["samples"]
    change(client, own, "reply", {"neardupe": {"samples": [*keys, "short"]}})
    done = server_cli("contained", own, "--id", "mail0", "--json")
    assert ([hit["id"] for hit in done.json["hits"]], done.json["unreadable"]) == (["anthology"], 1)
    assert f"run `es-neardupe enrich {own} --all`" in done.err
    NearDupe(own, client).enrich(all=True)
    assert NearDupe(own, client).contained(id="mail0").found == 2


# Common shingles


DISCLAIMER = words("disclaimer", 60)


def disclaimed() -> dict[str, str]:
    """Mails below one disclaimer, replies that quote some of them whole, and the disclaimer alone."""
    own = {f"m{n}": words(f"own{n}", 12 + n % 9) for n in range(110)}
    replies = {f"r{n}": [*words(f"answer{n}", 20), *DISCLAIMER, *own[f"m{n}"]] for n in range(0, 110, 10)}
    return {id: " ".join([*some, *DISCLAIMER]) for id, some in (own | replies | {"nothing": []}).items()}


def own_words(text: str, common: set[tuple[str, ...]], side: str) -> list[str]:
    """The words of a text, by independent code. Those in common shingles become words that no other text has."""
    tokens = text.split()
    inside = {k + i for k in range(len(tokens) - 4) if tuple(tokens[k : k + 5]) in common for i in range(5)}
    return [f"{side}{k}" if k in inside else token for k, token in enumerate(tokens)]


def test_common_shingles_do_not_count(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of mails below one disclaimer, only those with common words of their own are found."""
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path))
    texts = disclaimed()
    prepared(client, index_name, texts)
    mails = NearDupe(index_name, client)
    assert mails.contained(id="m10", top=200).found == len(texts) - 1  # strangers with the same disclaimer
    every = {id: shingles(text) for id, text in texts.items()}
    common = {one for one in set().union(*every.values()) if sum(one in its for its in every.values()) > 60}
    keys = {
        id: {int(one) for (one,) in features([" ".join(shingle) for shingle in its - common], 5) if one % 4 == 0}
        for id, its in every.items()
    }
    read = {id: own_words(text, common, id) for id, text in texts.items()}
    for matching in Matching:
        for probe in ("m10", "m11", "r20"):
            found = mails.contained(id=probe, min=0.3, matching=matching, top=200, ignore_common=0.5)
            expected = {}
            for id in texts.keys() - {probe}:
                counts = [sum(not word.startswith(one) for word in read[one]) for one in (probe, id)]
                mine, theirs = token_hashes([" ".join(read[probe]), " ".join(read[id])])
                both = align(mine, theirs, matching, 5).common
                if min(counts) and both >= 0.3 * min(counts) and keys[probe] & keys[id]:
                    expected[id] = (both / counts[0], both / counts[1], len(keys[probe] & keys[id]))
            assert {hit.id: (hit.of_probe, hit.of_document, hit.matched_keys) for hit in found.hits} == expected
            assert found.candidates == sum(bool(one & keys[probe]) for id, one in keys.items() if id != probe)
            assert len(expected) == (probe != "m11")
            for hit in found.hits:
                assert not any(word in hit.excerpt for word in DISCLAIMER)
    assert found.common is not None
    assert (found.common.shingles, found.common.documents) == (len(common), len(texts))

    alone = server_cli("contained", index_name, "--id", "nothing", "--ignore-common", "0.5", "--json")
    assert (alone.json["hits"], alone.json["keys"], alone.json["keys_ignored"] > 0) == ([], 0, True)
    assert "of ignored shingles (15): nothing can be found" in alone.err
    shown = server_cli("contained", index_name, "--id", "m10", "--ignore-common", "0.5")
    assert (
        f"{len(common)} shingles were ignored: more than 0.5 of {len(texts)} random documents contain them" in shown.err
    )

    # The list of `group` is used, which has another share here; `contained` stores none.
    assert mails.group(ignore_common="auto", min=0.5).common is not None
    refused = server_cli("contained", index_name, "--id", "m10", "--ignore-common", "0.5")
    assert "is for --ignore-common auto" in one_line(refused.err)
    assert [hit.id for hit in mails.contained(id="m10", ignore_common="auto").hits] == ["r10"]
    renewed = mails.contained(id="m10", ignore_common=0.5, renew=True)
    assert renewed.common is not None
    assert (renewed.common.version, [hit.id for hit in renewed.hits]) == (found.common.version, ["r10"])
    with pytest.raises(SettingsError, match="`renew` is for `ignore_common`"):
        mails.contained(id="m10", renew=True)


# Who writes the keys


def test_all_writers_write_the_same_keys(client: Client, index_name: str, tmp_path: Path) -> None:
    prepared(client, f"{index_name}-a", TEXTS)
    NearDupe(f"{index_name}-b", client).init(SAMPLED, create=True)
    file = tmp_path / "mails.jsonl"
    file.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in TEXTS.items()))
    NearDupe(f"{index_name}-b", client).load([str(file)])
    NearDupe(f"{index_name}-c", client).init(SAMPLED, create=True)
    given: list[dict[str, Any]] = [{"_id": id, "text": text} for id, text in TEXTS.items()]
    made = fingerprinted_actions(given, SAMPLED, index=f"{index_name}-c")
    put(client, f"{index_name}-c", {one.pop("_id"): one for one in made})
    expected = {id: one.samples for id, one in zip(TEXTS, fingerprints([*TEXTS.values()], SAMPLED.scheme), strict=True)}
    for name in "abc":
        stored = ours(client, f"{index_name}-{name}")
        assert {id: tuple(fields["samples"]) for id, fields in stored.items()} == expected
    assert mapping(client, f"{index_name}-a")["properties"]["neardupe"]["properties"]["samples"] == {
        "type": "keyword",
        "doc_values": False,
    }
    change(client, f"{index_name}-a", "reply", {"text": ""})
    NearDupe(f"{index_name}-a", client).enrich(check=True)
    assert ours(client, f"{index_name}-a")["reply"]["samples"] == []


def test_an_index_made_before_sampled_keys_existed(client: Client, index_name: str, server_cli: Cli) -> None:
    """Its mapping has no field for them: everything else works without a new init."""
    settings = Settings(("text",))
    fields = fields_mapping()
    older = {name: one for name, one in fields["properties"].items() if name != "samples"}
    properties = {"text": {"type": "text"}, "neardupe": fields | {"properties": older}}
    make_index(client, index_name, properties, _meta={"neardupe": settings.to_meta()})
    put(client, index_name, {id: {"text": text} for id, text in TEXTS.items()})
    assert NearDupe(index_name, client).enrich().writes.written == len(TEXTS)
    assert NearDupe(index_name, client).similar(id="mail0").candidates == 0
    assert NearDupe(index_name, client).group().groups.alone == len(TEXTS)
    assert NearDupe(index_name, client).init(settings).prepared == ()
    assert "samples" not in mapping(client, index_name)["properties"]["neardupe"]["properties"]
    refused = server_cli("contained", index_name, "--id", "mail0")
    assert refused.code == 1
    assert f"`es-neardupe migrate {index_name} --sample-mod 8`" in one_line(refused.err)


def test_number_of_keys_instead_of_a_modulus(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, {"text": {"type": "text"}})
    with pytest.raises(IndexUnusable, match="no document with words in text"):
        NearDupe(index_name, client).init(Settings(("text",)), sample_keys=10)
    put(client, index_name, {id: {"text": text} for id, text in MAILS.items()} | {"empty": {"text": ""}})
    tried = server_cli("init", index_name, "--field", "text", "--sample-keys", "10", "--dry-run")
    assert "Sampled keys for `contained`: one in 12 shingles." in tried.out
    assert "10 random documents have 120 words on average and 116 different shingles" in tried.err
    done = server_cli("init", index_name, "--field", "text", "--sample-keys", "10", "--json")
    sampling = done.json["sampling"]
    assert (sampling["documents"], sampling["mean_words"], sampling["mean_shingles"]) == (10, 120, 116)
    assert (sampling["sample_mod"], done.json["sample_mod"]) == (12, 12)  # 116 / 10
    assert sampling["without"] == pytest.approx((11 / 12) ** 116)
    again = NearDupe(index_name, client).init(Settings(("text",)), sample_keys=50)
    assert (again.sample_mod, again.sampling, again.prepared) == (12, None, ())
    kept = server_cli("init", index_name, "--field", "text", "--sample-keys", "50")
    assert "keeps its --sample-mod: --sample-keys 50 was ignored" in kept.err
    assert "sampled keys: one in 12 shingles" in " ".join(one.message for one in NearDupe(index_name, client).doctor())
    with pytest.raises(SchemeMismatch, match="sample_mod: 12, not 4"):
        NearDupe(index_name, client).init(SAMPLED)
    with pytest.raises(SettingsError, match="Give either"):
        NearDupe(index_name, client).init(SAMPLED, sample_keys=10)
    with pytest.raises(SettingsError, match="A new index has no texts"):
        NearDupe(f"{index_name}-new", client).init(Settings(("text",)), sample_keys=10, create=True)
    absent = server_cli("init", index_name, "--field", "absent", "--sample-keys", "10", "--prefix", "other")
    assert "has no field 'absent'" in one_line(absent.err)


# Bad input


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--id", "absent"), 1, "There is no document 'absent'"),
        (("--id", "mail0", "--min", "0"), 2, "0 is not in (0, 1]"),
        (("--id", "mail0", "--query", '{"match": 5}'), 1, "400"),
        (("--id", "mail0", "--query", '{"no_such_query": {}}'), 1, "no_such_query"),
        (("--file", "/no/such/file"), 1, "/no/such/file"),
    ],
)
def test_invalid_options(options: tuple[str, ...], code: int, said: str, mails: str, server_cli: Cli) -> None:
    done = server_cli("contained", mails, *options)
    assert (done.code, done.out) == (code, "")
    assert said in " ".join(done.err.replace("│", " ").split())


def test_usage_and_indices_that_are_not_ready(index_name: str, client: Client, server_cli: Cli) -> None:
    for wrong in ((), ("--id", "a", "--text", "b"), ("--id", "a", "--matching", "no"), ("--id", "a", "--top", "0")):
        assert server_cli("contained", index_name, *wrong).code == 2
    assert "There is no index" in one_line(server_cli("contained", index_name, "--id", "a").err)
    make_index(client, index_name)
    assert f"es-neardupe init {index_name}" in one_line(server_cli("contained", index_name, "--id", "a").err)


def test_odd_ids_and_an_alias_of_two_indices(client: Client, index_name: str, server_cli: Cli) -> None:
    odd = {"a/b": "mail0", "with blanks": "reply", "漢字 é": "anthology"}
    for number, (id, name) in enumerate(odd.items()):
        one = f"{index_name}-{min(number, 1)}"
        if number < 2:
            prepared(client, one, {id: TEXTS[name]})
        else:
            put(client, one, {id: {"text": TEXTS[name]}})
            NearDupe(one, client).enrich()
        client.request("PUT", path(one, "_alias", f"{index_name}-both"))
    found = NearDupe(f"{index_name}-both", client).contained(id="a/b")
    assert {(hit.index, hit.id) for hit in found.hits} == {
        (f"{index_name}-1", "with blanks"),
        (f"{index_name}-1", "漢字 é"),
    }
    shown = server_cli("contained", f"{index_name}-both", "--id", "a/b").out
    assert f"{index_name}-1/with blanks" in shown  # though both hits are of one index
    back = NearDupe(f"{index_name}-both", client).contained(id="漢字 é")
    assert {hit.id: hit.direction for hit in back.hits} == {
        "a/b": Direction.CONTAINED,
        "with blanks": Direction.CONTAINED,
    }


# Plagiarised answers: settings chosen on the tasks a and b, reported for c, d and e

CHOSEN = Settings(("text",), shingle=3, sample_mod=4)
LEAST = 0.15


def test_plagiarised_answers(client: Client, index_name: str) -> None:
    """The answers that were not used to choose the settings; docs/contained.md has these numbers."""
    file = read_data("clough_stevenson/file_information.csv")
    rows = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    texts = {row["File"]: (file.parent / row["File"]).read_text("utf-8", "replace") for row in rows}
    kinds = {row["File"]: (row["Task"], row["Category"]) for row in rows}
    prepared(client, index_name, texts, CHOSEN)
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for task in "cde":
        found = NearDupe(index_name, client).contained(id=f"orig_task{task}.txt", min=LEAST, top=100)
        for hit in found.hits:
            its_task, category = kinds[hit.id]
            if its_task in "cde" and category != "orig":
                (right if its_task == task and category != "non" else wrong)[category] += 1
    numbers = Counter(category for task, category in kinds.values() if task in "cde")
    assert {name: (right[name], numbers[name]) for name in ("cut", "light", "heavy")} == {
        "cut": (11, 12),
        "light": (13, 13),
        "heavy": (12, 12),
    }
    assert (dict(wrong), numbers["non"]) == ({"non": 2}, 20)
    precision = {name: round(right[name] / (right[name] + wrong["non"]), 2) for name in right}
    assert precision == {"cut": 0.85, "light": 0.87, "heavy": 0.86}
