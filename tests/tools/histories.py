"""Many random histories at the same time: one index of families of documents, which have no words in common.

A step changes each family in a way of its own, by any kind of writer. Then `enrich` and `group` run once for all of
them, and each family is compared with groups by brute force, and all of them with those of a rebuild. A history is
data, so the one of a family that fails is played again alone, with fewer and fewer changes.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from hints import complaints, followed
from kill_tools import Moment, copies_of, put_back, run_to_death
from recount import Document, Snapshot, Star
from server_tools import JSON, delete_all, hits, living, make_index, ours_of, send, shingles, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, InputError, NotFound, SettingsError
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.storage.sidecar.indices import sidecar_name
from es_neardupe.index.stored_fields import encode
from es_neardupe.options import FactKind
from es_neardupe.server.client import Client, path, to_json
from es_neardupe.similarity.facts.differing import facts_agree
from es_neardupe.similarity.facts.kinds import parse_facts
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens

FIELDS = {name: {"type": "keyword"} for name in ("family", "part_of")}
FIELDS |= {"text": {"type": "text"}, "n": {"type": "integer"}}
SOURCES: list[list[str]] = [["a"], ["b"], ["a", "c"], []]
"""The documents that a text can be a part of."""
LENGTH = 60
"""Words of a text. A changed word in the middle leaves a resemblance of .84, two of them .70."""

PLAIN = ("index", "text", "other", "delete", "again", "rewrite", "copy")
"""Writes of an application that knows nothing of keys; `rewrite` and `copy` keep those that they have read."""
KEYED = ("fingerprinted", "part", "screened", "load", "replace", "pipeline")
"""Writers that make keys themselves."""
BULKY = ("update_by_query", "keep", "bring")
"""Requests to the server about many documents; `keep` copies a family to another index, `bring` brings it back."""
DAMAGE = ("damage",)
DECIDED = ("same", "different", "withdraw")

LETTERS = str.maketrans("0123456789", "abcdefghij")

DAMAGED = (
    *("group", "other group", "principal", "similarity", "bands", "signature", "content", "state", "tokens"),
    *("scheme", "all"),
)
"""Fields that a writer damages."""


@dataclass(frozen=True)
class Event:
    """A change of one document."""

    kind: str
    id: str
    text: str = ""
    more: str = ""
    """The other document, or the field."""

    def __str__(self) -> str:
        return " ".join(one for one in (self.kind, self.id, self.more, repr(self.text) if self.text else "") if one)


History = tuple[tuple[Event, ...], ...]
"""The changes of a family in each step; those of the first one are before the first run."""


@dataclass(frozen=True)
class Settling:
    """How the runs after the changes of a step are made."""

    between: str = ""
    """A run after the first change of each family: ``enrich`` or ``group``."""
    event: str = ""
    """``recreate`` puts the index and its hidden indices back to how they were at an earlier step, ``forget`` deletes
    the hidden indices except decisions, ``registry`` damages it."""
    killed: tuple[tuple[str, Moment], ...] = ()
    """Runs that are killed first."""
    how: str = "enrich group"
    """Commands, ``check`` for both with ``check``, or ``hints`` for those that the hints of commands name."""


@dataclass(frozen=True)
class Plan:
    """What all families of a round have in common."""

    seed: int
    sidecar: bool = False
    shards: int = 1
    threshold: float = 0.8
    loose: bool = False
    """Whether most texts share a key, however different they are."""
    rules: JSON = field(default_factory=dict)
    evidence: bool = False
    kinds: tuple[str, ...] = PLAIN
    density: tuple[float, ...] = (1.0,)
    """The share of the families that each step changes."""
    steps: tuple[Settling, ...] = ()

    @property
    def settings(self) -> Settings:
        bands: dict[str, Any] = {"bands": 40, "rows": 3} if self.loose else {}
        return Settings(("text",), threshold=self.threshold, **bands)


def plan(seed: int, *, steps: int, sidecar: bool, modules: bool) -> Plan:
    """The plan of a round, drawn from its seed. ``modules``: whether the server has scripts, pipelines and reindex;
    Elasticsearch from pip has none."""
    dice = random.Random(f"plan {seed}")
    kinds = list(PLAIN)
    keyed = [one for one in KEYED if modules or one != "pipeline"]
    if not sidecar:
        kinds += dice.sample(keyed, dice.choice((0, 2, len(keyed))))
    kinds += dice.choice(([], BULKY if modules else []))
    kinds += dice.choice(([], [], DAMAGE))
    kinds += dice.choice(([], [], DECIDED))
    if dice.random() < 0.2:
        kinds = [one for one in kinds if one not in ("delete", "again", "bring")]
    rules: JSON = {"linkage": dice.choice(("star", "star", "star", "complete", "chain"))}
    rules |= dice.choice(({}, {}, {"min": 0.75}, {"min": 0.9}))
    rules |= dice.choice(({}, {}, {}, {}, {"within": ["n"]}, {"within": ["n", "part_of"]}, {"principal": "n:asc"}))
    rules |= {} if "part_of" in rules.get("within", ()) else dice.choice(({}, {}, {}, {"across": "part_of"}))
    rules |= dice.choice(({}, {}, {}, {"facts": ["figures"]}, {"facts": ["codes,words"]}))
    killing = dice.random() < 0.4
    happening = dice.random() < 0.3
    settled = []
    for _ in range(steps):
        killed = []
        for name in ("enrich", "group"):
            if killing and dice.random() < 0.3:
                moment = Moment(dice.randrange(1, 25), dice.choice(("before", "during", "after")))
                killed.append((name, moment))
        settled.append(
            Settling(
                between=dice.choice(("", "", "", "enrich", "group")),
                event=dice.choice(("", "recreate", "forget", "registry")) if happening and dice.random() < 0.5 else "",
                killed=tuple(killed),
                how=dice.choice(
                    ("enrich group", "enrich group", "enrich group", "group enrich group", "check", "hints")
                ),
            )
        )
    return Plan(
        seed,
        sidecar=sidecar,
        shards=dice.choice((1, 1, 2, 3)),
        threshold=dice.choice((0.7, 0.8)),
        loose=dice.random() < 0.5,
        rules=rules,
        evidence=dice.random() < 0.25,
        kinds=tuple(kinds),
        density=tuple(dice.choice((1.0, 1.0, 0.3, 0.0)) for _ in range(steps)),
        steps=tuple(settled),
    )


# ---- histories


class Author:
    """Draws the history of a family. What it believes to be in the index need not be true: each change can be made in
    any state of the index."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan, self.number, self.name = plan, number, f"f{number:03}"
        self.dice = random.Random(f"family {plan.seed} {number}")
        self.bases = [words(f"{plan.seed} {number} {one}", LENGTH) for one in range(2)]
        self.texts: dict[str, str] = {}
        self.known = [" ".join(one) for one in self.bases]

    def history(self, changed: Sequence[bool]) -> History:
        """``changed``: whether each step changes the family."""
        ids = [f"{self.name}-{n}" for n in range(8)]
        first = []
        for id in ids[: self.dice.randint(4, 7)]:
            self.texts[id] = self.text()
            first.append(Event("index", id, self.texts[id]))
        steps = [tuple(first)]
        for one in changed:
            number = self.dice.choice((1, 1, 1, 2, 2, 3)) if one else 0
            steps.append(tuple(self.event(self.dice.choice(ids)) for _ in range(number)))
        return tuple(steps)

    def text(self) -> str:
        """A text of the family: an earlier one, a near-copy, or one of two halves."""
        kind = self.dice.random()
        if kind < 0.04:
            return self.dice.choice(
                ("", f"few {self.name}", f"{self.number} 34 56 78 90 12", f"{self.name} five words make one")
            )
        if kind < 0.3:
            return self.dice.choice(self.known)
        if kind < 0.4:
            place = self.dice.randrange(5, LENGTH - 5)
            one, other = self.dice.sample(self.bases, 2)
            new = [*one[:place], *other[place:]]
        else:
            near = self.dice.choice([*self.known, *self.texts.values()]).split()
            new = near if len(near) > 20 else list(self.bases[0])
            for _ in range(self.dice.choice((0, 1, 1, 1, 2, 2, 3))):
                new[self.dice.randrange(len(new))] = self.word()
            if self.dice.random() < 0.3:
                new = [*new, f"more{self.dice.randrange(3)}"] if len(new) < 70 else new[:-8]
        self.known.append(" ".join(new))
        return self.known[-1]

    def word(self) -> str:
        """A word of the family, or a code, which is a fact."""
        code = f"{self.name}x{self.dice.randrange(4)}"
        return code if self.dice.random() < 0.5 else code.translate(LETTERS)

    def event(self, id: str) -> Event:
        kind = self.dice.choice(self.plan.kinds)
        other = self.dice.choice([one for one in [*self.texts, "none"] if one != id])
        if kind in ("delete", "withdraw", "update_by_query"):
            if kind == "delete":
                self.texts.pop(id, None)
            return Event(kind, id, more=str(self.dice.randrange(10)) if kind == "withdraw" else "")
        if kind in ("same", "different"):
            return Event(kind, id, more=f"{other} {self.dice.choice(('ann', 'bob'))}")
        if kind == "damage":
            return Event(kind, id, more=f"{self.dice.choice(DAMAGED)}:{other}")
        if kind in ("other", "keep", "bring", "copy"):
            return Event(kind, id, more=other if kind == "copy" else str(self.dice.randrange(4)))
        self.texts[id] = self.text()
        return Event(kind, id, self.texts[id])


def histories(plan: Plan, families: int) -> dict[int, History]:
    """The history of each family. Where a step changes none of them but one, this one changes."""
    dice = random.Random(f"density {plan.seed}")
    changed = {number: [dice.random() < share for share in plan.density] for number in range(families)}
    for step in range(len(plan.density)):
        if not any(one[step] for one in changed.values()):
            changed[dice.randrange(families)][step] = True
    return {number: Author(plan, number).history(some) for number, some in changed.items()}


# ---- the index


@dataclass(frozen=True)
class _Current(Document):
    """A document whose keys are those of its text, as was checked before."""

    across: str | None = None
    """The field of the rule."""

    stale = False

    @property
    def values(self) -> frozenset[str]:
        """Those of the field of the rule ``across``."""
        return frozenset(self.source.get(self.across or "", ()))

    @cached_property
    def content(self) -> str | None:
        """With values of this field, a document does not stand for its copies, which may have the same."""
        content = super().content
        return f"{content} {self.id}" if content and self.values else content

    @cached_property
    def facts(self) -> FactTokens:
        return fact_tokens(self.text or "")

    @property
    def corrupt(self) -> bool:
        return False

    @property
    def shingles(self) -> Any:
        return shingles(self.text or "")


class Deviation(AssertionError):
    """What differs from the expectation, by family; None: it is not known which family it is about."""

    def __init__(self, step: int, found: Mapping[int | None, str]) -> None:
        super().__init__(step, found)
        self.step, self.found = step, found

    def __str__(self) -> str:
        return f"step {self.step}: " + "; ".join(f"family {one}: {why}" for one, why in list(self.found.items())[:5])


class World:
    """An index in which histories happen."""

    def __init__(self, client: Client, index: str, plan: Plan, folder: Path, cli: Callable[..., Any]) -> None:
        self.client, self.index, self.plan, self.folder, self.cli = client, index, plan, folder, cli
        self.near = NearDupe(index, client)
        self.kept = f"{index}-kept"
        self.pipeline = ""
        self.earlier: list[Any] = []
        self.chosen = False
        self.log: list[str] = []

    def play(self, histories: Mapping[int, History]) -> int:
        """Play the histories. Returns how many hints were followed. Raises `Deviation`."""
        self.prepare()
        self.hints = 0
        for step in range(len(self.plan.steps) + 1):
            settling = Settling() if step == 0 else self.plan.steps[step - 1]
            events = {number: one[step] for number, one in histories.items()}
            try:
                self.step(events, settling)
            except AssertionError as error:
                raise Deviation(step, {None: str(error) or repr(error)}) from error
            except Exception as error:
                raise Deviation(step, {None: f"{type(error).__name__}: {error}"}) from error
            if found := self.deviations():
                raise Deviation(step, found)
        return self.hints

    def prepare(self) -> None:
        settings = {"number_of_shards": self.plan.shards, "number_of_replicas": 0}
        for name in (self.index, self.kept):
            make_index(self.client, name, FIELDS, settings=settings, dynamic=name != self.kept)
        self.near.init(self.plan.settings, sidecar=self.plan.sidecar)
        if "pipeline" in self.plan.kinds:
            self.pipeline = self.near.pipeline("install").pipeline

    def step(self, events: Mapping[int, Sequence[Event]], settling: Settling) -> None:
        if settling.event == "recreate":
            self.earlier.append(copies_of(self.client, self.index))
        for wave in range(max(map(len, events.values()), default=0)):
            by_kind: dict[str, list[Event]] = defaultdict(list)
            for some in events.values():
                if wave < len(some):
                    by_kind[some[wave].kind].append(some[wave])
            for kind, some in sorted(by_kind.items()):
                self.write(kind, some)
            if wave == 0 and settling.between:
                self.run(settling.between)
        self.happen(settling.event)
        for name, moment in settling.killed:
            run_to_death(self.client, self.index, [(name, self.options(name))], moment)
        # What other clients have written into hidden indices is only found by runs that look for it.
        damaged = settling.event == "registry"
        damaged |= self.plan.sidecar and any(one.kind == "damage" for some in events.values() for one in some)
        if settling.how == "hints" and not damaged:
            self.follow()
        elif settling.how == "check" or damaged:
            self.near.enrich(check=True)
            self.run("group", check=True)
        else:
            for name in settling.how.split():
                self.run(name)

    def options(self, name: str) -> JSON:
        """The rules are remembered from the first run."""
        if name != "group":
            return {}
        return ({} if self.chosen else self.plan.rules) | {"evidence": self.plan.evidence}

    def run(self, name: str, **more: Any) -> Any:
        report = getattr(self.near, name)(**self.options(name), **more)
        self.chosen |= name == "group"
        return report

    # ---- writers

    def write(self, kind: str, events: Sequence[Event]) -> None:
        """The changes of one kind, of different families."""
        known = {hit["_id"]: hit for hit in self.of([event.id for event in events])}
        if kind in ("index", "text", "other", "delete", "again", "rewrite", "copy", "damage"):
            if kind in ("copy", "damage"):
                others = [event.more.rpartition(":")[2] for event in events]
                known |= {hit["_id"]: hit for hit in self.of(others)}
            if lines := [line for event in events for line in self.lines(event, known)]:
                send(self.client, lines, whole=False)
        elif kind == "pipeline":
            parts = [part for event in events for part in ({"index": self.meta(event)}, self.source(event))]
            params = {"refresh": "true", "pipeline": self.pipeline}
            assert not self.client.bulk(b"".join(to_json(one) + b"\n" for one in parts), params=params)["errors"]
        elif kind in ("fingerprinted", "screened", "part"):
            given = [self.meta(event) | {"_source": self.source(event)} for event in events]
            if kind == "part":
                given = [
                    self.meta(event) | {"_op_type": "update", "doc": {"text": event.text}}
                    for event in events
                    if event.id in known
                ]
            made = self.near.screened(given) if kind == "screened" else self.near.fingerprinted(given)
            if lines := [_line(one) for one in made]:
                send(self.client, lines)
        elif kind in ("load", "replace"):
            file = self.folder / "load.jsonl"
            file.write_text("".join(json.dumps({"id": one.id, **self.source(one)}) + "\n" for one in events))
            self.near.load([str(file)], replace=kind == "replace")
            self.client.request("POST", path(self.index, "_refresh"))
        elif kind == "update_by_query":
            query = {"ids": {"values": [one.id for one in events]}}
            params = {"refresh": "true", "conflicts": "proceed"}
            if self.pipeline:
                params["pipeline"] = self.pipeline
            self.client.request("POST", path(self.index, "_update_by_query"), params=params, body={"query": query})
        elif kind in ("keep", "bring"):
            names = [self.index, self.kept] if kind == "keep" else [self.kept, self.index]
            families = [one.id.split("-")[0] for one in events]
            body = {
                "source": {"index": names[0], "query": {"terms": {"family": families}}},
                "dest": {"index": names[1]},
            }
            self.client.request("POST", path("_reindex"), params={"refresh": True}, body=body)
        else:
            for event in events:
                with suppress(SettingsError, NotFound, IndexUnusable, InputError):
                    self.decide(event)

    def decide(self, event: Event) -> None:
        if event.kind == "withdraw":
            family = event.id.split("-")[0]
            found = [one for one in self.near.decisions() if one.documents[0].id.startswith(family)]
            if found:
                self.near.withdraw([found[int(event.more) % len(found)].id])
        else:
            other, author = event.more.split()
            self.near.decide(event.kind, event.id, [other], author=author)

    def of(self, ids: Sequence[str]) -> list[JSON]:
        """The current documents with these ids."""
        body = {"ids": sorted(set(ids))}
        return [
            one for one in self.client.request("POST", path(self.index, "_mget"), body=body)["docs"] if one["found"]
        ]

    def meta(self, event: Event) -> JSON:
        return {"_index": self.index, "_id": event.id}

    def source(self, event: Event) -> JSON:
        size, family = len(event.text), event.id.split("-")[0]
        return {"text": event.text, "n": size % 3, "part_of": SOURCES[size // 3 % 4], "family": family}

    def lines(self, event: Event, known: Mapping[str, JSON]) -> Iterator[tuple[JSON, JSON | None]]:
        """The lines of a bulk request."""
        meta, stored = self.meta(event), known.get(event.id)
        if event.kind in ("delete", "again"):
            yield {"delete": meta}, None
        if event.kind in ("index", "again"):
            yield {"index": meta}, self.source(event)
        elif event.kind in ("text", "other"):
            number = int(event.more or 0)
            others = {"n": number % 3, "part_of": SOURCES[number]}
            yield {"update": meta}, {"doc": {"text": event.text} if event.kind == "text" else others}
        elif event.kind == "rewrite":
            before = {} if stored is None else stored["_source"]
            yield {"index": meta}, {**before, **self.source(event)}
        elif event.kind == "copy" and event.more in known:
            yield {"index": meta}, known[event.more]["_source"]
        elif event.kind == "damage":
            name, _, other = event.more.partition(":")
            yield from self.damage(event, name, other, known)

    def damage(
        self, event: Event, name: str, other: str, known: Mapping[str, JSON]
    ) -> Iterator[tuple[JSON, JSON | None]]:
        """Writes of some client into the neardupe fields."""
        meta = self.meta(event)
        if self.plan.sidecar:
            meta["_index"] = sidecar_name(self.index, "neardupe")
            body = {"ids": [event.id, other]}
            found = self.client.request("POST", path(meta["_index"], "_mget"), body=body)["docs"]
            known = {one["_id"]: one for one in found if one["found"]}
        stored, from_other = (ours_of(known[one]["_source"]) if one in known else {} for one in (event.id, other))
        if "scheme" not in stored:
            return
        if name == "all":
            doc: Any = dict.fromkeys(stored)
        elif name == "other group":
            doc = {"group": from_other.get("group")}
        elif name == "principal":
            doc = {"principal": not stored.get("principal")}
        elif name == "similarity":
            doc = {"similarity": 0.95}
        elif name == "state":
            doc = {"state": "empty"}
        elif name == "tokens":
            doc = {"tokens": 7}
        elif name in ("bands", "signature", "content"):
            doc = {name: from_other.get(name)}
        else:
            doc = {name: None}
        yield {"update": meta}, {"doc": {"neardupe": doc}}

    def happen(self, event: str) -> None:
        """What happens to whole indices."""
        if event == "recreate":
            put_back(self.client, self.earlier[0])
        elif event == "forget":
            names = [self.hidden(kind) for kind in (HiddenIndex.GROUPS, HiddenIndex.PAIRS)]
            self.client.request("DELETE", path(",".join(names)), params={"ignore_unavailable": True})
            self.chosen = False
        elif event == "registry":
            found = [hit for hit in hits(self.client, self.hidden(HiddenIndex.GROUPS)) if len(hit["_id"]) == 16]
            for hit in found[:: max(1, len(found) // 3)]:
                document = path(hit["_index"], "_doc", hit["_id"])
                self.client.request("DELETE", document, params={"refresh": True})

    def hidden(self, kind: HiddenIndex) -> str:
        return hidden_index_name(opened(Index(self.index, self.client)).target, kind)

    # ---- hints

    def follow(self) -> None:
        """Run what `doctor` and `stats` say, until they say nothing more; then what `enrich` and `group` say, but for
        facts that could decide: whether they make texts different is for the user to say."""
        if not self.chosen:
            self.run("enrich")
            self.run("group")
        for line in (["doctor"], ["stats"], ["enrich"], ["group"], ["audit"], ["groups"]):
            said: list[str] = []
            for _ in range(8):
                done = self.cli(
                    line[0], self.index, *line[1:], *["--evidence"] * (line == ["group"] and self.plan.evidence)
                )
                found = [one for one in complaints(done) if "--help" not in one and "--facts" not in one]
                if not found:
                    break
                said.append(found[0])
                self.hints += 1
                run = followed(found[0], self.cli)
                assert run.code == 0, (line, found[0], run.err)
            else:
                raise AssertionError(f"{line}: these hints lead in a circle: {said}")

    # ---- expectations

    def deviations(self) -> dict[int | None, str]:
        """What is not as expected, by family."""
        found: dict[int | None, str] = {}
        documents = self.documents()
        by_family: dict[int, list[_Current]] = defaultdict(list)
        for one in documents.values():
            by_family[family_of(one.id)].append(one)
        self.check_keys(documents, found)
        if not found:
            for number, some in by_family.items():
                if why := self.wrong_groups(some):
                    found[number] = why
        rebuilt = self.near.group(rebuild=True, dry_run=True, show_requests=10**6, evidence=self.plan.evidence)
        for request in rebuilt.requests:
            for id in re.findall(r'"_id":\s*"(f\d+-\d+)"', request.body):
                found.setdefault(family_of(id), f"a rebuild writes {id}: {documents[id].stored}")
        if rebuilt.writes.written and not found:
            found[None] = f"a rebuild writes {rebuilt.writes}"
        there = {one.group: (one.size, one.members[0].address) for one in self.near.groups()}
        known = {one.group: (one.size, one.principal) for one in living(self.client, self.index)}
        for id in there.keys() | known.keys():
            if there.get(id) != known.get(id):
                address = (there.get(id) or known[id])[1]
                found.setdefault(family_of(address.id), f"registry: {known.get(id)}, documents: {there.get(id)}")
        for id, one in documents.items():
            if not (one.stored.get("scheme") and one.stored.get("group")):
                found.setdefault(family_of(id), f"{id} is not enriched: {sorted(one.stored)}")
        complaining = {one.name: one.message for one in self.near.doctor() if one.level != "ok"}
        if "no text in" in complaining.get("documents", ""):  # the history of one family may end so
            del complaining["documents"]
        if complaining and not found:
            found[None] = f"doctor: {complaining}"
        if not found:
            enriched, grouped = self.near.enrich(), self.run("group")
            affected = 0 if grouped.scope.whole else grouped.scope.affected
            if enriched.scope.read or affected or grouped.writes.written:
                found[None] = f"again: {enriched.scope}, {grouped.scope}, {grouped.writes}"
        return found

    def documents(self) -> dict[str, _Current]:
        raw = {hit["_id"]: hit for hit in hits(self.client, self.index)}
        stored = raw
        if self.plan.sidecar:
            stored = {hit["_id"]: hit for hit in hits(self.client, sidecar_name(self.index, "neardupe"))}
        scheme = self.plan.settings.scheme
        return {
            id: _Current(
                id,
                self.index,
                hit["_source"],
                stored[id]["_source"].get("neardupe", {}) if id in stored else {},
                (0, 0),
                {},
                (0, 0),
                hit["_source"].get("text"),
                scheme,
                10**6,
                self.plan.rules.get("across"),
            )
            for id, hit in raw.items()
        }

    def check_keys(self, documents: Mapping[str, Document], found: dict[int | None, str]) -> None:
        """The keys are those of the texts."""
        sources = [one.source for one in documents.values()]
        for one, made in zip(documents.values(), fingerprint_sources(sources, self.plan.settings, 10**6), strict=True):
            # An empty list is no value for a server, like null.
            wanted = {
                name: value for name, value in encode(made, "").items() if value not in (None, []) and name != "at"
            }
            stored = {
                name: value
                for name, value in ours_of({"neardupe": one.stored}).items()
                if name in encode(made, "") and value != []
            }
            if stored != wanted:
                wrong = [name for name in wanted.keys() | stored.keys() if stored.get(name) != wanted.get(name)]
                found[family_of(one.id)] = f"keys of {one.id}: {wrong}"

    def wrong_groups(self, documents: Sequence[_Current]) -> str | None:
        """How the groups of a family differ from those by brute force."""
        rules: dict[str, Any] = {"min": self.plan.threshold, "linkage": "star"} | self.plan.rules
        if set(DECIDED) & set(self.plan.kinds) or "principal" in rules:
            return None  # a rebuild is the oracle
        if rules["linkage"] == "star" and "facts" in rules and _are_apart(documents, rules):
            return None  # too: the brute force knows no texts that are in no group together
        by_values: dict[str, list[_Current]] = defaultdict(list)
        for one in documents:
            by_values[str([one.source.get(name) for name in rules.get("within", ())])].append(one)
        wanted = [star for some in by_values.values() for star in self.brute_force(some, rules)]
        lead = {id: (principal, value) for principal, some in wanted for id, value in some.items()}
        principals = {one.stored.get("group"): one.id for one in documents if one.stored.get("principal")}
        for one in documents:
            principal, value = lead.get(one.id, (one.id, 1.0))
            stored = one.stored
            said = (principals.get(stored.get("group")), stored.get("principal"))
            similarity = stored.get("similarity")
            if said != (principal, one.id == principal) or similarity is None or abs(similarity - value) > 1e-5:
                return f"{one.id} is in the group of {said[0]} ({similarity}), not of {principal} ({value})"
        return None

    def brute_force(self, documents: Sequence[_Current], rules: JSON) -> Iterator[tuple[str, dict[str, float]]]:
        """The principals of documents with the same values of the fields ``within``, each with its members."""
        kinds = parse_facts(rules["facts"]) if "facts" in rules else frozenset[FactKind]()

        def allowed(one: _Current, other: _Current) -> bool:
            return one.values.isdisjoint(other.values) and (
                one.text == other.text or facts_agree(one.facts, other.facts, kinds)
            )

        family = Snapshot(
            {one.id: one for one in documents},
            self.plan.settings.scheme,
            0,
            {},
            _resemblance,
            allowed=cast("Callable[[Document, Document], bool]", allowed),
        )
        ways: dict[str, Callable[[Any], Star]] = {
            "star": family.star,
            "chain": family.chain,
            "complete": lambda minimum: family.complete(minimum)[0],
        }
        yield from ways[rules["linkage"]](rules["min"]).members.items()


def _resemblance(one: Document, other: Document) -> float:
    a, b = one.shingles, other.shingles
    return len(a & b) / len(a | b) if a and b else 0.0


def _are_apart(documents: Sequence[_Current], rules: JSON) -> bool:
    """Whether some texts are similar enough, but have other facts."""
    kinds = parse_facts(rules["facts"])
    return any(
        _resemblance(one, other) >= rules["min"] and not facts_agree(one.facts, other.facts, kinds)
        for one, other in combinations(documents, 2)
        if one.text != other.text
    )


def _line(action: Mapping[str, Any]) -> tuple[JSON, JSON]:
    op = action.get("_op_type", "index")
    meta = {name: action[name] for name in ("_index", "_id")}
    return {op: meta}, {"doc": action["doc"]} if op == "update" else action["_source"]


def family_of(id: str) -> int:
    return int(id[1:].split("-", maxsplit=1)[0])


# ---- failures


def shortened(
    play: Callable[[Plan, Mapping[int, History]], Deviation | None],
    plan: Plan,
    histories: Mapping[int, History],
    first: Deviation,
) -> str:
    """The first failure, and the smallest history that still fails, as text. ``play`` plays histories in a new
    index."""
    suspects = [one for one in first.found if one is not None]
    chosen: dict[int, History] = {one: histories[one] for one in suspects[:1]} or dict(histories)
    last = play(plan, chosen)
    if last is None:
        chosen, last = dict(histories), play(plan, histories)
        if last is None:
            return f"{first}\nIt does not fail again: {plan}"
    while len(chosen) > 1:  # halves, as long as one of them fails alone
        numbers = sorted(chosen)
        for some in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
            half = {one: chosen[one] for one in some}
            if (found := play(plan, half)) is not None:
                chosen, last = half, found
                break
        else:
            break
    if len(chosen) <= 2:
        plan, chosen, last = _fewer(play, plan, chosen, last)
    lines = [f"at first: {first}", str(last), f"{dataclasses.replace(plan, steps=())}"]
    for step in range(last.step + 1):
        lines.append(f"step {step}: {plan.steps[step - 1] if step else ''}")
        lines += [f"  {event}" for one in chosen.values() for event in one[step]]
    return "\n".join(lines)


def _fewer(
    play: Callable[[Plan, Mapping[int, History]], Deviation | None],
    plan: Plan,
    chosen: dict[int, History],
    last: Deviation,
) -> tuple[Plan, dict[int, History], Deviation]:
    """Without each step and each change that is not needed for a failure."""
    step = last.step
    while step:
        if step <= last.step:
            steps = (*plan.steps[: step - 1], *plan.steps[step:])
            fewer = {one: (*some[:step], *some[step + 1 :]) for one, some in chosen.items()}
            tried = dataclasses.replace(plan, steps=steps)
            if (found := play(tried, fewer)) is not None:
                plan, chosen, last = tried, fewer, found
        step -= 1
    for step in range(last.step, 0, -1):
        if step <= last.step and plan.steps[step - 1] != Settling():
            steps = (*plan.steps[: step - 1], Settling(), *plan.steps[step:])
            tried = dataclasses.replace(plan, steps=steps)
            if (found := play(tried, chosen)) is not None:
                plan, last = tried, found
    for one in list(chosen):
        for step in range(last.step, -1, -1):
            for place in range(len(chosen[one][step]) - 1, -1, -1):
                if step > last.step:
                    continue
                events = (*chosen[one][step][:place], *chosen[one][step][place + 1 :])
                history = (*chosen[one][:step], events, *chosen[one][step + 1 :])
                if (found := play(plan, chosen | {one: history})) is not None:
                    chosen, last = chosen | {one: history}, found
    return plan, chosen, last


def playing(
    client: Client, name: str, folder: Path, cli: Callable[..., Any]
) -> Callable[[Plan, Mapping[int, History]], Deviation | None]:
    """Plays histories in an index that is deleted afterwards."""

    def play(plan: Plan, histories: Mapping[int, History]) -> Deviation | None:
        world = World(client, name, plan, folder, cli)
        try:
            world.play(histories)
        except Deviation as found:
            return found
        finally:
            if world.pipeline:
                with suppress(Exception):
                    world.near.pipeline("remove")
            delete_all(client, name)
        return None

    return play
