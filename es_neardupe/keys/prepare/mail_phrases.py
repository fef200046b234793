"""Phrases of mail programs in some thirty languages: attributions, headers, marks of forwarded mails, footers.

Phrases and expressions are matched against lines in lower case without blanks at the end. None of them ever changes:
the keys of mails depend on them. ``_mail.c`` is given the same phrases, and does by hand what the expressions say.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BLANKS = str.maketrans(
    {
        "\u00a0": " ",
        "\u202f": " ",
        "\u2007": " ",
        "\t": " ",
        "\u200b": None,
        "\u200e": None,
        "\u200f": None,
        "\ufeff": None,
        **dict.fromkeys(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))),  # directions of writing
    }
)


def _any(phrases: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, phrases))


QUOTED = re.compile(r" {0,3}(?:(?:[>＞]|\| ?[>|]) ?)(?:[>|＞] ?)*")
BARRED = re.compile(r" {0,3}(?:\| )+[^|]*$")
MBOX_FROM = re.compile(r">From ")

VERBS = (
    *("wrote", "writes", "schrieb", "schrieb folgendes", "schreef", "geschreven", "a ecrit", "a écrit", "escribio"),
    *("escribió", "ha scritto", "escreveu", "pisze", "napisal", "napisal(a)", "napisala", "napisał", "napisał(a)"),
    *(
        "napisała",
        "пишет",
        "написал",
        "написал(а)",
        "написала",
        "写道",
        "寫道",
        "のメール",
        "書きました",
        "書き込みました",
    ),
    *("skrev", "napsal", "napsal(a)", "napsala"),
)
"""What ends an attribution: ``wrote``."""

OPENERS = (
    *("on", "am", "le", "el", "il", "em", "a", "op", "w dniu", "dnia", "den", "dne", "在", "in article", "in message"),
)
"""What begins one: ``on``. So do three dashes or more with ``on``."""

DATE_OPENERS = ("am", "op", "den", "dne")
VERBS_BETWEEN = ("schrieb", "schreef", "skrev", "napsal")
"""Verbs between a date, which one of `DATE_OPENERS` or a word and ``den`` opens, and the name."""

QUOTING = ("quoting", "zitat von", "citando a", "citant", "citando")
PASSED_ON = "wiadomość napisana przez"
VERBS_BEFORE_DATES = (
    *("schrieb am", "schreef op", "wrote on", "wrote at", "a ecrit le", "a écrit le", "escribio el", "escribió el"),
    *("ha scritto il", "escreveu em", "escreveu no dia", "escreveu na", "escreveu a", "skrev den", "napisal w dniu"),
    "napisał w dniu",
)

_VERBS = f"(?:{_any(VERBS)})"
_OPENER = rf"(?:{_any(OPENERS)}|---+ on)[ ,]"
_TIME = r"[0-9]{1,2}[:.][0-9]{2}"
#: Each is matched against one to four lines joined by blanks, in lower case: those with an opening word first.
OPENED, DATED_VERB, ADDRESSED = (
    tuple(map(re.compile, patterns))
    for patterns in (
        (
            # On DATE, NAME wrote:   Le DATE, NAME a écrit :   W dniu DATE NAME pisze:
            rf"{_OPENER}.*{_VERBS} ?(?:\([^()]*\))? ?[:：]",
            # Am DATE schrieb NAME:   Op DATE schreef NAME:   Den DATE skrev NAME:
            rf"(?:{_any(DATE_OPENERS)}|\S+ den) .*[0-9].* (?:{_any(VERBS_BETWEEN)}) .*[:：]",
            # Op DATE heeft NAME het volgende geschreven:
            r"op .*[0-9].* heeft .* geschreven ?[:：]",
            rf"{PASSED_ON} .*[:：]",
            rf"(?:{_any(QUOTING)}) .{{1,120}}[:：]",
        ),
        (
            # NAME schrieb am DATE:   NAME escreveu em DATE:
            rf".* (?:{_any(VERBS_BEFORE_DATES)}) .*[0-9].*[:：]",
            # DATE NAME wrote:   DATE, NAME пишет:   NAME <A@B> 于DATE写道：   DATE、NAMEのメール:
            rf".*(?:[0-9]{{4}}|{_TIME}).*{_VERBS} ?[:：]",
        ),
        (
            # NAME <A@B> wrote:
            rf".*@.*{_VERBS} ?[:：]",
            # DATE NAME <A@B>:
            rf".*[0-9]{{4}}.*{_TIME}.*[<(][^<>@ ]+@[^<>@ ]+[>)] ?[:：]",
        ),
    )
)
#: Accepted only if a quoted line follows.
NAME_WROTE = re.compile(rf".{{1,120}}{_VERBS} ?(?:\([^()]*\))? ?[:：]")
_ADDRESS = r"[<(][^<>@ ]+@[^<>@ ]+[>)]"
#: With a date and an address in brackets, in any language. Accepted only if a quoted line follows.
DATED_ADDRESS = (
    re.compile(rf".*(?:[0-9]{{4}}|{_TIME}).*{_ADDRESS}.*[:：]"),
    re.compile(rf".*{_ADDRESS}.*(?:[0-9]{{4}}|{_TIME}).*[:：]"),
)
ADDRESS_WROTE = re.compile(rf".*{_ADDRESS} {_VERBS} ?[:：]")
DATED = re.compile(r"[0-9]{4}|[0-9]{1,2}[:.h][0-9]{2}|@")
OPENER = re.compile(_OPENER)
YEAR = re.compile(r"[0-9]{4}")
CLOCK = re.compile(r"[0-9]:[0-9]{2}")
SENTENCE_END = re.compile(r"(?:[!?]|[0-9a-z:]{2}\.)$")
"""What no line of an attribution but the last one ends with; not "a.m.", which one may."""

ORIGINALS = (
    *("original message", "original appointment", "ursprüngliche nachricht", "originalnachricht", "original-nachricht"),
    *("message d'origine", "message d’origine", "message original", "mensaje original", "messaggio originale"),
    *(
        "mensagem original",
        "oorspronkelijk bericht",
        "origineel bericht",
        "wiadomość oryginalna",
        "oryginalna wiadomość",
    ),
    *("исходное сообщение", "оригинальное сообщение", "元のメッセージ", "原始邮件", "原邮件", "原始郵件", "原始信件"),
    *("oprindelig meddelelse", "ursprungligt meddelande", "opprinnelig melding", "původní zpráva", "reply message"),
    *("oprindelig besked", "alkuperäinen viesti", "eredeti üzenet", "orijinal mesaj", "özgün ileti", "원본 메시지"),
    *("원본 메일", "αρχικό μήνυμα", "оригінальне повідомлення", "mesaj original", "missatge original", "pesan asli"),
    *("thư gốc", "pôvodná správa", "הודעה מקורית", "الرسالة الأصلية"),
)
FORWARDS = (
    *("forwarded message", "weitergeleitete nachricht", "message transféré", "message réexpédié", "mensaje reenviado"),
    *("messaggio inoltrato", "mensagem encaminhada", "mensagem reencaminhada", "doorgestuurd bericht"),
    *("treść przekazanej wiadomości", "wiadomość przekazana dalej", "przekazana wiadomość", "пересылаемое сообщение"),
    *(
        "пересылаемое письмо",
        "転送メッセージ",
        "転送されたメッセージ",
        "转发的邮件",
        "转发邮件",
        "轉寄郵件",
        "转发信息",
    ),
    *("轉寄的郵件", "videresendt meddelelse", "vidarebefordrat meddelande", "videresendt melding", "přeposlaná zpráva"),
    *("videresendt besked", "välitetty viesti", "továbbított üzenet", "yönlendirilen mesaj", "iletilen ileti"),
    *("전달된 메시지", "전달된 메일", "προωθημένο μήνυμα", "переслане повідомлення", "mesaj redirecționat"),
    *("missatge reenviat", "pesan terusan", "pesan yang diteruskan", "tin nhắn được chuyển tiếp", "preposlaná správa"),
    *("הודעה שהועברה", "رسالة معاد توجيهها"),
)
FORWARDED_BY = "forwarded by "
FORWARDS_WITHOUT_RULE = (
    *("begin forwarded message", "anfang der weitergeleiteten nachricht", "anfang der weitergeleiteten e-mail"),
    *("début du message réexpédié", "début du message transféré", "début du e-mail réexpédié"),
    *("début du e-mail transféré", "inicio del mensaje reenviado", "inizio messaggio inoltrato"),
    *("início da mensagem reencaminhada", "início da mensagem encaminhada", "begin doorgestuurd bericht"),
    *("początek przekazywanej wiadomości", "начало переадресованного сообщения", "начало пересылаемого сообщения"),
    *("転送されたメッセージ", "下面是被转发的邮件", "以下是轉寄的郵件", "start på videresendt besked"),
    "vidarebefordrat brev",
)
_RULE = r"(?:[-_*=~#+‐-―─] ?){2,}"
ORIGINAL_LINE = re.compile(rf"{_RULE} ?(?:{_any(ORIGINALS)}) ?(?:{_RULE})?[:：]?")
FORWARDED_LINE = re.compile(
    rf"(?:{_RULE} ?(?:{_any(FORWARDS)}|{FORWARDED_BY}.*) ?(?:{_RULE})?|(?:{_any(FORWARDS_WITHOUT_RULE)}) ?)[:：]?"
)
RULE_LINE = re.compile(r"[-_*=~‐-―─ ]{5,}")
FIELD = re.compile(r"([a-z][a-z0-9-]*):")
"""The beginning of a header of a message as it is sent."""
NUMBERED_PART = re.compile(r"message: ?[0-9]+")
DIGEST_RULE, PART_RULE = "-" * 70, "-" * 30
"""Lines of a digest: above the headers of a part, and, by RFC 1153, before the first part and between parts."""

SENDERS = (
    *("from", "von", "de", "da", "van", "od", "от", "от кого", "差出人", "送信者", "发件人", "寄件者", "寄件人", "fra"),
    *(
        "från",
        "lähettäjä",
        "feladó",
        "küldő",
        "kimden",
        "gönderen",
        "보낸 사람",
        "보낸사람",
        "από",
        "від",
        "de la",
        "từ",
    ),
    *("dari", "מאת", "من"),
)
"""Headers with the sender."""
SUBJECTS = (
    *("subject", "betreff", "objet", "asunto", "assunto", "oggetto", "onderwerp", "temat", "тема", "件名"),
    *("主题", "主旨", "emne", "ämne", "předmět", "aihe", "tárgy", "konu", "제목", "θέμα", "subiect", "assumpte"),
    *("chủ đề", "tiêu đề", "subjek", "perihal", "predmet", "zadeva", "относно", "נושא", "الموضوع"),
)
DATES = (
    *("sent", "date", "gesendet", "datum", "envoyé", "enviado", "enviado el", "enviado a", "enviado em"),
    *("enviada", "enviada em", "fecha", "inviato", "data", "verzonden", "wysłano", "wysłane", "отправлено"),
    *(
        "дата",
        "送信日時",
        "日時",
        "日付",
        "发送时间",
        "日期",
        "时间",
        "寄件日期",
        "傳送時間",
        "sendt",
        "dato",
        "skickat",
    ),
    *("odesláno", "lähetetty", "päivämäärä", "elküldve", "dátum", "gönderilme", "gönderildi", "tarih"),
    *("보낸 날짜", "보낸날짜", "날짜", "αποστολή", "στάλθηκε", "ημερομηνία", "надіслано", "відправлено", "trimis"),
    *("enviat", "đã gửi", "ngày", "terkirim", "dikirim", "tanggal", "odoslané", "poslano", "изпратено"),
    *("נשלח", "תאריך", "تم الإرسال", "التاريخ"),
)
OTHER_HEADERS = (
    *("to", "cc", "bcc", "reply-to", "importance", "attachments", "organization", "an", "kopie", "antwort an", "à"),
    *("copie", "pièces jointes", "para", "a", "aan", "do", "dw", "кому", "копия", "宛先", "收件人", "抄送", "收件者"),
    *("副本", "til", "kopi", "till", "komu", "vastaanottaja", "kopio", "címzett", "másolat", "másolatot kap", "kime"),
    *(
        "bilgi",
        "받는 사람",
        "받는사람",
        "참조",
        "προς",
        "προσ",
        "κοιν",
        "κοινοποίηση",
        "копія",
        "către",
        "per a",
        "đến",
        "kepada",
    ),
    *("ke", "kópia", "za", "до", "копие", "אל", "עותק", "إلى", "نسخة"),
)
HEADER = re.compile(
    rf"[*_ ]{{0,3}}(?:(?P<sender>{_any(SENDERS)})|(?P<subject>{_any(SUBJECTS)})|(?P<date>{_any(DATES)})"
    rf"|(?:{_any(OTHER_HEADERS)}))"
    r"[*_ ]{0,3}[:：].*"
)

FORWARD_SUBJECTS = (
    *("fw", "fwd", "wg", "tr", "rv", "i", "enc", "doorst", "vb", "vl", "pd", "tov", "ilt", "i\u0307lt", "πρθ", "הועבר"),
    *("转发", "轉寄", "転送", "전달"),
)
"""What the subject of a mail begins with that passes another one on. Not ``vs``, which Finnish programs answer with."""
FORWARD_SUBJECT = re.compile(rf"(?:\[[^\[\]]*\] ?)?(?:{_any(FORWARD_SUBJECTS)}) ?[:：]")
FORWARD_HEADER = re.compile(rf"[*_ ]{{0,3}}(?:{_any(SUBJECTS)})[*_ ]{{0,3}}[:：][*_ ]*{FORWARD_SUBJECT.pattern}")

SENT_ON = re.compile(
    r"(.{1,120} on )?[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4} [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[ap]m)?(?: [a-z]{3,4})?"
)
"""The date of Lotus Notes, above headers without a sender: after the name, or below it."""
SENT_BY, RESPOND_TO = "sent by:", "please respond to "
"""What its lines above and below this date begin with."""

SIGNATURE = re.compile(r"(?:--|—|__) ?")
MAILING_LIST = (
    *("mailing list", "mailing-list", "mailingliste", "unsubscribe", "groups.io", "abbestellen", "newsletter abmelden"),
    *("désabonner", "désinscrire", "darse de baja", "cancelar la suscripción", "cancelar a inscrição", "disiscriver"),
    *("annullare l'iscrizione", "uitschrijven", "wypisać", "anulować subskrypcję", "avregistrera", "odhlásit"),
    *("отписаться", "отказаться от рассылки", "退订", "退訂", "配信停止", "購読解除"),
)
"""What the footer of a list has near its beginning."""


class Footer(NamedTuple):
    """The line of a program: a phrase, some characters, and perhaps another phrase."""

    begins: str
    most: int
    """Maximum number of characters after it; at least one."""
    ends: str = ""
    filled: bool = False
    """Whether the first of them is no blank."""

    @property
    def expression(self) -> str:
        """What matches it."""
        first = r"(?!\s)" if self.filled else ""
        return rf"{re.escape(self.begins)}{first}.{{1,{self.most}}}{self.ends}"


FOOTERS = (
    *(
        Footer(f"sent {by} {whose}", 61, filled=True)
        for by in ("from", "via", "with")
        for whose in ("", "my ", "the ", "a ")
    ),
    Footer("get outlook for ", 40),
    *(Footer(f"{by} meinem ", 40, " gesendet") for by in ("von", "aus")),
    *(Footer(f"gesendet {by} ", 60) for by in ("von", "mit", "aus")),
    *(Footer(f"{sent} {by} ", 60) for sent in ("envoye", "envoyé") for by in ("de", "depuis", "à partir de")),
    *(Footer(f"enviado {by} ", 60) for by in ("desde", "do", "de", "a partir do")),
    *(Footer(f"inviato {by} ", 60) for by in ("da", "dal")),
    *(Footer(f"{sent} {by} ", 60) for sent in ("verstuurd", "verzonden") for by in ("vanaf", "met", "vanuit")),
    *(Footer(f"{sent} {by} ", 60) for sent in ("wysłane", "wysłano") for by in ("z", "za pomocą")),
    *(Footer(f"отправлено {by} ", 60) for by in ("с", "из")),
    Footer("", 40, "から送信"),
    *(Footer("发自我的", 40), Footer("发自", 40), Footer("從我的", 40, "傳送"), Footer("從我的", 40, "寄出")),
    *(Footer("sendt fra ", 60), Footer("skickat från ", 60), Footer("odesláno z ", 60)),
    *(Footer("从我的", 40, "发送"), Footer("надіслано з ", 60), Footer("trimis de pe ", 60)),
    *(Footer(f"lähetetty {device}", 40) for device in ("iphone", "ipad", "outlook")),
    *(Footer(device, 20, "gönderildi") for device in ("iphone", "ipad")),
    *(Footer(f"{whose} ", 40, "에서 보냄") for whose in ("나의", "내")),
    Footer("στάλθηκε από ", 60),
)
MOBILE = re.compile("|".join(one.expression for one in FOOTERS))

REPLY_ABOVE = (
    *("reply above this line", "please reply above this line", "please type your reply above this line"),
    *("type your reply above this line", "write above this line", "please do not write below this line"),
    *("in replies all text above this line is added to the ticket", "bitte antworten sie oberhalb dieser zeile"),
    *("bitte geben sie ihre antwort oberhalb dieser zeile ein", "veuillez répondre au-dessus de cette ligne"),
    *("veuillez saisir votre réponse au-dessus de cette ligne", "por favor, escriba su respuesta sobre esta línea"),
    *("por favor, escriba su respuesta por encima de esta línea", "por favor, digite sua resposta acima desta linha"),
    *("digite sua resposta acima desta linha", "rispondi sopra questa riga", "digitare la risposta sopra questa riga"),
    *("typ uw antwoord boven deze regel", "beantwoord boven deze regel"),
)
"""Lines of ticket systems, without the marks around them."""
AROUND_REPLY_ABOVE = " .:-_*=~#+\u2010\u2011\u2012\u2013\u2014\u2015\u2500"
"""These marks."""

# What most lines lack: a look at it saves the expressions.

QUOTE_MARKS = (">", "＞", "|")
SIGNATURE_STARTS = ("-", "—", "_")
LIST_FOOTER_STARTS = ("-", "_", "=")
SEPARATOR_STARTS = (
    *"-_*=~#+─‐‑‒–—―",
    *("begin", "anfang", "début", "inicio", "inizio", "início", "początek", "начало"),
    *("転送", "下面", "以下", "start", "vidarebefordrat"),
)
_FOOTER_STARTS = (
    *("sent ", "get outlook", "von ", "aus ", "gesendet", "envoy", "enviado", "inviato", "verstuurd", "verzonden"),
    *(
        "wysłan",
        "отправлено",
        "发自",
        "從我的",
        "sendt",
        "skickat",
        "odesláno",
        "从我的",
        "надіслано",
        "trimis",
        "lähetetty",
    ),
    *("iphone", "ipad", "나의 ", "내 ", "στάλθηκε"),
)


def has_colon(line: str) -> bool:
    """Whether a line may be a header."""
    return ":" in line or "：" in line


def may_be_footer(line: str) -> bool:
    """Whether a line may be that of a program."""
    return line.startswith(_FOOTER_STARTS) or line.endswith("から送信")
