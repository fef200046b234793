"""The ingest pipeline that makes the keys of documents on the server, and its comparison with the keys of Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import xxhash

from es_neardupe.errors import UnsupportedServer
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.own_groups import waiting
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, own_group
from es_neardupe.keys.painless import fingerprint_script
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path
from es_neardupe.server.search import knows

__all__ = ["Difference", "check_painless", "check_texts", "differences", "pipeline_body", "pipeline_name"]

_MARK = "Keys of es-neardupe"
_TOGETHER = 500


class Difference(NamedTuple):
    """A text for which the server makes other fields than Python."""

    text: str
    expected: Mapping[str, Any]
    found: Mapping[str, Any]
    """The fields of the server; its error if there are none."""


def check_painless(client: Client) -> None:
    """Raise `UnsupportedServer` if the server runs no Painless scripts."""
    if not knows(client, "POST", path("_scripts", "painless", "_execute"), {"script": {"source": "true"}}):
        raise UnsupportedServer(
            "This server runs no Painless scripts, so it cannot make keys: make them with `enrich`, or allow inline "
            "scripts and install the module lang-painless."
        )


def pipeline_name(index: str, settings: Settings) -> str:
    """The name of the pipeline of an index, with its scheme. The hash keeps apart the pipelines of other indices, whose
    names can contain characters that are not possible here, and of other prefixes and fields."""
    digest = xxhash.xxh3_64_hexdigest("\0".join((index, settings.prefix, *settings.fields)).encode())
    return f"es-neardupe-{settings.scheme.id}-{digest}"


def pipeline_body(index: str, settings: Settings, *, group_field: str | None = None) -> dict[str, Any]:
    """The pipeline. If the script fails, the document is indexed without our fields, and ``enrich`` makes them."""
    script = fingerprint_script(settings.scheme, settings.fields, prefix=settings.prefix, group_field=group_field)
    ours = [settings.prefix, *([group_field] if group_field else [])]
    removal = {"remove": {"field": ours, "ignore_missing": True}}
    processor = {"lang": "painless", "source": script.source, "params": script.params, "on_failure": [removal]}
    return {"description": f"{_MARK}, {settings.scheme.id}, for {index}", "processors": [{"script": processor}]}


def differences(
    client: Client, index: str, settings: Settings, body: Mapping[str, Any], texts: Sequence[str]
) -> Iterator[Difference]:
    """Texts whose fields the server makes otherwise than Python, by ``_simulate``: nothing is stored.

    Each text is in the first field; all others are null.
    """
    numbered = [(f"{number} é", text) for number, text in enumerate(texts)]
    for chunk in chunked(numbered, _TOGETHER):
        sources = [{**dict.fromkeys(settings.fields), settings.fields[0]: text} for _, text in chunk]
        docs = [{"_index": index, "_id": id, "_source": source} for (id, _), source in zip(chunk, sources, strict=True)]
        request = {"pipeline": body, "docs": docs}
        answers = client.request("POST", "/_ingest/pipeline/_simulate", body=request)["docs"]
        made = fingerprint_sources(sources, settings, max(map(len, texts)))
        for (id, text), answer, fingerprint in zip(chunk, answers, made, strict=True):
            source = answer["doc"]["_source"] if "doc" in answer else {}
            found = source.get(settings.prefix) or {"error": answer.get("error", "the script failed")}
            expected = {**encode(fingerprint, found.get("at", "")), **waiting(own_group(index, id))}
            if found != expected:
                yield Difference(text, expected, found)


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
        "e\u0301 E\u0301 a\u0323\u0307 a\u0307\u0323 =\u0338 \u00bd \ufdfa \ufb01 \u338f",
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
