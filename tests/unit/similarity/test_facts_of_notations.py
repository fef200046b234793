"""Facts in one notation and another: currencies, times of day, measures. Negations at the ends of a text."""

from __future__ import annotations

import pytest

from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.readable import readable
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
        ("the fee is 500 SEK now", "the fee is 500 NOK now", "amount"),
        ("the fee is 500 SEK now", "the fee is 500 kr now", ""),
        ("the fee is 500 ISK now", "the fee is 500 kr now", ""),
        ("the fee is 500 EUR now", "the fee is 500 kr now", "amount"),
        ("the fee is 500 dollars now", "the fee is 500 rubles now", "amount"),
        ("the fee is 500 zloty now", "the fee is 500 PLN now", ""),
        ("门票价格是300元", "门票价格是300美元", "amount"),
        ("门票价格是3亿美元", "门票价格是3亿欧元", "amount"),
        ("入場料は300円です", "入場料は300ドルです", "amount"),
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


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("es kostet 5 Millionen Euro", "es kostet 5 Mio. Euro", ""),
        ("es kostet 5 Millionen Euro", "es kostet 5 Mrd. Euro", "amount"),
        ("es kostet 5 Millionen Euro", "es kostet 5 Billionen Euro", "amount"),
        ("cuesta 5 millones de euros", "cuesta 5 mil millones de euros", "amount"),
        ("cuesta 5 mil millones de euros", "cuesta 5.000.000.000 €", ""),
        ("custa 5 milhões de euros", "custa 5 mil milhões de euros", "amount"),
        ("costa 5 milioni di euro", "costa 5 miliardi di euro", "amount"),
        ("het kost 5 miljoen euro", "het kost 5 miljard euro", "amount"),
        ("kosztuje 5 milionów zł", "kosztuje 5 miliardów zł", "amount"),
        ("bu 3,5 milyon avro tutuyor", "bu 3.500.000 € tutuyor", ""),
        ("it is 5 thousand million dollars", "it is 5 billion dollars", ""),
    ],
)
def test_magnitudes(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("it opens in May at last", "it opens in June at last", "date"),
        ("it opens at the end of March", "it opens at the end of June", "date"),
        ("it opens in mid-Dec as usual", "it opens in mid-Jan as usual", "date"),
        ("it opens from May to September", "it opens from March to September", "date"),
        ("on ouvre le 5 mars à midi", "on ouvre le 5 avril à midi", "date"),
        ("on ouvre en mai 2026 enfin", "on ouvre en juin 2026 enfin", "date"),
        ("on ouvre en juin enfin", "on ouvre en juillet enfin", "date"),
        ("Salon Ocak ayında açılır", "Salon Şubat ayında açılır", "date"),
        ("it opens on friday at last", "it opens on saturday at last", "date"),
        ("it opens in january at last", "it opens in February at last", "date"),
        ("it opens on friday at last", "it opens on Friday at last", ""),
        ("they may march from here", "they may walk from here", "word"),
        ("it opens on Mon at nine", "it opens on Thu at nine", "date"),
        ("it opens Sat, 9-5 as usual", "it opens Fri, 9-5 as usual", "date"),
        ("it opens Mon 5 May again", "it opens Tue 5 May again", "date"),
    ],
)
def test_months_and_weekdays_alone(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("it was –5 °C at night", "it was -5 °C at night", ""),
        ("it was –5 °C at night", "it was 5 °C at night", "unit"),
        ("a balance of –$5 at night", "a balance of -$5 at night", ""),
        ("it takes 5 – 10 days to come", "it takes 5–10 days to come", ""),
        ("it was minus five outside", "it was -5 outside", ""),
        ("it was minus five outside", "it was five outside", "number"),
    ],
)
def test_minus_signs(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("you can use the pool", "you cant use the pool", "negation"),
        ("we did open the pool", "we didnt open the pool", "negation"),
        ("we will open the pool", "we wont open the pool", "negation"),
        ("they are open at night", "they aren´t open at night", "negation"),
        ("they won't open the pool", "they wont open the pool", ""),
        ("they don't open the pool", "they do not open the pool", ""),
        ("bu ürün uygundur artık", "bu ürün uygun değildir artık", "negation"),
    ],
)
def test_negations_without_an_apostrophe(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("you take a tablet at night", "you take two tablets at night", "number"),
        ("you take a tablet at night", "you take one tablet at night", ""),
        ("Sie nehmen eine Tablette ein", "Sie nehmen zwei Tabletten ein", "number"),
        ("you take a few at night", "you take three at night", ""),
        ("we sold half of our shares", "we sold a quarter of our shares", "number"),
        ("we sold half of our shares", "we sold 50% of our shares", ""),
        ("in the second half of our year", "in the first half of our year", "number"),
        ("it costs $85 per month", "it costs $85 per quarter", "unit"),
        ("see section 12(3)(a) of it", "see section 12(3)(b) of it", "code"),
        ("see section 3 (a) of it", "see section 3 (b) of it", "code"),
        ("see section 3 (iv) of it", "see section 3(iv) of it", ""),
        ("see paragraph (b) of it", "see paragraph (c) of it", "code"),
        ("we answer question a) of it", "we answer question b) of it", "code"),
        ("we met (a) once a week", "we met (b) once a week", ""),
    ],
)
def test_one_several_and_parts(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("have a fever of more than\n38\ndegrees", "have a fever of more than\n39\ndegrees", "number"),
        ("a gold seat\n60\na silver seat\n44\na box\n10", "a gold seat\n65\na silver seat\n44\na box\n10", "number"),
        ("are here.\n\n12\n\nThey are", "are here.\n\n14\n\nThey are", "counter"),
        ("are here.\n- 12 -\nThey are", "are here.\n- 14 -\nThey are", "counter"),
        ("the one\n12\nthe next\n13\nthe last", "the one\n14\nthe next\n15\nthe last", "counter counter"),
    ],
)
def test_numbers_alone_on_their_lines(a: str, b: str, kinds: str) -> None:
    """They are those of pages between blank lines, or if they count: not in the cells of a table."""
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("our team won 4-2 at home", "our team won 2-4 at home", "number"),
        ("our team won 4-2 at home", "our team won 4-1 at home", "number"),
        ("our team won 4-2 at home", "our team won 4–2 at home", ""),
        ("our team won 4-2 at home", "our team won 4 to 2 at home", ""),
        ("they read pages 2-4 of it", "they read pages 2–4 of it", ""),
        ("we walked 20-10 km to it", "we walked 20-10 m to it", "unit"),
    ],
)
def test_scores(a: str, b: str, kinds: str) -> None:
    """The larger number comes first; ranges begin with the smaller one."""
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("the delivery is free for you", "the delivery is $5 for you", "amount"),
        ("the delivery is free of charge for you", "the delivery is 4.99 EUR for you", "amount"),
        ("der Versand ist kostenlos für alle", "der Versand ist 5 Euro für alle", "amount"),
        ("the delivery is free of charge for you", "the delivery is free for you", ""),
        ("the delivery is quick for you", "the delivery is $5 for you", "word"),
        ("it costs 250 TL in our shop", "it costs 250 USD in our shop", "amount"),
        ("它的价格是3,500.00元一年", "它的价格是¥3500一年", ""),
        ("它的价格是3,500.00元一年", "它的价格是$3500一年", "amount"),
        ("it costs ¥3500 in our shop", "it costs 3500 yen in our shop", ""),
        ("it costs 250 TL in our shop", "it costs ₺250 in our shop", ""),
        ("it rose by 3 percent in a year", "it rose by 3 percentage points in a year", "number"),
        ("es stieg um 3 Prozent im Jahr", "es stieg um 3 Prozentpunkte im Jahr", "number"),
        ("it rose by 3 points in a year", "it rose by 3 percentage points in a year", ""),
        ("they saw that he was late", "they saw that she was late", "word"),
        ("a letter of Mr. Miller to us", "a letter of Mrs. Miller to us", "word"),
        ("the train to Berlin was late", "the train from Berlin was late", "word"),
        ("the blood group: A, was known", "the blood group: B, was known", "code"),
    ],
)
def test_words_instead_of_figures(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("our shares rose by a third", "our shares fell by a third", "negation"),
        ("the court accepted our bid", "the court rejected our bid", "negation"),
        ("Opened the door of our shop", "Closed the door of our shop", "negation"),
        ("der Kurs ist gestiegen im Mai", "der Kurs ist gefallen im Mai", "negation"),
        ("they logged in from our site", "they logged out from our site", "negation"),
        ("the court accepted our bid", "the court approved our bid", "word"),
        ("our shares rose by a third", "our shares climbed by a third", "word"),
    ],
)
def test_opposite_states(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("is:\n- [x] paid\nthen", "is:\n- [ ] paid\nthen", "negation"),
        ("is:\n- [x] paid\nthen", "is:\n- [X] paid\nthen", ""),
        ("is:\n- [ ] paid\nthen", "is:\n- ☐ paid\nthen", ""),
        ("is:\n- [ ] paid\nthen", "is:\n- paid\nthen", ""),
        ("is:\n- ✗ paid\nthen", "is:\n- paid\nthen", "negation"),
        ("is a[x] paid", "is a [x1] paid", "code"),
    ],
)
def test_boxes(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("You don't have to pay for it at all.", "You don&#39;t have to pay for it at all."),
        ("You don't have to pay for it at all.", "You donâ€™t have to pay for it at all."),
        ("You don't have to pay for it at all.", "You don&rsquo;t have to pay for it at all."),
        ("You can't pay for it at all in here.", "You can&#x27;t pay for it at all in here."),
        ("You can't pay for it at all in here.", "You canʼt pay for it at all in here."),
        ("You can't pay for it at all in here.", "You can′t pay for it at all in here."),
        ("You can't pay for it at all in here.", "You can?t pay for it at all in here."),
        ("You can't pay for it at all in here.", "You can�t pay for it at all in here."),
        ("The firm in Zürich has many offices.", "The firm in ZÃ¼rich has many offices."),
        ("The flat has 50 m² and a balcony there.", "The flat has 50 m&sup2; and a balcony there."),
        ("The flat has 62 m² and a balcony there.", "The flat has 62m2 and a balcony there."),
        ("The flat has 62m² and a balcony there.", "The flat has 62m2 and a balcony there."),
        ("The tank holds 3m³ of water in winter.", "The tank holds 3m3 of water in winter."),
        ("The level of CO₂ is higher than before.", "The level of CO2 is higher than before."),
        ("The grant of $2 million is for roads.", "The grant of $2\n> million is for roads."),
        ("It takes two years until it is done.", "It takes two\n> years until it is done."),
        ("It takes two years until it is done.", "It takes two\n> > years until it is done."),
    ],
)
def test_signs_that_are_encoded_or_decoded_in_another_way(a: str, b: str) -> None:
    """References of HTML, wrongly decoded characters, powers and marks of quoted lines; the places stay right."""
    assert kinds_of(f"{a} {AFTER}", f"{b} {AFTER}") == ""
    other = f"{b} There are 3 of them."
    (one,) = differing_facts(fact_tokens(f"{a} There are 4 of them."), fact_tokens(other))
    assert other[slice(*one.b)] == one.words_b == "3"


@pytest.mark.parametrize(
    "text", ["AT&T; R&D", "CAFÉ» et «IRMÃ", "a ? t", "x[2] m[3]", "size m2x", "a > b", "&nothing;"]
)
def test_texts_that_stay_as_they_are(text: str) -> None:
    assert readable(PlacedText(text, text)).prepared == text


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("it costs 3 euros per kilo here", "it costs 3 euros per piece here", "unit"),
        ("it costs 3 euros a kilo here", "it costs 3 euros a piece here", "unit"),
        ("it costs 80 Euro pro Nacht hier", "it costs 80 Euro pro Woche hier", "unit"),
        ("they take 5 mg daily with food", "they take 5 mg weekly with food", "unit"),
        ("they take 5 mg daily with food", "they take 5 mg every day with food", ""),
        ("they take 5 mg daily with food", "they take 5 mg per day with food", ""),
        ("they take it every other day here", "they take it every day here", "unit"),
        ("they take it every two days here", "they take it every other day here", ""),
        ("in the Daily Mail of us", "in the Weekly Mail of us", "name"),
        ("in 14 business days from us", "in 14 days from us", "unit"),
        ("in 14 business days from us", "in 14 working days from us", ""),
        ("es sind 5 Mio. km bis dahin", "es sind 5.000.000 km bis dahin", ""),
        ("das Haus hat Bj. 1987 im Plan", "das Haus hat Baujahr 1987 im Plan", ""),
        ("die Wohnung im EG ist groß", "die Wohnung im Erdgeschoss ist groß", ""),
        ("smlouva je platná na celý rok", "smlouva není platná na celý rok", "negation"),
        ("ci vediamo lunedì in ufficio", "ci vediamo martedì in ufficio", "date"),
        ("we zien elkaar op maandag hier", "we zien elkaar op dinsdag hier", "date"),
        ("vi ses på fredag i byen", "vi ses på lørdag i byen", "date"),
        ("zobaczymy się w piątek tutaj", "zobaczymy się w sobotę tutaj", "date"),
        ("the sale ends today at noon", "the sale ends tomorrow at noon", "word"),
        ("on the ground floor of it", "on the first floor of it", "number"),
        ("drops for the left eye only", "drops for both eyes only", "word"),
    ],
)
def test_rates_and_frequencies(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds
