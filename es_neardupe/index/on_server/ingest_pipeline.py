"""Ingest pipeline that makes the keys of documents on the server: its comparison with the keys of Python, and its use.

The name of a pipeline of this program contains the scheme and a hash of the whole pipeline. So one with other fields,
of another scheme or of another version of this program has another name, and one with the same name and another content
was changed by somebody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import xxhash

from es_neardupe.errors import Forbidden, IndexUnusable, NotFound, RequestError, UnsupportedServer
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.on_server.painless import fingerprint_script
from es_neardupe.index.on_server.pipelines import PipelineKind, changed_pipeline, not_stored, stored_pipeline
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, own_group
from es_neardupe.index.target import DEFAULT_PIPELINE, FINAL_PIPELINE, Definitions
from es_neardupe.index.updates import waiting
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path
from es_neardupe.wording import command

_MARK = "Keys of es-neardupe"
_NAME = re.compile(r"es-neardupe-(v[0-9]+-[0-9a-f]{8})-[0-9a-f]{16}")
_TOGETHER = 500


class OtherFields(NamedTuple):
    """A text for which the server makes other fields than Python."""

    text: str
    expected: Mapping[str, Any]
    found: Mapping[str, Any]
    """The fields of the server; its error if there are none."""

    def __str__(self) -> str:
        """The text and the first field that differs, each shortened."""
        names = ("error", *self.expected, *self.found)
        name = next(name for name in names if self.found.get(name) != self.expected.get(name))
        found, expected = (f"{one.get(name)!r:.50}" for one in (self.found, self.expected))
        return f"{name} is {found}, not {expected}, for the text {self.text!r:.50}"


class User(NamedTuple):
    """What names a pipeline."""

    kind: str
    """``index``, ``pipeline``, ``index template`` or ``component template``."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class IndexPipelines:
    """The ingest pipelines that process the documents of an index."""

    default: str | None
    """For requests that name no other one."""
    final: str | None
    """After any other one."""

    @property
    def names(self) -> set[str]:
        """Those that are set."""
        return {name for name in (self.default, self.final) if name is not None}

    def without(self, names: Collection[str]) -> IndexPipelines:
        """The same without some pipelines."""
        return IndexPipelines(*(None if name in names else name for name in (self.default, self.final)))


# the pipeline


def pipeline_name(index: str, settings: Settings) -> str:
    """The name of the pipeline of an index."""
    return _name_of(settings, pipeline_body(index, settings))


def _name_of(settings: Settings, body: Mapping[str, Any]) -> str:
    digest = xxhash.xxh3_64_hexdigest(json.dumps(body, sort_keys=True).encode())
    return f"es-neardupe-{settings.scheme.id}-{digest}"


def is_ours(name: str | None) -> bool:
    """Whether this is the name of a pipeline of this program, for any index."""
    return name is not None and _NAME.fullmatch(name) is not None


def pipeline_body(index: str, settings: Settings) -> dict[str, Any]:
    """The pipeline of an index. If the script fails, the document is indexed without the `neardupe` fields, and
    ``enrich`` makes them.

    Raises `SettingsError` if the script of the scheme is larger than servers accept.
    """
    script = fingerprint_script(
        settings.scheme, settings.fields, prefix=settings.prefix, group_field=settings.group_field
    )
    removal = {"remove": {"field": list(settings.in_documents), "ignore_missing": True}}
    processor = {"lang": "painless", "source": script.source, "params": script.params, "on_failure": [removal]}
    return {"description": _description(index, settings), "processors": [{"script": processor}]}


def _description(index: str, settings: Settings) -> str:
    return f"{_marked(settings.prefix)} {settings.scheme.id} for {index}"


def _marked(prefix: str) -> str:
    return f"{_MARK} under {prefix}, scheme"


# whether the server makes the same keys


def check_ingest_nodes(client: Client) -> None:
    """Raise `UnsupportedServer` if no node runs ingest pipelines with scripts. A user who may not ask, and one of a
    service that cannot be asked, learns it from the first request that stores a pipeline."""
    try:
        answer = client.request("GET", path("_nodes", "ingest:true", "ingest"))
    except (Forbidden, NotFound):  # a service may offer no requests about nodes
        return
    nodes = answer["nodes"].values()
    if not nodes:
        raise UnsupportedServer(
            "No node of this cluster has the role `ingest`, so it runs no ingest pipelines: add the role to a node, or "
            "make the keys with `enrich`."
        )
    if any(one.get("ingest") and not _has_processors(one["ingest"]) for one in nodes):
        raise UnsupportedServer(
            "A node of this server lacks the module ingest-common, which official distributions have, so that it runs "
            "no pipelines with scripts: make the keys with `enrich`."
        )


def _has_processors(ingest: Mapping[str, Any]) -> bool:
    return {"script", "remove"} <= {one["type"] for one in ingest["processors"]}


def check_painless(client: Client) -> None:
    """Raise `UnsupportedServer` if the server runs no Painless scripts in ingest pipelines."""
    trivial = {"processors": [{"script": {"lang": "painless", "source": "ctx.tried = true"}}]}
    try:
        client.request(
            "POST", path("_ingest", "pipeline", "_simulate"), body={"pipeline": trivial, "docs": [{"_source": {}}]}
        )
    except Forbidden:
        raise
    except RequestError as error:
        if client.server.is_collection:
            raise UnsupportedServer(
                "This collection runs no pipelines with scripts: make the keys with `enrich`."
            ) from error
        raise UnsupportedServer(
            f"This server runs no Painless scripts in ingest pipelines ({error.reason}), so it cannot make keys: make "
            f"them with `enrich`, or allow inline scripts in the context ingest (script.allowed_types, "
            f"script.allowed_contexts) and install the module lang-painless."
        ) from error


def check_keys(index: IndexHandle, settings: Settings) -> int:
    """Compare the keys of the pipeline of an index, stored or not, with those of Python; returns the number of texts.

    Raises `IndexUnusable` if texts are prepared before, `UnsupportedServer` if the server cannot run the pipeline or
    makes other keys, and as `pipeline_body`. Stores nothing.
    """
    if preparation := settings.scheme.preparation:
        raise IndexUnusable(
            f"The texts of {index.name} are prepared ({preparation}) before their keys are made, which servers cannot "
            f"do; their html_strip leaves other texts, and gives other keys. Make the keys with "
            f"`{command('enrich', index.name)}`, without --in-cluster, or write the documents with `load`."
        )
    client = index.server
    check_ingest_nodes(client)
    check_painless(client)
    body, texts = pipeline_body(index.name, settings), check_texts()
    try:
        first = next(differences(index, settings, body, texts), None)
    except Forbidden:
        raise
    except RequestError as error:
        raise UnsupportedServer(
            f"{client.server} cannot run the script that makes the keys ({error.reason}): make them with `enrich`."
        ) from error
    if first is not None:
        raise UnsupportedServer(
            f"The keys that {client.server} makes by a script are not those of this program ({first}): make them with "
            f"`enrich`."
        )
    return len(texts)


def differences(
    index: IndexHandle, settings: Settings, body: Mapping[str, Any], texts: Sequence[str]
) -> Iterator[OtherFields]:
    """Texts whose fields the server makes otherwise than Python, by ``_simulate``: nothing is stored.

    Each text is in the first field; all others are null.
    """
    numbered = [(f"{number} é", text) for number, text in enumerate(texts)]
    for chunk in chunked(numbered, _TOGETHER):
        sources = [{**dict.fromkeys(settings.fields), settings.fields[0]: text} for _, text in chunk]
        docs = [
            {"_index": index.name, "_id": id, "_source": source} for (id, _), source in zip(chunk, sources, strict=True)
        ]
        request = {"pipeline": body, "docs": docs}
        answers = index.server.request("POST", path("_ingest", "pipeline", "_simulate"), body=request)["docs"]
        made = fingerprint_sources(sources, settings, max(map(len, texts)))
        for (id, text), answer, fingerprint in zip(chunk, answers, made, strict=True):
            source = answer["doc"]["_source"] if "doc" in answer else {}
            found = source.get(settings.prefix) or {"error": answer.get("error", "the script failed")}
            expected = {**encode(fingerprint, found.get("at", "")), **waiting(own_group(index.name, id))}
            if settings.group_field is not None:
                expected |= {settings.group_field: expected["group"]}
                found = {**found, settings.group_field: source.get(settings.group_field)}
            if found != expected:
                yield OtherFields(text, expected, found)


# pipelines of the server and of indices


def index_pipelines(definitions: Definitions, indices: Collection[str] | None = None) -> dict[str, IndexPipelines]:
    """Concrete index -> its pipelines: for the given indices, or else for those of a name that have any."""
    found = definitions.settings(DEFAULT_PIPELINE, FINAL_PIPELINE, expand_wildcards="all")
    chosen = found if indices is None else indices  # servers omit indices without one
    return {index: _pipelines_of(found.get(index, {})) for index in sorted(chosen)}


def _pipelines_of(settings: Mapping[str, str]) -> IndexPipelines:
    default, final = (
        None if name == "_none" else name for name in map(settings.get, (DEFAULT_PIPELINE, FINAL_PIPELINE))
    )
    return IndexPipelines(default, final)


def missing_pipelines(client: Client, pipelines: Mapping[str, IndexPipelines]) -> dict[str, str]:
    """Concrete index -> a pipeline that it names and that does not exist: the server rejects its new documents. Empty
    if this user may not read pipelines."""
    names = {name for one in pipelines.values() for name in one.names}
    try:
        gone = not_stored(client, PipelineKind.INGEST, names)
    except Forbidden:
        return {}
    return {index: min(one.names & gone) for index, one in pipelines.items() if one.names & gone}


class OwnPipelines:
    """The pipelines of this program for an opened index and its prefix."""

    def __init__(self, index: IndexHandle) -> None:
        self.index, self.client = index, index.server
        self.of_indices = index_pipelines(Definitions(self.client, index.path), index.target.indices)
        """Concrete index -> its pipelines."""
        self.stored = self._stored()
        """Name -> content of those that the index uses, or that were made for its name. Empty if this user may not read
        pipelines."""
        self.missing = set(missing_pipelines(self.client, self.of_indices).values())
        """Any pipelines that the index names, and that do not exist."""

    @cached_property
    def name(self) -> str:
        """The name of the one for the present settings, which may have been made for another name of the index. Raises
        as `pipeline_body`."""
        body = pipeline_body(self.index.name, self.index.settings)
        equal = [name for name, one in self.stored.items() if one.get("processors") == body["processors"]]
        name = _name_of(self.index.settings, body)
        return name if name in equal or not equal else equal[0]

    @property
    def names(self) -> set[str]:
        """All of this program, also deleted ones that the index names."""
        return {name for name in {*self.stored, *self.missing} if is_ours(name)}

    def state(
        self,
        of_indices: Mapping[str, IndexPipelines] | None = None,
        *,
        added: Collection[str] = (),
        removed: Collection[str] = (),
    ) -> str:
        """One of the states of `PipelineReport`, after changes of the pipelines of the indices and of the server."""
        named = (self.of_indices if of_indices is None else of_indices).values()
        stored = {*self.stored, *added}.difference(removed)
        outdated = stored - {self.name}
        if any(one.names & (self.missing - stored) for one in named):
            return "missing"
        if any(one.names & outdated for one in named) or (outdated and self.name not in stored):
            return "outdated"
        if all(one.default == self.name for one in named):
            return "default"
        if all(one.final == self.name for one in named):
            return "final"
        if any(self.name in one.names for one in named):
            return "partly"
        return "stored" if self.name in stored else "none"

    def store(self, client: Client) -> None:
        """Store the one for the present settings, unless it exists. Raises `IndexUnusable` if another pipeline has its
        name."""
        body = pipeline_body(self.index.name, self.index.settings)
        stored = stored_pipeline(self.client, PipelineKind.INGEST, self.name)
        if stored is None:
            client.request("PUT", PipelineKind.INGEST.path(self.name), body=body)
        elif stored.get("processors") != body["processors"]:
            raise changed_pipeline(PipelineKind.INGEST, self.name)

    def unset(self, client: Client) -> tuple[str, ...]:
        """Remove them from the settings of the concrete indices; returns those that named one. This comes before
        `delete_unused`: the server rejects documents of an index whose pipeline is missing."""
        changed = []
        definitions = Definitions(client, self.index.path)
        for concrete, one in index_pipelines(definitions, self.index.target.indices).items():
            if one.names & self.names:
                set_pipelines(client, concrete, one, one.without(self.names))
                changed.append(concrete)
        return tuple(changed)

    def _stored(self) -> dict[str, Mapping[str, Any]]:
        marked, name = _marked(self.index.settings.prefix), self.index.name
        used = {one for pipelines in self.of_indices.values() for one in pipelines.names}
        try:
            found: Mapping[str, Any] = self.client.request("GET", PipelineKind.INGEST.path("es-neardupe-*")) or {}
        except (NotFound, Forbidden):
            return {}
        described = {one: body.get("description", "") for one, body in sorted(found.items()) if is_ours(one)}
        return {
            one: found[one]
            for one, words in described.items()
            if words.startswith(f"{marked} ") and (one in used or words.endswith(f" for {name}"))
        }


def set_pipelines(client: Client, index: str, before: IndexPipelines, after: IndexPipelines) -> None:
    """Change the pipelines of a concrete index; None removes the setting."""
    places = ((DEFAULT_PIPELINE, before.default, after.default), (FINAL_PIPELINE, before.final, after.final))
    body = {setting: name for setting, former, name in places if name != former}
    client.request("PUT", path(index, "_settings"), body=body)


def users(client: Client, pipeline: str) -> list[User]:
    """Everything that names a pipeline."""
    found = [
        User("index", index)
        for index, one in index_pipelines(Definitions(client, "*")).items()
        if pipeline in one.names
    ]
    every: Mapping[str, Any] = {}
    with suppress(NotFound):  # the answer of OpenSearch if there is none at all
        every = client.request("GET", path("_ingest", "pipeline")) or {}
    found += [User("pipeline", other) for other, body in every.items() if other != pipeline and _names(body, pipeline)]
    for kind in ("index_template", "component_template"):
        templates = client.request("GET", path(f"_{kind}")).get(f"{kind}s", [])
        found += [User(kind.replace("_", " "), one["name"]) for one in templates if _names(one, pipeline)]
    return sorted(found)


def _names(body: Mapping[str, Any], name: str) -> bool:
    return f'"{name}"' in json.dumps(body)


def delete_unused(client: Client, names: Collection[str], unset: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Delete pipelines. Can be repeated. ``unset``: concrete indices whose settings no longer name them.

    Returns pipeline -> what else uses it, for those that stay. They also stay if this user may not see what uses them.
    """
    changed = {User("index", index) for index in unset}
    kept: dict[str, tuple[str, ...]] = {}
    for name in sorted(names):
        try:
            left = tuple(str(one) for one in users(client, name) if one not in changed)
        except Forbidden:
            left = ("unknown, because this user may not read all indices, templates and pipelines",)
        if left:
            kept[name] = left
        else:
            with suppress(NotFound):
                client.request("DELETE", PipelineKind.INGEST.path(name))
    return kept


def check_texts() -> list[str]:
    """Texts for the check of a server: scripts, compositions, each branch of the hashes, borders of chunks."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    sizes = (
        1,
        2,
        3,
        4,
        7,
        8,
        9,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        127,
        128,
        129,
        160,
        192,
        239,
        240,
        241,
        256,
        1024,
        1025,
    )
    return [
        *((letters * (size // 26 + 1))[:size] for size in sizes),
        *(" ".join(letters[n % 26] * (n % 9 + 1) for n in range(count)) for count in (2, 3, 4, 5, 6, 40, 400)),
        "",
        " .,!\n\0\u2014",
        "2026 1 007",
        "\u0663\u0664 \u096a \uff15",
        "Don't panic: M\u00dcNCHEN \u6771\u4eac!",
        "Stra\ufb02e STRASSE \u1e9e \u0130I\u0131 \u03a3\u03c2 \u01c5 \u212a \u212b",
        "e\u0301 E\u0301 a\u0323\u0307 a\u0307\u0323 i\u0323\u0307 i\u0301\u0307 =\u0338 \u00bd \ufdfa \ufb01 \u338f",
        "\uff76\uff9e \u304b\u3099 \u30a2\u30fc \uff71",
        "\u1112\u1161\u11ab \ud55c\uae00 \u1100\u1161",
        "\u0e44\u0e17\u0e22\u0e19\u0e49\u0e33 \u0e01\u0301a \u1780\u17d2\u1781",
        "\u0928\u092e\u0938\u094d\u0924\u0947 \u0bc6\u0bbe \u0915\u093c",
        "\u0643\u0650\u062a\u0640\u0627\u0628 \u05e9\u05c1\u05dc\u05d5\u05dd \u0730\u0710",
        "\u0301a \u0301 \u20e3 1\ufe0f\u20e3 \u2122 \u2139 \U0001f600 \u00b4",
        "\U00020000\U00010400\U0001e900 \U0001d7ce \ufa0e \U0002f800",
        "a\u00adb\u200bc\u2060d \U000e0041x",
        # new in Unicode 11, 12, 12.1 and 13, then later ones, which are separators
        "\u10d0\u1c90 \U00010d00\U00010d24 \U00010f30\U00010f46 \u0560",
        "\u0c77\u1cfa\ua7ba\ua7c3 \U000119a0\U000119e0 \U0001e100\U0001e130 \u32ff",
        "\U00010e80\U00010eab \U00011938\U00011935\U00011930 \U00030000 \ua7c7\u08be \u1abf a\u1ac0\u0301",
        "a\u0870b \ua7d0 \U00010570 \U00011f02 \U00031350 \u1c89 a\u1ac1b",
        "x" * 100_003,
        "ab " * 50_000,
        "\u6771" * 70_000,
        "a\u0301" * 40_000,
        "z" * 65_535 + "\U00020000" + "y",
    ]
