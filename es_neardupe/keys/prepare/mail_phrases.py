"""Phrases of mail programs in eleven languages: attributions, headers, marks of forwarded mails, footers.

All expressions are matched against lines in lower case without blanks at the end. None of them ever changes: the
keys of mails depend on them.
"""

from __future__ import annotations

import re

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
    }
)

QUOTED = re.compile(r" {0,3}(?:(?:[>＞]|\| ?[>|]) ?)(?:[>|＞] ?)*")
BARRED = re.compile(r" {0,3}(?:\| )+[^|]*$")
MBOX_FROM = re.compile(r">From ")

_VERBS_LAST = (
    r"(?:wrote|writes|schrieb(?: folgendes)?|schreef|geschreven|a [eé]crit|escribi[oó]|ha scritto|escreveu"
    r"|pisze|napisa[lł](?:\(a\)|a)?|пишет|написал(?:\(а\)|а)?"
    r"|写道|寫道|のメール|書きました|書き込みました|skrev|napsal(?:\(a\)|a)?)"
)
_OPENERS = r"(?:on|am|le|el|il|em|a|op|w dniu|dnia|den|dne|在|---+ on|in article|in message)"
#: Each is matched against one to four lines joined by blanks, in lower case: those with an opening word first.
OPENED, DATED_VERB, ADDRESSED = (
    tuple(map(re.compile, patterns))
    for patterns in (
        (
            # On DATE, NAME wrote:   Le DATE, NAME a écrit :   W dniu DATE NAME pisze:
            rf"{_OPENERS}[ ,].*{_VERBS_LAST} ?(?:\([^()]*\))? ?[:：]",
            # Am DATE schrieb NAME:   Op DATE schreef NAME:   Den DATE skrev NAME:
            r"(?:am|op|den|dne|\S+ den) .*[0-9].* (?:schrieb|schreef|skrev|napsal) .*[:：]",
            # Op DATE heeft NAME het volgende geschreven:
            r"op .*[0-9].* heeft .* geschreven ?[:：]",
            r"wiadomość napisana przez .*[:：]",
            r"(?:quoting|zitat von|citando a|citant|citando) .{1,120}[:：]",
        ),
        (
            # NAME schrieb am DATE:   NAME escreveu em DATE:
            r".* (?:schrieb am|schreef op|wrote on|wrote at|a [eé]crit le|escribi[oó] el|ha scritto il|escreveu (?:em|no dia|na|a)|skrev den|napisa[lł] w dniu)"
            r" .*[0-9].*[:：]",
            # DATE NAME wrote:   DATE, NAME пишет:   NAME <A@B> 于DATE写道：   DATE、NAMEのメール:
            rf".*(?:[0-9]{{4}}|[0-9]{{1,2}}[:.][0-9]{{2}}).*{_VERBS_LAST} ?[:：]",
        ),
        (
            # NAME <A@B> wrote:
            rf".*@.*{_VERBS_LAST} ?[:：]",
            # DATE NAME <A@B>:
            r".*[0-9]{4}.*[0-9]{1,2}[:.][0-9]{2}.*[<(][^<>@ ]+@[^<>@ ]+[>)] ?[:：]",
        ),
    )
)
#: Accepted only if a quoted line follows.
NAME_WROTE = re.compile(rf".{{1,120}}{_VERBS_LAST} ?(?:\([^()]*\))? ?[:：]")
DATED = re.compile(r"[0-9]{4}|[0-9]{1,2}[:.h][0-9]{2}|@")

_ORIGINAL = (
    r"original message|original appointment|ursprüngliche nachricht|originalnachricht|original-nachricht|message d['’]origine"
    r"|message original|mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht|origineel bericht"
    r"|wiadomość oryginalna|oryginalna wiadomość|исходное сообщение|оригинальное сообщение|元のメッセージ|原始邮件|原邮件|原始郵件"
    r"|原始信件|oprindelig meddelelse|ursprungligt meddelande|opprinnelig melding|původní zpráva|reply message"
)
_FORWARDED = (
    r"forwarded message|forwarded by .*|weitergeleitete nachricht|message transféré|message réexpédié|mensaje reenviado"
    r"|messaggio inoltrato|mensagem encaminhada|mensagem reencaminhada|doorgestuurd bericht|treść przekazanej wiadomości"
    r"|wiadomość przekazana dalej|przekazana wiadomość|пересылаемое сообщение|пересылаемое письмо|転送メッセージ|転送されたメッセージ"
    r"|转发的邮件|转发邮件|轉寄郵件|转发信息|轉寄的郵件|videresendt meddelelse|vidarebefordrat meddelande|videresendt melding|přeposlaná zpráva"
)
_FORWARD_BEGINS = (
    r"begin forwarded message|anfang der weitergeleiteten (?:nachricht|e-mail)|début du (?:message|e-mail) (?:réexpédié|transféré)"
    r"|inicio del mensaje reenviado|inizio messaggio inoltrato|início da mensagem (?:reencaminhada|encaminhada)"
    r"|begin doorgestuurd bericht|początek przekazywanej wiadomości|начало (?:переадресованного|пересылаемого) сообщения"
    r"|転送されたメッセージ|下面是被转发的邮件|以下是轉寄的郵件|start på videresendt besked|vidarebefordrat brev"
)
_RULE = r"(?:[-_*=~#+‐-―─] ?){2,}"
ORIGINAL_LINE = re.compile(rf"{_RULE} ?(?:{_ORIGINAL}) ?(?:{_RULE})?[:：]?")
FORWARDED_LINE = re.compile(rf"(?:{_RULE} ?(?:{_FORWARDED}) ?(?:{_RULE})?|(?:{_FORWARD_BEGINS}) ?)[:：]?")
RULE_LINE = re.compile(r"[-_*=~‐-―─ ]{5,}")

_FROM = "from|von|de|da|van|od|от|от кого|差出人|送信者|发件人|寄件者|寄件人|fra|från"
_OTHER = (
    "sent|date|to|cc|bcc|subject|reply-to|importance|attachments|organization|gesendet|datum|an|betreff|kopie|antwort an|envoyé|à|objet|copie"
    "|pièces jointes|enviado|enviado el|enviado a|enviado em|enviada|enviada em|fecha|para|asunto|assunto|inviato|data|a|oggetto|verzonden|aan|onderwerp|wysłano|wysłane"
    "|do|dw|temat|отправлено|дата|кому|копия|тема|送信日時|日時|日付|宛先|件名|发送时间|日期|时间|收件人|抄送|主题|寄件日期|傳送時間|收件者"
    "|副本|主旨|sendt|dato|til|emne|kopi|skickat|till|ämne|odesláno|komu|předmět"
)
HEADER = re.compile(rf"[*_ ]{{0,3}}(?:(?P<sender>{_FROM})|(?:{_OTHER}))[*_ ]{{0,3}}[:：].*")
SUBJECT_OR_DATE = re.compile(
    r"[*_ ]{0,3}(?:sent|date|subject|gesendet|datum|betreff|envoyé|objet|enviado.*|enviada.*|fecha|asunto|assunto|inviato|data|oggetto"
    r"|verzonden|onderwerp|wysłano|wysłane|temat|отправлено|дата|тема|送信日時|日時|日付|件名|发送时间|日期|时间|主题|寄件日期|傳送時間|主旨|sendt|dato"
    r"|emne|skickat|ämne|odesláno|předmět)[*_ ]{0,3}[:：].*"
)

SIGNATURE = re.compile(r"(?:--|—|__) ?")
UNDERSCORES = re.compile(r"_{20,}")
MOBILE = re.compile(
    r"(?:sent (?:from|via|with) (?:my |the |a )?\S.{0,60}|get outlook for .{1,40}|(?:von|aus) meinem .{1,40} gesendet|gesendet (?:von|mit|aus) .{1,60}"
    r"|envoy[eé] (?:de|depuis|à partir de) .{1,60}|enviado (?:desde|do|de|a partir do) .{1,60}|inviato (?:da|dal) .{1,60}"
    r"|verstuurd (?:vanaf|met|vanuit) .{1,60}|verzonden (?:vanaf|met|vanuit) .{1,60}|wysłan[eo] (?:z|za pomocą) .{1,60}|отправлено (?:с|из) .{1,60}"
    r"|.{1,40}から送信|发自我的.{1,40}|发自.{1,40}|從我的.{1,40}傳送|從我的.{1,40}寄出|sendt fra .{1,60}|skickat från .{1,60}|odesláno z .{1,60})"
)

# What most lines lack: a look at it saves the expressions.

QUOTE_MARKS = (">", "＞", "|")
SIGNATURE_STARTS = ("-", "—", "_")
SEPARATOR_STARTS = (
    *"-_*=~#+─‐‑‒–—―",
    *("begin", "anfang", "début", "inicio", "inizio", "início", "początek", "начало"),
    *("転送", "下面", "以下", "start", "vidarebefordrat"),
)
_FOOTER_STARTS = (
    *("sent ", "get outlook", "von ", "aus ", "gesendet", "envoy", "enviado", "inviato", "verstuurd", "verzonden"),
    *("wysłan", "отправлено", "发自", "從我的", "sendt", "skickat", "odesláno"),
)


def has_colon(line: str) -> bool:
    """Whether a line may be a header."""
    return ":" in line or "：" in line


def may_be_footer(line: str) -> bool:
    """Whether a line may be that of a program."""
    return line.startswith(_FOOTER_STARTS) or line.endswith("から送信")
