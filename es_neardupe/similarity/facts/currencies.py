"""Currencies, their signs, codes and names, and their hundredths."""

from __future__ import annotations

from es_neardupe.similarity.facts.word_lists import words_of

CURRENCIES = {
    word: currency
    for currency, words in {
        "USD": "$ usd dollar dollars dólares доллар доллара долларов دولار डॉलर",
        "EUR": "€ eur euro euros евро євро ευρώ يورو یورو यूरो אירו",
        "GBP": "£ gbp pound pounds",
        "CHF": "chf francs franken",
        "JPY": "¥ jpy yen 円",
        "INR": "₹ inr rs rupee rupees रुपये रुपए रुपया रु",
        "MXN": "pesos",
        "PLN": "pln zł złotych",
        "CZK": "czk kč",
        "KR": "kr sek nok dkk kronor kroner",  # which of them ``kr`` is cannot be known
        "RUB": "₽ rub руб рубль рубля рублей",
        "UAH": "₴ uah грн гривня гривні гривень",
        "TRY": "₺",
        "KRW": "₩ krw won 원",
        "ILS": "₪ ils שקל שקלים",
        "CNY": "cny rmb yuan 元",
        "SAR": "sar riyal riyals ريال",
        "AED": "aed dirham dirhams درهم",
        "EGP": "egp جنيه",
        "IRR": "irr ریال",
        "IRT": "تومان",
        "THB": "฿ thb baht บาท",
        "BDT": "৳ bdt taka টাকা",
        "VND": "₫ vnd đồng",
        "NGN": "₦ ngn naira",
        "PHP": "₱",
        "KZT": "₸ kzt тенге",
        "GEL": "₾ gel",
        "AUD": "aud",
        "CAD": "cad",
        "BRL": "brl reais",
    }.items()
    for word in words.split()
}
CURRENCY_SIGNS = "$€£¥₹₽₴₺₩₪฿৳₫₦₱₸₾"
CODES_BEFORE_AMOUNTS = words_of("usd eur gbp chf jpy inr rs pln czk kr sek nok dkk rub uah krw ils cny rmb aud cad brl")
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
