"""Keys for short texts on real servers: `init --preset short`, and shingles of characters in every command."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, read_jsonl
from example_texts import EXAMPLES
from scheme_oracle import oracle
from server_tools import make_index, mapping, ours, put

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import SchemeMismatch, SettingsError
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName
from es_neardupe.server.client import Client
from es_neardupe.similarity.measure import Measure, all_pairs

MAILS = {f"mail{number}{side}": text for number in (3, 4) for side, text in zip("ab", EXAMPLES[number], strict=True)}
LONG = (
    "{} of {} documents have 30 words or more: these keys are for shorter texts, and of such they also find different "
    "ones with common phrases. `es-neardupe migrate {} --preset strict` makes keys that suit them."
)
Pairs = dict[tuple[str, str], float]


def titles(count: int) -> dict[str, str]:
    """The first lines of press releases, each once."""
    lines = (
        str(one["text"]).partition("\n")[0][:120] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz")
    )
    return {f"title{k:04}": line for k, line in enumerate(dict.fromkeys(lines)) if k < count}


def filled(client: Client, name: str, texts: Mapping[str, str]) -> NearDupe:
    make_index(client, name)
    put(client, name, {id: {"text": text} for id, text in texts.items()})
    return NearDupe(name, client)


def short(spec: int | str = 2, measure: str = "S_J", threshold: float = 0.6) -> Settings:
    return Settings.chosen(("text",), preset="short", measure=measure, shingle=spec, threshold=threshold)


def similar_pairs(texts: Mapping[str, str], measure: Measure, minimum: float) -> Pairs:
    """Every pair of these texts that is at least so similar, by comparing all."""
    ids, found = list(texts), {}
    for pairs in all_pairs(measure, measure.prepare(list(texts.values()))):
        for left, right, similarity in zip(*(part.tolist() for part in pairs), strict=True):
            if similarity >= minimum:
                found[min(ids[left], ids[right]), max(ids[left], ids[right])] = similarity
    return found


def found_pairs(index: NearDupe, **rules: Any) -> Pairs:
    return {(min(one.a.id, one.b.id), max(one.a.id, one.b.id)): one.similarity for one in index.pairs(**rules)}


@pytest.mark.parametrize("spec", [1, 2, "5c"])
def test_the_mails_are_found_among_other_short_texts(spec: int | str, client: Client, index_name: str) -> None:
    """Example 4 is 83 % similar by literal matching, example 3 60 % by information matching."""
    texts = titles(150) | MAILS
    index = filled(client, index_name, texts)
    report = index.init(short(spec), measure="S_J")
    lengths = report.by_lengths
    assert lengths is not None
    assert (lengths.documents, lengths.min, lengths.measure) == (len(texts), 0.6, MeasureName.JACCARD)
    assert 0.99 <= lengths.detection <= 1
    assert index.enrich().writes.written == len(texts)
    stored = ours(client, index_name)
    scheme = report.chosen(short(spec)).scheme
    assert all(stored[id]["bands"] == list(oracle(text, scheme).bands) for id, text in MAILS.items())

    literal = found_pairs(index, measure="S_J", min=0.6)
    assert literal["mail4a", "mail4b"] == pytest.approx(5 / 6)
    information = found_pairs(index, measure="S_J", matching="information", min=0.6)
    repeated = 0 if scheme.unit.passage(scheme.shingle) > 1 else 2  # the second and third "and"
    assert information["mail3a", "mail3b"] == pytest.approx(9 / (15 - repeated))
    measure = Measure(MeasureName.JACCARD, Matching.LITERAL, scheme.shingle, unit=scheme.unit)
    if measure.passage > 1:  # comparing all pairs by single words takes too long
        true = similar_pairs(texts, measure, 0.6)
        assert literal.items() <= true.items()
        assert len(literal) >= 0.95 * len(true)

    grouped = index.group(measure="S_J", matching="information", min=0.6)
    assert grouped.rules.min == 0.6
    groups = {id: own["group"] for id, own in ours(client, index_name).items()}
    for number in (3, 4):
        assert groups[f"mail{number}a"] == groups[f"mail{number}b"]
    assert groups["mail3a"] != groups["mail4a"]


def test_a_threshold_in_s_l_on_the_command_line(server_cli: Cli, client: Client, index_name: str) -> None:
    filled(client, index_name, titles(60) | MAILS)
    given = ("--field", "text", "--preset", "short", "--measure", "S_L", "--threshold", "0.7", "--shingle", "5c")
    dry = server_cli("init", index_name, *given, "--dry-run")
    assert "neardupe" not in mapping(client, index_name)["properties"]
    done = server_cli("init", index_name, *given)
    assert (dry.code, done.code) == (0, 0)
    assert "a pair exactly 0.7 similar by containment-longer shares" in " ".join(done.out.split())
    assert "shingles of 5 characters" in " ".join(done.out.split())
    assert "group, pairs and similar use --measure containment-longer --min 0.7." in " ".join(done.err.split())
    again = json.loads(server_cli("init", index_name, *given, "--json").out)
    assert again["prepared"] == []
    assert (again["by_lengths"]["measure"], again["by_lengths"]["unit"]) == ("containment-longer", "character")
    meta = mapping(client, index_name)["_meta"]["neardupe"]
    assert (meta["scheme"]["unit"], meta["scheme"]["shingle"]) == ("character", 5)
    assert (meta["scheme"]["bands"], meta["threshold"]) == (again["bands"], again["threshold"])
    assert (meta["measure"], meta["min"]) == ("containment-longer", 0.7)
    assert "0.7 by containment-longer" in server_cli("doctor", index_name).out


def test_the_index_keeps_the_measure_of_its_threshold(client: Client, index_name: str) -> None:
    """It is the default of every command, until `migrate` replaces it."""
    index = filled(client, index_name, titles(80) | MAILS)
    index.init(short(1, "S_L"), measure="S_L")
    index.enrich()
    assert found_pairs(index) == found_pairs(index, measure="S_L", min=0.6)
    assert {one.similarity >= 0.6 for one in index.similar(text=MAILS["mail4a"]).hits} == {True}
    stored = mapping(client, index_name)["_meta"]["neardupe"]
    assert index.pairs(measure="resemblance").min == stored["threshold"] < 0.6

    first = index.group()
    assert (first.rules.measure, first.rules.min) == ("containment-longer (literal)", 0.6)
    assert first.rules.match.min is None
    with pytest.raises(SchemeMismatch, match=r"min: 0.6, not 0.7"):
        index.init(short(1, "S_L", 0.7), measure="S_L")
    with pytest.raises(SchemeMismatch, match="measure: containment-longer, not jaccard"):
        index.init(short(1), measure="S_J")

    index.migrate(threshold=0.5)
    again = index.group()
    assert (again.rules.measure, again.rules.min) == ("resemblance", 0.5)
    assert "measure" not in mapping(client, index_name)["_meta"]["neardupe"]
    index.migrate(threshold=0.6, measure="S_J")
    last = index.group()
    assert (last.rules.measure, last.rules.min) == ("jaccard (literal)", 0.6)


def test_bands_are_kept_when_the_texts_change(client: Client, index_name: str) -> None:
    index = filled(client, index_name, titles(30))
    first = index.init(short(), measure="S_J")
    put(client, index_name, {f"long{k}": {"text": " ".join(f"w{k}x{n}" for n in range(400))} for k in range(60)})
    again = index.init(short(), measure="S_J")
    assert (again.bands, again.rows, again.threshold) == (first.bands, first.rows, first.threshold)
    assert again.by_lengths is not None
    assert first.by_lengths is not None
    assert (first.by_lengths.documents, again.by_lengths.documents) == (30, 90)
    assert again.by_lengths.words[2] == 400
    assert again.by_lengths.detection != first.by_lengths.detection
    with pytest.raises(SchemeMismatch, match="unit: word, not character"):
        index.init(short("2c"), measure="S_J")


def test_an_empty_index_assumes_usual_lengths(client: Client, index_name: str) -> None:
    index = NearDupe(index_name, client)
    template = index.init(short(), measure="S_J", template=True)
    created = index.init(short(), measure="S_J", create=True)
    assert created.by_lengths is not None
    assert created.by_lengths == template.by_lengths
    assert (created.by_lengths.documents, created.by_lengths.words) == (0, (3, 11, 20))
    assert template.template is not None
    assert mapping(client, index_name)["_meta"] == template.template["template"]["mappings"]["_meta"]
    assert index.init(short(), measure="S_J").prepared == ()


def test_contradictions(client: Client, index_name: str) -> None:
    make_index(client, index_name)
    index = NearDupe(index_name, client)
    with pytest.raises(SettingsError, match="`measure` chooses the bands"):
        index.init(Settings(("text",), bands=2, rows=2), measure="S_J")
    with pytest.raises(SettingsError, match="needs the lengths of texts"):
        Settings.chosen(("text",), preset="short")
    with pytest.raises(SettingsError, match="Unknown measure 'bag'"):
        index.init(Settings(("text",)), measure="bag")


def test_every_command_with_characters(client: Client, index_name: str) -> None:
    """All figures by shingles are those of characters, and positions are those of the original text."""
    texts = titles(120) | MAILS | {"mark": "Did you rob the BANK???"}
    index = filled(client, index_name, texts)
    settings = Settings(("text",), threshold=0.4, shingle=5, unit=Unit.CHARACTER, sample_mod=1)
    index.init(settings)
    index.enrich()
    measure = Measure(shingle=5, unit=Unit.CHARACTER)
    true = similar_pairs(texts, measure, 0.4)
    assert found_pairs(index, min=0.4).items() <= true.items()

    compared = index.compare("mail4a", "mail4b")
    assert (compared.shingle, compared.unit, compared.passage) == (5, Unit.CHARACTER, 1)
    assert compared.value(MeasureName.RESEMBLANCE) == true["mail4a", "mail4b"] == 16 / 20
    assert compared.value(MeasureName.JACCARD, Matching.LITERAL) == pytest.approx(5 / 6)
    (block,) = compared.matchings["literal"].blocks
    assert compared.b.text[slice(*block.b)] == "Did you rob the bank"
    words = index.compare("mail4a", "mail4b", shingle=5)
    assert words.value(MeasureName.RESEMBLANCE) == 0.5

    found = index.similar(id="mail4a", measure="S_J", min=0.8)
    assert {hit.id: round(hit.similarity, 2) for hit in found.hits} == {"mail4b": 0.83, "mark": 1}
    assert found.detection.cases
    contained = index.contained(text=f"She asked: {MAILS['mail4a']} Nobody answered.")
    hits = {hit.id: hit for hit in contained.hits}
    assert hits["mail4a"].of_document == 1
    steps = index.shingles("mail4b")
    assert steps.stored is not None
    assert steps.stored.equal
    assert steps.words(0) == "didyo"
    audit = index.audit(sample=200, min=0.4)
    assert audit.recall.pairs == len(true)
    shown = index.distribution(measure=["resemblance", "S_J"], sample=50)
    assert [one.title for one in shown.distributions] == ["resemblance, 5 characters", "jaccard, literal, 1 word"]
    assert index.group(min=0.4, evidence=True).pairs
    assert index.what_if(min=[0.5])
    assert index.group(measure="weighted", min=0.4).pairs
    (action,) = index.fingerprinted([{"_op_type": "index", "_index": index_name, "_id": "x", "text": "Did you?"}])
    assert action["neardupe"]["bands"] == list(oracle("Did you?", settings.scheme).bands)


def test_migrate_to_and_from_characters(client: Client, index_name: str) -> None:
    texts = titles(40) | MAILS
    index = filled(client, index_name, texts)
    index.init(Settings(("text",)))
    index.enrich()
    assert ("mail4a", "mail4b") not in found_pairs(index, measure="S_J", min=0.6)
    index.migrate(preset="short", shingle="5c")
    scheme = mapping(client, index_name)["_meta"]["neardupe"]["scheme"]
    assert (scheme["shingle"], scheme["unit"]) == (5, "character")
    assert ("mail4a", "mail4b") in found_pairs(index, measure="S_J", min=0.6)
    index.migrate(threshold=0.5)
    assert mapping(client, index_name)["_meta"]["neardupe"]["scheme"]["unit"] == "character"
    index.migrate(shingle=2, measure="S_L", threshold=0.6)
    scheme = mapping(client, index_name)["_meta"]["neardupe"]["scheme"]
    assert (scheme["shingle"], scheme.get("unit")) == (2, None)
    assert ("mail4a", "mail4b") in found_pairs(index, measure="S_L", min=0.6)


def test_long_ads_are_not_for_the_preset(client: Client, index_name: str, server_cli: Cli) -> None:
    """580 ads of 126 words: the default groups all reposts with their originals and no other ads, and the preset short
    says that it is for other texts."""
    ads = {one["id"]: one for one in read_jsonl("cases/job_ads.jsonl.xz")}
    index = filled(client, index_name, {id: one["text"] for id, one in ads.items()})
    said = server_cli("init", index_name, "--field", "text", "--preset", "short", "--dry-run")
    assert LONG.format(200, 200, index_name) in said.err  # of random documents
    index.init(Settings(("text",)))
    index.enrich()
    index.group()
    grouped = {frozenset(one.id for one in group.members) for group in index.groups()}
    reposted = defaultdict[int, set[str]](set)
    for id, one in ads.items():
        if one["kind"] in ("orig", "city", "repost"):
            reposted[one["job"]].add(id)
    assert grouped == {frozenset(some) for some in reposted.values() if len(some) > 1}


def test_long_ads_in_a_new_index(server_cli: Cli, index_name: str, tmp_path: Path) -> None:
    """An index that was created for short texts gets long ones: `load`, `enrich` and `group` say that the keys do not
    suit them, until it is migrated to the preset that they name."""
    ads = read_jsonl("cases/job_ads.jsonl.xz")[:40]
    file = tmp_path / "ads.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in ads), "utf-8")
    server_cli("init", index_name, "--field", "text", "--create", "--preset", "short")
    hint = LONG.format(40, 40, index_name)
    for line in (("load", index_name, str(file)), ("enrich", index_name), ("group", index_name)):
        assert hint in server_cli(*line).err
    migrated = server_cli("migrate", index_name, "--preset", "strict", "--yes")
    assert not migrated.code, migrated.err
    assert "words" not in migrated.err + server_cli("enrich", index_name).err + server_cli("group", index_name).err


def test_short_mails_in_an_index_with_other_keys(client: Client, index_name: str, server_cli: Cli) -> None:
    """500 mails of 4 to 10 words, 100 of them "Yes." and another mail: `enrich` and `group` say that the keys do not
    suit them, and with the preset that they name all of these are found."""
    texts = {one["id"]: one["text"] for one in read_jsonl("cases/short_mails.jsonl.xz")}
    index = filled(client, index_name, texts)
    index.init(Settings(("text",)))
    hint = (
        f"500 of 500 documents have fewer than 49 words: one changed word makes two such texts less than 0.8 similar, "
        f"so these keys miss near-copies. `es-neardupe migrate {index_name} --preset short` makes keys that suit them, "
        "those of log lines --preset logs."
    )
    for name in ("enrich", "group"):
        assert hint in server_cli(name, index_name).err
    assert len(index.pairs()) < 40
    migrated = server_cli("migrate", index_name, "--preset", "short", "--yes")
    assert not migrated.code, migrated.err
    assert "fewer than" not in migrated.err + server_cli("group", index_name).err
    found = found_pairs(index, measure="S_L", min=0.8)
    assert len(found) == 100
    assert all(texts[other] == f"Yes. {texts[one]}" for one, other in found)
