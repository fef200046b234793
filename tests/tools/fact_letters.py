"""Pairs of letters in four languages with the same facts in other notations, order and layout, but for a few."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from random import Random

from es_neardupe.options import FactKind

LANGUAGES = {
    "en": {
        FactKind.AMOUNT: "The council of the town agreed in its last meeting to spend {} on repairs of the bridge.",
        FactKind.DATE: "The work at the station began on {} and will take longer than anybody had expected.",
        FactKind.UNIT: "The new tank behind the hill near the school holds {} more than the old one when it is full.",
        FactKind.NUMBER: "In the hall there were about {} people who wanted to hear what the engineers had to say.",
        FactKind.NAME: "The letter with all the plans was sent to the office in {} a few days before the meeting.",
        FactKind.NEGATION: "The owners of the house {} agree to the sale of the garden behind the church.",
        FactKind.CODE: "The pump of the type {} was replaced by a stronger one during the summer.",
    },
    "de": {
        FactKind.AMOUNT: "Der Rat der Stadt beschloss in der Sitzung, für die alte Brücke {} auszugeben, wie es hieß.",
        FactKind.DATE: "Die Arbeiten am Bahnhof begannen am {} und werden länger dauern, als alle erwartet hatten.",
        FactKind.UNIT: "Der neue Tank hinter dem Hügel bei der Schule fasst {} mehr als der alte, wenn er voll ist.",
        FactKind.NUMBER: "Im Saal waren etwa {} Leute, die hören wollten, was die Ingenieure zu sagen hatten.",
        FactKind.NAME: "Der Brief mit allen Plänen ging an das Büro in {} ein paar Tage vor der Sitzung.",
        FactKind.NEGATION: "Die Besitzer des Hauses wollen {} zustimmen, dass der Garten an der Kirche verkauft wird.",
        FactKind.CODE: "Die Pumpe vom Typ {} wurde im Sommer durch eine stärkere ersetzt.",
    },
    "fr": {
        FactKind.AMOUNT: "Le conseil de la ville a décidé hier de dépenser {} pour la réparation du vieux pont.",
        FactKind.DATE: "Les travaux de la gare ont commencé le {} et vont durer plus longtemps que prévu.",
        FactKind.UNIT: "Le nouveau réservoir derrière la colline contient {} de plus que celui qui était là avant.",
        FactKind.NUMBER: "Dans la salle il y avait environ {} personnes qui voulaient écouter les ingénieurs.",
        FactKind.NAME: "La lettre avec tous les plans est partie pour le bureau de {} quelques jours avant.",
        FactKind.NEGATION: "La maison sera vendue {} le jardin qui se trouve derrière la vieille église.",
        FactKind.CODE: "La pompe du type {} a été remplacée par une autre pendant l'été.",
    },
    "es": {
        FactKind.AMOUNT: "El consejo de la ciudad decidió ayer gastar {} en la reparación del viejo puente.",
        FactKind.DATE: "Las obras de la estación empezaron el {} y van a durar más de lo que se esperaba.",
        FactKind.UNIT: "El nuevo depósito detrás de la colina contiene {} más que el otro cuando está lleno.",
        FactKind.NUMBER: "En la sala había cerca de {} personas que querían escuchar a los ingenieros.",
        FactKind.NAME: "La carta con todos los planos salió para la oficina de {} algunos días antes.",
        FactKind.NEGATION: "La casa será vendida {} el jardín que se encuentra detrás de la vieja iglesia.",
        FactKind.CODE: "La bomba del tipo {} fue cambiada por otra durante el verano.",
    },
}  # fmt: skip

_MONTHS = {
    "en": "January February March April June July August September October November December",
    "de": "Januar Februar März April Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril junio julio agosto septiembre octubre noviembre diciembre",
}
_NUMBERS = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]
_SPELLED = {
    "en": "three four five six seven eight nine ten eleven twelve",
    "de": "drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "fr": "trois quatre cinq six sept huit neuf dix onze douze",
    "es": "tres cuatro cinco seis siete ocho nueve diez 11 doce",
}
_TOWN_NAMES = "Akron Bradford Elkhart Dunmore Galway Lisbon Norwich Orlando Preston Salem Tampa Verona Windsor York"
_TOWNS = _TOWN_NAMES.split()
_NEGATIONS = {
    "en": ("will", "will not", "won't"),
    "de": ("gern", "nicht gern", "nicht gern"),
    "fr": ("avec", "sans", "sans"),
    "es": ("con", "sin", "sin"),
}
_STAMPS = {
    "en": ("Printed on {}.", "Posted: {}", "Last updated {}", "Page {n}", "{n} comments", "Copyright {y} by us all"),
    "de": ("Gedruckt am {}.", "Abgerufen am {}", "Aktualisiert: {}", "Seite {n}", "{n} Kommentare", "Copyright {y}"),
    "fr": ("Imprimé le {}.", "Consulté le {}", "Publié le {}", "Page {n}", "{n} commentaires", "Copyright {y}"),
    "es": ("Impreso el {}.", "Consultado el {}", "Publicado el {}", "Página {n}", "{n} comentarios", "Copyright {y}"),
}


@dataclass(frozen=True)
class Letters:
    """Two letters, and the kinds of the facts in which they differ, sorted."""

    a: str
    b: str
    changed: list[FactKind]
    language: str


def letters(seed: int) -> Letters:
    """Six facts each, of which up to two differ."""
    random = Random(seed)
    language = random.choice(list(LANGUAGES))
    kinds = random.sample(list(LANGUAGES[language]), 6)
    changed = random.sample(kinds, random.choice((0, 0, 1, 1, 2)))
    values = {kind: _value(random, kind) for kind in kinds}
    others = {kind: _other_value(random, kind, values[kind]) if kind in changed else values[kind] for kind in kinds}
    stamp = random.choice(_STAMPS[language])
    return Letters(
        _letter(random, language, values, stamp, changed),
        _letter(random, language, others, stamp, changed),
        sorted(changed, key=list(FactKind).index),
        language,
    )


def _value(random: Random, kind: FactKind) -> int:
    sizes = {
        FactKind.AMOUNT: 900,
        FactKind.DATE: 300,
        FactKind.UNIT: 190,
        FactKind.NAME: len(_TOWNS),
        FactKind.NEGATION: 2,
    }
    return random.randrange(sizes.get(kind, 60))


def _other_value(random: Random, kind: FactKind, value: int) -> int:
    while (other := _value(random, kind)) == value:
        pass
    return other


def _letter(random: Random, language: str, values: dict[FactKind, int], stamp: str, changed: list[FactKind]) -> str:
    kinds = list(values)
    random.shuffle(kinds)
    sentences = [
        LANGUAGES[language][kind].format(_written(random, language, kind, values[kind], kind in changed))
        for kind in kinds
    ]
    text = " ".join(sentences)
    if random.random() < 0.5:
        text = textwrap.fill(text, random.randrange(40, 90), break_on_hyphens=False)
    if random.random() < 0.3:
        text = text.replace(" ", "  ")
    if random.random() < 0.5:
        stamp = stamp.format(
            _date(random, language, random.randrange(300)), n=random.randrange(2, 90), y=random.randrange(1990, 2026)
        )
        text = f"{stamp}\n{text}" if random.random() < 0.5 else f"{text}\n{stamp}"
    return text


def _written(random: Random, language: str, kind: FactKind, value: int, is_changed: bool) -> str:
    if kind is FactKind.AMOUNT:
        return _amount(random, language, value)
    if kind is FactKind.DATE:
        return _date(random, language, value)
    if kind is FactKind.UNIT:
        return _unit(random, language, value)
    if kind is FactKind.NUMBER:
        return _number(random, language, value)
    if kind is FactKind.NAME:
        return _TOWNS[value]
    if kind is FactKind.NEGATION:
        return _NEGATIONS[language][random.randrange(1, 3) if value else 0]
    letter, number = "ABCDEFGHK"[value % 9], 10 + value
    forms = [f"{letter}{number}", f"{letter}-{number}"]
    return random.choice(forms if is_changed else [*forms, f"{letter} {number}"])


def _grouped(random: Random, language: str, number: int) -> str:
    return random.choice((str(number), f"{number:,}".replace(",", "," if language == "en" else ".")))


def _amount(random: Random, language: str, value: int) -> str:
    """Multiples of 50,000: some are whole or half millions."""
    number = 50_000 * (value + 1)
    currency = {"en": "dollars", "de": "Euro"}.get(language, "euros")
    sign, code = ("$", "USD") if language == "en" else ("€", "EUR")
    whole = _grouped(random, language, number)
    forms = [f"{whole} {currency}", f"{code} {whole}", f"{sign}{whole}" if language == "en" else f"{whole} {sign}"]
    if number % 500_000 == 0:
        millions = f"{number / 1_000_000:g}".replace(".", "." if language == "en" else ",")
        word = {"en": "million", "de": "Millionen", "fr": "millions", "es": "millones"}[language]
        de = " d'" if language == "fr" else " de " if language == "es" else " "
        forms.append(f"${millions} million" if language == "en" else f"{millions} {word}{de}{currency}")
    return random.choice(forms)


def _date(random: Random, language: str, value: int) -> str:
    day, place, year = 1 + value % 28, value % 11, 2019 + value % 7
    month, name = _NUMBERS[place], _MONTHS[language].split()[place]
    forms = {
        "en": [f"{name} {day}, {year}", f"{day} {name} {year}", f"{name[:3]} {day}, {year}"],
        "de": [f"{day}. {name} {year}", f"{day:02}.{month:02}.{year}", f"{day}.{month}.{year}"],
        "fr": [f"{day} {name} {year}", f"{day}.{month}.{year}"],
        "es": [f"{day} de {name} de {year}", f"{day}.{month}.{year}"],
    }[language]
    return random.choice([*forms, f"{year}-{month:02}-{day:02}"])


def _unit(random: Random, language: str, value: int) -> str:
    decimal = f"{(value + 1) / 20:g}".replace(".", "." if language == "en" else ",")
    return random.choice((f"{50 * (value + 1)} ml", f"{decimal} l", f"{50 * (value + 1)}ml"))


def _number(random: Random, language: str, value: int) -> str:
    if value < 10:
        return random.choice((str(value + 3), _SPELLED[language].split()[value]))
    return _grouped(random, language, 137 * value)
