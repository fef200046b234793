"""The script of a pipeline, as far as no server is needed: its size, its constants, its table of code points."""

from __future__ import annotations

import json
import unicodedata
from importlib.resources import files

import pytest
from scheme_oracle import unicode_mapping, unicode_table

from es_neardupe.errors import SettingsError
from es_neardupe.index.on_server import painless
from es_neardupe.index.on_server.painless import MAX_SCRIPT, fingerprint_script
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit


@pytest.mark.parametrize(
    "scheme",
    [
        Scheme(bands=16, rows=6),
        Scheme(bands=128, rows=2, permutations=256, sample_mod=3, unit=Unit.CHARACTER),
        Scheme(bands=64, rows=3, permutations=192, shingle=7, unit=Unit.SHAPE),
        Scheme(bands=3, rows=3, permutations=9, shingle=1_000_000, seed=2**64 - 1),
    ],
)
def test_every_placeholder_is_filled_and_servers_accept_the_size(scheme: Scheme) -> None:
    made = fingerprint_script(scheme, ["title", "body"], prefix="mine", group_field="mine_group")
    assert "$" not in made.source
    assert len(made.source.encode()) <= MAX_SCRIPT
    assert made.params["fields"] == ["title", "body"]
    assert made.params["group_field"] == "mine_group"
    assert json.loads(json.dumps(made.params)) == made.params


def test_a_script_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painless, "MAX_SCRIPT", 20_000)
    with pytest.raises(SettingsError, match="servers accept 20,000"):
        fingerprint_script(Scheme(bands=16, rows=6), ["text"])


def test_the_table_has_the_mapping_and_the_flags_of_each_code_point() -> None:
    params = fingerprint_script(Scheme(bands=16, rows=6), ["text"]).params
    data = json.loads((files("es_neardupe.keys") / "unicode_v1.json").read_text("ascii"))
    second = {chr(p) for first, last in data["second"] for p in range(first, last + 1)}
    mapping, table = unicode_mapping(), unicode_table()
    pool = params["pool"].encode("utf-16-le")
    for point in range(128, 0x110000):
        entry = ord(params["entries"][((ord(params["pages"][point >> 7]) - 32) << 7) | (point & 127)])
        target = mapping.get(chr(point))
        if entry < 96:
            assert target == (chr(point) if entry > 32 else None)
            names = [name for name in ("word", "single", "mark", "digit") if chr(point) in table[name]]
            flags = sum({"word": 1, "single": 2, "mark": 4, "digit": 8}[name] for name in names)
            dotted = chr(point) in "\u012f\u1e2d\u1ecb" or unicodedata.combining(chr(point)) not in (0, 230)
            assert entry == 32 + flags + 16 * (chr(point) in second) + 32 * (dotted and target is not None)
        else:
            place = 2 * (entry - 96)
            size = int.from_bytes(pool[place : place + 2], "little") - 32
            composes = size >= 128
            text = pool[place + 2 : place + 2 + 2 * (size % 128)].decode("utf-16-le")
            assert target is not None
            assert text == "".join(mapping.get(one, " ") for one in target)
            assert "\u0307" not in text  # which the script could not remove after an i
            assert composes >= any(one in table["mark"] or one in second for one in text)
