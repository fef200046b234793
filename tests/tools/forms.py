"""Invoices and tables of the same form with other numbers, and copies of them with small changes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
_DATES = {"en": "{d} {m} {y}", "de": "{d}. {m} {y}", "fr": "{d} {m} {y}", "es": "{d} de {m} de {y}"}

_LETTERS = {
    "en": """
        Invoice number {number}
        Invoice date: {date}
        Northgate Office Supplies Ltd, 14 Harbour Road, please quote the invoice number with every payment.
        Dear customer, thank you for your order. We have delivered the following goods to your address:
        {lines}
        Total without tax: {net}. Value added tax at 20 %: {tax}. Amount due: {total}
        Please pay the amount due by {due} to the account named below. Goods remain our property until they are paid
        in full. Complaints about the delivery have to reach us within eight days after the goods were received.
        """,
    "de": """
        Rechnung Nr. {number}
        Rechnungsdatum: {date}
        Sehr geehrte Damen und Herren, wir danken für Ihren Auftrag und berechnen Ihnen die folgenden Artikel, die wir
        an Ihre Anschrift geliefert haben:
        {lines}
        Nettobetrag: {net}. Mehrwertsteuer 19 %: {tax}. Rechnungsbetrag: {total}
        Bitte überweisen Sie den Rechnungsbetrag bis zum {due} auf das unten genannte Konto. Die Ware bleibt bis zur
        vollständigen Bezahlung unser Eigentum. Reklamationen sind innerhalb von acht Tagen nach Erhalt zu melden.
        """,
    "fr": """
        Facture n° {number}
        Date de la facture : {date}
        Madame, Monsieur, nous vous remercions de votre commande et vous facturons les articles suivants, que nous
        avons livrés à votre adresse :
        {lines}
        Total hors taxes : {net}. TVA 20 % : {tax}. Montant à payer : {total}
        Merci de régler le montant à payer avant le {due} sur le compte indiqué plus bas. La marchandise reste notre
        propriété jusqu'au paiement complet. Toute réclamation doit nous parvenir dans les huit jours.
        """,
    "es": """
        Factura n.º {number}
        Fecha de la factura: {date}
        Estimados señores, les agradecemos su pedido y les facturamos los artículos siguientes, que hemos entregado en
        su domicilio:
        {lines}
        Total sin impuestos: {net}. IVA 21 %: {tax}. Importe total: {total}
        Les rogamos que paguen el importe total antes del {due} en la cuenta indicada más abajo. La mercancía sigue
        siendo de nuestra propiedad hasta el pago completo. Las reclamaciones deben llegar en ocho días.
        """,
}  # fmt: skip
_ARTICLES = {
    "en": ("printer paper", "desk lamp", "ring binder", "ball pens", "filing cabinet", "wall clock"),
    "de": ("Druckerpapier", "Schreibtischlampe", "Ringordner", "Kugelschreiber", "Aktenschrank", "Wanduhr"),
    "fr": ("papier pour imprimante", "lampe de bureau", "classeur", "stylos", "armoire", "horloge"),
    "es": ("papel para impresora", "lámpara de mesa", "archivador", "bolígrafos", "armario", "reloj de pared"),
}  # fmt: skip

_STATIONS = ("Harbour", "Old Mill", "Ridge", "Upper Valley", "Lighthouse", "Airfield", "Forest Edge", "Quarry")


class Notation(NamedTuple):
    """How numbers and dates are written."""

    amount: Callable[[int], str]
    """Of cents."""
    day: Callable[[date], str]


def _grouped(cents: int, group: str, point: str) -> str:
    return f"{cents // 100:,}".replace(",", group) + f"{point}{cents % 100:02}"


def _in_words(language: str) -> Callable[[date], str]:
    months = MONTHS[language].split()
    return lambda day: _DATES[language].format(d=day.day, m=months[day.month - 1], y=day.year)


NOTATIONS: dict[str, tuple[Notation, ...]] = {
    "en": (
        Notation(lambda cents: f"£{_grouped(cents, ',', '.')}", _in_words("en")),
        Notation(lambda cents: f"GBP {_grouped(cents, '', '.')}", lambda day: f"{day:%Y-%m-%d}"),
    ),
    "de": (
        Notation(lambda cents: f"{_grouped(cents, '.', ',')} €", _in_words("de")),
        Notation(lambda cents: f"EUR {_grouped(cents, ' ', ',')}", lambda day: f"{day.day}.{day.month}.{day.year}"),
    ),
    "fr": (
        Notation(lambda cents: f"{_grouped(cents, chr(0x202F), ',')} €", _in_words("fr")),
        Notation(lambda cents: f"{_grouped(cents, '', ',')} euros", lambda day: f"{day:%d/%m/%Y}"),
    ),
    "es": (
        Notation(lambda cents: f"{_grouped(cents, '.', ',')} €", _in_words("es")),
        Notation(lambda cents: f"{_grouped(cents, '', ',')} EUR", lambda day: f"{day:%d.%m.%Y}"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Invoice:
    """The values of an invoice."""

    language: str
    number: int
    day: date
    lines: tuple[tuple[str, int, int], ...]
    """Article, number of pieces, and cents of each piece."""

    def text(self, notation: int = 0) -> str:
        """The invoice in one of the notations."""
        amount, day = NOTATIONS[self.language][notation]
        net = sum(pieces * cents for _, pieces, cents in self.lines)
        tax = net // 5
        lines = "\n".join(
            f"{pieces} x {article}, {amount(cents)}: {amount(pieces * cents)}" for article, pieces, cents in self.lines
        )
        found = _LETTERS[self.language].format(
            number=self.number,
            date=day(self.day),
            due=day(self.day + timedelta(days=30)),
            lines=lines,
            net=amount(net),
            tax=amount(tax),
            total=amount(net + tax),
        )
        return "\n".join(line.strip() for line in found.strip().splitlines())


def invoice(language: str, chance: Random) -> Invoice:
    """An invoice for the same three articles, as to a customer who orders every month."""
    return Invoice(
        language,
        chance.randint(10_000, 99_999),
        date(2024, 1, 1) + timedelta(days=chance.randrange(700)),
        tuple((article, chance.randint(2, 60), chance.randint(150, 90_000)) for article in _ARTICLES[language][:3]),
    )


def table(chance: Random) -> str:
    """A table of measurements of the same stations on some day."""
    day = date(2025, 1, 1) + timedelta(days=chance.randrange(365))
    rows = [
        f"| {name} | {chance.uniform(-9, 31):.1f} | {chance.randint(0, 100)} | {chance.uniform(980, 1040):.1f} |"
        for name in _STATIONS
    ]
    head = "| station | temperature | humidity | pressure |"
    return "\n".join(
        [
            f"Measurements of the coastal stations on {_in_words('en')(day)}",
            "All values are means of the day. Stations that did not report are left out of the table.",
            head,
            *rows,
            "The data may be used freely if the source is named. Corrections are published within a week.",
        ]
    )


def copies(text: str) -> Iterator[str]:
    """The same document as others would print, store or forward it."""
    yield textwrap.fill(text, 60, break_long_words=False, break_on_hyphens=False)
    yield text.upper()
    yield f"{text}\nThis copy was made for your files."
    yield text.replace("\n", "\n\n").replace(". ", ".  ")
