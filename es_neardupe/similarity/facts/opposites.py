"""Words that look alike, or say little by themselves, and are opposites: with one instead of the other, a text says
something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Of ``more,most/less``, each before the stroke with each after it."""
    for part in text.split():
        ones, others = part.split("/")
        yield from product(ones.split(","), others.split(","))


_WORDS = {
    frozenset(pair)
    for pair in _pairs(
        """
        and/or before/after over/under above/below more/less most/least more/fewer may/must
        may/shall can/must can/shall should/must might/must could/must all/some all/any all/none any/none both/neither
        from/until since/until von/bis desde/hasta first/last erste/letzte ersten/letzten erster/letzter premier/dernier
        première/dernière primero/último primera/última he/she his/her him/her himself/herself il/elle él/ella
        to/from nach/aus mr/mrs,ms,miss herr,herrn/frau monsieur/madame señor/señora sr/sra
        today,tonight/tomorrow,yesterday tomorrow,tonight/yesterday heute/gestern,morgen hoy/ayer,mañana hier/demain
        pc/mac,xbox,switch left,right/both ground/first,second,third,top,upper
        und/oder vor/nach mehr/weniger kann/muss darf/muss et/ou avant/après plus/moins y/o antes/después más/menos
        """
    )
}
_STATES = {
    frozenset(pair)
    for pair in _pairs(
        """
        accepted,accepts,accept/rejected,rejects,reject,refused,refuses,refuse,declined,declines,decline,denied,failed
        approved,approves,approve/rejected,rejects,reject,denied,denies,deny,refused,refuses,vetoed
        granted,grants,grant/denied,denies,deny,refused,refuses,refuse,rejected,revoked
        allowed,allows,allow,permitted,permits/forbidden,forbids,forbid,prohibited,prohibits,denied,blocked,banned
        confirmed,confirms,confirm/denied,denies,deny,rejected
        supported,supports,support/opposed,opposes,oppose
        passed,passes,pass,succeeded,succeeds,succeed,successful,completed,finished/failed,fails,fail,aborted,cancelled
        started,starts,start,began,begins,begin/stopped,stops,stop,ended,ends,end,finished,finishes,completed,failed
        opened,opens,open,opening/closed,closes,close,closing,shut
        added,adds,add,created,creates,create/removed,removes,remove,deleted,deletes,delete,destroyed
        enabled,enables,enable/disabled,disables,disable
        increased,increases,increase,increasing/decreased,decreases,decrease,decreasing
        rose,rises,rise,risen,rising,climbed,gained/fell,falls,fall,fallen,falling,dropped,drops,declined,declines,lost
        gain,gains,profit,profits/loss,losses
        won,wins,win,winning/lost,loses,lose,losing
        bought,buys,buy,buying/sold,sells,sell,selling
        up/down in/out on/off for/against true/false positive/negative guilty/innocent alive/dead present/absent
        higher/lower highest/lowest better/worse best/worst
        gestiegen/gesunken,gefallen stieg,steigt,stiegen/sank,sinkt,sanken,fiel,fällt,fielen erhöht/gesenkt
        angenommen,genehmigt/abgelehnt erlaubt/verboten gewonnen/verloren gewann/verlor geöffnet,offen/geschlossen
        augmenté,augmente/diminué,diminue,baissé,baisse hausse/baisse ouvert/fermé ouverte/fermée gagné/perdu
        accepté,approuvé/refusé,rejeté autorisé/interdit autorisée/interdite
        subió/bajó,cayó aumentó/disminuyó abierto/cerrado abierta/cerrada ganó/perdió aceptado,aprobado/rechazado
        aceptada,aprobada/rechazada permitido/prohibido permitida/prohibida
        """
    )
}
"""States, decisions and movements of which one denies the other."""
_BEGINNINGS = tuple(
    _pairs(
        """
        in/ex in/de im/ex hyper/hypo over/under inter/intra ante/post pre/post macro/micro sub/super up/down auf/ab
        auf/zu ein/aus en/de en/dis ver/ent
        """
    )
)
_ENDS = tuple((one[::-1], other[::-1]) for one, other in _pairs("or/ee er/ee ful/less ette/"))
"""Each from its last letter on; leatherette is no leather."""
_DENYING = ("un", "in", "im", "il", "ir", "non", "dis", "mis", "de", "des", "dé", "dés", "ne", "nie", "не")
_ENDS_OF_ADJECTIVES = ("ic", "al", "ous", "isch", "ique", "ico", "ica", "chron")
"""Those before which ``a`` denies: asymmetric, but not around."""
_DENYING_ENDS = (("ます", "ません"), ("ました", "ませんでした"), ("です", "ではありません"), ("る", "ない"))
_PERSIAN = "می"
"""A verb begins with it, and is denied by a letter before it."""
_MIN_REST = 4
"""Letters that two such words have in common."""


def deny_each_other(one: str, other: str) -> bool:
    """Whether one of two words denies the other: it is this with a beginning, or an end, as ``unlimited``, or the
    opposite state, as ``opened`` and ``closed``."""
    if frozenset((one, other)) in _STATES:
        return True
    short, long = sorted((one, other), key=len)
    if not short.isascii() and (
        (short.startswith(_PERSIAN) and long == f"ن{short}")
        or any(long == short.removesuffix(end) + denied for end, denied in _DENYING_ENDS if short.endswith(end))
    ):
        return True
    return len(short) >= _MIN_REST and (
        any(long == beginning + short for beginning in _DENYING)
        or (long == f"i{short}" and short[0] == "l")  # ilimitado
        or (long == f"a{short}" and short.removesuffix("ly").endswith(_ENDS_OF_ADJECTIVES))
    )


def are_opposites(one: str, other: str) -> bool:
    """Whether two words in lower case are opposites: ``inclusive`` and ``exclusive``, ``lessor`` and ``lessee``."""
    if one == other:
        return False
    return (
        frozenset((one, other)) in _WORDS
        or deny_each_other(one, other)
        or (one[-_MIN_REST:] == other[-_MIN_REST:] and _differ_at_the_beginning(one, other, _BEGINNINGS))
        or (one[:_MIN_REST] == other[:_MIN_REST] and _differ_at_the_beginning(one[::-1], other[::-1], _ENDS))
    )


def _differ_at_the_beginning(one: str, other: str, pairs: Iterable[tuple[str, str]]) -> bool:
    return any(_differ(one, other, *pair) or _differ(other, one, *pair) for pair in pairs)


def _differ(one: str, other: str, beginning: str, other_beginning: str) -> bool:
    """Whether two words differ in these beginnings only."""
    rest = one.removeprefix(beginning)
    return len(one) > len(rest) >= _MIN_REST and other == other_beginning + rest
