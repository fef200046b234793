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
        and/or und/oder et/ou y/o he/she his/her him/her himself/herself il/elle él/ella to/from nach/aus
        mr/mrs,ms,miss herr,herrn/frau monsieur/madame señor/señora sr/sra
        last/next,same next/same previous/next,following current/previous,former
        today,tonight/tomorrow,yesterday tomorrow,tonight/yesterday heute/gestern,morgen hoy/ayer,mañana hier/demain
        oggi/domani,ieri pc/mac,xbox,switch ground/first,second,third,top,upper aa/aaa
        """
    )
}
"""Words that stand for others, or for one of two, rather than deny each other."""
_OPPOSITES = {
    frozenset(pair)
    for pair in _pairs(
        """
        before/after over/under above/below more/less,fewer most/least,fewest maximum/minimum max/min upper/lower
        left/right,both right/both inside/outside indoor/outdoor indoors/outdoors uphill/downhill
        clockwise/counterclockwise,anticlockwise northbound/southbound eastbound/westbound upstream/downstream
        inbound/outbound north/south,east,west south/east,west east/west northern/southern eastern/western
        may/must,shall can/must,shall might/must could/must optional/mandatory,compulsory,required
        all/some,none any/none both/neither from,since/until first/last included/excluded,extra includes/excludes
        inclusive/exclusive including/excluding covered/excluded before/since
        high/low hot/cold warm/cold long/short deep/shallow wet/dry old/new light/dark fast/slow full/empty
        full/part permanent/temporary morning/evening,afternoon am/pm weekdays/weekends weekday/weekend
        stronger/weaker larger,bigger/smaller longer/shorter older/younger earlier/later faster/slower hotter/colder
        manually/automatically manual/automatic advance/arrears stop/continue safe/dangerous,unsafe
        vor/nach mehr/weniger kann/muss darf/muss doit/peut debe/puede
        positiv/negativ within/outside prior/following über/unter links/rechts
        linke,linken,linker/rechte,rechten,rechter
        obere,oberen,oberer/untere,unteren,unterer mindestens/höchstens erste,ersten,erster/letzte,letzten,letzter
        warm,warmes,warmen/kalt,kaltes,kalten trockenen,trocken/feuchten,feucht innen/außen süden/norden westen/osten
        avant/après plus/moins premier/dernier première/dernière gauche/droite supérieur/inférieur
        supérieure/inférieure début/fin intérieur/extérieur maximum/minimum compris,comprises,inclus/exclus,exclues
        antes/después,depois más/menos mais/menos desde/hasta primero/último primera/última derecha/izquierda
        direita/esquerda superior/inferior interior/exterior máxima/mínima máximo/mínimo lleno,llena/vacío,vacía
        fría,frío/caliente norte/sul,sur primo/ultimo,secondo prima/dopo sopra/sotto destra/sinistra più/meno
        voor/na boven/onder links/rechts binnen/buiten vooraf/achteraf
        przed/po nad/pod до/после выше/ниже левую,левой,левый/правую,правой,правый
        önce/sonra sol/sağ 买/卖 前/后,後 上/下 左/右 内/外 南/北,东,西 东/西,北 西/北 高/低 増/減 甲/乙
        允许/禁止 免费/收费,半价 無料/有料 缩短/延长
        """
    )
}
"""Places, times, measures and duties that are opposites."""
_STATES = {
    frozenset(pair)
    for pair in _pairs(
        """
        accepted,accepts,accept/rejected,rejects,reject,refused,refuses,refuse,declined,declines,decline,denied,failed
        approved,approves,approve/rejected,rejects,reject,denied,denies,deny,refused,refuses,vetoed
        granted,grants,grant/denied,denies,deny,refused,refuses,refuse,rejected,revoked
        allowed,allows,allow,permitted,permits/forbidden,forbids,forbid,prohibited,prohibits,denied,blocked,banned
        confirmed,confirms,confirm,reported,reports/denied,denies,deny,rejected
        supported,supports,support/opposed,opposes,oppose,deprecated
        passed,passes,pass,succeeded,succeeds,succeed,successful,completed,finished/failed,fails,fail,aborted,cancelled
        started,starts,start,began,begins,begin/stopped,stops,stop,ended,ends,end,finished,finishes,completed,failed
        opened,opens,open,opening/closed,closes,close,closing,shut
        established,connected/lost,closed,disconnected,aborted hit/miss hits/misses login/logout
        added,adds,add,created,creates,create/removed,removes,remove,deleted,deletes,delete,destroyed
        enabled,enables,enable/disabled,disables,disable
        increased,increases,increase,increasing/decreased,decreases,decrease,decreasing,cut,cuts
        rose,rises,rise,risen,rising,climbed,gained/fell,falls,fall,fallen,falling,dropped,drops,declined,declines,lost
        gain,gains,profit,profits/loss,losses
        won,wins,win,winning/lost,loses,lose,losing
        bought,buys,buy,buying/sold,sells,sell,selling
        up/down in/out on/off for/against true/false positive/negative malignant/benign
        upheld/overturned always/rarely guilty/innocent alive/dead present/absent
        higher/lower highest/lowest better/worse best/worst
        trace,debug,info/warn,warning,error,critical,fatal,severe warn,warning/error,critical,fatal
        get/post,put,delete,patch post/put,delete
        gestiegen/gesunken,gefallen stieg,steigt,stiegen/sank,sinkt,sanken,fiel,fällt,fielen erhöht/gesenkt
        angenommen,genehmigt/abgelehnt erlaubt/verboten gewonnen/verloren gewann/verlor geöffnet,offen/geschlossen
        hergestellt/abgebrochen,getrennt angemeldet/abgemeldet
        augmenté,augmente/diminué,diminue,baissé,baisse hausse/baisse ouvert/fermé ouverte/fermée gagné/perdu
        accepté,approuvé/refusé,rejeté autorisé,admis,permis/interdit autorisée/interdite admis/interdits
        subió/bajó,cayó aumentó/disminuyó abierto,aberto/cerrado,fechado abierta,aberta/cerrada,fechada ganó/perdió
        aceptado,aprobado/rechazado aceptada,aprobada/rechazada permitido/prohibido,proibido
        permitida/prohibida,proibida obrigatório/facultativo obbligatorio/facoltativo obbligatoria/facoltativa
        aperto/chiuso aperta/chiusa toegestaan/verboden inbegrepen/uitgesloten
        разрешено/запрещено разрешён/запрещён dozwolona/zabroniona dozwolony/zabroniony serbesttir/yasaktır
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
_DUTCH = ("ge", "be", "ver", "vol", "veil")
"""Those before which ``on`` denies: ongebruikt, but not online."""
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
    if long == f"on{short}" and short.startswith(_DUTCH):
        return True
    return len(short) >= _MIN_REST and (
        any(long == beginning + short for beginning in _DENYING)
        or (long == f"i{short}" and short[0] == "l")  # ilimitado
        or (long == f"a{short}" and short.removesuffix("ly").endswith(_ENDS_OF_ADJECTIVES))
    )


def are_contrary(one: str, other: str) -> bool:
    """Whether with one of two words instead of the other, an instruction says the opposite: ``before``, ``after``."""
    return frozenset((one, other)) in _OPPOSITES


def are_opposites(one: str, other: str) -> bool:
    """Whether two words in lower case are opposites: ``inclusive`` and ``exclusive``, ``lessor`` and ``lessee``."""
    if one == other:
        return False
    return (
        frozenset((one, other)) in _WORDS
        or are_contrary(one, other)
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
