"""Currencies, their signs, codes and names, and their hundredths."""

from __future__ import annotations

import unicodedata

from es_neardupe.similarity.facts.word_lists import words_of

CURRENCIES = {
    word: currency
    for currency, words in {
        "USD": "$ usd dollar dollars dólares доллар доллара долларов دولار डॉलर 美元 美金 ドル 달러",
        "EUR": "€ eur euro euros avro евро євро ευρώ يورو یورو यूरो אירו 欧元 歐元 ユーロ 유로",
        "GBP": "£ gbp pound pounds 英镑 英鎊 ポンド",
        "CHF": "chf francs franken",
        "¥": "¥",
        "JPY": "jpy yen 円 日元 日圓",
        "INR": "₹ inr rs rupee rupees रुपये रुपए रुपया रु",
        "MXN": "mxn pesos",
        "PLN": "pln zł złotych złoty zloty zlotys",
        "CZK": "czk kč",
        "KR": "kr kronor kroner",
        "SEK": "sek",
        "NOK": "nok",
        "DKK": "dkk",
        "RUB": "₽ rub ruble rubles rouble roubles руб рубль рубля рублей",
        "UAH": "₴ uah грн гривня гривні гривень",
        "TRY": "₺ try tl lira liras",
        "KRW": "₩ krw won 원",
        "ILS": "₪ ils שקל שקלים",
        "CNY": "cny rmb yuan 元 人民币",
        "SAR": "sar riyal riyals ريال",
        "AED": "aed dirham dirhams درهم",
        "EGP": "egp جنيه",
        "IRR": "irr ریال",
        "IRT": "تومان",
        "THB": "฿ thb baht บาท",
        "BDT": "৳ bdt taka টাকা",
        "VND": "₫ vnd đồng",
        "NGN": "₦ ngn naira",
        "PHP": "₱ php",
        "KZT": "₸ kzt тенге",
        "GEL": "₾ gel",
        "CRC": "₡ crc",
        "PYG": "₲ pyg",
        "GHS": "₵ ghs cedi cedis",
        "AZN": "₼ azn manat",
        "HUF": "huf forint forints",
        "RON": "ron lei",
        "BGN": "bgn leva лв",
        "RSD": "rsd",
        "ISK": "isk",
        "ZAR": "zar rand",
        "KES": "kes ksh",
        "PKR": "pkr",
        "LKR": "lkr",
        "IDR": "idr rp rupiah",
        "MYR": "myr rm ringgit",
        "SGD": "sgd",
        "HKD": "hkd 港元 港币",
        "TWD": "twd",
        "NZD": "nzd",
        "AUD": "aud",
        "CAD": "cad",
        "BRL": "brl reais",
        "CLP": "clp",
        "ARS": "ars",
    }.items()
    for word in words.split()
}
CURRENCIES_OF = {"¢": None, "¥": frozenset(("JPY", "CNY")), "KR": frozenset(("SEK", "NOK", "DKK", "ISK"))}
"""What a name may be of that several currencies have; None: of any."""
HAN_OR_KANA = tuple(word for word in CURRENCIES if len(word) > 1 and "\u3000" < word[0] < "\uff00")
"""Names that stand directly behind a number."""
CURRENCY_SIGNS = "".join(word for word in CURRENCIES if unicodedata.category(word[0]) == "Sc")
_ONLY_AFTER_AMOUNTS = words_of("yen won gel php")
"""Short ones that before a number are rather other words: hair gel 500 ml, PHP 8."""
CODES_BEFORE_AMOUNTS = frozenset(word for word in CURRENCIES if word.isascii() and word.isalpha() and len(word) <= 3)
CODES_BEFORE_AMOUNTS -= _ONLY_AFTER_AMOUNTS
ONLY_IN_CAPITALS = words_of("try tl ron")
"""Codes that are other words in lower case."""
CENTS = {
    **dict.fromkeys(words_of("¢ cent cents ct cts centime centimes centavos céntimos"), "¢"),
    **dict.fromkeys(words_of("pence penny p"), "GBP"),
}
"""Hundredths of a currency; ``¢`` is that of several ones."""
LETTERS_BEFORE_DOLLARS = {
    **{"us": "USD", "a": "AUD", "au": "AUD", "c": "CAD", "ca": "CAD", "hk": "HKD", "nz": "NZD", "s": "SGD", "r": "BRL"},
    **{"mx": "MXN", "nt": "TWD"},
}
"""What stands directly before the sign: ``A$``."""


def currency_named(written: str) -> str:
    """The currency of a sign, a code or a name; the empty string if it is another word."""
    low = written.lower()
    return "" if low in ONLY_IN_CAPITALS and not written.isupper() else CURRENCIES.get(low, "")
