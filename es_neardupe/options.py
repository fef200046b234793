"""Options of the commands: names, help texts, ranges and values, for Python and for the command line.

Each alias is the type of a parameter together with its option. The functions in `es_neardupe.commands` and
`es_neardupe.cli.commands` use the same aliases, so ``help()`` in Python and ``--help`` show the same texts. The texts
name parameters in backticks; the command line shows the names of the options instead.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit

import typer

from es_neardupe.wording import option

DEFAULT_PREFIX = "neardupe"

DEFAULT_MAX_CHARS = 10_000_000
"""Maximum number of characters; longer documents get the state ``too_large`` instead of keys."""

MAX_VERSIONS = 10
"""Documents with one address that ``moved`` searches for, the latest ones."""

MAX_SLICES = 1024
"""Maximum number of slices of a search: servers allow no more by default."""

DEFAULT_MAX_BUCKET = 200
"""Maximum number of distinct texts with a common band key that are all compared with each other."""

JACCARD = "The Jaccard similarity of sets of shingles is called resemblance; jaccard is about words in common passages."


class MeasureName(str, Enum):
    """Names of the measures in options."""

    RESEMBLANCE = "resemblance"
    JACCARD = "jaccard"
    CONTAINMENT = "containment"
    CONTAINMENT_LONGER = "containment-longer"
    BAG = "bag"
    WEIGHTED = "weighted"
    EDIT = "edit"
    ESTIMATE = "estimate"

    @property
    def symbol(self) -> str | None:
        """The symbol of the measure in "What is a near-dupe, really?", which is accepted in place of its name."""
        return _SYMBOLS.get(self.value)


_SYMBOLS = {"resemblance": "S_R", "jaccard": "S_J", "containment-longer": "S_L"}


DECIDING = tuple(name for name in MeasureName if name is not MeasureName.ESTIMATE)
"""The exact measures, which can decide a match."""


class Matching(str, Enum):
    """Algorithms to find common passages."""

    LITERAL = "literal"
    INFORMATION = "information"


class FoldAction(str, Enum):
    """What `fold` does."""

    SHOW = "show"
    INSTALL = "install"
    REMOVE = "remove"


class PipelineAction(str, Enum):
    """What `pipeline` does."""

    SHOW = "show"
    INSTALL = "install"
    CHECK = "check"
    REMOVE = "remove"


class OnMatch(str, Enum):
    """What `screened` does with an action whose document matches another one."""

    MARK = "mark"
    """Write the document into the group of its match."""
    SKIP = "skip"
    """Do not write it."""
    PASS = "pass"  # noqa: S105  # a word, and no password
    """Write it as any other, and only report the match."""


class Linkage(str, Enum):
    """Rules that form groups from verified pairs."""

    STAR = "star"
    """Each member is at least the threshold similar to the principal."""
    CHAIN = "chain"
    """Connected components: each member is at least the threshold similar to at least one other member."""
    COMPLETE = "complete"
    """Any two members are at least the threshold similar to each other."""


class Versions(str, Enum):
    """Who sets the versions of the documents of an index."""

    INTERNAL = "internal"
    """The server: each write has the next number."""
    EXTERNAL = "external"
    """The system that the documents come from, by ``version_type=external``."""


class Clean(str, Enum):
    """What is left out of texts before their keys are made."""

    HTML = "html"
    """Markup, and what browsers do not show."""
    HTML_MAIN = "html-main"
    """Also what is not the main text of a page: menus, footers, lists of links."""
    MAIL = "mail"
    """Quotes, headers and signatures of mails."""


class Mask(str, Enum):
    """Kinds of parts of texts that are replaced by one placeholder each, in the order in which they are tried."""

    SOURCE = "source"
    """Place in source code, such as ``Name.java:52``; it stays as it is, so no other kind replaces its number."""
    URL = "url"
    EMAIL = "email"
    UUID = "uuid"
    TIME = "time"
    IP = "ip"
    PATH = "path"
    HEX = "hex"
    DIGITS = "digits"


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "strict": {"threshold": 0.8, "shingle": 5},
    # Fröbe et al., CopyCat: Near-Duplicates within and between the ClueWeb and the Common Crawl, SIGIR 2021, and their
    # reproduction at ECIR 2020, with pairs graded by people. On these, edit agrees with people better than any other
    # measure.
    "reader": {"threshold": 0.7, "shingle": 3, "measure": MeasureName.EDIT, "min": 0.71},
    # Two of six supershingles: Broder et al., Syntactic clustering of the Web, 1997; Henzinger, Finding near-duplicate
    # web pages, 2006. The threshold is the lowest multiple of 0.001 that has the default detection.
    "supershingles": {"threshold": 0.976, "shingle": 8, "permutations": 84, "bands": 6, "rows": 14, "agree": 2},
    # 48 bands of 4 rows of 6 characters find copies with 5 % of their characters wrong, with half of the unrelated
    # candidates of 42 bands of 3 rows of 9 characters. A copy with 10 % wrong has a resemblance of about 0.37.
    "scans": {"threshold": 0.3, "shingle": "6c", "permutations": 192, "bands": 48, "rows": 4},
    # `init` chooses bands for the threshold by this measure, from the lengths of the texts.
    "short": {"threshold": 0.6, "shingle": 2, "measure": MeasureName.JACCARD},
    "logs": {"threshold": 0.5, "shingle": 2, "mask": tuple(Mask)},
}
"""Preset -> settings. Of a preset with bands, only the threshold can be changed. With a measure and ``min``, the keys
are for the threshold by resemblance, and the measure decides."""

PRESETS_IN_WORDS: Mapping[str, str] = {
    "strict": "copies with few changes: 5-word shingles, threshold 0.8; the default",
    "reader": "what people call near-duplicates: 3-word shingles, threshold 0.7, edit 0.71 decides",
    "supershingles": "nearly identical long texts: 8-word shingles, two keys of six must agree",
    "scans": "texts read by a scanner, with wrong characters: 6-character shingles, threshold 0.3",
    "short": "texts below 30 words, such as titles: 2-word shingles, bands from the lengths of the texts",
    "logs": "log lines: all variables masked, 2-word shingles, threshold 0.5",
}
"""Preset -> what it finds, and how."""


def preset_measure(preset: str | None) -> str | None:
    """The measure by which the threshold of a preset is given; None for resemblance."""
    settings = PRESETS.get(preset or "", {})
    return None if "min" in settings else settings.get("measure")


BY_LENGTHS = (MeasureName.JACCARD, MeasureName.CONTAINMENT_LONGER)
"""Measures for whose thresholds `init` can choose bands from the lengths of texts."""


# -- parsers of values on the command line; values from Python are already converted ---------------------------------

Number = TypeVar("Number", int, float)


def parse_fraction(value: Any) -> float:
    """A number in (0, 1]."""
    try:
        number = float(value)
    except ValueError:
        percent = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", str(value))
        meant = f" Write {float(percent[1]) / 100:g} for {percent[1]} %." if percent else ""
        raise typer.BadParameter(f"{value!r} is not a number.{meant}") from None
    if not 0 < number <= 1:
        meant = f" Write {number / 100:g} for {number:g} %." if 1 < number <= 100 else ""
        raise typer.BadParameter(f"{value} is not in (0, 1].{meant}")
    return number


def _share(value: Any) -> float:
    """A number between 0 and 1, both excluded."""
    number = parse_fraction(value)
    if number == 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1.")
    return number


AUTO: Literal["auto"] = "auto"
"""The value of ``ignore_common`` that finds the shingles to ignore in groups of unrelated texts."""


def _share_or_auto(value: Any) -> float | Literal["auto"]:
    """A number between 0 and 1, both excluded, or ``auto``."""
    return AUTO if value == AUTO else _share(value)


def list_of(kind: Callable[[str], Number], name: str) -> Callable[[Any], list[Number]]:
    """A parser of comma-separated numbers. ``name``: what they are called in the error message."""

    def parse(value: Any) -> list[Number]:
        try:
            return [kind(part) for part in value.split(",")]
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not a list of {name} separated by commas.") from None

    return parse


_SHINGLE = re.compile(r"0*[1-9][0-9]{0,6}c?", re.ASCII)


def _parse_shingle(value: Any) -> int | str:
    """A number of words, such as 5, or of characters, such as 5c."""
    if not _SHINGLE.fullmatch(str(value)):
        raise typer.BadParameter(f"{value!r} is not a number of words, such as 5, or of characters, such as 5c.")
    return str(value) if str(value).endswith("c") else int(value)


def _parse_shingles(value: Any) -> Sequence[int | str]:
    return [_parse_shingle(part) for part in value.split(",")]


def parse_query(value: Any) -> Mapping[str, Any]:
    """The JSON object of ``--query``, given as text or as ``@FILE``. Raises `BadParameter`."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    try:
        text = Path(value[1:]).read_text("utf-8") if value.startswith("@") else value
        query = json.loads(text, parse_constant=no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise typer.BadParameter(f"The query cannot be read: {error}.") from error
    if isinstance(query, dict) and set(query) == {"query"}:
        query = query["query"]  # the form of a search body
    if not isinstance(query, dict) or not query:
        raise typer.BadParameter('The query must be a JSON object such as {"term": {"language": "en"}}.')
    return query


def no_constant(name: str) -> None:
    """Raises `ValueError` for NaN and the infinities, which Python takes for JSON."""
    raise ValueError(f"{name} is not a JSON number")


def parse_since(value: Any) -> tuple[str, str]:
    """Field and date of ``FIELD=DATE``. Raises `BadParameter`."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    name, separator, date = value.partition("=")
    if not (name and separator and date):
        raise typer.BadParameter(f"Give FIELD=DATE, such as updated=2024-05-01, not {value!r}.")
    return name, date


_SLICE = re.compile(r"([0-9]{1,4})/([0-9]{1,4})", re.ASCII)


def parse_slice(value: Any) -> tuple[int, int]:
    """Number and count of ``3/16``. Raises `BadParameter`."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    if (match := _SLICE.fullmatch(value)) is None:
        raise typer.BadParameter(f"Give NUMBER/COUNT, such as 3/16, not {value!r}.")
    number, of = int(match[1]), int(match[2])
    if (why := wrong_slice(number, of)) is not None:
        raise typer.BadParameter(why)
    return number, of


def wrong_slice(number: int, of: int) -> str | None:
    """Why there is no such slice; None if there is one."""
    if not 1 <= of <= MAX_SLICES:
        return f"The number of slices must be from 1 to {MAX_SLICES:,}, not {of:,}."
    if not 1 <= number <= of:
        return f"There is no slice {number:,} of {of:,}: slices are counted from 1."
    return None


_PROCESSES = re.compile(r"processes:([0-9]{1,4})", re.ASCII)
_MAX_PROCESSES = 256


def wrong_engine(engine: str, *, insecure: bool = False) -> str | None:
    """Why there is no such engine; None if there is one."""
    if match := _PROCESSES.fullmatch(engine):
        return (
            None
            if 1 <= int(match[1]) <= _MAX_PROCESSES
            else f"The number of processes must be from 1 to {_MAX_PROCESSES}."
        )
    try:
        parts = urlsplit(engine)
        usable = parts.scheme in ("tcp", "tls") and parts.hostname is not None and parts.port is not None
    except ValueError:
        usable = False
    if not usable or parts.path or parts.query or parts.fragment or parts.username is not None:
        return f"Give processes:NUMBER, tcp://HOST:PORT or tls://HOST:PORT, not {engine!r}."
    if parts.scheme == "tcp" and not insecure and not _is_loopback(parts.hostname or ""):
        return (
            f"Whoever reaches a Dask scheduler can run programs on its workers, and {engine} has no encryption and no "
            f"authentication: use tls://, or add {option('insecure_engine')} in a network that you trust."
        )
    return None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_DURATION = re.compile(r"([0-9]{1,5})([smh])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_duration(value: Any) -> float:
    """The seconds of a duration such as ``30s``, ``5m`` or ``1h``, from one second to a day. Raises `BadParameter`."""
    if not isinstance(value, str):
        return float(value)
    match = _DURATION.fullmatch(value)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 1 <= seconds <= 86_400:
        raise typer.BadParameter(f"{value!r} is not a duration from 1s to 24h, such as 30s, 5m or 1h.")
    return seconds


_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([MGT]B)", re.ASCII)
_BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_size(value: Any) -> int:
    """The bytes of a size such as ``500MB`` or ``2.5GB``. Raises `BadParameter`."""
    if not isinstance(value, str):
        return int(value)
    match = _SIZE.fullmatch(value)
    if not match or not float(match[1]):
        raise typer.BadParameter(f"{value!r} is not a size such as 500MB, 2GB or 1.5TB.")
    return round(float(match[1]) * _BYTES[match[2]])


def size_text(size: int) -> str:
    """A size in bytes as `parse_size` reads it, at least as large."""
    unit = "GB" if size >= 10**9 else "MB"
    tenths = -(-size * 10 // _BYTES[unit])
    return f"{tenths // 10}.{tenths % 10}{unit}".replace(".0", "")


def _one_of(words: Sequence[str], *names: str, **more: Any) -> Any:
    """An option that takes one of some words. The shell completes them."""

    def parse(value: Any) -> str:
        word = value.value if isinstance(value, Enum) else str(value)
        if word not in words:
            raise typer.BadParameter(f"{word!r} is not one of {', '.join(words)}.")
        return word

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Option(*names, parser=parse, autocompletion=complete, **{"metavar": "|".join(words), **more})


def _words(kind: Sequence[Enum] | type[Enum]) -> list[str]:
    return [str(one.value) for one in kind]


def names_of(measures: Iterable[MeasureName]) -> list[str]:
    """The names of measures, then the symbols that are accepted in their place."""
    measures = list(measures)
    return [*_words(measures), *(one.symbol for one in measures if one.symbol)]


# -- scope and output -------------------------------------------------------------------------------------------------

Prefix = Annotated[str, typer.Option("--prefix", metavar="NAME", help="Object field that holds keys and groups.")]
Query = Annotated[
    Mapping[str, Any] | None,
    typer.Option(
        "--query",
        metavar="JSON",
        parser=parse_query,
        help="Only documents that match this query (query DSL as JSON, or @FILE).",
        show_default=False,
    ),
]

# -- how a run behaves ------------------------------------------------------------------------------------------------

_LOAD = "Load on the cluster"

_CLUSTER = "Workers"


def _parse_engine(value: Any) -> str:
    if (why := wrong_engine(str(value), insecure=True)) is not None:
        raise typer.BadParameter(why)
    return str(value)


EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        parser=_parse_engine,
        help="Where to run: processes:4 for worker processes, tcp://HOST:PORT or tls://HOST:PORT for a Dask scheduler.",
        show_default="this process",
        rich_help_panel=_CLUSTER,
    ),
]
InsecureEngine = Annotated[
    bool,
    typer.Option(
        "--insecure-engine",
        help="Allow tcp:// to other machines: without encryption, and without authentication.",
        rich_help_panel=_CLUSTER,
    ),
]
InCluster = Annotated[
    bool,
    typer.Option(
        "--in-cluster", help="Let the server make the keys by a script (OpenSearch, Painless); no text is read."
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, max=64, help="Number of parallel bulk requests.")]
Slices = Annotated[
    int | None,
    typer.Option(
        "--slices",
        min=1,
        max=64,
        help="Number of parts of the index that are read at a time.",
        show_default="one per shard, at most 4",
    ),
]
Batch = Annotated[int, typer.Option("--batch", min=1, max=10_000, help="Documents per bulk request.")]
MaxRate = Annotated[
    float | None,
    typer.Option(
        "--max-rate", help="Maximum number of documents written per second.", show_default="no limit",
        rich_help_panel=_LOAD,
    ),
]  # fmt: skip
MaxLoad = Annotated[
    int | None,
    typer.Option(
        "--max-load",
        min=1,
        help="Maximum number of documents in unanswered requests; lowered when the server rejects requests.",
        show_default="no limit",
        rich_help_panel=_LOAD,
    ),
]
MaxChars = Annotated[
    int,
    typer.Option(
        "--max-chars", min=1, help="Maximum number of characters; longer texts get no keys and the state too_large."
    ),
]
MaxBucket = Annotated[
    int,
    typer.Option(
        "--max-bucket",
        min=2,
        help="If more texts than this share a key, compare each with about this many of them; report how many "
        "comparisons were skipped.",
    ),
]
Memory = Annotated[
    int | None,
    typer.Option(
        "--memory",
        parser=parse_size,
        metavar="SIZE",
        help="Maximum memory, such as 2GB: what does not fit is spilled to disk. In Python, bytes.",
        show_default="no limit",
    ),
]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune",
        help="Disable refresh and replicas of the index during the run; needs the privilege manage.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Compute everything, but write nothing.")]
ShowRequests = Annotated[
    int, typer.Option("--show-requests", min=0, metavar="N", help="With `dry_run`: show the first N requests in full.")
]
CandidatesByKeys = Annotated[
    int, typer.Option("--max-candidates", min=1, help="Maximum number of candidates compared, most shared keys first.")
]
CandidatesByEstimate = Annotated[
    int, typer.Option("--max-candidates", min=1, help="Maximum number of candidates compared, highest estimates first.")
]
Sample = Annotated[int, typer.Option("--sample", min=1, help="Number of random documents compared with all others.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed of the sample.")]

# -- rules for a match ------------------------------------------------------------------------------------------------

_MEASURE = "Measure"

Measure = Annotated[
    str | None,
    _one_of(
        names_of(DECIDING),
        "--measure",
        help=f"Similarity measure that decides a match. {JACCARD}",
        show_default="that of the index: resemblance, unless init chose another",
        rich_help_panel=_MEASURE,
    ),
]
MatchingName = Annotated[
    str | None,
    _one_of(
        _words(Matching),
        "--matching",
        help="How common passages are found, for jaccard and containment.",
        show_default="literal",
        rich_help_panel=_MEASURE,
    ),
]
Minimum = Annotated[
    float | None,
    typer.Option(
        "--min",
        parser=parse_fraction,
        metavar="FLOAT",
        help="Minimum similarity, in (0, 1].",
        show_default="the threshold of the index",
    ),
]
MinimumShare = Annotated[
    float,
    typer.Option(
        "--min",
        parser=parse_fraction,
        metavar="FLOAT",
        help="Minimum share of the words of one of the two texts, in (0, 1].",
    ),
]
Maximum = Annotated[
    float, typer.Option("--max", parser=parse_fraction, metavar="FLOAT", help="Maximum similarity, in (0, 1].")
]
FEATURES = typer.Option(
    "--features",
    metavar="[FIELD:]SOURCE",
    help="For resemblance, weighted and bag: compare these features instead of shingles. Repeatable.",
    show_default=False,
    rich_help_panel=_MEASURE,
)
Features = Annotated[Sequence[str], FEATURES]
Ngram = Annotated[
    int | None,
    typer.Option("--ngram", help="For bag: words in an n-gram, 1 to 7.", show_default="1", rich_help_panel=_MEASURE),
]
Whitespace = Annotated[
    bool,
    typer.Option("--whitespace", help="For bag: split words at whitespace only.", rich_help_panel=_MEASURE),
]
Renew = Annotated[
    bool,
    typer.Option(
        "--renew",
        help="Recompute feature frequencies instead of using the cached ones.",
        rich_help_panel=_MEASURE,
    ),
]
IGNORE_COMMON = typer.Option(
    "--ignore-common",
    parser=_share_or_auto,
    metavar="SHARE|auto",
    help="Ignore shingles that occur in more than this share of the documents; auto: those of passages that hold "
    "unrelated texts together.",
    show_default=False,
    rich_help_panel=_MEASURE,
)
IgnoreCommon = Annotated[float | Literal["auto"] | None, IGNORE_COMMON]

# -- rules of `group`, remembered for the next run ---------------------------------------------------------------------

_LINKAGE = "star: each member is similar to the principal; chain: to some member; complete: to all members."
_LAST = "as in the last run"


def _rule(alias: Any, **more: Any) -> Any:
    """An option of other commands as a rule of `group`."""
    option = copy(get_args(alias)[1])
    for name, value in {"show_default": _LAST, **more}.items():
        setattr(option, name, value)
    return option


RuleMeasure = Annotated[str | None, _rule(Measure)]
RuleMatching = Annotated[str | None, _rule(MatchingName)]
RuleMinimum = Annotated[float | None, _rule(Minimum)]
RuleMaximum = Annotated[float | None, _rule(Maximum)]
RULE_FEATURES = _rule(Features)
RuleFeatures = Annotated[Sequence[str] | None, RULE_FEATURES]
RuleNgram = Annotated[int | None, _rule(Ngram)]
RuleWhitespace = Annotated[bool | None, _rule(Whitespace, param_decls=("--whitespace/--no-whitespace",))]
RULE_IGNORE_COMMON = _rule(IgnoreCommon)
RuleIgnoreCommon = Annotated[float | Literal["auto"] | None, RULE_IGNORE_COMMON]
RuleLinkage = Annotated[str | None, _one_of(_words(Linkage), "--linkage", help=_LINKAGE, show_default=_LAST)]
RulePrincipal = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="POLICY",
        help="How the principal is chosen: longest, oldest, newest, FIELD:asc or FIELD:desc.",
        show_default=_LAST,
    ),
]
RuleWithin = Annotated[
    str | None,
    typer.Option(
        "--within",
        metavar="FIELD",
        help="Compare only documents with the same value of this field.",
        show_default=_LAST,
    ),
]
RuleWindow = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="FIELD:DAYS",
        help="Compare only documents whose dates are at most this many days apart.",
        show_default=_LAST,
    ),
]
RuleMaxBucket = Annotated[int | None, _rule(MaxBucket)]
DefaultRules = Annotated[
    bool,
    typer.Option("--default-rules", help="Take rules that are not given from the defaults, not from the last run."),
]
Evidence = Annotated[bool, typer.Option("--evidence", help="Store every verified pair in a hidden index.")]
CheckGroups = Annotated[
    bool, typer.Option("--check", help="Also check all groups against the registry, to notice deleted documents.")
]
Rebuild = Annotated[bool, typer.Option("--rebuild", help="Process all documents, not only what changed.")]
CleanDecisions = Annotated[
    bool, typer.Option("--decisions", help="Also delete the decisions of reviewers, which are kept otherwise.")
]
IgnoreReviews = Annotated[
    bool, typer.Option("--ignore-reviews", help="Form the groups without the decisions of reviewers.")
]
BreakLease = Annotated[bool, typer.Option("--break-lease", help="Delete the lease of another run.")]

# -- settings of an index ---------------------------------------------------------------------------------------------

_KEYS = "New keys"
_UNCHANGED = "unchanged"


def _key(help: str, default: str | bool, *names: str, **more: Any) -> tuple[Any, Any]:
    """An option for the keys of an index: for ``init``, and for ``migrate``, which by default leaves it unchanged."""
    more = {"metavar": None, **more}
    new = {**more, "show_default": _UNCHANGED, "rich_help_panel": _KEYS}
    return typer.Option(*names, help=help, show_default=default, **more), typer.Option(*names, help=help, **new)


_FRACTION = {"parser": parse_fraction, "metavar": "FLOAT"}
_SHARE = {"parser": _share, "metavar": "FLOAT"}
_threshold, _new_threshold = _key(
    "Minimum similarity of pairs that must be found, in (0, 1].",
    "0.8",
    "--threshold",
    **_FRACTION,
)
_detection, _new_detection = _key(
    "Minimum probability of finding a pair exactly at the threshold.", "0.99", "--detection", **_SHARE
)
_shingle, _new_shingle = _key(
    "Words in a shingle; 5c: 5 characters.", "5", "--shingle", parser=_parse_shingle, metavar="N|Nc"
)
_permutations, _new_permutations = _key(
    "Slots of the signature; each takes one byte in every document.", "128", "--permutations", min=1
)
_bands, _new_bands = _key("Number of bands; with `rows`.", False, "--bands", min=1)
_rows, _new_rows = _key("Rows per band; with `bands`.", False, "--rows", min=1)
_agree, _new_agree = _key("Number of bands that candidates must share; with `bands` and `rows`.", "1", "--agree", min=1)
_SAMPLE_MOD = "For `contained`: store one in N shingles as a sampled key; 0: none."

Preset = Annotated[
    str | None,
    _one_of(list(PRESETS), "--preset", help="Predefined settings.", show_default=False),
]
PresetOfBands = Annotated[
    str | None,
    _one_of(
        [name for name in PRESETS if preset_measure(name) is None],
        "--preset",
        help="Predefined settings.",
        show_default=False,
    ),
]
Threshold = Annotated[float | None, _threshold]
ThresholdMeasure = Annotated[
    str | None,
    _one_of(
        names_of(BY_LENGTHS),
        "--measure",
        help=f"Measure of the threshold: choose bands for it from the lengths of texts. {JACCARD}",
        show_default="resemblance",
    ),
]
NewThresholdMeasure = Annotated[
    str | None,
    _one_of(
        names_of(BY_LENGTHS),
        "--measure",
        help=f"Measure of the new threshold: choose bands for it from the lengths of texts. {JACCARD}",
        show_default="resemblance",
        rich_help_panel=_KEYS,
    ),
]
Detection = Annotated[float | None, _detection]
SHINGLE = _shingle
Shingle = Annotated[int | str | None, SHINGLE]
Permutations = Annotated[int | None, _permutations]
Bands = Annotated[int | None, _bands]
Rows = Annotated[int | None, _rows]
Agree = Annotated[int | None, _agree]
CleanTexts = Annotated[
    str | None,
    _one_of(
        _words(Clean),
        "--clean",
        help="Leave out of texts: markup (html), also menus and footers (html-main), or quotes and signatures (mail).",
        show_default=False,
    ),
]
MaskTexts = Annotated[
    str | None,
    typer.Option(
        "--mask",
        metavar="KINDS",
        help=f"Replace parts of texts by placeholders: all, or some of {', '.join(_words(Mask))}, separated by commas.",
        show_default=False,
    ),
]
SampleMod = Annotated[int, typer.Option("--sample-mod", min=0, metavar="N", help=_SAMPLE_MOD)]
SampleKeys = Annotated[
    int | None,
    typer.Option(
        "--sample-keys",
        min=1,
        help="Instead of `sample_mod`: desired number of sampled keys in a document of average length.",
        show_default=False,
    ),
]
Create = Annotated[bool, typer.Option("--create", help="Create the index if it does not exist.")]
Template = Annotated[
    bool, typer.Option("--template", help="Print a component template for future indices; write nothing.")
]
GroupField = Annotated[
    str | None,
    typer.Option(
        "--group-field", metavar="NAME", help="Keep a copy of the group id in this keyword field at the top level."
    ),
]
VersionsOption = Annotated[
    Versions | None,
    typer.Option(
        "--versions",
        help="Who sets the versions of documents: the server (internal), or the system that they come from (external).",
        show_default="internal, unless documents show the other",
    ),
]
Oversample = Annotated[
    int,
    typer.Option("--oversample", min=1, max=100, help="Hits requested for each hit of a page, before groups fold."),
]
DefaultPipeline = Annotated[
    bool, typer.Option("--default", help="Make it the default pipeline of the index, for writes that name no other.")
]
FinalPipeline = Annotated[
    bool, typer.Option("--final", help="Make it the final pipeline of the index, which runs after any other.")
]
Sidecar = Annotated[
    bool, typer.Option("--sidecar", help="Store keys and groups in a separate index; leave yours unchanged.")
]
WriteGroup = Annotated[
    bool, typer.Option("--write-group", help="With `sidecar`: write only the group ids into your documents.")
]

NewPreset = Annotated[
    str | None,
    _one_of(list(PRESETS), "--preset", help="Predefined settings.", show_default=_UNCHANGED, rich_help_panel=_KEYS),
]
NewThreshold = Annotated[float | None, _new_threshold]
NewDetection = Annotated[float | None, _new_detection]
NEW_SHINGLE = _new_shingle
NewShingle = Annotated[int | str | None, NEW_SHINGLE]
NewClean = Annotated[
    str | None,
    _one_of(
        [*_words(Clean), "none"],
        "--clean",
        help="What to leave out of texts; none: nothing.",
        show_default=_UNCHANGED,
        rich_help_panel=_KEYS,
    ),
]
NewMask = Annotated[
    str | None,
    typer.Option(
        "--mask",
        metavar="KINDS",
        help="Parts of texts to replace by placeholders, separated by commas; all, or none.",
        show_default=_UNCHANGED,
        rich_help_panel=_KEYS,
    ),
]
NewPermutations = Annotated[int | None, _new_permutations]
NewBands = Annotated[int | None, _new_bands]
NewRows = Annotated[int | None, _new_rows]
NewAgree = Annotated[int | None, _new_agree]
NewSampleMod = Annotated[
    int | None,
    typer.Option("--sample-mod", min=0, metavar="N", help=_SAMPLE_MOD, show_default=_UNCHANGED, rich_help_panel=_KEYS),
]
NewSampleKeys = Annotated[
    int | None,
    typer.Option(
        "--sample-keys",
        min=1,
        help="Instead of `sample_mod`: desired number of sampled keys in a document of average length.",
        show_default=False,
        rich_help_panel=_KEYS,
    ),
]
NEW_FIELDS = typer.Option(
    "--field",
    metavar="FIELD",
    help="Text fields to use from now on. Repeatable.",
    show_default=_UNCHANGED,
    rich_help_panel=_KEYS,
)
NewFields = Annotated[Sequence[str], NEW_FIELDS]
Prepare = Annotated[bool, typer.Option("--prepare", help="Stop before the switch, with the old and the new groups.")]
Abort = Annotated[bool, typer.Option("--abort", help="Cancel before the switch: remove the new keys.")]

# -- load and enrich --------------------------------------------------------------------------------------------------

IdField = Annotated[
    str | None, typer.Option("--id-field", metavar="FIELD", help="Field with the id.", show_default="id or _id")
]
TextField = Annotated[
    str | None,
    typer.Option(
        "--text-field", metavar="FIELD", help="Field of the files with the text.", show_default="as in the index"
    ),
]
RoutingField = Annotated[
    str | None,
    typer.Option("--routing-field", metavar="FIELD", help="Field with the routing value.", show_default="none"),
]
Replace = Annotated[bool, typer.Option("--replace", help="Overwrite documents that exist.")]
FollowLinks = Annotated[
    bool, typer.Option("--follow-links", help="Also read what symbolic links outside of the folder lead to.")
]
OnMatchOfLoad = Annotated[
    str | None,
    _one_of(
        _words(OnMatch),
        "--on-match",
        help="Compare each document with the index before it is written. One with a match is written into its group "
        "(mark), left out (skip), or written as any other (pass).",
        show_default="do not compare",
    ),
]
MinimumOfLoad = Annotated[
    float | None,
    typer.Option(
        "--min",
        parser=parse_fraction,
        metavar="FLOAT",
        help="With `on_match`: minimum similarity of a match, in (0, 1].",
        show_default="the threshold of the index",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first line that cannot be read.")]
CheckTexts = Annotated[
    bool, typer.Option("--check", help="Read all documents, not only those written since the last run.")
]
_SINCE = typer.Option(
    "--since",
    metavar="FIELD=DATE",
    parser=parse_since,
    help="Also renew the keys of changed texts, for documents with this date or later.",
    show_default=False,
)
Since = Annotated[tuple[str, str] | None, _SINCE]
SinceText = Annotated[Any, _SINCE]
"""`Since` on the command line, where it is a single word."""
All = Annotated[bool, typer.Option("--all", help="Write the keys of all documents again.")]
NewOnly = Annotated[
    bool,
    typer.Option(
        "--new-only", help="Skip documents with keys where it is unknown which have changed, instead of reading them."
    ),
]
_ONE_SLICE = typer.Option(
    "--slice",
    metavar="NUMBER/COUNT",
    parser=parse_slice,
    help="Process one of several parts of the documents, such as 3/16; each part can run on another machine.",
    show_default=False,
)
Slice = Annotated[tuple[int, int] | None, _ONE_SLICE]
SliceText = Annotated[Any, _ONE_SLICE]
"""`Slice` on the command line, where it is a single word."""

# -- watch ------------------------------------------------------------------------------------------------------------

Every = Annotated[
    float,
    typer.Option(
        "--every",
        parser=parse_duration,
        metavar="DURATION",
        help="Pause between rounds, such as 30s, 5m or 1h; in Python, seconds.",
        show_default="30s",
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Run one round; an error ends it with exit code 1.")]
CheckEvery = Annotated[
    int,
    typer.Option(
        "--check-every", min=0, metavar="N", help="Check all texts for changes in every N-th round; 0: never."
    ),
]

# -- find and compare -------------------------------------------------------------------------------------------------

ID = typer.Option("--id", help="Id of a document in the index.", show_default=False)
Id = Annotated[str | None, ID]
Text = Annotated[str | None, typer.Option("--text", help="Text to search for.", show_default=False)]
TopHits = Annotated[int, typer.Option("--top", min=1, help="Maximum number of hits shown.")]
MatchingOfPassages = Annotated[str, _one_of(_words(Matching), "--matching", help="How common passages are found.")]
Size = Annotated[int, typer.Option("--size", min=1, help="Number of hits per page.")]
Start = Annotated[int, typer.Option("--from", min=0, help="Number of hits to skip.")]
SHOWN_FIELDS = typer.Option(
    "--field", metavar="FIELD", help="Field to show. Repeatable.", show_default="title and the first text field"
)
ShownFields = Annotated[Sequence[str], SHOWN_FIELDS]
TITLE_FIELDS = typer.Option(
    "--field",
    metavar="FIELD",
    help="Field to show of each document. Repeatable.",
    show_default="title, or the beginning of the text",
)
TitleFields = Annotated[Sequence[str] | None, TITLE_FIELDS]
"""In Python None reads no fields."""
MAX_SHOWN = 10_000
"""Characters of the text of a field that `pairs` shows by default: a text is in as many lines as it has pairs."""
WholeFields = Annotated[
    bool,
    typer.Option("--whole-fields", help=f"Show whole texts of fields, not only {MAX_SHOWN:,} characters of each."),
]
ADDED_FIELDS = typer.Option(
    "--field", metavar="FIELD", help="Field to show of each document. Repeatable.", show_default=False
)
AddedFields = Annotated[Sequence[str], ADDED_FIELDS]
"""Shown besides what names the documents already: none by default."""
PAGE_FIELDS = typer.Option(
    "--field", metavar="FIELD", help="Field to show with the texts. Repeatable.", show_default="title"
)
PageFields = Annotated[Sequence[str], PAGE_FIELDS]
Stage = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Stage whose pairs are written to lines, files and groups.", show_default="the only one"
    ),
]
WriteGroups = Annotated[
    str | None,
    typer.Option(
        "--write-groups",
        metavar="PREFIX",
        help="Store the pairs as groups in an object field of this name in the documents.",
        show_default=False,
    ),
]
Expand = Annotated[bool, typer.Option("--expand", help="Also show the near-copies, up to 99 of each hit.")]
UrlField = Annotated[
    str | None,
    typer.Option(
        "--url-field", metavar="FIELD", help="Keyword field with the address.", show_default="found by its name"
    ),
]
DateField = Annotated[
    str | None, typer.Option("--date-field", metavar="FIELD", help="Date field.", show_default="the only one")
]
Earlier = Annotated[bool, typer.Option("--earlier", help="Also show copies with an earlier date.")]
SHINGLE_OF_PASSAGES = typer.Option(
    "--shingle",
    parser=_parse_shingle,
    metavar="N|Nc",
    help="Words in a shingle, and the minimum number of words in a common passage; 5c: shingles of 5 characters, "
    "passages of 1 word.",
    show_default="that of the index; 5 for files",
)
ShingleOfPassages = Annotated[int | str | None, SHINGLE_OF_PASSAGES]
Weighted = Annotated[
    bool, typer.Option("--weighted", help="Also compute the weighted measure, with the frequencies of the index.")
]

# -- groups -----------------------------------------------------------------------------------------------------------

MinSize = Annotated[int, typer.Option("--min-size", min=2, help="Minimum number of documents in a group.")]
TopGroups = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        help="Maximum number of groups shown, largest first.",
        show_default="20; all with --json or --suggest-keep",
    ),
]
GroupId = Annotated[str | None, typer.Option("--group", metavar="ID", help="Show only this group.", show_default=False)]
KeepPolicy = Annotated[
    str | None,
    typer.Option(
        "--keep-policy",
        metavar="POLICY",
        help="How the document to keep is chosen, as for `group --principal`.",
        show_default="that of the last run",
    ),
]

# -- inspect ----------------------------------------------------------------------------------------------------------

LargestBuckets = Annotated[
    int | None,
    typer.Option("--buckets", min=1, max=100, help="Also show this many of the band keys that most documents share."),
]
DiskUsage = Annotated[
    bool, typer.Option("--disk-usage", help="Also measure the disk usage of the fields, which reads the whole index.")
]
MEASURES_TO_PLOT = _one_of(
    names_of(MeasureName),
    "--measure",
    help=f"Measure to compute. Repeatable. {JACCARD}",
    show_default="resemblance; bag with --whitespace",
)
MeasuresToPlot = Annotated[Sequence[str] | None, MEASURES_TO_PLOT]
MatchingToPlot = Annotated[
    str, _one_of(_words(Matching), "--matching", help="How common passages are found, for jaccard and containment.")
]
ShinglesToPlot = Annotated[
    Sequence[int | str] | None,
    typer.Option(
        "--shingle",
        metavar="N,...",
        parser=_parse_shingles,
        help="Words in a shingle, such as 1,2,3; 5c: characters.",
        show_default="that of the index",
    ),
]
WhitespaceToPlot = Annotated[
    bool,
    typer.Option("--whitespace", help="For bag, which is then the default measure: split words at whitespace only."),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Labelled pairs (.jsonl, .csv, .tsv): precision, recall and F, and a recommended threshold.",
        show_default=False,
    ),
]
SampleOfPairs = Annotated[
    int | None,
    typer.Option(
        "--sample", min=2, help="Number of random documents compared with each other.", show_default="2000 or 500"
    ),
]
ThresholdToPlot = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        parser=parse_fraction,
        metavar="FLOAT",
        help="Threshold to inspect, in (0, 1].",
        show_default="that of the index",
    ),
]
ThresholdsOfTable = Annotated[
    Sequence[float] | None,
    typer.Option(
        "--thresholds",
        metavar="S,...",
        parser=list_of(float, "numbers"),
        help="Thresholds in the table.",
        show_default="0.05 to 1 in steps of 0.05",
    ),
]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Write a plot, .png or .svg.", show_default=False)
]
ThresholdsToTry = Annotated[
    Sequence[float],
    typer.Option(
        "--min",
        metavar="S,...",
        parser=list_of(float, "numbers"),
        help="Thresholds to try, such as 0.7,0.8,0.9.",
        show_default=False,
    ),
]
LinkageToTry = Annotated[
    str | None,
    _one_of(_words(Linkage), "--linkage", help=_LINKAGE, show_default="that of the last group"),
]

# -- connection -------------------------------------------------------------------------------------------------------

_CONNECTION = "Connection"


def _connection(name: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(name, help=help, metavar=metavar, rich_help_panel=_CONNECTION, **more)


Url = Annotated[str | None, _connection("--url", "Address of the server.", "URL")]
ApiKeyFile = Annotated[str | None, _connection("--api-key-file", "File with the API key.", "FILE")]
Username = Annotated[str | None, _connection("--username", "User name.", "NAME")]
PasswordFile = Annotated[str | None, _connection("--password-file", "File with the password.", "FILE")]
BearerTokenFile = Annotated[str | None, _connection("--bearer-token-file", "File with a bearer token.", "FILE")]
CaCerts = Annotated[str | None, _connection("--ca-certs", "Certificates to trust (PEM).", "FILE")]
CertFingerprint = Annotated[
    str | None,
    _connection("--cert-fingerprint", "Trust only the server or CA certificate with this SHA-256 fingerprint.", "HEX"),
]
ClientCert = Annotated[str | None, _connection("--client-cert", "Client certificate (PEM).", "FILE")]
ClientKey = Annotated[
    str | None,
    _connection("--client-key", "Key of the client certificate, if in a separate file (PEM).", "FILE"),
]
Insecure = Annotated[bool, _connection("--insecure", "Do not verify the server's certificate.")]
Timeout = Annotated[
    float | None, _connection("--timeout", "Seconds to wait for a response.", "SECONDS", show_default="60")
]
Profile = Annotated[str | None, _connection("--profile", "Named settings from the profile file.", "NAME")]
