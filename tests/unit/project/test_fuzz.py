"""Whatever is read: only our own errors come out of it. More examples with ``-m long``."""

from __future__ import annotations

import contextlib
import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from unit_tools import JSON, SETTINGS

from es_neardupe.candidates.who_may_meet import parse_policy, parse_window
from es_neardupe.cli.commands.search import _read
from es_neardupe.commands.moved import documents
from es_neardupe.commands.watch import parse_duration
from es_neardupe.errors import NeardupeError
from es_neardupe.groups import registry
from es_neardupe.index.document_text import readable_text
from es_neardupe.index.hidden_indices import StoredDocument
from es_neardupe.index.runs import lease
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import decode, decode_samples, decode_signature
from es_neardupe.index.target import check_name
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme
from es_neardupe.options import list_of, parse_fraction, parse_query, parse_since
from es_neardupe.records import Hit
from es_neardupe.server.client import path
from es_neardupe.server.drivers.driver import identity, parsed
from es_neardupe.server.login.resolve import resolve_settings
from es_neardupe.server.login.settings import authorization
from es_neardupe.server.responses import Answer, check_complete, refusal
from es_neardupe.similarity.features import parse_all
from es_neardupe.similarity.formulas import Weights
from es_neardupe.verification import common_shingles, feature_weights
from es_neardupe.verification.evidence import read_entries

ODD = st.one_of(
    JSON,
    st.sampled_from([10**400, -(10**400), 2**63, float("inf"), "\x1b[31m\u202e", "\ud800", "x" * 5000, "9" * 5000]),
)
GRAMMAR = st.text(st.sampled_from(list(string.ascii_letters + string.digits + ':=,.()[]{}"@+-_ \x00\x1b\u202e\ud800٣')))
short = settings(max_examples=60, suppress_health_check=list(HealthCheck))
long = settings(max_examples=20_000, suppress_health_check=list(HealthCheck))


def tried(read: Callable[..., Any], *given: Any) -> Any:
    """What comes of reading; None where one of our errors does."""
    try:
        return read(*given)
    except (NeardupeError, typer.BadParameter):
        return None


OPTIONS: list[Callable[[str], Any]] = [
    parse_query,
    parse_since,
    parse_window,
    parse_policy,
    parse_duration,
    parse_fraction,
    list_of(int, "numbers"),
    list_of(float, "numbers"),
    lambda text: parse_all([text]),
    check_name,
    lambda text: path("index", text),
    lambda text: resolve_settings(url=text, environ={}),
    lambda text: resolve_settings(environ={"ES_NEARDUPE_URL": text, "ES_NEARDUPE_TIMEOUT": text}),
    lambda text: authorization(
        resolve_settings(
            url="http://a",
            environ={"ES_NEARDUPE_USERNAME": text, "ES_NEARDUPE_PASSWORD": text, "ES_NEARDUPE_URL": "http://a"},
        )
    ),
    parsed,
    identity,
]


def check_options(text: str) -> None:
    for read in OPTIONS:
        tried(read, text)


HARD = [
    "[" * 100_000,
    '{"a":' * 20_000,
    "9" * 5000,
    "1e999",
    "nan",
    "inf",
    "@\x00",
    "@/",
    "http://[::1",
    "http://\ud800:1/",
]


@given(GRAMMAR | st.text() | st.sampled_from(HARD))
@example("http://a@b:c@d:99999/")
@short
def test_options(text: str) -> None:
    check_options(text)


@pytest.mark.long
@given(GRAMMAR | st.text() | st.sampled_from(HARD))
@long
def test_options_long(text: str) -> None:
    check_options(text)


ENTRY = dict.fromkeys([*registry._PLAIN, "kind", "principal", "settings", "history", "value"])
HOLDER = {"host": "h", "machine": lease._machine(), "pid": 1, "token": "t"}
LEASE = {"holder": HOLDER, "command": "group", "taken": "2024-05-01", "seconds": 60, "renewals": 1}
KEPT = {"content_a": "0" * 32, "content_b": "1" * 32, "scheme": "s", "measure": "m", "value": 0.5, "min": 0.5, "max": 1}
PAIR = {**KEPT, "a": {"index": "i", "id": "d"}, "b": {"index": "i", "id": "e"}, "at": "2024"}
COMMON = {"version": "", "share": 0.5, "documents": 100, "at": "", "hashes": ["00"]}


def spoiled(good: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The same with some parts replaced by anything, or left out; down to the parts of parts."""
    parts = {name: ODD | (spoiled(one) if isinstance(one, dict) else st.just(one)) for name, one in good.items()}
    return st.fixed_dictionaries({}, optional=parts)


STORED = {
    "entry": (spoiled(ENTRY), lambda one: registry._entry("A" * 16, one)),
    "lease": (
        spoiled({"value": LEASE}),
        lambda one: (
            (held := lease._decode_document(StoredDocument(one, 1, 1))) and held.is_free and held.description("i")
        ),
    ),
    "evidence": (spoiled(KEPT), lambda one: read_entries([[Hit("i", "0" * 32, None, 1, 1, one)]], "s", "m")),
    "deleted": (spoiled(PAIR), lambda one: documents._side_of(one, "d")),
    "common": (spoiled(COMMON), common_shingles._decoded),
    "fingerprint": (spoiled(dict.fromkeys(SETTINGS.to_meta())), decode),
    "samples": (
        spoiled({"samples": [], "signature": ""}),
        lambda one: (decode_samples(one), decode_signature(one)),
    ),
    "meta": (spoiled(SETTINGS.to_meta()), lambda one: Settings.from_meta(one, "neardupe")),
    "answer": (
        spoiled({"timed_out": False, "_shards": {"failed": 1, "failures": []}, "responses": []}),
        lambda one: check_complete(one, "GET /"),
    ),
    "refusal": (
        spoiled({"error": {"type": "t", "reason": "r", "root_cause": [], "failed_shards": []}}),
        lambda one: str(refusal(Answer(400, {}, one), "GET /")),
    ),
}


def check_stored(name: str, data: st.DataObject) -> None:
    strategy, read = STORED[name]
    tried(read, data.draw(strategy | ODD.filter(lambda one: isinstance(one, dict))))


@pytest.mark.parametrize("name", STORED)
@given(data=st.data())
@short
def test_stored(name: str, data: st.DataObject) -> None:
    """What our hidden indices, our fields and the server's answers may hold."""
    check_stored(name, data)


@pytest.mark.long
@pytest.mark.parametrize("name", STORED)
@given(data=st.data())
@long
def test_stored_long(name: str, data: st.DataObject) -> None:
    check_stored(name, data)


PROFILES = [
    '[default]\nurl = "http://a"\n',
    "a = " + "[" * 5000,
    "[default]\ntimeout = inf\nurl = 'http://a'",
    "a = " + "9" * 5000,
]
PROFILES += [
    "[default]\ntimeout = 1e9\nurl = 'http://a'",
    '[default]\nurl = "\x00"',
    "[default]\ninsecure = 1",
    "default = 1",
]


@given(st.sampled_from(PROFILES) | GRAMMAR | st.binary().map(lambda octets: octets.decode("latin-1")))
@short
@pytest.mark.filterwarnings("ignore::es_neardupe.server.login.settings.ConnectionWarning")
def test_profiles(tmp_path: Path, text: str) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(text, "utf-8", "surrogatepass")
    tried(lambda: resolve_settings(environ={}, profiles_file=file))
    tried(lambda: resolve_settings(environ={}, profiles_file=file, profile="other"))


@given(st.binary(max_size=200), st.integers(0, 2000), st.booleans())
@short
def test_files_of_ours(tmp_path: Path, octets: bytes, place: int, cut: bool) -> None:
    """The cache of frequencies, torn or written over, is one that is not there; never code that is run."""
    file = tmp_path / "cache.npz"
    weights = Weights(3, np.array([1, 5], np.uint64), np.array([1, 2], np.int64))
    feature_weights._write(file, feature_weights.Frequencies(weights, "2024-05-01T00:00:00Z"))
    whole = file.read_bytes()
    file.write_bytes(whole[:place] + octets + (b"" if cut else whole[place + len(octets) :]))
    found = feature_weights._read(file)
    assert found is None or found.weights.documents >= 1


@given(st.text(max_size=400))
@short
def test_files_of_queries(tmp_path: Path, text: str) -> None:
    file = tmp_path / "query.json"
    file.write_text(text, "utf-8", "surrogatepass")
    tried(_read, str(file))
    tried(parse_query, f"@{file}")


@pytest.mark.parametrize(
    "name", ["threshold", "detection", "shingle", "permutations", "bands", "rows", "seed", "sample_mod"]
)
@pytest.mark.parametrize("value", [10**9, 10**30, 10**400, -1, 0])
def test_forged_settings_take_no_memory(name: str, value: int) -> None:
    """An index that claims impossible settings: refused, or as cheap as any other."""
    meta = SETTINGS.to_meta()
    part = meta if name in meta else meta["scheme"]
    part[name] = value
    with contextlib.suppress(NeardupeError):
        meta["id"] = Scheme.from_dict(meta["scheme"]).id
    found = tried(Settings.from_meta, meta, "neardupe")
    if found is not None:
        (one,) = fingerprints(["a few words that are less than such a shingle has " * 3], found.scheme)
        assert len(one.bands) == found.scheme.bands


def test_answers_that_are_nested_deeply() -> None:
    """Servers take a thousand levels, more than Python follows; a text of so many is none that could have keys."""
    text = "[" * 995 + '"words"' + "]" * 995
    found = parsed(json.dumps({"_source": {"text": 0}}).replace("0", text))
    assert readable_text(found["_source"], ["text"]) is None
    assert isinstance(parsed("[" * 5000), str)
