"""Months, weekdays, times of day and decades in words."""

from __future__ import annotations

from es_neardupe.similarity.facts.word_lists import numbered, words_of

MONTHS = numbered(
    1,
    """
    january jan janvier janv enero ene januar jänner gennaio janeiro januari stycznia января
    february feb februari février févr febrero febr februar febbraio fevereiro lutego февраля
    march mar mars marzo märz mrz março maart marca marts марта
    april apr avril avr abril abr aprile kwietnia апреля
    may mai mayo maggio maio mei maj maja мая
    june jun juin junio juni giugno junho czerwca июня
    july jul juillet juil julio juli luglio julho lipca июля
    august aug août agosto ago augustus augusti sierpnia августа
    september sep sept septembre septiembre settembre setembro września сентября
    october oct octobre octubre oktober okt ottobre outubro października октября
    november nov novembre noviembre novembro listopada ноября
    december dec décembre déc diciembre dic dezember dez dicembre dezembro desember grudnia декабря
    """,
)
MONTHS |= numbered(
    1,
    """
    ledna ocak ιανουαρίου
    února şubat φεβρουαρίου
    března mart μαρτίου
    dubna nisan απριλίου
    května mayıs μαΐου μαίου
    června haziran ιουνίου
    července temmuz ιουλίου
    srpna ağustos αυγούστου
    září eylül σεπτεμβρίου
    října ekim οκτωβρίου
    listopadu kasım νοεμβρίου
    prosince aralık δεκεμβρίου
    """,
)
MONTHS |= numbered(
    1,
    """
    січня يناير जनवरी ינואר בינואר
    лютого فبراير फरवरी פברואר בפברואר
    березня مارس मार्च מרץ במרץ
    квітня أبريل ابريل अप्रैल אפריל באפריל
    травня مايو मई מאי במאי
    червня يونيو जून יוני ביוני
    липня يوليو जुलाई יולי ביולי
    серпня أغسطس अगस्त אוגוסט באוגוסט
    вересня سبتمبر सितंबर सितम्बर ספטמבר בספטמבר
    жовтня أكتوبر अक्टूबर אוקטובר באוקטובר
    листопада نوفمبر नवंबर नवम्बर נובמבר בנובמבר
    грудня ديسمبر दिसंबर दिसम्बर דצמבר בדצמבר
    """,
)
OFTEN_OTHER_WORDS = words_of("mar may dec mai")
"""Months that are other words too, if they are written in lower case: no date in ``it may 3``."""
NOT_A_MONTH_ALONE = words_of("may mar jan dec march maja mei maj marca mart nisan ekim ocak")
BEFORE_MONTHS = words_of(
    """
    in until till til since by of early mid late during from to through after before next last this each every
    en fin début depuis dès le du au im seit bis ab ende anfang mitte desde hasta
    """
)
"""Words after which they are months: ``in May``, ``end of March``."""
AFTER_MONTHS = words_of("ayı ayında ayının ayına ayından ayınca")
"""The same before these: ``Ocak ayında``."""
BEFORE_MONTHS_IN_FRENCH = words_of("en fin début depuis dès le du au mi courant")
"""Words after which these are months in lower case, too: ``en mai``, ``le 5 mars``."""
MONTHS_IN_FRENCH = words_of("mars mai juin")
NOT_BEFORE_A_YEAR = frozenset(("march", "mars"))
"""Months that are other words too: in lower case after a day, only with a year."""

MONTHS_IN_LOWER_CASE = (
    frozenset(word for word in MONTHS if len(word) > 3)
    - words_of("march sept mars mart maart marca marta marts juin juil janv févr febr")
    - NOT_A_MONTH_ALONE
)
"""Those that are no other words in lower case."""

WEEKDAYS = numbered(
    1,
    """
    monday mon montag lundi lunes
    tuesday tue tues dienstag mardi martes
    wednesday wed mittwoch mercredi miércoles
    thursday thu thurs donnerstag jeudi jueves
    friday fri freitag vendredi viernes
    saturday sat samstag sonnabend samedi sábado
    sunday sun sonntag dimanche domingo
    """,
)
WEEKDAYS_IN_LOWER_CASE = numbered(
    1,
    """
    monday montag lundi lunes понедельник понедельника الاثنين सोमवार
    tuesday dienstag mardi martes вторник вторника الثلاثاء मंगलवार
    wednesday mittwoch mercredi miércoles среду الأربعاء बुधवार
    thursday donnerstag jeudi jueves четверг четверга الخميس गुरुवार
    friday freitag vendredi viernes пятницу пятницы الجمعة शुक्रवार
    saturday samstag samedi sábado субботу субботы السبت शनिवार
    sunday sonntag dimanche domingo воскресенье воскресенья रविवार
    """,
)
WEEKDAYS_IN_LOWER_CASE |= numbered(
    1,
    """
    lunedì maandag poniedziałek poniedziałku pondělí понеділок понеділка pazartesi måndag mandag hétfő hétfőn luni
    martedì dinsdag wtorek wtorku úterý вівторок вівторка salı tisdag tirsdag kedd kedden marți
    mercoledì woensdag środa środę środy středa středu середа середу середи çarşamba onsdag szerda szerdán miercuri
    giovedì donderdag czwartek czwartku čtvrtek čtvrtka четвер четверга perşembe torsdag csütörtök csütörtökön joi
    venerdì vrijdag piątek piątku pátek pátku cuma fredag péntek pénteken vineri
    sabato zaterdag sobota sobotę soboty sobotu субота суботи cumartesi lördag lørdag szombat szombaton sâmbătă
    domenica zondag niedziela niedzielę niedzieli neděle neděli неділя неділю неділі söndag søndag vasárnap duminică
    """,
)
"""Those that are no other words in lower case."""
WEEKDAYS |= WEEKDAYS_IN_LOWER_CASE
NOT_A_WEEKDAY_ALONE = words_of("mon wed sat sun")
"""Weekdays that are other words too: only next to another weekday, as in ``Mon-Fri``, before a number or a month, or
after these words."""
BEFORE_WEEKDAYS = words_of("on every each until till from by next last this")

DECADES = numbered(2, "twenties\nthirties\nforties\nfifties\nsixties\nseventies\neighties\nnineties")
BEFORE_DECADES = words_of("the early late mid his her their")
"""Before ``90s``, which are seconds elsewhere."""
YEARS_OF_DECADES = words_of("années años anni anos")
"""Before ``90``: a decade."""

HOURS = {"noon": "12:00", "midday": "12:00", "midnight": "0:00"}
PARTS_OF_HOURS = {"half past": 30, "quarter past": 15, "quarter to": -15}
"""Words before an hour, and the minutes that they add."""
PARTS_OF_DAY = {
    **dict.fromkeys(("in the morning", "de la mañana", "du matin", "da manhã", "del mattino", "di mattina"), 0),
    **dict.fromkeys(("morgens", "vormittags"), 0),
    **dict.fromkeys(("in the afternoon", "in the evening", "at night", "de la tarde", "de la noche"), 12),
    **dict.fromkeys(
        ("de l'après-midi", "de l’après-midi", "du soir", "da tarde", "da noite", "del pomeriggio", "di sera"), 12
    ),
    **dict.fromkeys(("nachmittags", "abends"), 12),
}
"""Words after an hour, and the hours that they add."""
PARTS_OF_DAY_AFTER_HOURS = {"утра": 0, "ночи": 0, "дня": 12, "вечера": 12}
"""The same, but only after the word hour: ``3 дня`` are days."""
HALVES_OF_DAY = {
    **dict.fromkeys(("午前", "上午", "凌晨", "早上", "清晨", "오전"), 0),
    **dict.fromkeys(("午後", "下午", "傍晚", "晚上", "中午", "오후"), 12),
}
"""Words before an hour."""
BEFORE_HOURS = words_of("kl klo godz godzinie ore")
"""Before a number: a time of day, ``kl. 15``."""
CLOCKS = words_of("uhr uur")
"""The same after a number."""
