"""Index whose users, network and server act at random, and a model of its expected content.

Everything is drawn from a seed. Writes of the application go to the server directly, and into the model; the requests
of our commands go through a `FaultProxy`, or come from a process that dies.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fault_proxy import BULK, ENDING, PASSING, Fault, FaultProxy, Forward, Reply, Request, Trouble
from kill_tools import Moment, run_to_death
from server_tools import JSON, assert_settled, hits, jaccard, make_index, ours_of, reconcile, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NeardupeError, TuningWarning
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.index import Index, opened
from es_neardupe.index.storage.sidecar.indices import sidecar_name
from es_neardupe.index.stored_fields import encode
from es_neardupe.server.client import Client, path

FIELDS = {"text": {"type": "text"}, "odd": {"type": "object", "enabled": False}}
NOT_THE_LEASE = r"^(?!.*/_doc/lease)"
"""A run that cannot release its lease while its process is alive keeps other processes waiting for a minute."""

THRESHOLDS = (0.7, 0.8)

MOST = 90
"""Number of documents above which users delete more than they write."""

GROUPINGS: list[JSON] = [
    {},
    {"linkage": "chain"},
    {"linkage": "complete"},
    {"min": 0.9},
    {"evidence": True},
    {"evidence": True, "linkage": "chain"},
]


class World:
    """An index, and its expected content."""

    def __init__(self, client: Client, through: Client, proxy: FaultProxy, index: str, seed: int, folder: Path) -> None:
        self.client, self.through, self.proxy, self.index = client, through, proxy, index
        self.dice = random.Random(seed)
        self.bases = [words(f"{seed}/{number}", 60) for number in range(8)]
        self.file = folder / "more.jsonl"
        self.model: dict[str, JSON] = {}
        self.next = 0
        self.log: list[str] = []
        """The events so far, for finding out why a check fails."""
        self.faults_met = self.ended = 0
        make_index(client, index, FIELDS, settings={"number_of_shards": 2, "number_of_replicas": 0})
        self.users_turn(self.dice, 50)
        self.prepare()

    def step(self) -> None:
        """One random event."""
        inline = not self.beside
        steps: list[tuple[int, Callable[[], object]]] = [
            (5, lambda: self.users_turn(self.dice, self.dice.randrange(1, 8))),
            (2 * inline, self.load),
            (4, lambda: self.disturbed("enrich", check=self.dice.random() < 0.5)),
            (5, lambda: self.disturbed("group", check=self.dice.random() < 0.5, **self.grouping)),
            (1, lambda: self.disturbed("watch", once=True, **self.kept)),
            (2, lambda: self.killed("enrich", check=True)),
            (3, lambda: self.killed("group", check=True, **self.grouping)),
            (1, self.migrate),
            (2, self.begin_anew),
        ]
        weights, things = zip(*steps, strict=True)
        with warnings.catch_warnings():  # of settings that a killed run had changed
            warnings.simplefilter("ignore", TuningWarning)
            self.dice.choices(things, weights)[0]()

    # ---- events of users

    def text(self, dice: random.Random) -> str:
        """One of a few texts with some words changed: families overlap, and drift into chains."""
        if dice.random() < 0.1:
            return dice.choice(["", "a few words", "12 34 56 78 90 12"])
        base = list(dice.choice(self.bases))
        for _ in range(dice.choice((0, 0, 1, 1, 2, 3, 8))):
            base[dice.randrange(len(base))] = f"other{dice.randrange(6)}"
        return " ".join(base[: dice.choice((60, 60, 58))])

    def document(self, dice: random.Random) -> JSON:
        odd: Any = dice.choice([1.0, 1e300, 2**53 + 1, [[], {}], None, {"ünï": "\u2028"}])
        return {"text": self.text(dice), "odd": {"value": odd}}

    def users_turn(self, dice: random.Random, number: int) -> None:
        """An application writes while commands may run."""
        actions = []
        for _ in range(number):
            kinds = ["add"] if not self.model else ["add", "add", "text", "other", "again", "delete"]
            kinds += ["delete"] * 4 * (len(self.model) > MOST)
            actions.append(self._action(dice, dice.choice(kinds)))
        send(self.client, actions)

    def _action(self, dice: random.Random, kind: str) -> tuple[JSON, JSON | None]:
        """One write by an application, which the model has from now on."""
        self.next += kind == "add"
        id = f"u{self.next:04}" if kind == "add" else dice.choice(sorted(self.model))
        self.log.append(f"  user: {kind} {id}")
        meta = {"_index": self.index, "_id": id}
        if kind == "delete":
            del self.model[id]
            return {"delete": meta}, None
        if kind in ("text", "other"):
            doc = {"text": self.text(dice)} if kind == "text" else {"odd": {"value": dice.random()}}
            self.model[id] = self.model[id] | doc
            return {"update": meta | {"retry_on_conflict": 20}}, {"doc": doc}
        self.model[id] = self.document(dice)
        return {"index": meta}, self.model[id]

    # ---- events of our commands

    def prepare(self) -> None:
        """Choose settings for the index and for groups, and the storage."""
        self.settings = Settings(("text",), threshold=self.dice.choice(THRESHOLDS))
        self.grouping = self.dice.choice(GROUPINGS)
        self.beside = self.dice.random() < 0.4
        self.mirrored = self.beside and self.dice.random() < 0.5
        where = "with group ids in documents" * self.mirrored or "beside" * self.beside or "in documents"
        self.log.append(f"init {self.settings.threshold}, {where}, group {self.grouping}")
        NearDupe(self.index, self.client).init(self.settings, sidecar=self.beside, write_group=self.mirrored)

    @property
    def kept(self) -> JSON:
        """The options of `group` that no run remembers."""
        return {name: value for name, value in self.grouping.items() if name == "evidence"}

    def load(self) -> None:
        """Load documents from a file, some of which exist already; a run that ends early is repeated."""
        ids = [f"l{self.dice.randrange(40):02}" for _ in range(self.dice.randrange(1, 12))]
        records = {id: self.document(self.dice) for id in ids}
        self.file.write_text("".join(json.dumps({"id": id, **one}) + "\n" for id, one in records.items()))
        new = {id: one for id, one in records.items() if id not in self.model}
        while not self.disturbed("load", [str(self.file)], meddle=False):
            self.proxy.set()
        self.model |= {id: {"id": id, **one} for id, one in new.items()}

    def disturbed(self, name: str, *arguments: Any, meddle: bool = True, **options: Any) -> bool:
        """Run a command with faults; returns whether it completed and left nothing to another run."""
        faults = list(self._faults(meddle))
        self.proxy.set(*(fault for _, fault in faults))
        options |= self._tuned(name)
        self.log.append(f"{name} {options or ''}: {', '.join(told for told, _ in faults) or 'nothing'}")
        options |= {"batch": self.dice.choice((8, 500)), "workers": self.dice.choice((1, 2))}
        try:
            report = getattr(NearDupe(self.index, self.through), name)(*arguments, **options)
        except NeardupeError as error:
            self.log.append(f"  {type(error).__name__}: {error}")
            self.ended += 1
            return False
        finally:
            self.proxy.set()
            self.faults_met += sum(fault.met for _, fault in faults)
        reconcile(name, report)
        writes = getattr(report, "writes", None)
        return writes is None or not (writes.left if name in ("clean", "migrate") else writes.refused)

    def _tuned(self, name: str) -> JSON:
        return {"tune": True} if name in ("enrich", "group", "migrate") and self.dice.random() < 0.15 else {}

    def _faults(self, meddle: bool) -> Iterator[tuple[str, Fault]]:
        for _ in range(self.dice.choice((0, 2, 3, 4))):
            kinds = ENDING if self.dice.random() < 0.3 else PASSING
            kind = self.dice.choice(sorted(kinds))
            trouble, on = kinds[kind]
            number = self.dice.randrange(1, 25 if on != BULK else 5)
            lasting = self.dice.random() < 0.1
            numbers = range(number, 10**9 if lasting else number + self.dice.randrange(1, 4))
            yield f"{kind} {number}{' on' if lasting else ''}", Fault(trouble, NOT_THE_LEASE + ".*" + on, numbers)
        if meddle and self.dice.random() < 0.5:
            number, seed = self.dice.randrange(1, 5), self.dice.randrange(10**6)
            yield f"user at bulk {number}", Fault(self._meddling(seed), BULK, (number,))

    def _meddling(self, seed: int) -> Trouble:
        """An application writes just before the server receives the request."""

        def trouble(request: Request, forward: Forward) -> Reply:
            self.users_turn(random.Random(seed), 4)
            return forward(request)

        return trouble

    def killed(self, name: str, **options: Any) -> None:
        """Run a command in a process that dies at one of its writes, if not sooner."""
        options |= self._tuned(name)
        moment = Moment(self.dice.randrange(1, 12), self.dice.choice(("before", "during", "after")))
        self.log.append(f"{name} {options} killed {moment}")
        run_to_death(self.client, self.index, [(name, options)], moment)

    def migrate(self) -> None:
        """Migrate to the keys of the other threshold: with faults or a kill, then to the end."""
        (threshold,) = set(THRESHOLDS) - {self.settings.threshold}
        wanted = {"threshold": threshold, **self.kept}
        if self.dice.random() < 0.3:
            self.killed("migrate", **wanted)
        else:
            self.disturbed("migrate", **wanted)
        self.settings = Settings(("text",), threshold=threshold)
        done = NearDupe(self.index, self.client).migrate(**wanted)
        self.log.append(f"  on to its end: {done.state}, {done.writes.left} left")
        assert (done.state, done.writes.left) == ("done", 0)
        assert not [name for name in self._settings() if "_next" in name]

    def begin_anew(self) -> None:
        """Clean the index, and choose other settings."""
        while not self.disturbed("clean"):
            pass
        self.check_users_fields()
        assert not any("neardupe" in hit["_source"] for hit in hits(self.client, self.index))
        assert not self.beside or sidecar_name(self.index, "neardupe") not in self._settings()
        self.prepare()

    # ---- invariants

    def check(self) -> None:
        """Undisturbed runs bring the index to the state of the model, and then have nothing to do."""
        self.log.append("check")
        self.check_users_fields()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TuningWarning)
            reconcile("enrich", NearDupe(self.index, self.client).enrich(check=True))
        reconcile("group", NearDupe(self.index, self.client).group(check=True, **self.grouping))
        self.check_users_fields()
        self.check_fingerprints()
        self.check_groups()
        self.check_settings()
        assert NearDupe(self.index, self.client).enrich(check=True).writes.written == 0
        assert NearDupe(self.index, self.client).group(check=True, **self.grouping).writes.written == 0

    def _settings(self) -> dict[str, JSON]:
        """The settings of the index and of its hidden indices."""
        flat: dict[str, str | bool] = {"flat_settings": True, "expand_wildcards": "all"}
        answer = self.client.request("GET", path(f"{self.index}*", "_settings"), params=flat)
        return {name: one["settings"] for name, one in answer.items()}

    def check_settings(self) -> None:
        """Settings that a run changed are restored."""
        found = self._settings()
        assert found[self.index]["index.number_of_replicas"] == "0"
        assert not [name for name, one in found.items() if "index.refresh_interval" in one]

    def stored(self) -> dict[str, JSON]:
        """The neardupe fields of each document."""
        name = sidecar_name(self.index, "neardupe") if self.beside else self.index
        return {hit["_id"]: ours_of(hit["_source"]) for hit in hits(self.client, name)}

    def check_users_fields(self) -> None:
        """Every document exists once, exactly as its user wrote it."""
        found = {hit["_id"]: hit["_source"] for hit in hits(self.client, self.index)}
        assert found.keys() == self.model.keys()
        for id, wanted in self.model.items():
            theirs = {name: value for name, value in found[id].items() if name != "neardupe"}
            assert json.dumps(theirs, sort_keys=True) == json.dumps(wanted, sort_keys=True), id

    def check_fingerprints(self) -> None:
        """The fingerprints are those of the model's texts, and the only other neardupe fields are those of the
        group."""
        wanted = fingerprint_sources(list(self.model.values()), self.settings, 10**6)
        stored = self.stored()
        assert stored.keys() == self.model.keys()
        for id, fingerprint in zip(self.model, wanted, strict=True):
            fields = {k: v for k, v in encode(fingerprint, "").items() if v is not None and k != "at"}
            assert {k: v for k, v in stored[id].items() if k not in ("group", "principal", "similarity")} == fields, id

    def check_groups(self) -> None:
        """A full run would change nothing; each similarity is correct; copies are never in different groups."""
        assert_settled(self.client, self.index, **self.grouping)
        chosen = opened(Index(self.index, self.client)).settings
        assert (chosen.threshold, chosen.scheme) == (self.settings.threshold, self.settings.scheme)
        minimum = self.grouping.get("min", self.settings.threshold)
        group_of: dict[str, str] = {}
        for one in NearDupe(self.index, self.client).groups():
            texts = [self.model[member.id]["text"] for member in one.members]
            group_of |= dict.fromkeys(texts, one.group)
            assert len(texts) > 1
            if "linkage" in self.grouping:
                continue
            for member, text in zip(one.members[1:], texts[1:], strict=True):
                assert member.similarity is not None
                assert abs(member.similarity - jaccard(texts[0], text)) < 1e-6
                assert member.similarity >= minimum - 1e-6
        stored, seen = self.stored(), dict[str, str]()
        for id, group in ((id, stored[id]["group"]) for id in self.model):
            if text := self.model[id]["text"]:
                assert seen.setdefault(text, group) == group
        if self.mirrored:
            shown = {hit["_id"]: hit["_source"].get("neardupe") for hit in hits(self.client, self.index)}
            assert shown == {id: {"group": one["group"]} for id, one in stored.items()}
