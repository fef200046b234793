"""Words that make facts of numbers, that deny, or that say nothing by themselves, in lower case.

Spelled-out numbers and function words are those of English, German, French and Spanish; docs/facts.md has the others.
"""

from __future__ import annotations

from es_neardupe.similarity.facts.word_lists import numbered, valued, words_of

SPELLED_NUMBERS = valued(
    """
    1 one
    2 two zwei deux dos twice zweimal
    3 three drei trois tres thrice dreimal
    4 four vier quatre cuatro viermal
    5 five fünf cinq cinco
    6 six sechs seis
    7 seven sieben sept siete
    8 eight acht huit ocho
    9 nine neun nueve
    10 ten zehn dix diez
    11 eleven elf onze
    12 twelve zwölf douze doce
    13 thirteen dreizehn treize trece
    14 fourteen vierzehn quatorze catorce
    15 fifteen fünfzehn quinze quince
    16 sixteen sechzehn seize
    17 seventeen siebzehn
    18 eighteen achtzehn
    19 nineteen neunzehn
    20 twenty zwanzig vingt veinte
    30 thirty dreißig trente treinta
    40 forty vierzig quarante cuarenta
    50 fifty fünfzig cinquante cincuenta
    60 sixty sechzig soixante sesenta
    70 seventy siebzig setenta
    80 eighty achtzig ochenta
    90 ninety neunzig noventa
    2 два две двух
    3 три трёх трех
    4 четыре четырёх четырех
    5 пять пяти
    6 шесть шести
    7 семь семи
    8 восемь восьми
    9 девять девяти
    10 десять десяти
    11 одиннадцать
    12 двенадцать
    13 тринадцать
    14 четырнадцать
    15 пятнадцать
    16 шестнадцать
    17 семнадцать
    18 восемнадцать
    19 девятнадцать
    20 двадцать
    30 тридцать
    40 сорок
    50 пятьдесят
    60 шестьдесят
    70 семьдесят
    80 восемьдесят
    90 девяносто
    100 сто
    2 dois duas twee dwa dwie dwóch
    3 tre três drie trzy trzech
    4 quattro quatro cztery czterech
    5 cinque vijf pięć pięciu
    6 zes sześć sześciu
    7 sette sete zeven siedem siedmiu
    8 oito osiem ośmiu
    9 nove negen dziewięć dziewięciu
    10 dieci dez tien dziesięć dziesięciu
    11 undici
    12 dodici doze twaalf dwanaście dwunastu
    13 tredici treze dertien
    14 quattordici catorze veertien czternaście czternastu
    15 quindici vijftien piętnaście piętnastu
    16 sedici dezasseis dezesseis zestien
    17 diciassette dezassete dezessete zeventien siedemnaście siedemnastu
    18 diciotto dezoito achttien
    19 diciannove dezanove dezenove negentien dziewiętnaście dziewiętnastu
    20 venti vinte twintig dwadzieścia dwudziestu yirmi
    30 trenta trinta dertig trzydzieści trzydziestu otuz
    40 quaranta quarenta veertig kırk
    50 cinquanta cinquenta vijftig elli
    60 sessanta sessenta zestig altmış
    70 settanta zeventig yetmiş
    80 ottanta oitenta tachtig seksen
    90 novanta noventa negentig doksan
    100 hundred hundert cent cien einhundert
    12 dozen dutzend douzaine docena
    """
)
_ONES = "ein zwei drei vier fünf sechs sieben acht neun"
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
_AFTER_VEINTI = "uno dós trés cuatro cinco séis siete ocho nueve"
SPELLED_NUMBERS |= {
    f"{ones}und{tens}": SPELLED_NUMBERS[tens] + unit
    for tens in _TENS.split()
    for unit, ones in enumerate(_ONES.split(), 1)
} | {f"veinti{ones}": 20 + unit for unit, ones in enumerate(_AFTER_VEINTI.split(), 1)}
"""With those of German and Spanish that are one word: ``fünfundzwanzig``, ``veinticinco``."""
HUNDREDS = frozenset(("hundred", "hundert"))
BEFORE_CENT = words_of("deux trois quatre cinq sept huit neuf")
"""French numbers that multiply ``cent``; ``six cents`` may be English."""
DOZENS = words_of("dozen dutzend douzaine douzaines docena docenas")
HALVES = words_of("half halbe halbes halben demi")
"""Before a unit or a magnitude: half an hour, half a million."""
POINTS = words_of("point komma virgule")
"""Between the digits of a spelled-out number: three point five."""

ROMAN_NUMBERS = numbered(2, "ii\niii\niv\n\nvi\nvii\nviii\nix")
ROMAN_NUMBERS |= numbered(11, "xi\nxii\nxiii\nxiv\nxv\nxvi\nxvii\nxviii\nxix\nxx\nxxi\nxxii\nxxiii\nxxiv\nxxv")
"""Those of several letters, in capitals."""
AFTER_ONCE = words_of("a an per every each daily weekly monthly yearly annually")
"""``once`` before these is a number."""

ORDINALS = numbered(
    1,
    """
    first erste ersten erster erstes premier première primero primera primer primeiro primeira primo
    second zweite zweiten zweiter zweites deuxième segundo segunda
    third dritte dritten dritter drittes troisième tercero tercera tercer terceiro terceira terzo terza
    fourth vierte vierten vierter viertes quatrième cuarto cuarta quarto quarta
    fifth fünfte fünften fünfter fünftes cinquième quinto quinta
    sixth sechste sechsten sechster sechstes sixième sexto sexta
    seventh siebte siebten siebter siebtes septième séptimo séptima
    eighth achte achten achter achtes huitième octavo octava
    ninth neunte neunten neunter neuntes neuvième noveno novena
    tenth zehnte zehnten zehnter zehntes dixième décimo décima
    eleventh elfte elften elfter elftes onzième
    twelfth zwölfte zwölften zwölfter zwölftes douzième
    thirteenth
    fourteenth
    fifteenth
    sixteenth
    seventeenth
    eighteenth
    nineteenth
    twentieth
    """,
)
ORDINALS |= {word: 10 * tens for tens, word in enumerate(["thirtieth", "fortieth", "fiftieth", "sixtieth"], 3)}
AFTER_ORDINALS = words_of(
    """
    stock stockwerk obergeschoss og etage lebensjahr jahrhundert auflage aufl generation gen klasse platz runde
    spieltag geburtstag
    jahrestag kapitel stelle patro piętro emelet kerros kat etasje sal våning
    """
)
"""Nouns before which a number with a full stop is an ordinal: ``3. Stock``."""
PERIODS = words_of("quartal halbjahr")
"""Parts of a year after an ordinal whose full stop may be missing: ``3 Quartal``."""
ORDINAL_ENDINGS = words_of("st nd rd th er ère re e ème º ª")

MAGNITUDES = valued(
    """
    3 k thousand tausend tsd mille mil
    5 lakh lakhs
    7 crore crores
    6 million millions mio mn m mm millionen millón millones milhão milhões milione milioni mln miljoen milyon
    6 miljon miljoner millioner milion miliony milionů milionów
    9 billion billions bn b mrd milliarde milliarden milliard milliards miliardo miliardi mld miljard milyar
    9 miljarder milliarder miliard miliarda miliardy miliardů miliardów bilhão bilhões
    12 trillion trillions billionen billón billones trilyon
    3 тыс тысяч тысячи тысяча тисяч тисячі ألف آلاف هزار हज़ार हजार
    5 लाख লাখ
    6 млн миллион миллиона миллионов мільйон мільйони мільйонів مليون ملايين میلیون εκατομμύρια εκατ מיליון
    7 करोड़ কোটি
    9 млрд миллиард миллиарда миллиардов мільярд мільярди мільярдів مليار مليارات میلیارد δισεκατομμύρια δισ מיליארד
    """
)
"""Word -> power of ten."""
THOUSANDS = words_of("mil mille thousand")
MILLIONS = frozenset(word for word, power in MAGNITUDES.items() if power == 6 and len(word) > 3)
"""Magnitudes that are a thousand times as large after these: ``mil millones``."""
SPOKEN_MAGNITUDES = words_of("thousand million billion trillion tausend millionen")
"""Those after which a spelled-out number continues: twelve thousand five hundred."""
ONLY_OF_AMOUNTS = words_of("k m b mm mil mille")
"""Magnitudes that need a currency, or to be written as ``10k``: ``5 m`` may be metres."""

UNITS = {
    word: (dimension, float(factor))
    for dimension, factor, *words in map(
        str.split,
        """
        mass 1000 kg kgs kilo kilos kilogram kilograms kilogramm kilogrammes kilogramos chilogrammi
        mass 1 g gr gram grams gramm gramme grammes gramos grammi
        mass 0.001 mg milligram milligrams milligramm milligrammes miligramos
        mass 0.000001 µg μg mcg microgram micrograms
        mass 1000000 tonne tonnes tonnen
        mass 453.592 lb lbs
        mass 28.3495 oz ounce ounces
        volume 1000 l liter liters litre litres litros litri
        volume 1 ml milliliter millilitre milliliters millilitres mililitros
        volume 10 cl centiliter centilitre centilitres
        volume 236.588 cups
        volume 100 dl
        volume 0.001 µl μl
        volume 3785.41 gal gallon gallons
        volume 473.176 pint pints
        volume 14.7868 tbsp tablespoon tablespoons esslöffel
        volume 4.92892 tsp teaspoon teaspoons teelöffel
        length 914.4 yard yards
        length 0.000001 nm
        length 0.001 µm μm
        length 1000 m meter meters metern metre metres mètre mètres metros metri
        length 10 cm centimeter centimeters centimetre centimetres zentimeter centimètres centímetros centimetri
        length 1 mm millimeter millimeters millimetre millimetres millimètres milímetros millimetri
        length 1000000 km kilometer kilometers kilometern kilometre kilometres kilomètres kilómetros chilometri
        length 25.4 inch inches zoll pouces pulgadas pollici
        length 304.8 ft foot feet
        length 1609344 mile miles
        area 1 m² m2 sqm qm quadratmeter quadratmetern
        area 1000000 km² km2
        area 0.0001 cm² cm2
        area 0.000001 mm² mm2
        area 0.09290304 sqft
        volume 1000000 m³ m3 cbm
        volume 1 cm³ cm3 ccm
        speed 1 km/h kmh kph
        speed 3.6 m/s
        speed 1.609344 mph
        area 10000 ha hectare hectares hektar
        area 4046.86 acre acres
        power 1 w watt watts
        power 1000 kw
        power 1000000 mw megawatt megawatts
        voltage 1 v volt volts
        voltage 1000 kv
        voltage 0.001 mv
        charge 0.001 mah
        energy 1 kwh
        energy 0.001 wh
        energy 1000 mwh
        rotation 1 rpm
        substance 1 mmol
        substance 1000 mol
        substance 0.001 µmol μmol
        dose 1 iu
        sound 1 db
        light 1 lm lumen lumens
        pixels 1 px pixel pixels
        pixels 1000000 mp megapixel megapixels
        pictures 1 fps
        density 1 dpi
        heat 4.184 kcal
        heat 1 kj
        heat 0.001 j joule joules
        heat 1000 mj
        pressure 1 hpa mbar
        pressure 10 kpa
        pressure 10000 mpa
        pressure 0.750062 mmhg
        pressure 1000 bar
        pressure 68.9476 psi
        data 1 mb megabyte megabytes
        data 1000 gb gigabyte gigabytes
        data 1000000 tb
        data 0.001 kb
        frequency 0.000001 hz
        frequency 0.001 khz
        frequency 1 mhz
        frequency 1000 ghz
        time 1 s sec second seconds sekunden secondes segundos
        time 60 min minute minutes minuten minutos minuti minuter
        time 0.001 ms
        time 3600 h hr hrs hour hours stunde stunden std heure heures hora horas ore timmar godzin
        time 86400 d day days tag tage tagen jour jours día días dias giorni dagen dagar dager dni
        time 604800 week weeks woche wochen semaine semaines semana semanas settimane weken veckor uker tygodni
        time 2629800 month months monat monate monaten mois mes meses mesi maanden månader måneder miesięcy
        time 31557600 year years jahr jahre jahren ans année années año años anos anni jaar år
        celsius 1 c celsius
        fahrenheit 1 f fahrenheit
        mass 1000 кг
        mass 1 г грамм граммов
        mass 0.001 мг
        mass 1000000 тонн тонны
        volume 1000 л литр литра литров
        volume 1 мл
        length 1000 м метр метра метров
        length 10 см
        length 1 мм
        length 1000000 км
        time 1 секунд секунды
        time 60 минут минуты мин
        time 3600 ч час часа часов
        time 86400 день дня дней
        time 604800 неделя недели недель
        time 2629800 месяц месяца месяцев
        time 31557600 год года лет
        power 1 вт
        power 1000 квт
        bits 1 bit bits
        bits 1000 kbit
        bits 1000000 mbit
        bits 1000000000 gbit
        """.strip().splitlines(),
    )
    for word in words
}
"""Word -> dimension, and how many of its basic unit."""
UNITS_AFTER_A = words_of(
    """
    minute hour day week month year mile kilo kilogram litre liter stunde tag woche monat jahr
    heure jour semaine mois hora día semana mes año
    """
)
"""Units of which there is one after ``a``: ``a minute``. Not ``second``, which may be an ordinal."""
BEFORE_ONE = words_of("a an per ein eine einem einen einer un une una")
"""Words after which something is one, or of one."""
AFTER_A = UNITS_AFTER_A | SPOKEN_MAGNITUDES
UNITS_OF_ONE_LETTER = frozenset("lgmvwhsлгмч")
"""Units that are one letter. Other single letters after a number are usually no units."""
YEARS_AFTER_NUMBERS = words_of("г год года")
"""Units that are the word year after a number that may be one: ``2026 г.``"""
UNITS_AS_WRITTEN = {
    "mW": ("power", 0.001),
    "mV": ("voltage", 0.001),
    "MV": ("voltage", 1_000_000.0),
    "mJ": ("heat", 0.000001),
    "mPa": ("pressure", 0.00001),
    "mA": ("current", 0.001),
    "Ah": ("charge", 1.0),
    "Nm": ("torque", 1.0),
}
"""Units whose meaning depends on capital letters."""
BITS_PER_SECOND = {"kb": "kbit", "mb": "mbit", "gb": "gbit"}
"""Units of data before ``ps`` or ``/s``, unless the last letter is a capital, and those of bits."""
PER = words_of("per pro par por")
DAY, MONTH = 86_400, UNITS["month"][1]
"""Seconds."""
FREQUENCIES = {
    **dict.fromkeys(words_of("hourly stündlich"), DAY / 24),
    **dict.fromkeys(words_of("daily nightly täglich quotidien quotidienne giornaliero dagelijks"), DAY),
    **dict.fromkeys(words_of("weekly wöchentlich hebdomadaire semanal settimanale wekelijks"), 7 * DAY),
    **dict.fromkeys(words_of("fortnightly zweiwöchentlich quincenal"), 14 * DAY),
    **dict.fromkeys(words_of("monthly monatlich mensuel mensuelle mensual mensal mensile maandelijks"), MONTH),
    **dict.fromkeys(words_of("zweimonatlich bimestriel bimestrielle bimestral"), 2 * MONTH),
    **dict.fromkeys(
        words_of("quarterly vierteljährlich quartalsweise trimestriel trimestrielle trimestral trimestrale"), 3 * MONTH
    ),
    **dict.fromkeys(words_of("halbjährlich semestriel semestrielle semestral"), 6 * MONTH),
    **dict.fromkeys(words_of("yearly annually annual jährlich annuel annuelle anual annuale jaarlijks"), 12 * MONTH),
}
"""How often: the seconds between two times, as those of ``per day``."""
WORKING = words_of("business working")
"""Before days that are not those of the calendar."""
NOT_AFTER_PER = frozenset("cfvw")
"""Units that ``per``, or a stroke, does not precede."""

BETWEEN_SIDES = words_of("x by mal sur per por op на")
"""Between the lengths of two sides."""

DEGREES = words_of("° degree degrees deg grad degré degrés grado grados")
SCALES = {"c": "C", "celsius": "C", "f": "F", "fahrenheit": "F"}
SQUARES = words_of("square sq")
"""Before a unit of length: that of an area."""
SQUARES_AFTER = words_of("carré carrés cuadrado cuadrados quadrado quadrados quadrati")
"""The same after it."""
PER_MILLE = frozenset(("‰", "permille", "promille"))
PERCENT = frozenset(("%", "percent", "pct", "prozent", "porciento", *PER_MILLE)) | words_of(
    "процент процента процентов प्रतिशत بالمئة بالمائة درصد"
)
PERCENTAGE_POINTS = words_of("prozentpunkt prozentpunkte prozentpunkten procentenheter procentpoint")
PER_CENT = {"per": "cent", "pour": "cent", "por": "ciento"}
BEFORE_PLACES = words_of("in at near from bei aus nach à")
DIRECTIONS = words_of(
    """
    to into from by against over than before after toward towards nach von zu an gegen über vor als par contre vers
    por contra hacia ante sobre da verso per contro tegen naar przed przeciw
    """
)
"""Between two names: which of them is the first one counts."""
TOGETHER = words_of(
    """
    joined joins join met meets meet along together alongside plus versus vs married accompanied gemeinsam zusammen
    traf trifft treffen rencontre junto insieme samen sowie ainsi así nonché bem evenals oraz ve ile och og as like wie
    well twinned between zwischen entre one other
    """
)
"""Between two names that may change places."""
WITH = words_of("with mit avec con com met z ze ile and und et y e en och og oraz ve и или or oder ou o")
"""Before the second of two such names."""
BEFORE_LETTERS = words_of(
    """
    article clause paragraph paragraphs subparagraph section subsection item point question option answer exercise
    absatz abschnitt buchstabe nummer ziffer aufgabe frage antwort punkt alinéa lettre letra párrafo apartado lettera
    """
)
"""Words before the letter of a part: ``paragraph (b)``."""
FREE = words_of(
    """
    free gratis complimentary kostenlos kostenfrei frei gratuit gratuite gratuits gratuites gratuito gratuita gratuitos
    gratuitas gratuitamente bedava ücretsiz бесплатно бесплатный бесплатная бесплатные
    """
)
"""Words instead of an amount: shipping is ``free``, or ``$5``."""

NEGATIONS = words_of(
    """
    no not never none nor neither nobody nothing nowhere without cannot unable unless except excluding nicht
    kein keine keinen keinem keiner keines nie niemals ohne weder außer ne pas jamais sans aucun aucune ni
    nunca sin ningún ninguna tampoco non senza nessun nessuna niet geen zonder nooit não sem nem nenhum nenhuma
    bez nigdy не нет ни без никогда ikke inte utan uten uden aldrig aldri ingen inget δεν
    není nejsou nelze nebyl nebyla nebylo nebude nemá nemůže nesmí
    değil değildir değilim değilsin değiliz değilsiniz değiller değildi
    ні لا لم لن ليس ليست غير بدون نه नहीं मत बिना না নয় לא אין ללא בלי 안 못 않습니다 않는다 않고 않음 없습니다 없다 없음
    아닙니다 아니다 không chưa tidak bukan tanpa ไม่
    不 没 沒 未 无 無 非 勿
    """
)

AUXILIARIES = words_of("ai are ca could did do does had has have is might must need sha should was were wo would")
"""The words before ``n't``."""
CONTRACTED = {"wo": "will", "ca": "can", "sha": "shall"}
"""Those that have another form there."""

NOT_NEGATED = words_of(
    "with can ever either able always immer toujours siempre sempre ein eine einen einem einer eines"
)
"""Words that are spelled like their negation: with and without, can and cannot, eine and keine."""

BEFORE_CODES = words_of(
    """
    № order invoice ref reference part item case ticket id account po bestellung rechnung auftrag konto kundennummer
    commande facture pedido factura
    """
)
"""Words before a number that is no phone number: ``order 302-1192``."""

AND = words_of("and und et y e con en och")
"""Between two parts of a measure, or an amount and its hundredths."""

FRACTIONS = valued(
    """
    3 thirds drittel tiers tercios
    4 quarters viertel cuartos
    5 fifths fünftel
    6 sixths sechstel
    8 eighths achtel
    10 tenths zehntel
    """
)
FRACTIONS_OF_ONE = valued("3 third\n4 quarter\n5 fifth\n6 sixth\n8 eighth\n10 tenth")
"""After ``a`` or ``one``, and before ``of``."""
QUARTERS = words_of("quarter quartal trimestre")
HALF_YEARS = words_of("halbjahr semestre semester")
"""After an ordinal: a part of a year."""
NUMBER_SIGNS = words_of("no nos n n° nr number numbers nº numéro número nummer")
"""Before a number: its sign, ``No. 5``."""
NUMBERED = words_of(
    """
    № version release v section sections article chapter title part rule python clause kapitel abschnitt artikel
    absatz paragraph sec no nr
    """
)
"""Words before a number whose final zeros count: version 2.10 is not 2.1."""

COUNTED = words_of(
    """
    views view comments comment likes shares hits visits visitors replies downloads ratings reviews kommentare
    aufrufe commentaires vues comentarios visitas
    """
)
"""What websites count on every page."""

PIECES = words_of("pack packs pk pc pcs piece pieces ct stk stück pièces pezzi piezas")
"""Words that count as function words, also in capitals."""
FUNCTION_WORDS = PIECES | words_of(
    """
    a an the and or but of in on at to for from by with as is are was were be been being this that these those
    it its he she they his her their we us our you your i my who which what when where how has have had do does
    did will would can could may might shall should must if than then so such also there here all any each
    both more most other some same into over under about after before during between through up down out off
    only own very just der die das ein eine einen einem einer eines und oder aber von zu im am auf für mit aus
    bei nach ist sind war wird werden dass sich es er sie wir le la les un une des du de et ou mais dans sur
    pour par avec est sont que qui il elle el los las una y o pero en con por para son se su said says say
    according per je today yesterday tomorrow announced ø dia
    """
)
ABBREVIATED = {
    long: shorts.split(",")
    for long, shorts in (
        line.split()
        for line in """
        page p,pp
        tablets tabs
        год г
        года г
        году г
        baujahr bj
        erdgeschoss eg
        obergeschoss og
        untergeschoss ug
        dachgeschoss dg
        saint st
        street st,str
        road rd
        boulevard blvd
        mount mt
        fort ft
        limited ltd
        brothers bros
        department dept
        government govt
        international intl
        gesellschaft ges
        strasse str
        fiscal fy
        company co
        corporation corp
        incorporated inc
        university univ
        avenue ave
        unitedstatesofamerica us,usa
        """.strip().splitlines()
    )
}
"""Words with the abbreviations that are neither their beginning nor similar enough, or that names have without a full
stop."""
SPELLINGS = {
    "grey": "gray",
    "jewell": "jewel",
    "tyre": "tire",
    "cheque": "check",
    "kerb": "curb",
    "plough": "plow",
    "draught": "draft",
    "disc": "disk",
    "manoeuv": "maneuv",
    "cosy": "cozy",
    "cosi": "cozi",
    "sulph": "sulf",
    "whilst": "while",
    "learnt": "learned",
    "burnt": "burned",
    "spelt": "spelled",
    "doughnut": "donut",
    "dyke": "dike",
    "gaol": "jail",
    "photo": "foto",
    "delphin": "delfin",
    "yoghourt": "yaourt",
}
"""Beginnings of words with another spelling that is not similar enough."""
_ABBREVIATED = words_of(
    """
    mr mrs ms mx messrs dr prof rev capt cmdr col lt maj sgt sen sens rep reps gov mme mlle sr sra srta
    dott avv mevr dhr
    """
)
ABBREVIATED_TITLES = _ABBREVIATED | words_of("hr hrn hon st gen adm pres fr dipl ing med phil rer nat jur mm sig dra")
"""Before a name: a full stop after one ends no sentence."""
_ADDRESSES = words_of(
    """
    miss mister herr herrn frau monsieur madame mademoiselle señor señora señorita signor signora senhor senhora sayın
    """
)
TITLES = (
    _ABBREVIATED
    | _ADDRESSES
    | words_of(
        """
        senator senators representative representatives congressman congresswoman president chairman secretary governor
        mayor u s
        """
    )
)
"""Titles of address and of offices, which are no part of a name, with those of ``U.S. Senator``; but not those that are
also names or other words."""
BEFORE_NAMES = (
    ABBREVIATED_TITLES
    | _ADDRESSES
    | words_of(
        """
        don doña pan pani dear hello hi hey liebe lieber geehrte geehrter hallo cher chère bonjour estimado estimada
        querido querida hola caro cara gentile buongiorno ciao prezado prezada olá beste geachte kære kära
        szanowny szanowna уважаемый уважаемая merhaba
        """
    )
)
"""Titles of address and greetings."""
