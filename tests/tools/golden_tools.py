"""The life of a small index, command by command, and the output of the commands without the parts that differ between
runs."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import Run
from duplicates_requests import request_of_all_stages
from every_command import LOOKING, WRITING
from hostile import Page
from server_tools import JSON, change, family, make_index, put, words
from sidecar_tools import PROPERTIES

from es_neardupe.index.stored_fields import own_group
from es_neardupe.server.client import Client, path

FOLDER = Path(__file__).parents[1] / "golden" / "commands"

NAME = "text"
SITE = "https://a.example"
STEADY = {"number_of_replicas": 0, "refresh_interval": "-1", "merge.policy.segments_per_tier": 1000}
"""Hits of the same score come in the order of the segments: nothing may merge or add segments in the background."""

NO_REPORT = {"--html", "--pairs-only", "--show-request"}
"""Calls with one of these options print no JSON, or something else than a report."""

DURATIONS = {"seconds", "lag"}
OF_THE_MACHINE = {"compiled", "python", "system", "version"}
"""Fields of ``version`` about the machine and the program; the numbers of packages are masked too."""

NOW = re.compile(r"20(?:2[5-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")
"""A time of the run: dates of the documents are in 2024."""

DIGITS = 9
"""Decimal places that are kept: sums may be computed in another order."""


def _documents() -> dict[str, JSON]:
    """Families of several sizes, exact copies, a quotation, changed addresses, and unusual texts."""
    texts: dict[str, str | None] = {f"bridge{n}": text for n, text in enumerate(family("bridge", 6, length=90))}
    ferry = family("ferry", 3, length=80, edits=3)
    texts |= {f"ferry{n}": text for n, text in enumerate([*ferry, ferry[0], ferry[0]])}
    long = words("chain", 130)
    texts |= {f"chain{n}": " ".join(link) for n, link in enumerate((long[:80], long[20:104], long[40:120]))}
    body = " ".join(words("price", 70))
    texts |= {f"price{n}": f"{body} costs {n + 10} euros on {n + 3} May 202{n}" for n in range(4)}
    texts |= {f"copy{n}": " ".join(words("copy", 50)) for n in range(2)}
    texts |= {f"alone{n}": " ".join(words(("alone", n), 40)) for n in range(3)}
    texts["quoting"] = " ".join([*words("before", 60), *words("bridge", 90)[10:70], *words("after", 50)])
    # Resemblances of about 0.45, between the thresholds of `init` and `migrate`: a new group, and two that merge.
    # No two of them are equal: for equal ones, the examples of `distribution` depend on the name of the index.
    far, near = words("far", 70), words("near", 70)
    texts |= {"far0": " ".join(far), "far1": " ".join([*far[:44], *words("farther", 26)])}
    texts |= {f"near{n}": " ".join([*near, *words("end", n)]) for n in (0, 1)}
    texts |= {f"near{n}": " ".join([*near[:45], *words("nearer", 23 + n)]) for n in (2, 4)}
    texts |= {"empty": "", "missing": None, "short0": "two words", "short1": "Two words!"}
    texts |= {"numbers": " ".join(map(str, range(100, 150)))}
    return {id: _document(id, text, day) for day, (id, text) in enumerate(texts.items())} | _visits()


def _document(id: str, text: str | None, day: int) -> JSON:
    about = {"title": id, "url": f"{SITE}/{id}", "date": f"2024-01-{day % 28 + 1:02}", "source": "ab"[day % 2]}
    return about if text is None else {**about, "text": text}


def _visits() -> dict[str, JSON]:
    """Documents with addresses: one has moved, one is another document at its old address, and one will be deleted."""
    page, used, gone = (family(name, 4, length=100) for name in ("page", "used", "gone"))
    visits = [
        ("page0", "old", "2024-03-01", page[0]),
        ("page1", "new", "2024-04-01", page[1]),
        ("page2", "mirror", "2024-05-01", page[2]),
        ("page3", "earlier", "2024-02-01", page[3]),
        ("used0", "used", "2024-01-01", used[0]),
        ("used1", "used", "2024-05-01", " ".join(words("another", 70))),
        ("used2", "used-moved", "2024-06-01", used[1]),
        ("gone0", "gone", "2024-01-01", gone[0]),
        ("gone1", "gone-moved", "2024-02-01", gone[1]),
        ("gone2", "gone-copy", "2024-03-01", gone[2]),
    ]
    return {
        id: {"title": id, "url": f"{SITE}/{where}", "date": date, "source": "b", "text": text}
        for id, where, date, text in visits
    }


DOCUMENTS = _documents()
LATE = {"late": _document("late", f"{DOCUMENTS['alone0']['text']} and more", 1)}
ADDED = {"added": _document("added", f"{DOCUMENTS['alone1']['text']} and more", 2)}
LOADED = {
    "loaded0": _document("loaded0", f"{DOCUMENTS['bridge0']['text']} loaded", 3),
    "loaded1": _document("loaded1", " ".join(words("loaded", 30)), 4),
}
IDS = [*DOCUMENTS, *LATE, *ADDED, *LOADED]

TITLES = "ferry0 ferry1 ferry3 price0 price1 chain0 chain1 empty"
"""Of documents in the scope of ``duplicates``."""
ADDRESSES = [f"{SITE}/{name}" for name in ("old", "used", "gone", "never", "alone0", "bridge1")] + ["gone0", "used0"]


@dataclass
class Life:
    """An index from its first document to ``clean``, and the output of each command on it."""

    client: Client
    index: str
    run: Callable[..., Run]
    folder: Path
    """Folder for the files that commands read and write."""
    sidecar: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the index."""
    recorded: list[JSON] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    def live(self) -> list[JSON]:
        """Run all commands; returns their masked output."""
        before: Mapping[str, Callable[[], None]] = {
            "load INDEX LINES": self._init,
            "enrich INDEX": self._load_again,
            "enrich INDEX --all": lambda: self._change("bridge5", "chain2"),
            "group INDEX --check": self._group_again,
            "watch INDEX --once": self._look,
            "clean INDEX --yes": self._look_again,
        }
        self._begin()
        lines = list(_lines(WRITING))
        assert before.keys() <= {" ".join(line) for line in lines}, "a line of the table has another form now"
        for line in lines:
            before.get(" ".join(line), lambda: None)()
            self._record(line)
        self._record(["stats", "INDEX"])
        return self.recorded

    def _record(self, line: list[str]) -> Any:
        """Run a call and keep its output; returns the printed text."""
        if not NO_REPORT & set(line):
            line = [*line, "--json"]
        done = self.run(*(self.values.get(word, word) for word in line))
        printed = done.out.splitlines()
        out = [json.loads(one) for one in printed] if "--json" in line else [one.rstrip() for one in printed]
        entry = {"exit": done.code, "out": out, "err": done.err.splitlines()}
        if "OUT" in line:
            entry["page"] = _page(Path(self.values["OUT"]).read_text("utf-8"))
        self.recorded.append({"command": line, **self._masked(entry, line[0])})
        return out

    def _begin(self) -> None:
        """Index the documents, and define the words in capitals."""
        make_index(self.client, self.index, PROPERTIES, settings={**STEADY, **self.settings})
        put(self.client, self.index, DOCUMENTS)
        lines = [{"id": id, **one} for id, one in (*LOADED.items(), *LOADED.items(), ("alone2", DOCUMENTS["alone2"]))]
        files = {
            "REQUEST": json.dumps(request_of_all_stages(f"title:({TITLES})")),
            "DSL": json.dumps({"query": {"prefix": {"title": "b"}}, "sort": ["url"]}),
            "ADDRESSES": "\n".join(ADDRESSES),
            "LINES": "\n".join([*map(json.dumps, lines), '{"id": "broken", "text": }']),
            "FILE": DOCUMENTS["price0"][NAME],
            "FILE2": DOCUMENTS["price1"][NAME],
        }
        for name, content in files.items():
            file = self.folder / f"{name}{'.jsonl' if name == 'LINES' else ''}"
            file.write_text(content, "utf-8")
            self.values[name] = str(file)
        self.values |= {"INDEX": self.index, "ID": "bridge0", "ID2": "bridge1", "NAME": NAME, "ADDRESS": ADDRESSES[0]}
        self.values |= {"TEXT": DOCUMENTS["bridge2"][NAME], "OUT": str(self.folder / "page.html")}

    def _init(self) -> None:
        line = ["init", "INDEX", "--field", "NAME", "--threshold", "0.5", "--sample-mod", "2"]
        self._record([*line, *(["--sidecar"] * self.sidecar)])
        if self.sidecar:
            refresh = self.settings.get("refresh_interval", "-1")
            steady = {"index": {**STEADY, "refresh_interval": refresh}}
            self.client.request("PUT", path(f"{self.index}-neardupe-sidecar", "_settings"), body=steady)

    def _load_again(self) -> None:
        """If ``load`` is rejected, an application indexes the documents."""
        if self.sidecar:
            put(self.client, self.index, LOADED)

    def _change(self, id: str, other: str) -> None:
        """An application changes the text of one document and the title of another."""
        change(self.client, self.index, id, {NAME: f"{DOCUMENTS[id][NAME]} changed by somebody else"})
        change(self.client, self.index, other, {"title": f"changed {other}"})

    def _group_again(self) -> None:
        """Run with nothing to do; then documents change."""
        self._record(["group", "INDEX", "--evidence"])
        self._change("ferry1", "ferry2")
        self.client.request("DELETE", path(self.index, "_doc", "gone0"), params={"refresh": True})

    def _look(self) -> None:
        """Run all commands that only read, while a new document has no keys; then add one for ``watch``."""
        put(self.client, self.index, LATE)
        groups = self._record(["groups", "INDEX", "--min-size", "3"])
        (self.values["GROUP"],) = (one["group"] for one in groups if "bridge0" in {m["id"] for m in one["members"]})
        for line in _lines(LOOKING):
            self._record(line)
        put(self.client, self.index, ADDED)

    def _look_again(self) -> None:
        for name in ("stats", "doctor", "groups", "pairs"):
            self._record([name, "INDEX"])

    def _masked(self, entry: JSON, command: str) -> JSON:
        """An entry without the parts that differ between runs or machines."""
        names = {
            own_group(self.index, id, attempt): f"GROUP-{id}{f'-{attempt}' if attempt else ''}"
            for id in IDS
            for attempt in range(3)
        }
        names |= {self.index: "INDEX", str(self.folder): "FOLDER", self.client.url: "URL"}
        names[".".join(map(str, self.client.server.version))] = "VERSION"
        pattern = re.compile("|".join(map(re.escape, names)))

        def text(one: str) -> str:
            one = NOW.sub("TIME", pattern.sub(lambda found: names[found[0]], one))
            one = re.sub(r"(es-neardupe-v1-[0-9a-f]{8})-[0-9a-f]{16}", r"\1-HASH", one)
            return re.sub(r"(Seconds\s*)\d+\.\d+", r"\1SECONDS", one)

        masked: JSON = _each(entry, text)
        if command == "version":
            masked["out"] = [_without_versions(one) for one in masked["out"]]
        if command == "groups":
            masked["out"] = _steady(masked["out"])
        assert self.index not in pretty(masked)
        return masked


def _lines(table: Mapping[str, list[list[str]]]) -> Iterator[list[str]]:
    """The calls of a table, with the words in capitals."""
    for name, calls in table.items():
        yield from ([*name.split(), *call] for call in calls)


def _page(content: str) -> JSON:
    """The text of a page, and the counts of its elements."""
    page = Page(re.sub(r"<(style|script)>.*?</\1>", "", content, flags=re.DOTALL))
    lines = (re.sub(r"\s+", " ", line).strip() for line in page.text.splitlines())
    return {"elements": dict(page.tags), "text": [line for line in lines if line]}


def _each(value: Any, text: Callable[[str], str], key: str = "") -> Any:
    """A value with all its texts masked, as well as numbers that are durations or bytes."""
    if isinstance(value, dict):
        if key == "bytes_per_document":
            return dict.fromkeys(value, "BYTES")
        return _one_way({text(name): _each(one, text, name) for name, one in value.items()})
    if isinstance(value, list):
        return [_each(one, text) for one in value]
    if isinstance(value, int | float) and key.lower() in DURATIONS:
        return "SECONDS"
    if key == "seq_no":  # writes of several threads have no order
        return "NUMBER"
    if isinstance(value, float):
        return round(value, DIGITS)
    return text(value) if isinstance(value, str) else value


def _one_way(value: JSON) -> JSON:
    """An example pair with the lesser id first: the order depends on a hash of the name of the index."""
    if "excerpt_a" not in value or value["a"]["id"] <= value["b"]["id"]:
        return value
    other = {"a": "b", "b": "a", "excerpt_a": "excerpt_b", "excerpt_b": "excerpt_a"}
    return {other.get(name, name): one for name, one in value.items()}


def _without_versions(value: JSON) -> JSON:
    masked = {name: name.upper() if name in OF_THE_MACHINE else one for name, one in value.items()}
    return masked | {"packages": dict.fromkeys(value["packages"], "VERSION")}


def _steady(out: list[Any]) -> list[Any]:
    """Groups of the same size are listed in the order of their ids: here in that of the masked ones."""
    runs = itertools.groupby(out, key=lambda one: len(one.get("members", one.get("redundant", ()))))
    return [one for _, run in runs for one in sorted(run, key=lambda one: str(one["group"]))]


def pretty(value: Any) -> str:
    """JSON whose differences are visible line by line."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def differences(expected: Iterable[JSON], found: Iterable[JSON]) -> Iterator[str]:
    """Each command with other output, with the lines that differ."""
    before, after = _numbered(expected), _numbered(found)
    if list(before) != list(after):
        yield from difflib.unified_diff(list(before), list(after), "commands expected", "commands run", lineterm="")
    for name in (one for one in before if one in after):
        one, other = (pretty(entry).splitlines() for entry in (before[name], after[name]))
        if one != other:
            yield from difflib.unified_diff(one, other, f"{name} (golden)", f"{name} (now)", lineterm="")


def changes(expected: Iterable[JSON], found: Iterable[JSON]) -> Iterator[str]:
    """Each value in the output of a command that differs: a line with its path and both values."""
    before, after = _numbered(expected), _numbered(found)
    for name in before | after:
        yield from (f"{name}: {one}" for one in _changed(before.get(name), after.get(name), ""))


def _changed(before: Any, after: Any, at: str) -> Iterator[str]:
    parts = _parts(before), _parts(after)
    if parts[0] and parts[1]:
        for name in parts[0] | parts[1]:
            yield from _changed(parts[0].get(name), parts[1].get(name), f"{at}.{name}" if at else name)
    elif before != after:
        yield f"{at}: {json.dumps(before)} -> {json.dumps(after)}"


def _parts(value: Any) -> JSON:
    """The values of an object, or of a list: of checks by their names, of others by their positions."""
    if not isinstance(value, list):
        return value if isinstance(value, dict) else {}
    names = [str(one["name"]) if isinstance(one, dict) and "name" in one else str(k) for k, one in enumerate(value)]
    times: Counter[str] = Counter()
    found = {}
    for name, one in zip(names, value, strict=True):
        times[name] += 1
        found[f"{name}{f' {times[name]}' if times[name] > 1 else ''}"] = one
    return found


def _numbered(entries: Iterable[JSON]) -> dict[str, JSON]:
    """The entries by their calls; a number distinguishes repeated calls."""
    times: Counter[str] = Counter()
    found = {}
    for entry in entries:
        line = " ".join(entry["command"])
        times[line] += 1
        found[f"{line}{f' #{times[line]}' if times[line] > 1 else ''}"] = entry
    return found
