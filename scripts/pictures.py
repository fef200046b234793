"""Make the pictures of the documentation, except those of the review: scripts/screenshots makes them.

architecture.svg, detection.svg and prepare.svg need nothing, and compare.png a browser. With the address of a server,
search.svg shows a search in the index of ``scripts/demo``; with the press releases as well, distribution.svg shows
their similarities, from an index that is made for it and deleted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from es_neardupe import NearDupe, Scheme, Settings
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.pages.page import compare_page
from es_neardupe.similarity.comparison import compare_texts

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "tools"))

from browsers import chromium  # noqa: E402  (a module of the tests)

DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"

STYLE = """
    .card { fill: #ffffff; stroke: #d0d7de; }
    .part { fill: #f6f8fa; stroke: #8c959f; }
    .once { fill: #d3f0dc; stroke: #1a7f37; }
    .copy { fill: #ffe3b8; stroke: #bc6b00; }
    text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #1f2328; }
    .head { font-weight: 600; }
    .code { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
    .note { fill: #59636e; }
    .line { fill: none; stroke: #59636e; stroke-width: 1.3; }
    .grid { stroke: #d0d7de; }
    .c0 { fill: none; stroke: #0969da; stroke-width: 2; } .t0 { fill: #0969da; }
    .c1 { fill: none; stroke: #bc4c00; stroke-width: 2; } .t1 { fill: #bc4c00; }
    .c2 { fill: none; stroke: #1a7f37; stroke-width: 2; } .t2 { fill: #1a7f37; }
    .tip { fill: #59636e; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #0d1117; stroke: #3d444d; }
      .part { fill: #151b23; stroke: #656c76; }
      .once { fill: #12361f; stroke: #3fb950; }
      .copy { fill: #4a2c0b; stroke: #f0a04b; }
      text { fill: #e6edf3; }
      .note { fill: #9198a1; }
      .line { stroke: #9198a1; }
      .grid { stroke: #3d444d; }
      .c0 { stroke: #4493f8; } .t0 { fill: #4493f8; }
      .c1 { stroke: #f0883e; } .t1 { fill: #f0883e; }
      .c2 { stroke: #3fb950; } .t2 { fill: #3fb950; }
      .tip { fill: #9198a1; }
    }
"""


def svg(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A picture with a background of its own."""
    content = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img">\n  <title>{escape(title)}</title>\n  <style>{STYLE}  </style>\n'
        '  <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path class="tip" d="M0 0 8 4 0 8z"/></marker>\n'
        f"  {box(0.5, 0.5, width - 1, height - 1, 'card')}\n  {content}\n</svg>\n"
    )


def box(x: float, y: float, width: float, height: float, kind: str = "part") -> str:
    """A rectangle."""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def arrow(x: float, y: float, to: float) -> str:
    """A vertical arrow."""
    return f'<path class="line" marker-end="url(#tip)" d="M{x:g} {y:g}V{to:g}"/>'


def architecture() -> str:
    """What writes and reads which fields of the index."""
    parts = [box(20, 240, 760, 104), text(36, 264, "your index, on Elasticsearch or OpenSearch", "head")]
    fields = (
        (36, 216, "your fields", "title, body, ..."),
        (262, 246, "keys", "neardupe.bands, .signature, ..."),
        (518, 246, "groups", "neardupe.group, .principal, ..."),
    )
    for x, width, name, listed in fields:
        parts += [box(x, 276, width, 52, "card"), text(x + 12, 296, name, "note"), text(x + 12, 317, listed, "code")]
    steps = (
        (
            20,
            232,
            "enrich, load, pipeline",
            ("text → words → shingles", "→ signature → band keys"),
            "once for each text",
        ),
        (
            270,
            270,
            "group, watch",
            ("1. documents with a common key", "2. compare their texts exactly", "3. link matches to groups"),
            "again for what has changed",
        ),
        (560, 220, "any search", ('"collapse" on neardupe.group', "one hit of each group"), "no change of the server"),
    )
    for x, width, name, lines, note in steps:
        parts += [box(x, 24, width, 132), text(x + 14, 48, name, "head")]
        parts += [text(x + 14, 74 + 20 * number, line) for number, line in enumerate(lines)]
        parts.append(text(x + 14, 142, note, "note"))
    for x, up, words in (
        (60, True, "texts"),
        (220, False, "keys"),
        (300, True, "keys, texts"),
        (500, False, "groups"),
        (660, True, "hits"),
    ):
        parts += [arrow(x, 236, 162) if up else arrow(x, 160, 234), text(x + 8, 204, words, "note")]
    return svg(
        800, 364, "enrich stores keys with each document, group compares candidates, any search can collapse", parts
    )


def detection() -> str:
    """The probability that a pair becomes a candidate, by its resemblance."""
    left, top, width, height = 70, 46, 640, 300
    parts = [text(left, 28, "Probability that two texts of this resemblance share a key", "head")]
    for step in range(11):
        x, y = left + width * step / 10, top + height * (1 - step / 10)
        parts += [
            f'<path class="grid" d="M{left} {y:g}H{left + width}M{x:g} {top}V{top + height}"/>',
            text(x, top + height + 20, f"{step / 10:g}", "note", "middle"),
            text(left - 10, y + 4, f"{step / 10:g}", "note", "end"),
        ]
    parts.append(text(left + width / 2, top + height + 42, "resemblance", "note", "middle"))
    for number, (threshold, label, anchor) in enumerate(((0.5, 0.8, "end"), (0.8, 0.75, "end"), (0.9, 0.4, "start"))):
        scheme = Scheme.for_threshold(threshold)
        points = [(one / 200, scheme.detection(one / 200)) for one in range(201)]
        path = " ".join(f"{left + width * x:.1f},{top + height * (1 - y):.1f}" for x, y in points)
        parts.append(f'<polyline class="c{number}" points="{path}"/>')
        x, y = left + width * threshold, top + height * (1 - scheme.detection(threshold))
        parts.append(f'<circle class="t{number}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        middle = min(points, key=lambda point: abs(point[1] - label))
        parts.append(
            text(
                left + width * middle[0] + (10 if anchor == "start" else -10),
                top + height * (1 - middle[1]),
                f"threshold {threshold}: {scheme.bands} x {scheme.rows}",
                f"t{number}",
                anchor,
            )
        )
    return svg(740, 408, "Detection curves of three thresholds, each with the point of its threshold", parts)


QUERY = "apache license contributor patent grant"


def search(url: str) -> str:
    """The first hits of a search, without and with collapse, in the index of the demo."""
    body = {"query": {"match": {"text": QUERY}}, "_source": ["title", "neardupe.group"]}
    with NearDupe("neardupe-demo", url=url) as demo:
        plain, collapsed = (
            demo.client.request("POST", "/neardupe-demo/_search", body={**body, **more})["hits"]["hits"][:7]
            for more in ({"size": 7}, {"size": 7, "collapse": {"field": "neardupe.group"}})
        )
    parts = [text(20, 30, f"The first 7 hits for: {QUERY}", "head")]
    parts += [*hits(20, "without collapse", plain), *hits(410, "with collapse", collapsed)]
    return svg(
        800, 344, "Seven hits of a search: without collapse most of them are copies, with collapse none is", parts
    )


def hits(x: int, title: str, found: Sequence[dict[str, dict[str, dict[str, str]]]]) -> list[str]:
    """A list of hits, with those that repeat an earlier group in another colour."""
    groups = [hit["_source"]["neardupe"]["group"] for hit in found]
    repeated = [group in groups[:number] for number, group in enumerate(groups)]
    parts = [text(x, 58, f"{title}: {len(set(groups))} different", "note")]
    for number, (hit, again) in enumerate(zip(found, repeated, strict=True)):
        y = 70 + 38 * number
        parts.append(box(x, y, 370, 30, "copy" if again else "once"))
        name = str(hit["_source"]["title"])
        parts.append(text(x + 12, y + 20, name if len(name) <= 46 else f"{name[:45]}…"))
        if again:
            parts.append(text(x + 358, y + 20, "near-duplicate", "note", "end"))
    return parts


PREPARED = (
    (
        "--clean html-main",
        Preparation.named("html-main", ()),
        (
            "<nav><a href=/>Home</a> <a href=/news>News</a></nav>",
            "<main><h1>The bridge is open</h1>",
            "<p>The <b>new</b> bridge was opened on Monday.</p></main>",
            "<footer>All rights reserved</footer>",
        ),
    ),
    (
        "--clean mail",
        Preparation.named("mail", ()),
        (
            "Monday at ten suits me, and I bring the plans.",
            "On 3 Mar 2026 at 09:10, Ann Example wrote:",
            "> Shall we meet on Monday?",
            "-- ",
            "Bob Example",
        ),
    ),
    (
        "--mask all",
        Preparation.named(None, "all"),
        ("2026-06-21T10:00:16Z GET /api/v1/items/904 took 319ms", "2026-06-22T23:59:01Z GET /api/v1/items/17 took 8ms"),
    ),
)
"""Option, preparation, and the lines of a text."""


def prepare() -> str:
    """Some texts, and the words that their keys are made of."""
    parts, y = [text(20, 30, "text", "head"), text(470, 30, "what its keys are made of", "head")], 44
    for option, preparation, lines in PREPARED:
        left = [" ".join(line.split()) for line in preparation.text("\n".join(lines)).split("\n")]
        left = [line for line in left if line]
        height = 38 + 20 * max(len(lines), len(left))
        for x, width, shown, kind in ((20, 440, lines, "part"), (470, 370, left, "once")):
            parts.append(box(x, y, width, height, kind))
            parts += [text(x + 12, y + 42 + 20 * number, line, "code") for number, line in enumerate(shown)]
        parts.append(text(32, y + 20, option, "note"))
        y += height + 10
    return svg(860, y + 8, "A page, a mail and two log lines, and what is left of them when they are prepared", parts)


def compare(file: Path) -> None:
    """The page of two documents of articles.jsonl, in a browser."""
    lines = (DOCS / "articles.jsonl").read_text("utf-8").splitlines()
    articles = {one["id"]: one for one in map(json.loads, lines)}
    a, b = (articles[id] for id in ("1001", "1002"))
    found = compare_texts(a["body"], b["body"], names=(a["id"], b["id"]))
    titles = [{"title": one["title"]} for one in (a, b)]
    found = replace(found, a=replace(found.a, fields=titles[0]), b=replace(found.b, fields=titles[1]))
    with TemporaryDirectory() as folder, chromium() as browser:
        shown = Path(folder) / "page.html"
        shown.write_text(compare_page(found), "utf-8")
        browser.set_window_size(1100, 860)
        browser.get(shown.as_uri())
        browser.save_screenshot(str(file))


def distribution(url: str, texts: Path, file: Path) -> None:
    """The plot of ``distribution`` for texts in JSON lines with ids, from a new index. It has the name of the index in
    docs/distribution.md, because samples depend on it."""
    with NearDupe("press", url=url) as press:
        press.client.request("PUT", "/press", body={"mappings": {"properties": {"text": {"type": "text"}}}})
        try:
            press.init(Settings(("text",)))
            press.load([str(texts)])
            press.distribution(plot=str(file))
        finally:
            press.clean()
            press.client.request("DELETE", "/press")


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="address of a server with the index neardupe-demo")
    parser.add_argument("press", nargs="?", type=Path, help="file with the press releases, sample_12_senators.jsonl.xz")
    given = parser.parse_args()
    drawn = {"architecture": architecture(), "detection": detection(), "prepare": prepare()}
    if given.url:
        drawn["search"] = search(given.url)
    for name, picture in drawn.items():
        (PICTURES / f"{name}.svg").write_text(picture, "utf-8")
    compare(PICTURES / "compare.png")
    if given.press:
        distribution(given.url, given.press, PICTURES / "distribution.svg")


if __name__ == "__main__":
    main()
