"""Growth of time and memory with the number of documents, on a local node.

    python scripts/bench_scale.py [--documents 10000,100000,1000000] [--url URL] [--json FILE]
    python scripts/bench_scale.py --without-server 100000,1000000 [--memory 2GB] [--json FILE]

For each number of documents of 100 words, 14 % of them in groups, the commands of a life of an index run one after the
other, each in a process of its own, so that its peak memory is that of the command. ``similar`` is the median of many
calls of one open `NearDupe`. Two ratios are computed: the first ``group`` to the same run without writes plus the
writes of the members of groups alone; and ``enrich`` and ``group`` after 1 % of the texts have changed to the first
ones. The bytes sent in both directions are those of the loopback interface, with the headers of the protocol: nothing
else may use it. The disk usage of the index is that after each step. Before a step, the server finishes its merges of
segments.

From one number to the next, two slopes are computed: the additional bytes of peak memory per additional document, and
the exponent of the time (1: twice as many documents take twice as long). Both are more reliable for large numbers: for
small ones, the start of the process and of the server weigh more.

Without a server, synthetic fingerprints are grouped: the steps of ``group`` from reading pages to the groups to write,
for more documents than a local node holds (`tests/tools/synthetic_pages.py`).
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import multiprocessing
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import psutil
from bench_tools import drop_index, synthetic_text, timed, wait_for_merges, write_synthetic

from es_neardupe import NearDupe, Settings
from es_neardupe.local_server import control
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import refresh

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "tools"))
from peak_memory import peak

TOOLS = Path(__file__).resolve().parents[1] / "tests" / "tools"
INDEX = "bench-scale"
CALLS = 200


@dataclass(frozen=True)
class Work:
    """What a step works on."""

    url: str
    file: str
    documents: int


@dataclass(frozen=True)
class Measured:
    """The result of a step."""

    step: str
    documents: int
    seconds: float
    peak: int
    """Bytes; those of Python and its modules are included."""
    sent: int = 0
    """Bytes sent in both directions."""
    disk: int = 0
    """Bytes of the index after the step."""
    processor: float = 0.0
    """Seconds of processor time, without a server."""
    making: float = 0.0
    """Those of them that make the documents."""


def _load(news: NearDupe, work: Work) -> None:
    news.init(Settings(("text",)), create=True)
    assert news.load([work.file]).writes.written == work.documents


def _texts(news: NearDupe, work: Work) -> None:
    """The same documents without keys, by the same requests."""
    drop_index(news.client, INDEX)
    with Path(work.file).open(encoding="utf-8") as lines:
        parsed = (json.loads(line) for line in lines)
        actions = (Action("index", INDEX, one["id"], {"text": one["text"]}) for one in parsed)
        assert all(outcome.done for outcome in write(news.client, actions))
    refresh(news.client, INDEX)


def _enrich(news: NearDupe, work: Work) -> None:
    news.init(Settings(("text",)))
    assert news.enrich().writes.written == work.documents


def _first_group(news: NearDupe, work: Work) -> None:
    assert news.group().groups.grouped >= work.documents // 1000 * 139  # a few pairs share no key


def _rebuild(news: NearDupe, work: Work) -> None:
    assert news.group(rebuild=True, dry_run=True).scope.documents == work.documents


def _stats(news: NearDupe, work: Work) -> None:
    assert news.stats().scope.documents == work.documents


def _unchanged(news: NearDupe, work: Work) -> None:
    assert news.group().writes.written == 0


def _changed_texts(news: NearDupe, work: Work) -> float:
    """``enrich`` after another word was added to each hundredth text, by another client."""
    numbers = range(50, work.documents, 100)
    changes = ({"doc": {"text": f"{synthetic_text(number)} changed"}} for number in numbers)
    actions = (Action("update", INDEX, f"{number:08}", body) for number, body in zip(numbers, changes, strict=True))
    assert all(outcome.done for outcome in write(news.client, actions))
    refresh(news.client, INDEX)
    seconds, report = timed(news.enrich)
    assert (report.scope.read, report.writes.written) == (len(numbers), len(numbers))
    return seconds


def _group_changed(news: NearDupe, work: Work) -> None:
    assert not news.group().scope.whole


def _members(news: NearDupe, work: Work) -> float:
    """Updates of the size of those of ``group``, of the same number of documents, prepared before."""
    body = {"query": {"term": {"neardupe.principal": False}}, "_source": ["neardupe.group"]}
    hits = [hit for page in news.client.pages(INDEX, body, page_size=2000) for hit in page]
    written = {"principal": False, "similarity": 0.9}
    actions = [
        Action("update", hit.index, hit.id, {"doc": {"neardupe": {**hit.source["neardupe"], **written}}})
        for hit in hits
    ]
    seconds, outcomes = timed(lambda: list(write(news.client, actions)))
    assert len(outcomes) >= work.documents // 100 * 9
    assert all(outcome.done for outcome in outcomes)
    return seconds


def _similar(news: NearDupe, work: Work) -> float:
    numbers = random.Random(1).choices(range(work.documents), k=CALLS)
    seconds = [timed(partial(news.similar, id=f"{number:08}", fields=None))[0] for number in numbers]
    return statistics.median(seconds[CALLS // 4 :])


STEPS: dict[str, Callable[[NearDupe, Work], float | None]] = {
    "load": _load,
    "texts without keys": _texts,
    "enrich": _enrich,
    "group --rebuild --dry-run": _rebuild,
    "first group": _first_group,
    "stats": _stats,
    "group without changes": _unchanged,
    "similar": _similar,
    "enrich, 1 % changed": _changed_texts,
    "group, 1 % changed": _group_changed,
    "writes of members": _members,
}
"""In this order. A step returns the seconds to report if they are not those of all of it."""

NEW = ("load", "texts without keys")
"""Steps that create the index."""

SYNTHETIC = "group synthetic fingerprints"


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    if arguments.without_server:
        numbers = sorted(int(one) for one in arguments.without_server.split(","))
        found = list[Measured]()
        for one in numbers:
            found.append(synthetic(one, arguments.memory))
            print(_row(found[-1]), flush=True)
        report("synthetic fingerprints", found, arguments.json)
        return
    url = arguments.url or control.start(arguments.server, say=print).url
    client = connect(ConnectionSettings(url=url))
    print(f"{client.server}, documents of 100 words")
    measured: list[Measured] = []
    try:
        for documents in sorted(int(one) for one in arguments.documents.split(",")):
            drop_index(client, INDEX)
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "synthetic.jsonl"
                write_synthetic(file, range(documents))
                for step in STEPS:
                    measured.append(in_a_process(step, Work(url, str(file), documents)))
                    print(_row(measured[-1]), flush=True)
    finally:
        drop_index(client, INDEX)
        client.close()
    report(str(client.server), measured, arguments.json)
    for documents in sorted({one.documents for one in measured}):
        seconds = {one.step: one.seconds for one in measured if one.documents == documents}
        needed = seconds["group --rebuild --dry-run"] + seconds["writes of members"]
        first = seconds["enrich"] + seconds["first group"]
        later = seconds["enrich, 1 % changed"] + seconds["group, 1 % changed"]
        print(
            f"{documents:>9,}: the first group takes {seconds['first group'] / needed:.2f} of what is needed; after "
            f"1 % changed, enrich and group take {later / first:.3f} of the first runs"
        )


def report(source: str, measured: Sequence[Measured], file: Path | None) -> None:
    """Print the slopes, and write everything to a file if one is given."""
    found = slopes(measured)
    for one in found:
        print(
            f"{one['step']:26} {one['from']:>9,} to {one['to']:>9,}: {one['bytes_per_document']:8,.0f} bytes per "
            f"document, time exponent {one['exponent']:.2f}"
        )
    if file is not None:
        written = {"source": source, "steps": [asdict(one) for one in measured], "slopes": found}
        file.write_text(json.dumps(written, indent=2) + "\n", "utf-8")


def synthetic(documents: int, memory: str | None) -> Measured:
    """Group synthetic fingerprints in a new process, within so much memory."""
    command = [sys.executable, str(TOOLS / "synthetic_pages.py"), str(documents), *([memory] if memory else [])]
    done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    cpu, making = done["cpu"], done["cpu_of_making"]
    return Measured(SYNTHETIC, documents, done["seconds"], done["peak"], processor=cpu, making=making)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--url", help="a running server instead")
    parser.add_argument("--documents", default="10000,100000", help="numbers of documents (default 10000,100000)")
    parser.add_argument("--without-server", metavar="NUMBERS", help="numbers of synthetic fingerprints to group")
    parser.add_argument("--memory", help="with --without-server: maximum memory, such as 2GB")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    return parser.parse_args()


def in_a_process(step: str, work: Work) -> Measured:
    """Run a step in a new process, and return its time and peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (step, work))


def _measured(step: str, work: Work) -> Measured:
    gc.freeze()  # as the command line does
    gc.set_threshold(50_000)
    client = connect(ConnectionSettings(url=work.url))
    if step not in NEW:
        wait_for_merges(client, INDEX)
    before = _sent()
    seconds, own = timed(lambda: STEPS[step](NearDupe(INDEX, client), work))
    sent = _sent() - before
    store = client.request("GET", f"/{INDEX}/_stats/store")["_all"]["primaries"]["store"]
    client.close()
    return Measured(step, work.documents, seconds if own is None else own, peak(), sent, store["size_in_bytes"])


def _sent() -> int:
    """Bytes that the loopback interface has carried so far."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def slopes(measured: Sequence[Measured]) -> list[dict[str, float | int | str]]:
    """For each step, the growth from each number of documents to the next one."""
    found: list[dict[str, float | int | str]] = []
    for step in (*STEPS, SYNTHETIC):
        for one, other in pairwise(each for each in measured if each.step == step):
            found.append(
                {
                    "step": step,
                    "from": one.documents,
                    "to": other.documents,
                    "bytes_per_document": (other.peak - one.peak) / (other.documents - one.documents),
                    "exponent": math.log(_time(other) / _time(one)) / math.log(other.documents / one.documents),
                }
            )
    return found


def _time(one: Measured) -> float:
    """The processor time if it is known, as other programs may run for a part of the time."""
    return one.processor or one.seconds


def _row(one: Measured) -> str:
    more = f" {one.sent / 1e6:9.1f} MB sent {one.disk / 1e6:7.0f} MB on disk" if one.disk else ""
    if one.processor:
        more = f" {one.processor:9.1f} s of processor time"
    return f"{one.documents:>10,}  {one.step:26} {one.seconds:9.4f} s {one.peak / 1e6:7.0f} MB{more}"


if __name__ == "__main__":
    main()
