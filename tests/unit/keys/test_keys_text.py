"""Tokens, and the frozen Unicode table against Unicode itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.keys import text as text_module
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import normalize, spans, tokenize
from es_neardupe.keys.unicode import DIGIT, EXPANDS, MARK, SINGLE, TARGET, WORD, table
from es_neardupe.keys.unit import Unit

FROZEN = json.loads((files("es_neardupe.keys") / "unicode_v1.json").read_text("ascii"))
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
ASSIGNED = [point for first, last in FROZEN["assigned"] for point in range(first, last + 1)]


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_tokens_are_those_of_a_regular_expression(text: str) -> None:
    assert tokenize(text) == re.findall(r"\w+", text.lower())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, WORLD_2!", ["hello", "world_2"]),
        ("don't", ["don", "t"]),
        ("İstanbul istanbul ISTANBUL ıstanbul I\u0307stanbul", ["istanbul"] * 5),
        (
            "i\u0307\u0323 i\u0323\u0307 \u1ecb\u0307 \u1e2d\u0307\u0323\u0307 I\u00ad\u0307\u0307",
            ["ị", "ị", "ị", "ḭ\u0323", "i"],
        ),
        ("i\u0307\u0301 í\u0307 i\u0301\u0307", ["í", "í\u0307", "í\u0307"]),  # another mark above keeps the dot
        ("ė E\u0307 Ż ċ ı\u0323\u0307 i \u0307 \u0307 ï\u0307", ["ė", "ė", "ż", "ċ", "ị", "i", "ï\u0307"]),
        ("ﬁ\u0307 Ⅱ\u0307 𝚤\u0307 і\u0307", ["fi", "ii", "i", "і\u0307"]),  # the last is Cyrillic
        ("ΣΊΣΥΦΟΣ Σίσυφος", ["σίσυφοσ", "σίσυφοσ"]),
        ("Cafe\u0301 Café", ["café", "café"]),
        ("Straße STRASSE STRAẞE", ["strasse"] * 3),
        ("नमस्ते", ["नमस्ते"]),
        ("x東y", ["x", "東", "y"]),
        ("東\u0301x", ["東\u0301", "x"]),
        ("タワー ﾀﾜｰ", ["タ", "ワ", "ー"] * 2),
        ("ｶﾞ カ\u3099 ガ", ["ガ"] * 3),
        ("น้ำ", ["น", "้", "\u0e4d", "า"]),
        ("\u1112\u1161\u11ab 한", ["한", "한"]),
        ("Ｆｕｌｌ　１２", ["full", "12"]),
        ("so\u00adft zero\u200bwidth", ["soft", "zerowidth"]),
        ("½ ﬁn", ["1", "2", "fin"]),
        ("كِتَابٌ كتـــاب", ["كتاب", "كتاب"]),
        ("שָׁלוֹם", ["שלום"]),
        ("a\0b\ud800c", ["a", "b", "c"]),
        ("\u212a\u2126Ⱥ", ["kωⱥ"]),
        ("x\u0378y \U0003fffd", ["x", "y"]),  # unassigned
        ("x\u0870y", ["x", "y"]),  # a letter of Unicode 14
        ("foo™ ℹ️ ❤️ 👍🏽 *️⃣", ["foo"]),
        ("\u0301a =\u0338 ´b", ["a", "b"]),  # marks without a base
        ("", []),
        (" .\n", []),
    ],
)
def test_examples(inner_loops: None, text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "text",
    [
        "Hội đồng thành phố đã phê duyệt ngân sách cho con đường mới qua sông",
        "시의회는 새 도로 예산을 승인했다",
        "Şehir meclisi yeni yolun bütçesini onayladı",
        "ŞEHİR MECLİSİ YENİ YOLUN BÜTÇESİNİ ONAYLADI",
        "L’été dernier, le conseil a débattu du château",
        "Die Straße über München ist größer",
        "وافقت المدينة على ميزانية الطريق الجديد وناقشت إصلاح المدرسة",
        "パーティーでバイオリンをがんばる",
        "ऩगर क़लम ज़रूरी",
        "ΰ Ὀδυσσεύς ᾳ",
    ],
)
def test_copies_in_another_normal_form_have_the_same_tokens(inner_loops: None, text: str, form: Form) -> None:
    assert normalize([unicodedata.normalize(form, text)]) == normalize([text])


@given(st.text(st.sampled_from([chr(point) for point in ASSIGNED])))
def test_canonically_equivalent_texts_have_the_same_tokens(text: str) -> None:
    """But for U+0345 out of order: NFKC_Casefold makes it a letter, which nothing can be reordered across."""
    text = text.replace("\u0345", "")
    decomposed = unicodedata.normalize("NFD", text).replace("\u0345", "")
    assert normalize([decomposed]) == normalize([unicodedata.normalize("NFC", decomposed)])


@given(st.text(st.sampled_from("iIİıįịḭía \u0301\u0307\u0323\u0330\u0328\u00ad\U0001d165")))
def test_dots_of_i_in_canonically_equivalent_texts(text: str) -> None:
    tokens = tokenize(text)
    for form in ("NFC", "NFD"):
        assert tokenize(unicodedata.normalize(form, text)) == tokens
    assert not re.search("[iįịḭ][\u0323\u0330\u0328\U0001d165]*\u0307", " ".join(tokens))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The near-\nduplicate re-\nport", "the near-duplicate report"),
        ("an other word", "another word"),
        ("시의회는 새 도로 예산을 승인했다", "시의회는새도로 예산을승인했다"),
        ("میخواهم کتابخانه‌ها را ببینم", "می خواهم کتاب خانه ها را ببینم"),
        ("東京 都 is Tokyo", "東京都isTokyo"),
    ],
)
def test_spaces_are_no_characters(inner_loops: None, one: str, other: str) -> None:
    """Of words that a line end or a scanner divides, and of scripts that writers space as they like."""
    found, expected = features([one, other], 9, Unit.CHARACTER)
    assert found.tolist() == expected.tolist()


def test_places_of_characters_are_those_of_their_words() -> None:
    source = "It's ½ né\u0323w"
    words = [source[start:end] for start, end in spans(source, Unit.CHARACTER).tolist()]
    assert words == ["It", "It", "s", "½", "½", "né\u0323w", "né\u0323w", "né\u0323w", "né\u0323w"]


def test_one_decomposed_text_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[str] = []

    def normalized(form: Form, text: str) -> str:
        composed.append(text)
        return unicodedata.normalize(form, text)

    monkeypatch.setattr(text_module, "unicodedata", SimpleNamespace(normalize=normalized))
    made = normalize(["Café", "Cafe\u0323\u0308\u0301", "plain", "Việt"])
    assert (len(composed), [one.decode() for one in made]) == (1, ["café", "cafẹ\u0308\u0301", "plain", "việt"])


def test_spans_stand_in_the_original() -> None:
    source = "İ, ẞx 東京! Cafe\u0301 ½ so\u00adft كِتَابٌ ﬁn e\u0323\u0301x YENI\u0307 i\u0307\u0323\u0307."
    assert [source[start:end] for start, end in spans(source).tolist()] == [
        *["İ", "ẞx", "東", "京", "Cafe\u0301", "½", "½", "so\u00adft", "كِتَابٌ", "ﬁn", "e\u0323\u0301x"],
        *["YENI\u0307", "i\u0307\u0323\u0307"],
    ]
    assert spans("").shape == (0, 2)


def test_the_table_is_nfkc_casefold() -> None:
    """Of all characters that the running Python knows from Unicode 13.0, with the exceptions that the module names."""
    entries, pool = table().entries, table().pool
    known = set(ASSIGNED)
    removed = {point for first, last in FROZEN["removed"] for point in range(first, last + 1)}
    for point in range(0x110000):
        entry = int(entries[point])
        place = entry & TARGET
        mapped = pool[place + 1 : place + 1 + pool[place]].tolist() if entry & EXPANDS else [place]
        if point not in known:
            assert entry == 0x20, hex(point)
        elif point in removed:
            assert not mapped, hex(point)
        elif mapped != [0x20]:
            whole = unicodedata.normalize("NFKC", chr(point))
            folded = unicodedata.normalize("NFKC", whole.casefold())
            expected = "".join(
                one for one in unicodedata.normalize("NFKC", folded.casefold()) if ord(one) not in removed
            )
            expected = expected.replace("i\u0307", "i").replace("ı", "i")
            assert "".join(map(chr, mapped)) == unicodedata.normalize("NFC", expected), hex(point)
            assert any(entries[one] & WORD for one in mapped), hex(point)
        else:
            text = unicodedata.normalize("NFKC", chr(point))
            letters = any(one == "_" or unicodedata.category(one)[0] in "LN" for one in text)
            assert not letters or unicodedata.category(chr(point))[0] in "SL", hex(point)


def test_mapped_characters_are_mapped_to_themselves() -> None:
    entries, pool = table().entries, table().pool
    words = np.flatnonzero(entries & WORD)
    for point in {*(entries[words] & TARGET).tolist(), *(one for one in pool.tolist() if entries[one] & WORD)}:
        assert int(entries[point]) & (TARGET | EXPANDS) == point, hex(point)


def test_pairs_are_canonically_equivalent_to_their_result() -> None:
    pairs = table().pairs.tolist()
    assert pairs == sorted(set(pairs))
    for pair in pairs:
        first, second, result = chr(pair >> 43), chr(pair >> 22 & 0x1FFFFF), chr(pair & TARGET)
        assert unicodedata.normalize("NFC", first + second) == result


def test_digits_and_marks_are_those_of_unicode() -> None:
    entries = table().entries
    for point in [point for first, last in FROZEN["word"] for point in range(first, last + 1)]:
        assert bool(entries[point] & DIGIT) == chr(point).isdecimal(), hex(point)
        assert bool(entries[point] & MARK) == (unicodedata.category(chr(point))[0] == "M"), hex(point)


def test_single_characters_are_word_characters_of_spaceless_scripts() -> None:
    entries = table().entries
    single = np.flatnonzero(entries & SINGLE)
    assert (entries[single] & WORD).all()
    single = single[(entries[single] & TARGET) == single]
    scripts = "CJK IDEOGRAPHIC HIRAGANA KATAKANA HALFWIDTH THAI LAO KHMER MYANMAR HANGZHOU HENTAIGANA KATAKANA-HIRAGANA"
    known = {
        *scripts.split(),
        "VERTICAL",
        "MASU",
        "COMBINING",
        "OLD",
        "VIETNAMESE",
        "KANGXI",
        "PARENTHESIZED",
        "CIRCLED",
    }
    names = {unicodedata.name(chr(p), "CJK").split()[0].split("-")[0] for p in single.tolist()}
    assert names <= known
    for character in "東々〇あゝアヽーｱㇰไ๑ກກົက្ကꩡꧠ":
        assert entries[ord(character)] & SINGLE, character
    for character in "aéЖא한ㄅ꒐ཀ・、〮":
        assert not entries[ord(character)] & SINGLE, character


OTHER_PYTHONS = """
import hashlib, importlib.util, json, random, sys
from types import ModuleType
for name in ("numpy", "es_neardupe", "es_neardupe.keys", "es_neardupe.keys.arrays"):  # which `build` does not need
    sys.modules[name] = ModuleType(name)
    for array in ("U32", "U64", "Octets"):
        setattr(sys.modules[name], array, list)
spec = importlib.util.spec_from_file_location("unicode", sys.argv[1])
unicode = importlib.util.module_from_spec(spec)
spec.loader.exec_module(unicode)
import unicodedata
frozen = json.load(open(sys.argv[2]))
mapping = {chr(p): chr(p) for a, b in frozen["word"] for p in range(a, b + 1)}
for a, b, step, delta in frozen["mapped"]:
    mapping.update({chr(p): chr(p + delta) for p in range(a, b + 1, step)})
mapping.update({chr(p): target for p, target in frozen["expanded"]})
mapping.update({chr(p): "" for a, b in frozen["removed"] for p in range(a, b + 1)})
chance, points = random.Random(13), [p for a, b in frozen["assigned"] for p in range(a, b + 1)]
digest = hashlib.sha256()
for _ in range(int(sys.argv[3])):
    text = "".join(chr(chance.choice(points)) for _ in range(chance.randrange(20)))
    mapped = "".join(mapping.get(one, " ") for one in text)
    digest.update(unicodedata.normalize("NFC", mapped).encode() + b"|")
print(json.dumps([unicode.build(frozen["assigned"]) == frozen, digest.hexdigest()]))
"""


def pythons() -> list[str]:
    """Every Python 3.10 or newer on this machine, one of each version of Unicode."""
    folders = [Path(one) for one in os.environ.get("PATH", "").split(os.pathsep)]
    versions = [Path(sys.executable).resolve().parents[2], Path.home() / ".pyenv" / "versions"]
    places = [*folders, *(one / "bin" for root in versions if root.is_dir() for one in root.iterdir())]
    names = [f"python3.{minor}" for minor in range(10, 20)]
    found = {shutil.which(name, path=str(place)) for place in places for name in names}
    real = {str(Path(one).resolve()) for one in (*found, sys.executable) if one}
    asked = {
        one: subprocess.run(
            [one, "-c", "import unicodedata; print(unicodedata.unidata_version)"],
            capture_output=True,
            text=True,
            check=False,
        )
        for one in sorted(real)
    }
    return list({done.stdout: one for one, done in asked.items() if done.returncode == 0}.values())


@pytest.mark.parametrize("texts", [5_000, pytest.param(60_000, marks=pytest.mark.long)])
def test_every_python_builds_the_same_table_and_composes_alike(texts: int, tmp_path: Path) -> None:
    script = tmp_path / "other.py"
    script.write_text(OTHER_PYTHONS, "utf-8")
    module = Path(text_module.__file__).with_name("unicode.py")
    results = {}
    for python in pythons():
        command = [python, str(script), str(module), str(module.with_name("unicode_v1.json")), str(texts)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        results[python] = json.loads(done.stdout)
    assert len({json.dumps(one) for one in results.values()}) == 1, results
    assert all(same for same, _ in results.values()), results
