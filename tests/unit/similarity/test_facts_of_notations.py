"""Facts in one notation and another: currencies, times of day, measures. Negations at the ends of a text."""

from __future__ import annotations

import pytest

from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.tokens import fact_tokens

BEFORE = "This is to let all the members of the board know that"
AFTER = "and that nothing else of the agreement with them will be any other than it was in the years before."


def kinds_of(a: str, b: str) -> str:
    """The kinds of the facts that differ between two texts, the same in both orders."""
    one, other = fact_tokens(a), fact_tokens(b)
    found = [one.kinds for one in differing_facts(one, other)]
    assert found == [one.kinds for one in differing_facts(other, one)]
    return " ".join("+".join(kind.value for kind in kinds) for kinds in found)


def kinds_in_a_letter(a: str, b: str) -> str:
    """The same of two letters that are equal except for these words."""
    return kinds_of(f"{BEFORE} {a} {AFTER}", f"{BEFORE} {b} {AFTER}")


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("the fee is SAR 1,200 now", "the fee is 1200 riyals now", ""),
        ("the fee is HUF 12 000 now", "the fee is 12 000 forint now", ""),
        ("the fee is HUF 12 000 now", "the fee is EUR 12 000 now", "amount"),
        ("the fee is EUR50.50 now", "the fee is €50,50 now", ""),
        ("the fee is EUR50 now", "the fee is USD50 now", "amount"),
        ("the fee is RM90 now", "the fee is MYR 90 now", ""),
        ("the fee is NZ$80 now", "the fee is NZD 80 now", ""),
        ("the fee is TRY 750 now", "the fee is 750 ₺ now", ""),
        ("a balance of USD (1,250.00) now", "a balance of -1250 USD now", ""),
        ("a sum in USD (2026) now", "a sum in USD (2025) now", "date"),
        ("they try 750 of them now", "they try 751 of them now", "number"),
        ("it needs PHP 8 of them", "it needs PHP 9 of them", "number"),
    ],
)
def test_currencies(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("会議は午後3時に始まる", "会議は15:00に始まる", ""),
        ("会議は午後2時半に始まる", "会議は14:30に始まる", ""),
        ("会議は午後3時に始まる", "会議は午前3時に始まる", "date"),
        ("会议将于下午三点举行", "会议将于15:00举行", ""),
        ("会议将于上午9点30分举行", "会议将于9:30举行", ""),
        ("회의는 오후 3시에 시작", "회의는 15:00에 시작", ""),
        ("회의는 오후 3시에 시작", "회의는 오후 3시 30분에 시작", "date"),
        ("für 3時間", "für 4時間", "number"),
        ("at 3 o'clock in the afternoon", "at 3 p.m.", ""),
        ("at 1500 hours there", "at 15:00 there", ""),
        ("at half past three there", "at 3:30 there", ""),
        ("at quarter to four p.m. there", "at 15:45 there", ""),
        ("at half past three there", "at half past four there", "date"),
        ("at quarter to one there", "at 12:45 there", ""),
        ("um 15.30 Uhr", "um 15 Uhr 30", ""),
        ("um 15 Uhr", "um 15 Uhr 30", "date"),
        ("um 8 Uhr abends", "um 20:00", ""),
        ("à 15h30 aussi", "à 15 h 30 aussi", ""),
        ("à 15h30 aussi", "à 15 h 45 aussi", "date"),
        ("a las 3 de la tarde", "a las 15:00", ""),
        ("a las 3 de la tarde", "a las 16:00", "date"),
        ("a las 3:30 de la tarde", "a las 15:30", ""),
        ("alle ore 15", "alle 15:00", ""),
        ("börjar kl. 15 i", "börjar kl. 15.00 i", ""),
        ("om 15 uur bij", "om 15.00 uur bij", ""),
        ("в 3 часа дня у входа", "в 15:00 у входа", ""),
        ("за 3 дня у входа", "за 72 часа у входа", ""),
        # dates without a year, or a month
        ("on the 3rd day of March 2026 there", "on 3 March 2026 there", ""),
        ("collected on 1 July from it", "collected on 01/07 from it", ""),
        ("collected on 7 January 2026 from it", "collected on 01/07 from it", ""),
        ("collected on 1 July from it", "collected on 01/08 from it", "date"),
        ("collected on 15 July from it", "collected on 15/07 from it", ""),
        ("expires in 03/2027 at last", "expires in March 2027 at last", ""),
        ("expires in 03/2027 at last", "expires in 04/2027 at last", "date"),
        ("open 24/7 for all", "open 24/6 for all", "number"),
        ("closed from 5 to 12 May there", "closed from May 5 to May 12 there", ""),
        ("closed from 5 to 12 May there", "closed from May 6 to May 12 there", "number+date"),
        ("en el 1T 2026 allí", "en el primer trimestre de 2026 allí", ""),
        ("open 8-12 there", "open 8:00-12:00 there", ""),
        ("open 8-12 there", "open 8:00-13:00 there", "number+date"),
        # seconds
        ("he finished in 2:09:41 there", "he finished in 2:09:14 there", "date"),
        ("he finished in 2:09:41 there", "he finished in 2:09 there", ""),
        ("in two hours, 21 minutes and five seconds", "in 2:21:05", ""),
        ("a song of 3:45 there", "a song of 3 minutes 45 seconds there", ""),
        ("at 2026-03-12T10:15:03Z there", "at 2026-03-12 10:15:03 there", ""),
        ("at 14:30 there", "at 30 there", "number+date"),
    ],
)
def test_times(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("screws M4x20 of it", "screws M4 x 20 mm of it", ""),
        ("screws M4x20 of it", "screws M5 x 20 mm of it", "code"),
        ("screws M4x20 of it", "screws M4 x 25 mm of it", "code"),
        ("Schrauben M 6 x 30 davon", "Schrauben M6x30 davon", ""),
        ("a frame of 20x30 cm there", "a frame of 20 cm x 30 cm there", ""),
        ("a frame of 20x30 cm there", "a frame of 20 × 30cm there", ""),
        ("a frame of 20x30 cm there", "a frame of 20cm × 30cm there", ""),
        ("a frame of 20x30 cm there", "a frame of 20 by 30 cm there", ""),
        ("a frame of 20x30 cm there", "a frame of 20 X 40 CM there", "unit"),
        ("a room of 4 m by 5 m there", "a room of 4 x 5 metres there", ""),
        ("ein Zimmer von 4 m mal 5 m hier", "ein Zimmer von 4 x 5 m hier", ""),
        ("une pièce de 4 m sur 5 m ici", "une pièce de 4 m sur 6 m ici", "unit"),
        ("3 sets of 4 by 5 of them", "3 sets of 4 by 6 of them", "number"),
        ("a box of 40 x 30 x 25 cm there", "a box of W 40 cm x D 30 cm x H 25 cm there", ""),
        ("85 metros cuadrados allí", "85 m² allí", ""),
        ("85 mètres carrés ici", "95 m² ici", "unit"),
        ("la segunda planta", "la 2ª planta", ""),
        ("4,90 € je Paket", "4,90 Euro pro Paket", ""),
        ("after 1.5 s of it", "after 1500 ms of it", ""),
        ("at D-70173 Stuttgart there", "at 70173 Stuttgart there", ""),
        ("call +44 20 7946 0018 now", "call +44 (0)20 7946-0018 now", ""),
        ("zweimal täglich davon", "2-mal täglich davon", ""),
        ("for encrypting all files", "for decrypting all files", "word"),
        ("las obras terminan en marzo allí", "las obras terminan en mayo allí", "date"),
        ("winds of 130 km/h there", "winds of 130 kilometres per hour there", ""),
        ("winds of 130 km/h there", "winds of 130 miles per hour there", "unit"),
        ("at 60 mph there", "at 60 miles per hour there", ""),
        ("nach 2 Stunden und 30 Minuten", "nach 150 Minuten", ""),
        ("2 tbsp of sugar", "two tablespoons of sugar", ""),
        ("2 tbsp of sugar", "two teaspoons of sugar", "unit"),
        ("removed in version 5.0 of it", "removed in v5.0 of it", ""),
        ("removed in version 5.0 of it", "removed in v5.1 of it", "number+code"),
        ("two hundred and fifty thousand dollars", "$250,000", ""),
        ("between one hundred and two thousand", "between 100 and 2,000", ""),
        ("eine Wohnung im 3. Stock hier", "eine Wohnung im dritten Stock hier", ""),
        ("eine Wohnung im 3. Stock hier", "eine Wohnung im vierten Stock hier", "number"),
        ("Hilfe ab Seite 3. Stock und Bank", "Hilfe ab Seite 3. Stock und Bank", ""),
        ("frei ab 1. August hier", "frei ab 01.08. hier", ""),
        ("frei ab 1. August hier", "frei ab 01.09. hier", "number+date"),
    ],
)
def test_measures_and_numbers(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ("Never open the valve while it runs.", "Open the valve while it runs.", True),
        ("Do not open the valve while it runs.", "Open the valve while it runs.", True),
        ("Don't open the valve while it runs.", "Do not open the valve while it runs.", False),
        ("No refunds", "Refunds", True),
        ("Without warranty of any kind", "With warranty of any kind", True),
        ("Keine Rückgabe reduzierter Ware", "Rückgabe reduzierter Ware", True),
        ("Ne pas congeler après ouverture", "Congeler après ouverture", True),
        ("Il ne paie pas la facture en avril", "Il paie la facture en avril", True),
        ("No abrir la válvula en marcha", "Abrir la válvula en marcha", True),
        ("Не открывать клапан при работе", "Открывать клапан при работе", True),
        ("Smoking is allowed here, pets are not.", "Smoking is allowed here, pets are.", True),
        ("The members said that they did not.", "The members said that they did.", True),
        ("The valve of it opens then never.", "The valve of it opens then always.", True),
        ("No worries! Open the valve while it runs.", "Open the valve while it runs.", False),
        ("Not yet: open the valve while it runs.", "Open the valve while it runs.", False),
        ("Open the valve while it runs. No.", "Open the valve while it runs.", False),
        ("Open the valve while it runs, not while it", "Open the valve while it runs", False),
        ("The data is written synchronously to it.", "The data is written asynchronously to it.", True),
        ("независимый совет по этому делу сегодня", "зависимый совет по этому делу сегодня", True),
    ],
)
def test_negations_at_an_end(a: str, b: str, differ: bool) -> None:
    """What is added before, or after, a sentence denies nothing in it."""
    assert ("negation" in kinds_of(a, b)) == differ
