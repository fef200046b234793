"""Options of several commands: names, help texts, ranges and values, for Python and for the command line.

Each alias is the type of a parameter together with its option. It is written in the signature of a function in
`es_neardupe.commands`, from which the command line takes it, so ``help()`` in Python and ``--help`` show the same
texts. They name parameters in backticks; the command line shows the names of the options instead. An alias of one
command is in its module.
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

from es_neardupe.query_strings import problem_of_query
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


class FactKind(str, Enum):
    """Kinds of facts that can differ between near-copies."""

    AMOUNT = "amount"
    NUMBER = "number"
    DATE = "date"
    UNIT = "unit"
    CODE = "code"
    NAME = "name"
    NEGATION = "negation"
    WORD = "word"
    TITLE = "title"
    STAMP = "stamp"
    COUNTER = "counter"
    CONTACT = "contact"


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
    """Place in source code, such as ``Name.java:52``, or status in an access log, such as ``HTTP/1.1" 200``; it stays
    as it is, so no other kind replaces its number."""
    URL = "url"
    EMAIL = "email"
    UUID = "uuid"
    TIME = "time"
    IP = "ip"
    PATH = "path"
    POD = "pod"
    """Name of a Kubernetes pod of a deployment or a cron job, such as ``web-7d9c5b8f6-x2v4q``."""
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
    # Of the keys by which `bands` expects fewer than 1,000 of a million unrelated texts as candidates, 80 bands of 3
    # rows of 7 shapes find most (docs/accuracy.md). Two readings with 10 % of their characters wrong have a resemblance
    # of about 0.35.
    "scans": {"threshold": 0.25, "shingle": "7s", "permutations": 240, "bands": 80, "rows": 3},
    # `init` chooses bands for the threshold by this measure, from the lengths of the texts.
    "short": {"threshold": 0.6, "shingle": 2, "measure": MeasureName.JACCARD},
    "logs": {"threshold": 0.5, "shingle": 2, "mask": tuple(Mask)},
}
"""Preset -> settings. Of a preset with bands, only the threshold can be changed. With a measure and ``min``, the keys
are for the threshold by resemblance, and the measure decides."""

SHORT = 30
"""Number of words below which texts are for the preset short."""

PRESETS_IN_WORDS: Mapping[str, str] = {
    "strict": "copies with few changes: 5-word shingles, threshold 0.8; the default",
    "reader": "what people call near-duplicates: 3-word shingles, threshold 0.7, edit 0.71 decides",
    "supershingles": "nearly identical long texts: 8-word shingles, two keys of six must agree",
    "scans": "texts read by a scanner, with wrong characters: shingles of 7 shapes, threshold 0.25",
    "short": f"texts below {SHORT} words, such as titles: 2-word shingles, bands from the lengths of the texts",
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
        written = re.fullmatch(r"\s*([0-9]+(?:[.,][0-9]+)?)\s*(%?)\s*", str(value))
        number = float(written[1].replace(",", ".")) / (100 if written[2] else 1) if written else 0
        meant = f" Write {number:g} for {value.strip()}." if 0 < number <= 1 else ""
        raise typer.BadParameter(f"{value!r} is not a number.{meant}") from None
    if not 0 < number <= 1:
        meant = f" Write {number / 100:g} for {number:g} %." if 1 < number <= 100 else ""
        raise typer.BadParameter(f"{value} is not in (0, 1].{meant}")
    return number


def parse_share(value: Any) -> float:
    """A number between 0 and 1, both excluded."""
    number = parse_fraction(value)
    if number == 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1.")
    return number


AUTO: Literal["auto"] = "auto"
"""The value of ``ignore_common`` that finds the shingles to ignore in groups of unrelated texts."""


def _share_or_auto(value: Any) -> float | Literal["auto"]:
    """A number between 0 and 1, both excluded, or ``auto``."""
    return AUTO if value == AUTO else parse_share(value)


def list_of(kind: Callable[[str], Number], name: str) -> Callable[[Any], list[Number]]:
    """A parser of comma-separated numbers. ``name``: what they are called in the error message."""

    def parse(value: Any) -> list[Number]:
        try:
            return [kind(part) for part in value.split(",")]
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not a list of {name} separated by commas.") from None

    return parse


_SHINGLE = re.compile(r"0*[1-9][0-9]{0,6}[cs]?", re.ASCII)


def parse_shingle(value: Any) -> int | str:
    """A number of words (5), characters (5c) or shapes (7s)."""
    if not _SHINGLE.fullmatch(str(value)):
        raise typer.BadParameter(f"{value!r} is not a number of words (5), characters (5c) or shapes (7s).")
    return str(value) if str(value).endswith(("c", "s")) else int(value)


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
    if problem := problem_of_query(query):
        raise typer.BadParameter(problem)
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


def one_of(words: Sequence[str], *names: str, **more: Any) -> Any:
    """An option that takes one of some words. The shell completes them."""

    def parse(value: Any) -> str:
        word = value.value if isinstance(value, Enum) else str(value)
        if word not in words:
            raise typer.BadParameter(f"{word!r} is not one of {', '.join(words)}.")
        return word

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Option(*names, parser=parse, autocompletion=complete, **{"metavar": "|".join(words), **more})


def like(alias: Any, **other: Any) -> Any:
    """The option of an alias, with some other values."""
    option = copy(get_args(alias)[1])
    for name, value in other.items():
        setattr(option, name, value)
    return option


def words_of(kind: Sequence[Enum] | type[Enum]) -> list[str]:
    """The words of an option with the values of an enumeration."""
    return [str(one.value) for one in kind]


def names_of(measures: Iterable[MeasureName]) -> list[str]:
    """The names of measures, then the symbols that are accepted in their place."""
    measures = list(measures)
    return [*words_of(measures), *(one.symbol for one in measures if one.symbol)]


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
Workers = Annotated[int, typer.Option("--workers", min=1, max=64, help="Number of parallel bulk requests.")]
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
DryRun = Annotated[bool, typer.Option("--dry-run", help="Compute everything, but write nothing.")]
ShowRequests = Annotated[
    int, typer.Option("--show-requests", min=0, metavar="N", help="With `dry_run`: show the first N requests in full.")
]
CandidatesByKeys = Annotated[
    int, typer.Option("--max-candidates", min=1, help="Maximum number of candidates compared, most shared keys first.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed of the sample.")]

# -- rules for a match ------------------------------------------------------------------------------------------------

MEASURE_PANEL = "Measure"

Measure = Annotated[
    str | None,
    one_of(
        names_of(DECIDING),
        "--measure",
        help=f"Similarity measure that decides a match. {JACCARD}",
        show_default="that of the index: resemblance, unless init chose another",
        rich_help_panel=MEASURE_PANEL,
    ),
]
MatchingName = Annotated[
    str | None,
    one_of(
        words_of(Matching),
        "--matching",
        help="How common passages are found, for jaccard and containment.",
        show_default="literal",
        rich_help_panel=MEASURE_PANEL,
    ),
]
Passage = Annotated[
    int | None,
    typer.Option(
        "--passage",
        min=1,
        metavar="N",
        help="Minimum number of words in a common passage, for jaccard and containment.",
        show_default="words of a shingle; 1 for shingles of characters",
        rich_help_panel=MEASURE_PANEL,
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
Renew = Annotated[
    bool,
    typer.Option(
        "--renew",
        help="Recompute feature frequencies instead of using the cached ones.",
        rich_help_panel=MEASURE_PANEL,
    ),
]
IgnoreCommon = Annotated[
    float | Literal["auto"] | None,
    typer.Option(
        "--ignore-common",
        parser=_share_or_auto,
        metavar="SHARE|auto",
        help="Ignore shingles that occur in more than this share of the documents; auto: those of passages that hold "
        "unrelated texts together.",
        show_default=False,
        rich_help_panel=MEASURE_PANEL,
    ),
]

# -- groups -----------------------------------------------------------------------------------------------------------

LINKAGE = "star: each member is similar to the principal; chain: to some member; complete: to all members."
Evidence = Annotated[bool, typer.Option("--evidence", help="Store what holds each group together in a hidden index.")]
KeepPolicy = Annotated[
    str | None,
    typer.Option(
        "--keep-policy",
        metavar="POLICY",
        help="How the document to keep is chosen, as for `group --principal`.",
        show_default="that of the last run",
    ),
]

# -- settings of an index ---------------------------------------------------------------------------------------------

Preset = Annotated[
    str | None,
    one_of(list(PRESETS), "--preset", help="Predefined settings.", show_default=False),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        parser=parse_fraction,
        metavar="FLOAT",
        help="Minimum similarity of pairs that must be found, in (0, 1].",
        show_default="0.8",
    ),
]
Detection = Annotated[
    float | None,
    typer.Option(
        "--detection",
        parser=parse_share,
        metavar="FLOAT",
        help="Minimum probability of finding a pair exactly at the threshold.",
        show_default="0.99",
    ),
]
Shingle = Annotated[
    str | None,
    typer.Option(
        "--shingle",
        parser=parse_shingle,
        metavar="N|Nc|Ns",
        help="Words in a shingle; 5c: 5 characters; 7s: 7 shapes, which letters that scanners confuse share.",
        show_default="5",
    ),
]
Permutations = Annotated[
    int | None,
    typer.Option(
        "--permutations",
        min=1,
        help="Slots of the signature; each takes one byte in every document.",
        show_default="128",
    ),
]
Bands = Annotated[int | None, typer.Option("--bands", min=1, help="Number of bands; with `rows`.", show_default=False)]
Rows = Annotated[int | None, typer.Option("--rows", min=1, help="Rows per band; with `bands`.", show_default=False)]
Agree = Annotated[
    int | None,
    typer.Option(
        "--agree",
        min=1,
        help="Number of bands that candidates must share; with `bands` and `rows`.",
        show_default="1",
    ),
]
CleanTexts = Annotated[
    str | None,
    one_of(
        words_of(Clean),
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
        help=f"Replace parts of texts by placeholders: all, or some of {', '.join(words_of(Mask))}, separated by "
        "commas.",
        show_default=False,
    ),
]
SampleMod = Annotated[
    int,
    typer.Option(
        "--sample-mod",
        min=0,
        metavar="N",
        help="For `contained`: store one in N shingles as a sampled key; 0: none.",
    ),
]
SampleKeys = Annotated[
    int | None,
    typer.Option(
        "--sample-keys",
        min=1,
        help="Instead of `sample_mod`: desired number of sampled keys in a document of average length.",
        show_default=False,
    ),
]

# -- documents --------------------------------------------------------------------------------------------------------

Since = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--since",
        metavar="FIELD=DATE",
        parser=parse_since,
        help="Also renew the keys of changed texts, for documents with this date or later.",
        show_default=False,
    ),
]
ID = typer.Option("--id", help="Id of a document in the index.", show_default=False)
Text = Annotated[str | None, typer.Option("--text", help="Text to search for.", show_default=False)]
TopHits = Annotated[int, typer.Option("--top", min=1, help="Maximum number of hits shown.")]
TITLE_FIELDS = typer.Option(
    "--field",
    metavar="FIELD",
    help="Field to show of each document. Repeatable.",
    show_default="title, or the beginning of the text",
)
TitleFields = Annotated[Sequence[str] | None, TITLE_FIELDS]
"""In Python None reads no fields."""
