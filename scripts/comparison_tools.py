"""Other tools of the comparison, each run by a Python that has it installed:

    python comparison_tools.py TOOL TEXTS ANSWER

TEXTS is a JSON lines file of ids and texts. ANSWER gets the version of the tool, the seconds that it took, and the
pairs or clusters of ids that it reports. All tools get a threshold of 0.8, shingles of 5 words and 128 permutations as
far as they have such settings, and otherwise keep their defaults.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

THRESHOLD, WORDS, PERMUTATIONS = 0.8, 5, 128

Texts = dict[str, str]
Reported = dict[str, Any]
"""``pairs`` or ``clusters`` of ids; with estimates also ``estimated``, the pairs whose estimate reaches the threshold;
``seconds``, if other than those of the whole function."""


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file. Texts may contain line separators other than a line feed."""
    with file.open(encoding="utf-8", newline="\n") as lines:
        yield from map(json.loads, lines)


def shingles(text: str) -> set[str]:
    """The word n-grams of a text, for tools that leave this to the user."""
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[start : start + WORDS]) for start in range(max(1, len(words) - WORDS + 1))}


def datasketch(texts: Texts) -> Reported:
    """Pairs that `MinHashLSH` returns, and those whose estimate by their signatures reaches the threshold."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
    signatures: dict[str, Any] = {}
    pairs, estimated = [], []
    for id, text in texts.items():
        signature = MinHash(num_perm=PERMUTATIONS)
        signature.update_batch([shingle.encode() for shingle in shingles(text)])
        for other in index.query(signature):
            pairs.append((other, id))
            if signature.jaccard(signatures[other]) >= THRESHOLD:
                estimated.append((other, id))
        index.insert(id, signature)
        signatures[id] = signature
    return {"pairs": pairs, "estimated": estimated}


def rensa(texts: Texts) -> Reported:
    """The same with the signatures and the index of rensa, 16 bands as its documentation shows."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=16)
    ids = list(texts)
    signatures: list[RMinHash] = []
    pairs, estimated = [], []
    for number, text in enumerate(texts.values()):
        signature = RMinHash(num_perm=PERMUTATIONS, seed=1)
        signature.update(sorted(shingles(text)))
        for other in index.query(signature):
            pairs.append((ids[other], ids[number]))
            if signature.jaccard(signatures[other]) >= THRESHOLD:
                estimated.append((ids[other], ids[number]))
        index.insert(number, signature)
        signatures.append(signature)
    return {"pairs": pairs, "estimated": estimated}


def datatrove(texts: Texts) -> Reported:
    """Clusters of the four steps of its MinHash pipeline, in one process, with the default buckets."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    config = MinhashConfig(n_grams=WORDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        lines = (json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items())
        (folder / "in" / "texts.jsonl").write_text("".join(lines), "utf-8")

        def run(step: str, tasks: int, *pipeline: Any) -> None:
            LocalPipelineExecutor(pipeline=[*pipeline], tasks=tasks, workers=1, logging_dir=at(f"logs/{step}")).run()

        def at(step: str) -> str:
            return str(folder / step)

        run("1", 1, JsonlReader(at("in")), MinhashDedupSignature(at("signatures"), config=config))
        run("2", config.num_buckets, MinhashDedupBuckets(at("signatures"), at("buckets"), config=config))
        run("3", 1, MinhashDedupCluster(at("buckets"), at("clusters"), config=config, save_cluster_id=True))
        writers = [JsonlWriter(at(kind), compression=None) for kind in ("kept", "removed")]
        removes = MinhashDedupFilter(at("clusters"), exclusion_writer=writers[1], load_cluster_ids=True)
        run("4", 1, JsonlReader(at("in")), removes, writers[0])
        clusters = defaultdict(list)
        for kind in ("kept", "removed"):
            for file in (folder / kind).rglob("*.jsonl"):
                for document in read_lines(file):
                    clusters[document["metadata"].get("minhash_cluster_id", -1)].append(document["id"])
    clusters.pop(-1, None)  # alone
    return {"clusters": list(clusters.values())}


def text_dedup(texts: Texts) -> Reported:
    """Clusters of its command ``minhash``, which itself only writes the texts that are left."""
    ids = list(texts)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = (json.dumps({"text": text}) + "\n" for text in texts.values())
        (folder / "texts.jsonl").write_text("".join(lines), "utf-8")
        options: dict[str, object] = {
            "path": "json", "data_files": folder / "texts.jsonl", "split": "train", "cache_dir": folder / "cache",
            "output": folder / "out", "column": "text", "ngram": WORDS, "threshold": THRESHOLD,
            "num_perm": PERMUTATIONS,
        }  # fmt: skip
        command = [sys.executable, "-m", "text_dedup.minhash", "--debug"]  # which also writes the clusters
        subprocess.run([*command, *(f"--{key}={value}" for key, value in options.items())], check=True)
        import pickle

        with (folder / "out" / "uf.pkl").open("rb") as file:  # written by the line above
            found = pickle.load(file)
    clusters = defaultdict(list)
    for number in found.parent:
        clusters[found.find(number)].append(ids[number])
    return {"clusters": [cluster for cluster in clusters.values() if len(cluster) > 1]}


def sycamore(texts: Texts) -> Reported:
    """Pairs that its search pipeline would drop if they stood on one page: fewer than 0.15 of the 16 hashes differ, the
    default ``dedup02``. Sketches and distances are its own."""
    from sycamore.data import Document
    from sycamore.functions.simhash import shinglesDist
    from sycamore.transforms.sketcher import Sketcher

    limit, number = 0.15, 16
    started = time.perf_counter()
    sketches = {
        id: Sketcher.sketcher(Document(text_representation=text), 17, number)["shingles"] for id, text in texts.items()
    }
    seconds = time.perf_counter() - started  # all that is done for all documents; hits are compared in each search
    distinct = {id: frozenset(sketch) for id, sketch in sketches.items()}
    having: dict[int, list[str]] = defaultdict(list)
    pairs = []
    for id, sketch in sketches.items():
        # If at most two of 16 hashes differ, one of the first three is shared.
        for other in {other for one in sketch[:3] for other in having[one]}:
            a, b = distinct[id], distinct[other]
            surely_far = len(a) == len(b) == number and number - len(a & b) > limit * number  # a fast test
            if not surely_far and shinglesDist(sketch, sketches[other]) < limit:
                pairs.append((other, id))
        for one in distinct[id]:
            having[one].append(id)
    return {"pairs": pairs, "seconds": seconds}


TOOLS: dict[str, tuple[str, Callable[[Texts], Reported]]] = {
    "datasketch": ("datasketch", datasketch),
    "rensa": ("rensa", rensa),
    "text-dedup": ("text-dedup", text_dedup),
    "datatrove": ("datatrove", datatrove),
    "sycamore": ("sycamore-ai", sycamore),
}
"""Name -> package and function."""


def main(name: str, texts_file: str, answer_file: str) -> None:
    """Run one tool, and write what it reports."""
    texts = {one["id"]: one["text"] for one in read_lines(Path(texts_file))}
    package, run = TOOLS[name]
    started = time.perf_counter()
    reported = run(texts)
    answer = {"version": version(package), "seconds": time.perf_counter() - started, **reported}
    Path(answer_file).write_text(json.dumps(answer), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
