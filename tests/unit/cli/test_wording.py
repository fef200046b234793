"""Messages are built, never repaired: counts agree, options and commands are named, and all else is said verbatim."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from es_neardupe.candidates.detection import Detection, UnsuitedTexts
from es_neardupe.candidates.large_buckets import Bucket
from es_neardupe.candidates.unprepared import UnpreparedTexts
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.cli import messages
from es_neardupe.cli.app import app
from es_neardupe.cli.command import command_line
from es_neardupe.cli.commands import contained, group, groups, moved, what_if
from es_neardupe.cli.left_documents import fail_on_left
from es_neardupe.cli.output import fail, printable, say, warn
from es_neardupe.errors import InputError, NotFound
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.failures import Failure, Failures
from es_neardupe.verification.boilerplate import Boilerplate, SharedPassage
from es_neardupe.verification.match_rules import MatchRules
from es_neardupe.wording import command, connection_in_commands, counted, option, spoken

HOSTILE = [
    "keep-news",
    "enrich",
    "1 documents",
    "1 documents have no keys and are in no group",
    "es-neardupe group x",
    "`es-neardupe enrich news`",
    "`min`",
    "`max_bucket` must be 2 or more",
    "it's `prefix` --url",
    "1 entries of 'have' {index}",
]
NAMES = st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=20)
GIVEN = {"url": "http://a:9200", "profile": "my own", "prefix": "dup"}
PROGRAM: Any = typer.main.get_command(app)
ALL_OPTIONS = {
    one.name: one.opts[0]
    for word in ("group", "load", "init", "duplicates")
    for one in PROGRAM.commands[word].params
    if one.opts[0].startswith("--")
}
fixture_given = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


# -- counts -----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.sampled_from([("pair", ""), ("entry", "entries"), ("key is", "keys are")]))
def test_only_one_is_singular(number: int, nouns: tuple[str, str]) -> None:
    one, many = nouns
    said, _, noun = counted(number, one, many).partition(" ")
    assert int(said.replace(",", "")) == number
    assert re.fullmatch(r"\d{1,3}(,\d{3})*", said)
    assert noun == (one if number == 1 else many or f"{one}s")


# -- options and commands ---------------------------------------------------------------------------------------------


def test_parameters_are_named_as_options_only_on_the_command_line() -> None:
    assert option("max_bucket") == "`max_bucket`"
    with spoken(command_line(ALL_OPTIONS, {})):
        assert option("max_bucket") == "--max-bucket"
        assert option("client") == "`client`"
        with spoken(None):
            assert option("max_bucket") == "`max_bucket`"
        assert option("max_bucket") == "--max-bucket"
    assert option("max_bucket") == "`max_bucket`"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "es-neardupe enrich news"),
        ({"prefix": "neardupe"}, "es-neardupe enrich news"),
        ({"prefix": "dup"}, "es-neardupe enrich news --prefix dup"),
        (GIVEN, "es-neardupe enrich news --url http://a:9200 --profile 'my own' --prefix dup"),
        ({"url": "https://me:secret@host:9200/x"}, "es-neardupe enrich news --url https://host:9200/x"),
    ],
)
def test_suggested_commands_contain_the_connection(values: dict[str, str], said: str) -> None:
    with spoken(command_line({name: f"--{name}" for name in GIVEN}, values)):
        assert command("enrich", "news") == said
        with connection_in_commands(False):
            assert command("enrich", "news") == "es-neardupe enrich news"
    assert command("enrich", "news") == "es-neardupe enrich news"


def test_a_prefix_of_its_own_counts() -> None:
    assert command("clean", "news", prefix="old") == "es-neardupe clean news --prefix old"
    with spoken(command_line({name: f"--{name}" for name in GIVEN}, {"prefix": "dup", "url": "http://a"})):
        assert command("clean", "news", prefix="old") == "es-neardupe clean news --url http://a --prefix old"


@given(NAMES, NAMES)
def test_a_suggested_command_can_be_pasted_whatever_the_names(index: str, profile: str) -> None:
    with spoken(command_line({"profile": "--profile"}, {"profile": profile})):
        assert shlex.split(command("enrich", index)) == ["es-neardupe", "enrich", index, "--profile", profile]


# -- nothing else changes ---------------------------------------------------------------------------------------------


@fixture_given
@given(NAMES)
def test_what_is_printed_is_what_was_said(capsys: pytest.CaptureFixture[str], text: str) -> None:
    for show in (say, warn, lambda said: fail(InputError(said))):
        capsys.readouterr()
        with spoken(command_line(ALL_OPTIONS, GIVEN)):
            show(text)
        assert capsys.readouterr().err.removeprefix("error: ") == f"{printable(text)}\n"


@given(NAMES, NAMES)
def test_an_error_contains_names_verbatim(index: str, group: str) -> None:
    with spoken(command_line(ALL_OPTIONS, GIVEN)), pytest.raises(NotFound) as raised:
        groups._check_found([], index, group, 2)
    suggested = f"es-neardupe groups {shlex.quote(index)} --url http://a:9200 --profile 'my own' --prefix dup"
    said = f"Index {index} has no group {group!r} of 2 or more documents: `{suggested}` lists the groups."
    assert str(raised.value) == str(NotFound(said, status=404))


# -- real messages with 1 and with 2 ----------------------------------------------------------------------------------


def _of_group(number: int, index: str) -> None:
    scope = SimpleNamespace(whole=True, unprocessed=number, stale=number, corrupt=number)
    pairs = SimpleNamespace(
        skipped=0, large_buckets=(), open=number, nearly=0, nearly_texts=0, matches=0, other_facts=0
    )
    writes = SimpleNamespace(mirrored=SimpleNamespace(left=number))
    report: Any = SimpleNamespace(
        index=index, scope=scope, pairs=pairs, writes=writes, decisions=SimpleNamespace(unsatisfied=number)
    )
    report.rules = SimpleNamespace(measure="resemblance", weights=None, min=0.8, match=MatchRules(), group=GroupRules())
    shared = SharedPassage(index, number, number)
    report.boilerplate = Boilerplate(number, number, number, (shared,), ())
    report.unprepared, report.unsuited = (
        None,
        UnsuitedTexts(too="short", words=49, unsuited=number, documents=number, threshold=0.8, preset="reader"),
    )
    report.common, report.detection = None, Detection(0.8, 1.0, (), keys_made_for=True)
    facts = SimpleNamespace(
        examined=number, differ=number, pairs=10, overlapping=0, negations=0, example="number: 5 / 6"
    )
    report.groups = SimpleNamespace(looked_at=SimpleNamespace(facts=facts))
    group._warn_of_groups(report)


def _of_contained(number: int, index: str) -> None:
    found: Any = SimpleNamespace(
        keys=5, keys_left_out=number, not_compared=number, unprocessed=number, unreadable=number, sample_mod=4
    )
    found.query, found.detection = {"state": "signed", "features": 9}, SimpleNamespace(probability=1.0, min=0.5)
    contained._warn(found, index)


def _of_moved(number: int, index: str) -> None:
    found: Any = SimpleNamespace(versions=1, best=None, detection=None, min=0.8, gone=number, earlier=number)
    found.less_similar = found.changed = found.not_compared = found.unprocessed = number
    moved._warn(index, found)


def _of_what_if(number: int, index: str) -> None:
    found: Any = SimpleNamespace(thresholds=(), index=index, unknown=number, unknown_documents=number)
    found.stale = found.corrupt = found.unprocessed = number
    what_if._warn(found)


def _of_buckets(number: int, index: str) -> None:
    messages.warn_of_buckets(number, [Bucket("k", 9, 0, number, documents=number, passage=index)] * number)


KINDS: tuple[Literal["conflict", "refused", "failed"], ...] = ("conflict", "refused", "failed")


def _of_writes(number: int, index: str) -> None:
    left = Failures(Failure(kind, index, "d", None, "") for kind in KINDS for _ in range(number))
    writes = WriteCounts(written=0, refusals=(index,), failures=(index,), left_documents=left)
    writes = replace(writes, conflicts=number, refused=number, failed=number)
    with pytest.raises(typer.Exit):
        fail_on_left(None, writes)


ONE: dict[Callable[[int, str], None], list[str]] = {
    _of_group: [
        "1 document is not enriched and is in no group: run `ENRICH`.",
        "1 document changed since it got its keys: run `ENRICH`.",
        "1 document has unreadable keys: run `ENRICH --all`.",
        "1 decision of reviewers that texts are the same could not be satisfied: other decisions, or the rules within "
        "and window, keep the texts apart.",
        "Groups may be split: linkage complete requires every pair, and 1 pair of linked texts was not compared, "
        "because there are too many of them. A higher --max-bucket compares more.",
        "1 of 1 document has fewer than 49 words: one changed word makes two such texts less than 0.8 similar, "
        "so these keys miss near-copies. `MIGRATE --preset reader` makes keys that suit them.",
        "Figures, names or negations differ in 1 of 1 group, such as 'number: 5 / 6'. If these make texts "
        "different, `GROUP --facts figures,names` keeps them apart.",
        "Of 1 cluster of five texts and more, 1 with 1 document is held together only by boilerplate: run "
        "`GROUP --ignore-common auto`.",
        "  1 document shares: 'INDEX'",
    ],
    _of_contained: [
        "1 key that too many documents share was skipped: raise --max-candidates.",
        "1 candidate with lower estimates was not compared: raise --max-candidates.",
        "1 document is not enriched and cannot be found: run `ENRICH`.",
        "1 candidate has sampled keys that cannot be read: run `ENRICH --all`.",
    ],
    _of_moved: [
        "1 copy of a notice, at other addresses of the list, is not shown.",
        "1 copy with an earlier date is not shown: add --earlier.",
        "1 document of its group is less than 0.8 similar to it: lower --min.",
        "1 document now has another text than the one that was compared.",
        "1 candidate with fewer shared keys was not compared: raise --max-candidates.",
        "1 document is not enriched and cannot be found: run `ENRICH`.",
    ],
    _of_what_if: [
        "1 document has unreadable keys: run `ENRICH --all`.",
        "1 document is not enriched and is in no group: run `ENRICH`.",
    ],
    _of_buckets: [
        "1 key is shared by more distinct texts than --max-bucket: 1 comparison was skipped.",
        "  1 document shares: 'INDEX' (1 comparison skipped, key k)",
    ],
    _of_writes: [
        "Documents left: 'd' of INDEX (conflict), 'd' of INDEX (refused), 'd' of INDEX (failed).",
        "1 document changed meanwhile: run the same command again.",
        "The server rejected: INDEX",
        "1 document was rejected by the server: correct it or the index, then run the same command again.",
        "Not written: INDEX.",
        "1 document was not written: resolve the reasons above, then run the same command again.",
    ],
}
TWO: dict[Callable[[int, str], None], list[str]] = {
    _of_group: [
        "2 documents are not enriched and are in no group: run `ENRICH`.",
        "2 documents changed since they got their keys: run `ENRICH`.",
        "2 documents have unreadable keys: run `ENRICH --all`.",
        "2 decisions of reviewers that texts are the same could not be satisfied: other decisions, or the rules within "
        "and window, keep the texts apart.",
        "Groups may be split: linkage complete requires every pair, and 2 pairs of linked texts were not compared, "
        "because there are too many of them. A higher --max-bucket compares more.",
        "2 of 2 documents have fewer than 49 words: one changed word makes two such texts less than 0.8 similar, "
        "so these keys miss near-copies. `MIGRATE --preset reader` makes keys that suit them.",
        "Figures, names or negations differ in 2 of 2 groups, such as 'number: 5 / 6'. If these make texts "
        "different, `GROUP --facts figures,names` keeps them apart.",
        "Of 2 clusters of five texts and more, 2 with 2 documents are held together only by boilerplate: run "
        "`GROUP --ignore-common auto`.",
        "  2 documents share: 'INDEX'",
    ],
    _of_contained: [
        "2 keys that too many documents share were skipped: raise --max-candidates.",
        "2 candidates with lower estimates were not compared: raise --max-candidates.",
        "2 documents are not enriched and cannot be found: run `ENRICH`.",
        "2 candidates have sampled keys that cannot be read: run `ENRICH --all`.",
    ],
    _of_moved: [
        "2 copies of a notice, at other addresses of the list, are not shown.",
        "2 copies with an earlier date are not shown: add --earlier.",
        "2 documents of its group are less than 0.8 similar to it: lower --min.",
        "2 documents now have another text than the one that was compared.",
        "2 candidates with fewer shared keys were not compared: raise --max-candidates.",
        "2 documents are not enriched and cannot be found: run `ENRICH`.",
    ],
    _of_what_if: [
        "2 documents have unreadable keys: run `ENRICH --all`.",
        "2 documents are not enriched and are in no group: run `ENRICH`.",
    ],
    _of_buckets: [
        "2 keys are shared by more distinct texts than --max-bucket: 2 comparisons were skipped.",
        "  2 documents share: 'INDEX' (2 comparisons skipped, key k)",
    ],
    _of_writes: [
        "Documents left: 'd' of INDEX (conflict), 'd' of INDEX (conflict), 'd' of INDEX (refused) and 3 more. "
        "All of them: --failures FILE.",
        "2 documents changed meanwhile: run the same command again.",
        "The server rejected: INDEX",
        "2 documents were rejected by the server: correct them or the index, then run the same command again.",
        "Not written: INDEX.",
        "2 documents were not written: resolve the reasons above, then run the same command again.",
    ],
}


def _of_index(message: str, index: str) -> str:
    def named(word: re.Match[str]) -> str:
        return index if word[0] == "INDEX" else f"es-neardupe {word[0].lower()} {shlex.quote(index)} --url http://a"

    return re.sub("INDEX|ENRICH|GROUP|MIGRATE", named, message)


@pytest.mark.parametrize("index", ["news", *HOSTILE])
@pytest.mark.parametrize("of", ONE)
def test_messages_agree_with_one_and_two(
    of: Callable[[int, str], None], index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, expected in ((1, ONE[of]), (2, TWO[of])):
        capsys.readouterr()
        with spoken(command_line(ALL_OPTIONS, {"url": "http://a"})):
            of(number, index)
        assert capsys.readouterr().err.splitlines() == [_of_index(one, index) for one in expected]


@pytest.mark.parametrize(
    ("mask", "preset", "said"),
    [
        ("url", "short", "links, which hide near-copies. `es-neardupe migrate news --preset short --mask url` makes"),
        ("url", None, "links, which hide near-copies. `es-neardupe migrate news --mask url` makes"),
        (
            "time,digits",
            None,
            "times and numbers, which hide near-copies. `es-neardupe migrate news --mask time,digits`",
        ),
    ],
)
def test_masks_are_named_with_the_preset_for_short_texts(
    mask: str, preset: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One migration is enough: without their links, short texts are shorter still."""
    found = UnpreparedTexts(kind="texts full of links", found=9, documents=9, mask=mask)
    unsuited = UnsuitedTexts(too="short", words=49, unsuited=9, documents=9, threshold=0.8, preset=preset)
    messages.warn_of_texts("news", found, unsuited)
    assert said in capsys.readouterr().err
