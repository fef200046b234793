"""`shingles`: each step from a text to its keys is that of the scheme, and the stored keys are compared with it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from bad_input import refused
from conftest import Cli
from scheme_oracle import oracle, oracle_tokens
from server_tools import change, hits, make_index, put
from shingle_steps import check_steps

from es_neardupe import Address, NearDupe, Settings
from es_neardupe.errors import InputError, NotFound, SettingsError
from es_neardupe.keys.scheme import Scheme
from es_neardupe.server.client import Client

pytestmark = pytest.mark.either("filled")

TEXT = "The quick brown fox jumps over the lazy dog."
SCHEME = Scheme.for_threshold(0.8)


# The command with a file


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "fox.txt").write_text(TEXT)
    return str(tmp_path / "fox.txt")


def test_tables_show_the_first_rows_and_count_the_rest(cli: Cli, file: str) -> None:
    run = cli("shingles", file, "--top", "2", "--sample-mod", "1")
    assert (run.code, run.err) == (0, "")
    key, other, hidden, *_ = oracle(TEXT, Scheme.for_threshold(0.8)).bands
    for said in (
        "9 tokens, 5 shingles, 5 different",
        "the quick brown fox jumps",
        "0719d7557b391d60",
        key,
        other,
        "7 more",
        "126 more",
        "14 more",
        "divisible by 1",
        "3 more",
    ):
        assert said in run.out, said
    assert "fox jumps over the lazy" not in run.out.partition("Signature")[0]
    assert hidden not in run.out
    assert " more: " not in cli("shingles", file, "--top", "128").out


def test_a_file_as_json(cli: Cli, file: str) -> None:
    """JSON has all elements, by the scheme of the options; the defaults are those of init."""
    run = cli("shingles", file, "--json", "--top", "1")
    assert (run.code, run.err) == (0, "")
    assert (run.json["scheme"], run.json["name"]) == (Settings(("text",)).scheme.id, file)
    assert [one["text"] for one in run.json["tokens"]] == oracle_tokens(TEXT)
    assert [one["key"] for one in run.json["bands"]] == list(oracle(TEXT, SCHEME).bands)
    assert (len(run.json["shingles"]), len(run.json["slots"]), run.json["samples"]) == (5, 128, None)
    options = ("--shingle", "3", "--bands", "4", "--rows", "5", "--permutations", "20", "--sample-mod", "2")
    other = Scheme(shingle=3, permutations=20, bands=4, rows=5, sample_mod=2)
    found = cli("shingles", file, *options, "--json").json
    assert found["scheme"] == other.id
    assert [one["key"] for one in found["bands"]] == list(oracle(TEXT, other).bands)
    assert [one["key"] for one in found["samples"]] == list(oracle(TEXT, other).samples or ())
    assert cli("shingles", file, "--preset", "supershingles", "--json").json["settings"]["agree"] == 2
    low = cli("shingles", file, "--threshold", "0.5", "--detection", "0.9", "--json").json
    assert low["scheme"] == Scheme.for_threshold(0.5, 0.9).id


def test_texts_without_keys_and_of_one_word(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("…")
    (tmp_path / "b").write_text("One")
    assert "A text without tokens has no keys." in cli("shingles", str(tmp_path / "a")).out
    assert "State short: 1 token, 1 shingle, 1 different" in cli("shingles", str(tmp_path / "b")).out


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["nothing.txt"], "File 'nothing.txt' does not exist. One argument is a file; for a document, give INDEX", 1),
        (["a", "b", "c"], "1 or 2 words, not 3", 2),
        (["news", "1", "--shingle", "3"], "--shingle is for a file", 2),
        (["news", "1", "--sample-mod", "3"], "--sample-mod is for a file", 2),
        (["nothing.txt", "--bands", "3"], "bands and rows belong together", 2),
    ],
)
def test_wrong_arguments(cli: Cli, arguments: list[str], message: str, code: int) -> None:
    refused(cli("shingles", *arguments), message, code=code)


# Documents of an index


@pytest.fixture(params=["inline", "sidecar"])
def filled(client: Client, index_name: str, request: pytest.FixtureRequest) -> str:
    """Four documents with keys."""
    make_index(client, index_name, {"title": {"type": "text"}, "body": {"type": "text"}, "n": {"type": "keyword"}})
    sources = {
        "fox": {"title": "Fox", "body": TEXT},
        "short": {"body": "two words"},
        "empty": {"title": "…"},
        "digits": {"body": "1 2 3 4 5 6"},
    }
    put(client, index_name, sources)
    news = NearDupe(index_name, client)
    news.init(Settings(("title", "body"), shingle=3, sample_mod=2), sidecar=request.param == "sidecar")
    news.enrich()
    return index_name


@pytest.mark.product("each")
def test_stored_keys_are_those_of_the_text(filled: str, client: Client, server_cli: Cli) -> None:
    scheme = Settings(("title", "body"), shingle=3, sample_mod=2).scheme
    texts = {"fox": f"Fox\n{TEXT}", "short": "two words", "empty": "…", "digits": "1 2 3 4 5 6"}
    for id, text in texts.items():
        report = NearDupe(filled, client).shingles(id)
        check_steps(report, text, scheme)
        assert (report.index, report.name) == (filled, id)
        assert report.stored is not None
        assert (report.stored.equal, report.stored.differing, report.stored.scheme) == (True, (), scheme.id)
        run = server_cli("shingles", filled, id)
        assert (run.code, run.err) == (0, "")
        assert run.out.endswith("The stored keys are equal to these.\n")
    assert server_cli("shingles", filled, "fox", "--json").json["stored"] == {
        "scheme": scheme.id,
        "equal": True,
        "differing": [],
    }


def test_a_changed_text(filled: str, client: Client, server_cli: Cli) -> None:
    """The report shows the keys of the current text, and how to store them."""
    change(client, filled, "fox", {"body": f"{TEXT} It sleeps."})
    report = NearDupe(filled, client).shingles("fox")
    assert [one.text for one in report.tokens][-2:] == ["it", "sleeps"]
    assert report.stored is not None
    assert not report.stored.equal
    assert {"content", "signature", "tokens", "features"} <= set(report.stored.differing)
    assert not {"scheme", "state", "numeric"} & set(report.stored.differing)
    run = server_cli("shingles", filled, "fox")
    assert run.code == 0
    assert "The stored keys are not those of the current text" in run.err
    assert f"es-neardupe enrich {filled} --check" in run.err
    NearDupe(filled, client).enrich(check=True)
    assert server_cli("shingles", filled, "fox").err == ""


def test_documents_without_keys(filled: str, client: Client, server_cli: Cli) -> None:
    put(client, filled, {"new": {"body": TEXT}})
    run = server_cli("shingles", filled, "new", "--json").json
    assert (run["stored"]["scheme"], run["stored"]["equal"]) == (None, False)
    assert {"bands", "content", "signature"} <= set(run["stored"]["differing"])
    shown = server_cli("shingles", filled, "new")
    assert f"has no keys, or changed since it got them: run `es-neardupe enrich {filled}`." in shown.err
    NearDupe(filled, client).enrich()
    assert server_cli("shingles", filled, "new", "--json").json["stored"]["equal"]


def test_a_text_that_is_not_valid_unicode(filled: str, client: Client) -> None:
    news = NearDupe(filled, client)
    id = hits(client, filled)[0]["_id"]
    for call in (news.shingles, news.similar, partial(news.compare, id)):
        with pytest.raises(InputError, match="`text` contains half of a surrogate pair"):
            call(text="a \ud800 b")


def test_a_document_by_its_address(filled: str, client: Client) -> None:
    news = NearDupe(filled, client)
    id = hits(client, filled)[0]["_id"]
    assert news.shingles(Address(filled, id)) == news.shingles(id)
    assert news.shingles(Address(filled, id)).name == id


def test_any_text_by_the_scheme_of_an_index(filled: str, client: Client) -> None:
    scheme = Settings(("title", "body"), shingle=3, sample_mod=2).scheme
    report = NearDupe(filled, client).shingles(text=TEXT)
    check_steps(report, TEXT, scheme)
    assert (report.index, report.stored) == (None, None)
    for id, other in ((None, None), ("fox", TEXT)):
        with pytest.raises(SettingsError, match="Give either the id of a document or a text"):
            NearDupe(filled, client).shingles(id, text=other)
    with pytest.raises(NotFound):
        NearDupe(filled, client).shingles("nobody")


def test_forged_keys(client: Client, index_name: str, server_cli: Cli) -> None:
    """Keys that another client wrote are named, even if the content hash is right."""
    make_index(client, index_name)
    put(client, index_name, {"a": {"text": TEXT}})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    change(client, index_name, "a", {"neardupe": {"bands": ["Aforged0"]}})
    report = NearDupe(index_name, client).shingles("a")
    assert report.stored is not None
    assert (report.stored.equal, report.stored.differing) == (False, ("bands",))
    run = server_cli("shingles", index_name, "a")
    assert f"(bands differ): run `es-neardupe enrich {index_name} --all`" in run.err
    NearDupe(index_name, client).enrich(all=True)
    assert server_cli("shingles", index_name, "a").err == ""


def test_a_field_that_holds_no_text(client: Client, index_name: str) -> None:
    make_index(client, index_name, {"part": {"type": "object", "enabled": False}, "text": {"type": "text"}})
    NearDupe(index_name, client).init(Settings(("text",)))
    meta = Settings(("part",)).to_meta()
    client.request("PUT", f"/{index_name}/_mapping", body={"_meta": {"neardupe": meta}})
    put(client, index_name, {"a": {"part": {"b": 1}}})
    with pytest.raises(InputError, match=r"Document 'a' of index .* cannot get keys: .*object"):
        NearDupe(index_name, client).shingles("a")
