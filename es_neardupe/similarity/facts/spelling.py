"""Words and numbers that are the same in another spelling or layout."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rapidfuzz.distance import DamerauLevenshtein

from es_neardupe.similarity.facts.currencies import CURRENCY_SIGNS
from es_neardupe.similarity.facts.numerals import IN_BRACKETS, with_plain_digits
from es_neardupe.similarity.facts.opposites import are_opposites
from es_neardupe.similarity.facts.symbols import prefixes_differ, symbols_of
from es_neardupe.similarity.facts.vocabulary import ABBREVIATED, SPELLINGS
from es_neardupe.similarity.facts.word_lists import words_of

MIN_SIMILARITY = 0.8
"""Minimum similarity (Damerau 1964) of two spellings of a word of `_MIN_LETTERS` or more. Iran and Iraq have 0.75."""
_MIN_LETTERS = 4
_LONG = 6
"""Letters of a word that may have two slips."""
_MAX_NAME = 8
"""Letters of a name that may be another one with one letter: of longer ones, hardly any two are so alike."""

_DIGITS = re.compile(r"\d+")
_SIGNS = re.compile(f"[{CURRENCY_SIGNS}%‰]")
_MINUS = re.compile(
    rf"(?:^|[\s(])(?:[-−–][{CURRENCY_SIGNS}]?\d|\.\d+\s?(?:%|[^\W\d]))|[{CURRENCY_SIGNS}](?:\(\d|\.\d)"
    rf"|\({IN_BRACKETS}"
)
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W\d]")
_OTHER_SPELLING = re.compile(rf"^(?:{'|'.join(SPELLINGS)})")
_PLURALS = (
    *(("y", "ies"), ("f", "ves"), ("fe", "ves"), ("s", "ses"), ("x", "xes"), ("ch", "ches"), ("sh", "shes")),
    *(("al", "aux"), ("z", "ces"), ("ung", "ungen"), ("ion", "ionen"), ("heit", "heiten"), ("keit", "keiten")),
    *(("schaft", "schaften"), ("er", "erin"), ("er", "erinnen")),
)
"""Ends of words, and what they are in the plural: battery, shelf, knife, class, box, church, brush, cheval, luz,
Rechnung, Option, Einheit, Möglichkeit, Gesellschaft; or for a woman: Lehrer."""
_INFLECTIONS = frozenset(("e", "en", "n", "es", "s"))
"""Ends of German nouns, which have a capital letter as names have: Frist and Fristen, Vertrag and Verträge."""
_VOWELS = frozenset("aeiou")
"""The last letters of given names of which the other gender has another one, or none."""
_SOUND_ALIKE = frozenset(
    map(frozenset, words_of("ae bp ck cs cz dt ei eo ey fv gj gk iy ij jy kq kx mn ou sx sz tz vw jx bv gq"))
)
"""Letters that names are spelled with, one instead of the other: Karl and Carl, Schmidt and Schmitt."""
_BLANK_INSIDE = re.compile(r"(?<=\d)[ \u00a0\u2009\u202f-](?=\d)")
_MIN_DIVIDED = 5
"""Digits of a number that may be divided by blanks."""
_CONFUSED = str.maketrans("lIoOSB", "110058")
"""Letters that text recognition writes for digits."""


def digit_groups(text: str) -> list[str]:
    """The runs of digits."""
    return _DIGITS.findall(text)


def have_equal_signs(one: str, other: str) -> bool:
    """Whether as many numbers have a minus, or begin with a point, unless one reading has lost all its signs: -$5 and
    .5 g are not $5 and 5 g. ``$(5)`` is -$5."""
    negative = [len(_MINUS.findall(text)) for text in (one, other)]
    if negative[0] == negative[1]:
        return True
    fewer, more = (one, other) if negative[0] < negative[1] else (other, one)
    return min(negative) == 0 and bool(_SIGNS.search(more)) and not _SIGNS.search(fewer) and not _LETTER.search(fewer)


def differ_in_layout_only(one: str, other: str) -> bool:
    """Whether two readings of a place have the same letters and digits: ``JeffersonCounty``, ``13 15 million`` for
    ``$13.15 million``, ``l987``."""
    if symbols_of(one) != symbols_of(other) or prefixes_differ(one, other):
        return False
    if not (_DIGITS.search(one) or _DIGITS.search(other)):
        return folded(one) == folded(other)
    return _same_numbers(one, other) or _same_numbers(one.translate(_CONFUSED), other.translate(_CONFUSED))


def _same_numbers(one: str, other: str) -> bool:
    same_digits = digit_groups(one) == digit_groups(other) or _differ_in_blanks_only(one, other)
    if not same_digits or not have_equal_signs(one, other):
        return False
    signs = _SIGNS.findall(one), _SIGNS.findall(other)
    if all(signs) and signs[0] != signs[1]:
        return False
    letters = ("".join(filter(str.isalpha, text.casefold())) for text in (one, other))
    return next(letters) == next(letters)


def _differ_in_blanks_only(one: str, other: str) -> bool:
    """Whether blanks or hyphens divide a long number in one reading only, such as ``12 500`` or that of a book."""
    joined = [_BLANK_INSIDE.sub("", text) for text in (one, other)]
    numbers = digit_groups(joined[0])
    is_divided_in_both = one != joined[0] and other != joined[1]
    return not is_divided_in_both and numbers == digit_groups(joined[1]) and max(map(len, numbers)) >= _MIN_DIVIDED


@lru_cache(1 << 14)
def folded(text: str) -> str:
    """The letters and digits without case and accents, those of any script as the usual ones, with ı as i: its capital
    is the same."""
    if text.isascii():
        return text.lower() if text.isalnum() else "".join(filter(str.isalnum, text.lower()))
    plain = with_plain_digits(text).casefold().replace("ı", "i").replace("œ", "oe").replace("æ", "ae")
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", plain)))


def is_variant(one: str, other: str, *, of_names: bool = False) -> bool:
    """Whether two words, or a few words each, are probably the same: by spelling, inflection or abbreviation. A name is
    abbreviated only with a full stop, which the word includes: ``Colo.`` is Colorado, Niger is not Nigeria."""
    short, long = folded(one), folded(other)
    if are_opposites(short, long):
        return False
    if len(short) > len(long):
        short, long, one, other = long, short, other, one
    if short == long or not short:
        return True
    is_cut = (one.endswith(".") or not of_names) and len(short) >= 2 and long.startswith(short)
    is_inflected = len(short) > 2 and long.startswith(short) and long[len(short) :] in _INFLECTIONS
    if is_cut or is_inflected or short in ABBREVIATED.get(long, ()) or _is_plural(short, long):
        return True
    if _are_similar(short, long) and not (of_names and _are_other_names(short, long)):
        return True
    if " " not in other and other.isalnum():
        return False
    initials = "".join(word[0] for word in _WORD.findall(other.casefold()))
    return len(initials) > 1 and short == initials


def _are_other_names(short: str, long: str) -> bool:
    """Whether two names differ by no slip: in their ends, as Martin and Martina, Maria and Mario, Christian and
    Christina, Williams and Williamson, or in one letter."""
    if differ_in_a_letter(short, long):
        return True
    if long.startswith(short):
        return len(long) > len(short) + 1 or long[-1] in _VOWELS
    if short[:-1] == long[:-1]:
        return short[-1] in _VOWELS and long[-1] in _VOWELS
    return short[:-2] == long[:-2] and {short[-2:], long[-2:]} == {"an", "na"}


def is_slip(one: str, other: str) -> bool:
    """Whether two words in small letters differ as after a slip: in a letter, or in two of a word of six or more."""
    distance = DamerauLevenshtein.distance(one, other)
    return min(len(one), len(other)) >= _MIN_LETTERS and 0 < distance <= 1 + (max(len(one), len(other)) >= _LONG)


def differ_in_a_letter(one: str, other: str) -> bool:
    """Whether two words in small letters differ in one that sounds otherwise: in their first letter, as Leeds and
    Reeds, or in a consonant or a vowel, as Walter and Walker, Burton and Barton."""
    changed = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    if len(one) != len(other) or len(one) > _MAX_NAME or len(changed) != 1 or frozenset(changed[0]) in _SOUND_ALIKE:
        return False
    if one[:-1] == other[:-1] and len(one) >= _LONG and one[-2] == "e":  # Vorsitzenden, Vorsitzender
        return False
    return one[0] != other[0] or len(_VOWELS.intersection(changed[0])) != 1


def _is_plural(short: str, long: str) -> bool:
    return any(short.endswith(end) and long == short.removesuffix(end) + plural for end, plural in _PLURALS)


def _are_similar(short: str, long: str) -> bool:
    """Whether two words are similar as they are, or with one spelling of their beginnings."""
    if len(short) < _MIN_LETTERS:
        return False
    spelled = [_OTHER_SPELLING.sub(lambda found: SPELLINGS[found[0]], word) for word in (short, long)]
    return any(DamerauLevenshtein.normalized_similarity(*pair) >= MIN_SIMILARITY for pair in ([short, long], spelled))
