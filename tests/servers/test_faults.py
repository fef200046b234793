"""Commands with all faults of networks and servers: they end in the right state, or report the error and end in it when
they are run again; nothing is lost, duplicated or reverted."""

from __future__ import annotations

import json
import random
import re
import ssl
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
import trustme
from conftest import Cli, Run
from fault_proxy import (
    BULK,
    ENDING,
    EVERYTHING,
    PASSING,
    WRITES,
    Fault,
    FaultProxy,
    Forward,
    Queue,
    Reply,
    Request,
    Trouble,
    delayed,
    dribbling,
    in_turn,
    items_refused,
    lost_answer,
    short_waits,
    too_large,
    vanishing,
    without_memory,
)
from kill_tools import State
from server_tools import (
    JSON,
    delete_all,
    family,
    hits,
    make_index,
    make_or_skip,
    one_line,
    ours,
    put,
    reconcile,
    send,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.commands.group.report import GroupReport
from es_neardupe.errors import RequestError, Unreachable
from es_neardupe.report_parts import EnrichReport
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings, Retries

FEW = ("--batch", "16")
"""Actions of a bulk request: few, so that each run sends several requests."""

HALF = 25

CONNECTED = r"^(?!GET /($|_nodes))"
"""Excludes the requests that detect the server, which have fewer retries."""

MAX_KINDS = 2
"""Runs that fail before a run of each command that succeeds."""


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    short_waits(monkeypatch)


def documents() -> dict[str, JSON]:
    """Families, copies, and unique texts, with a field that must keep every digit."""
    found: dict[str, JSON] = {f"copy{n}": {"text": " ".join(words("copies", 40))} for n in range(2)}
    for n in range(12):
        texts = {f"f{n:02}-{k}": text for k, text in enumerate(family(n, 3, length=60))}
        texts[f"alone{n}"] = " ".join(words(f"alone{n}", 20))
        found |= {id: {"text": text, "odd": {"e": 1e300, "one": 1.0, "n": n}} for id, text in texts.items()}
    return found


def nothing(client: Client, index: str) -> None:
    """No change by the application."""


def other_half(client: Client, index: str) -> None:
    """The other half of the documents arrives without keys."""
    put(client, index, dict(list(documents().items())[HALF:]))


def change(client: Client, index: str) -> None:
    """Changes by an application between two runs."""
    texts = {id: one["text"] for id, one in documents().items()}
    send(
        client,
        [
            ({"update": {"_index": index, "_id": "f00-0"}}, {"doc": {"text": " ".join(words("away", 30))}}),
            ({"update": {"_index": index, "_id": "f01-1"}}, {"doc": {"text": texts["f01-1"] + " and more"}}),
            ({"update": {"_index": index, "_id": "f02-0"}}, {"doc": {"odd": {"one": 2.0}}}),
            ({"index": {"_index": index, "_id": "f03-2"}}, {"text": texts["f03-2"]}),
            ({"index": {"_index": index, "_id": "new"}}, {"text": texts["f04-1"]}),
            ({"delete": {"_index": index, "_id": "f05-0"}}, None),
        ],
    )


@dataclass(frozen=True)
class Step:
    """One command in the life of an index."""

    command: str
    options: JSON
    before: Callable[[Client, str], None] = nothing
    """Changes by the application before it, undisturbed."""

    def run(self, client: Client, index: str) -> Any:
        """As a method of the Python interface."""
        return getattr(NearDupe(index, client), self.command)(**self.options)

    def arguments(self, index: str) -> list[str]:
        """As the equivalent command line."""
        plain = {"settings": ["--field", "text", "--threshold", "0.7"], "paths": self.options.get("paths", [])}
        words = [word for name in self.options for word in plain.get(name, [f"--{name}"]) if name != "batch"]
        few = FEW if "batch" in self.options else ()
        return [self.command, index, *words, *few, *(["--yes"] if self.command == "clean" else [])]


def steps(file: str) -> list[Step]:
    """The life of an index until it is cleaned."""
    few: JSON = {"batch": int(FEW[1])}
    group: JSON = {"check": True, "evidence": True, **few}
    return [
        Step("init", {"settings": Settings(("text",), threshold=0.7)}),
        Step("load", {"paths": [file], **few}),
        Step("enrich", few, before=other_half),
        Step("group", group),
        Step("enrich", {"check": True, **few}, before=change),
        Step("group", group),
        Step("clean", few),
    ]


@dataclass(frozen=True)
class Course:
    """An index whose life is known: the report of each step of an undisturbed run, and the state after it."""

    client: Client
    index: str
    steps: list[Step]
    states: list[State]
    reports: list[Any]

    def begin(self) -> None:
        """Recreate the index, empty."""
        delete_all(self.client, self.index)
        odd = {"type": "object", "enabled": False}
        make_index(self.client, self.index, {"text": {"type": "text"}, "odd": odd})

    def taken(self) -> Iterator[Step]:
        """The steps, which the caller runs; after each of them, the state is compared."""
        self.begin()
        for step, wanted in zip(self.steps, self.states, strict=True):
            step.before(self.client, self.index)
            yield step
            assert State.of(self.client, self.index) == wanted, step


@pytest.fixture(scope="module")
def course(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    file: Path = tmp_path_factory.mktemp("faults") / "half.jsonl"
    file.write_text("".join(json.dumps({"id": id, **one}) + "\n" for id, one in list(documents().items())[:HALF]))
    found = Course(client, f"test-{uuid.uuid4().hex[:11]}x", steps(str(file)), [], [])
    found.begin()
    for step in found.steps:
        step.before(client, found.index)
        found.reports.append(step.run(client, found.index))
        reconcile(step.command, found.reports[-1])
        found.states.append(State.of(client, found.index))
    assert found.states[-1].users == found.states[-2].users
    assert not any(found.states[-1].ours.values())
    assert not found.states[-1].hidden_indices
    yield found
    delete_all(client, found.index)


@pytest.fixture
def through(proxy: FaultProxy) -> Iterator[Client]:
    """A client that reaches the server through the proxy, with short waits before retries."""
    opened = connect(ConnectionSettings(proxy.url, retries=Retries(attempts=6, wait=0.01), timeout=20))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "troubles",
    [
        pytest.param([(lost_answer, WRITES), (in_turn(PASSING), EVERYTHING)], id="writes without answer, all in turn"),
        *(pytest.param([one], id=kind, marks=pytest.mark.long) for kind, one in PASSING.items()),
    ],
)
def test_what_passes(troubles: list[tuple[Trouble, str]], course: Course, proxy: FaultProxy, through: Client) -> None:
    """Each request meets the first fault when it is sent first, and the next when it is sent again; each command
    completes and reports the same."""
    for step, undisturbed in zip(course.taken(), course.reports, strict=True):
        faults = [Fault(trouble, on, each=True) for trouble, on in troubles]
        proxy.set(*faults)
        report = step.run(through, course.index)
        proxy.set()
        assert all(fault.met > 0 for fault in faults) or step.command == "init"
        assert result_of(report) == result_of(undisturbed)


def result_of(report: Any) -> Any:
    """A report without what depends on the number of documents that were written since the last run: after a write
    without an answer, the next run processes the document again."""
    if isinstance(report, EnrichReport):
        return replace(report, scope=replace(report.scope, changed=0))
    if isinstance(report, GroupReport):
        groups = replace(report.groups, looked_at=None)  # type: ignore[arg-type]  # not compared
        return groups, report.writes.written, report.writes.left
    return report


Places = list[tuple[str, int]]
"""Kinds of faults, each with the request that it applies to."""


def random_places(seed: int) -> Iterator[Places]:
    """For each command some kinds of faults, each for one of its requests."""
    dice = random.Random(seed)
    while True:
        kinds = dice.sample(list(ENDING), min(MAX_KINDS, len(ENDING)))
        yield [(kind, dice.randrange(1, 12 if ENDING[kind][1] != BULK else 3)) for kind in kinds]


def first_places(kind: str) -> Iterator[Places]:
    """For each command the same fault for its first requests."""
    return repeat([(kind, place) for place in (1, 2, 3)])


def check_ends(places: Iterator[Places], course: Course, proxy: FaultProxy, cli: Cli) -> tuple[int, int]:
    """Each command meets faults at the given places; returns the number of runs that met one, and of those that it
    ended.

    A run ended by a fault reports it in one line and is run again; any other run has completed its work.
    """
    met = ended = 0
    for step, chosen in zip(course.taken(), places, strict=False):
        for kind, place in chosen:
            trouble, on = ENDING[kind]
            fault = Fault(trouble, on, (place,))
            proxy.set(fault)
            run = cli(*step.arguments(course.index), "--url", proxy.url)
            proxy.set()
            print(kind, fault.met, step.command, run)
            met += fault.met
            if run.code:
                assert (run.code, fault.met) == (1, 1)
                ended += 1
                if not run.out:
                    one_line(run.err)
        last = cli(*step.arguments(course.index), "--url", proxy.url)
        assert (last.code, "error" in last.err) == (0, False), last
    return met, ended


@pytest.mark.parametrize(
    ("places", "ends"),
    [
        pytest.param(partial(random_places, 1), True, id="all in turn"),
        *(
            # an expired snapshot is replaced by another
            pytest.param(partial(first_places, kind), kind != "expired", id=kind, marks=pytest.mark.long)
            for kind in ENDING
        ),
    ],
)
def test_what_ends_a_run(
    places: Callable[[], Iterator[Places]], ends: bool, course: Course, proxy: FaultProxy, cli: Cli
) -> None:
    met, ended = check_ends(places(), course, proxy, cli)
    assert met > 3
    assert ended > 3 if ends else ended == 0


def prepared(client: Client, index: str, *, enriched: bool = True) -> None:
    """A small index, with or without keys and groups."""
    make_index(client, index)
    texts = family("small", 5, length=60)
    put(client, index, {f"d{n}": {"text": text} for n, text in enumerate([*texts, texts[0]])})
    NearDupe(index, client).init(Settings(("text",), threshold=0.7))
    if enriched:
        NearDupe(index, client).enrich()
        NearDupe(index, client).group()


QUESTIONS = [("similar", "--id", "d0"), ("groups",), ("pairs",), ("duplicates", "--request", "FILE", "--pairs-only")]


def without_times(run: Run) -> Any:
    """The printed JSON of a command, without the seconds it took."""
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run.lines]


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_who_asks_gets_the_whole_answer_or_none(
    every: int, client: Client, proxy: FaultProxy, index_name: str, cli: Cli, tmp_path: Path
) -> None:
    """Each (fifth) request of a read-only command fails in turn: the answer is the same, or one line names the
    error."""
    prepared(client, index_name)
    file = tmp_path / "request.json"
    file.write_text(example("identical-titles").replace('"title"', '"text"'))
    endings = 0
    for command, *rest in QUESTIONS:
        words = [str(file) if word == "FILE" else word for word in rest]
        arguments = (command, index_name, *words, *(["--json"] if "FILE" not in rest else []), "--url", proxy.url)
        proxy.set()
        whole = cli(*arguments)
        assert whole.code == 0
        assert whole.out
        lines = [line for line in proxy.asked if re.search(CONNECTED, line)]
        proxy.set(Fault(in_turn(PASSING), CONNECTED, each=True))
        assert without_times(cli(*arguments)) == without_times(whole)
        trouble = in_turn({kind: ENDING[kind] for kind in ("shards failed", "timed out", "expired", "failed")})
        for place in range(1, len(lines) + 1, every):
            proxy.set(Fault(trouble, CONNECTED, (place,)))
            run = cli(*arguments)
            if run.code:
                assert (run.code, run.out) == (1, "")
                one_line(run.err)
                endings += 1
            else:
                assert without_times(run) == without_times(whole), lines
    assert endings > len(QUESTIONS)


def test_an_answer_that_does_not_end(client: Client, server_url: str, proxy: FaultProxy, index_name: str) -> None:
    """An answer that comes byte by byte would take forever, although no byte is late."""
    prepared(client, index_name, enriched=False)
    hasty = Retries(attempts=3, wait=0, longest_answer=3)
    slow = connect(ConnectionSettings(proxy.url, retries=hasty, timeout=3))
    proxy.set(Fault(dribbling(0.1), BULK, range(1, 9)))
    with pytest.raises(Unreachable, match=r"incomplete after 3 seconds"):
        NearDupe(index_name, slow).enrich()
    proxy.set(Fault(dribbling(0.1), BULK))
    report = NearDupe(index_name, slow).enrich(all=True)
    assert (report.scope.read, report.writes.written + report.writes.unchanged) == (6, 6)
    slow.close()


def test_a_gateway_that_takes_small_requests_only(
    client: Client, proxy: FaultProxy, through: Client, index_name: str, tmp_path: Path
) -> None:
    """Requests are split into parts that fit; a document that never fits is rejected, and the others are written."""
    file = tmp_path / "many.jsonl"
    sizes = {"a": 50, "b": 60, "long": 2000, "c": 50, "d": 70}
    file.write_text("".join(json.dumps({"id": id, "text": "word " * n}) + "\n" for id, n in sizes.items()))
    make_index(client, index_name)
    NearDupe(index_name, client).init(Settings(("text",)))
    fault = Fault(too_large(2000), BULK, range(1, 100))
    proxy.set(fault)
    report = NearDupe(index_name, through).load([str(file)])
    assert (report.scope.read, report.writes.written, report.writes.refused) == (5, 4, 1)
    assert "larger than the server allows" in report.writes.refusals[0]
    assert ours(client, index_name).keys() == sizes.keys() - {"long"}
    proxy.set()
    report = NearDupe(index_name, through).load([str(file)])
    assert (report.writes.written, report.scope.existing) == (1, 4)


def test_a_document_that_trips_a_circuit_breaker(
    client: Client, proxy: FaultProxy, through: Client, index_name: str, tmp_path: Path
) -> None:
    """It is counted, the others are written; a server that rejects every write ends the run."""
    file = tmp_path / "many.jsonl"
    sizes = {"a": 50, "b": 60, "long": 2000, "c": 50, "d": 70}
    file.write_text("".join(json.dumps({"id": id, "text": "word " * n}) + "\n" for id, n in sizes.items()))
    make_index(client, index_name)
    NearDupe(index_name, client).init(Settings(("text",)))
    proxy.set(Fault(without_memory(0), BULK, range(1, 1000)))
    with pytest.raises(RequestError, match="overloaded"):
        NearDupe(index_name, through).load([str(file)])
    assert ours(client, index_name) == {}
    proxy.set(Fault(without_memory(4000), BULK, range(1, 1000)))
    report = NearDupe(index_name, through).load([str(file)])
    assert (report.scope.read, report.writes.written, report.writes.refused) == (5, 4, 1)
    assert report.writes.refusals[0].startswith("circuit_breaking_exception: ")
    assert ours(client, index_name).keys() == sizes.keys() - {"long"}


def test_a_server_with_little_room(client: Client, proxy: FaultProxy, through: Client, index_name: str) -> None:
    """The number of documents in flight never exceeds the limit, and every document is written. After the first
    rejections most requests fit: those of one worker, because the order of those of several differs each time."""
    make_index(client, index_name)
    put(client, index_name, {f"d{n:03}": {"text": f"{n} words of one small text"} for n in range(300)})
    NearDupe(index_name, client).init(Settings(("text",)))
    through.pace.limit(max_load=48)
    queue = Queue(12)
    proxy.set(Fault(queue, BULK, range(1, 1000)))
    report = NearDupe(index_name, through).enrich(batch=24, workers=4)
    assert (report.scope.read, report.writes.written, report.writes.refused) == (300, 300, 0)
    assert len([one for one in ours(client, index_name).values() if one["state"] == "signed"]) == 300
    assert 12 < queue.maximum <= 48

    through.pace.limit(max_load=48)
    queue = Queue(12)
    proxy.set(Fault(queue, BULK, range(1, 1000)))
    report = NearDupe(index_name, through).enrich(all=True, batch=24, workers=1)
    assert (report.writes.written, report.writes.refused) == (300, 0)
    late = queue.refused[10:]  # how many of the first requests were cut before the first rejection depends on time
    assert max(late) < 12, queue.refused
    assert late.count(0) > len(late) / 2, queue.refused


@pytest.mark.product("elasticsearch")
def test_a_lost_answer_and_a_synthetic_source(
    client: Client, proxy: FaultProxy, through: Client, index_name: str
) -> None:
    """Our own write is recognised although the server returns its time in another form."""
    text = {"text": {"type": "text", "store": True}}
    make_or_skip(client, index_name, text, {"index.mapping.source.mode": "synthetic"})
    put(client, index_name, {f"d{n}": {"text": one} for n, one in enumerate(family("synthetic", 5, length=60))})
    NearDupe(index_name, client).init(Settings(("text",)))
    fault = Fault(lost_answer, BULK)
    proxy.set(fault)
    report = NearDupe(index_name, through).enrich()
    assert (fault.met, report.writes.written, report.writes.unchanged) == (1, 5, 0)
    assert re.fullmatch(r"[0-9T:-]+\.000Z", hits(client, index_name)[0]["_source"]["neardupe"]["at"])


def test_a_lost_answer_to_the_creation_of_a_sidecar(
    client: Client, proxy: FaultProxy, through: Client, index_name: str
) -> None:
    """The repeated request finds the index that the first one created."""
    make_index(client, index_name)
    put(client, index_name, {f"d{n}": {"text": one} for n, one in enumerate(family("created", 3, length=60))})
    fault = Fault(lost_answer, r"^PUT /[^/]+-sidecar$")
    proxy.set(fault)
    NearDupe(index_name, through).init(Settings(("text",)), sidecar=True)
    assert fault.met == 1
    assert NearDupe(index_name, client).enrich().writes.written == 3


def test_documents_that_a_clean_could_not_write_and_that_changed_then(
    client: Client, proxy: FaultProxy, through: Client, index_name: str
) -> None:
    """Rejected at first; then deleted, or indexed again: their outcomes are counted all the same."""
    prepared(client, index_name)
    anew = {"text": "another one"}

    def meanwhile(request: Request, forward: Forward) -> Reply | None:
        reply = items_refused(500, "null_pointer_exception")(request, forward)
        send(client, [({"delete": one("d0")}, None), ({"index": one("d2")}, anew)])
        return reply

    def one(id: str) -> JSON:
        return {"_index": index_name, "_id": id}

    proxy.set(Fault(meanwhile, BULK))
    report = NearDupe(index_name, through).clean()
    assert (report.documents, report.writes.written, report.writes.deleted, report.writes.left) == (6, 5, 1, 0)
    assert report.writes.refusals == ()  # none of the documents was refused in the end
    assert ours(client, index_name) == {id: {} for id in ("d1", "d2", "d3", "d4", "d5")}


def test_documents_that_go_before_a_clean_reads_them(
    client: Client, proxy: FaultProxy, through: Client, index_name: str
) -> None:
    prepared(client, index_name)

    def delete(request: Request, forward: Forward) -> Reply:
        send(client, [({"delete": {"_index": index_name, "_id": "d0"}}, None)])
        return forward(request)

    counted_before = rf"/{index_name}/_search\?.*allow_partial_search_results"
    fault = Fault(delete, counted_before)
    proxy.set(fault)
    report = NearDupe(index_name, through).clean()
    assert fault.met == 1
    assert (report.documents, report.writes.written, report.writes.deleted, report.writes.left) == (5, 5, 0, 0)


def test_an_answer_that_comes_too_late(client: Client, proxy: FaultProxy, index_name: str) -> None:
    """The request succeeded, and is repeated."""
    prepared(client, index_name)
    wanted = State.of(client, index_name)
    NearDupe(index_name, client).clean()
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.7))
    impatient = connect(ConnectionSettings(proxy.url, retries=Retries(attempts=4, wait=0), timeout=2))
    for command in ("enrich", "group"):
        fault = Fault(delayed(3), BULK)
        proxy.set(fault)
        reconcile(command, getattr(NearDupe(index_name, impatient), command)())
        assert fault.met == 1
    assert State.of(client, index_name) == wanted
    impatient.close()


def test_a_server_that_is_away_for_a_moment(client: Client, proxy: FaultProxy, index_name: str) -> None:
    """Connections are refused in the middle of a run; it waits, and continues."""
    prepared(client, index_name, enriched=False)
    waiting = connect(ConnectionSettings(proxy.url, retries=Retries(wait=0.5), timeout=60))
    for command in ("enrich", "group"):
        fault = Fault(vanishing(proxy, 0.05), BULK)
        proxy.set(fault)
        written = getattr(NearDupe(index_name, waiting), command)().writes.written
        assert written == {"enrich": 6, "group": 5}[command]  # the principal has its group fields
        assert fault.met == 1
    waiting.close()


def certificate(authority: trustme.CA) -> ssl.SSLContext:
    """The certificate of a server on this machine, issued by an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def test_a_certificate_that_changes(client: Client, server_url: str, index_name: str, cli: Cli, tmp_path: Path) -> None:
    """No request is sent to a server with another certificate; the run ends, and is run again."""
    prepared(client, index_name, enriched=False)
    good, wrong = trustme.CA(), trustme.CA()
    file = tmp_path / "ca.pem"
    good.cert_pem.write_to_path(str(file))
    proxy = FaultProxy(server_url, certificate(good))

    def replaced(request: Request, forward: Forward) -> None:
        proxy.secure(certificate(wrong))

    proxy.set(Fault(replaced, BULK))
    arguments = ("enrich", index_name, "--url", proxy.url, "--ca-certs", str(file))
    for _ in range(2):  # in the middle, and at the beginning
        run = cli(*arguments)
        assert (run.code, "the server's certificate was not accepted" in one_line(run.err)) == (1, True)
        assert not any(ours(client, index_name).values())
    proxy.secure(certificate(good))
    assert cli(*arguments).code == 0
    assert len([one for one in ours(client, index_name).values() if one["state"] == "signed"]) == 6
    proxy.close()
