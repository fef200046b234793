"""Star groups by their definition, in plain Python: every move is tried by forming all groups of the cluster again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

Near = Sequence[Mapping[int, float]]
Centres = dict[int, int]
"""Text -> its centre."""


def star_model(
    matches: Mapping[tuple[int, int], float], documents: Sequence[int], *, containment: bool = False
) -> list[int]:
    """The principal of each text. The texts have the order of principals; ``documents``: of each."""
    near: list[dict[int, float]] = [{} for _ in documents]
    for (one, other), value in matches.items():
        near[one][other] = near[other][one] = value
    principal = list(range(len(documents)))
    for cluster in clusters(near):
        order = cluster if containment else sorted(cluster, key=lambda text: -len(near[text]))
        chosen: set[int] = set()
        for text in order:
            if chosen.isdisjoint(near[text]):
                chosen.add(text)
        joined = joining(near, cluster, chosen)
        assert joined is not None
        if len(chosen) > 1 and not containment:
            joined = exchanged(near, cluster, documents, joined)
        for centre in set(joined.values()):
            members = [text for text in cluster if joined[text] == centre]
            first = min(text for text in members if set(members) <= {text, *near[text]})
            for text in members:
                principal[text] = first
    return principal


def clusters(near: Near) -> list[list[int]]:
    """The texts of each connected component, ascending."""
    found, seen = [], set[int]()
    for text in range(len(near)):
        if text not in seen:
            some, waiting = {text}, [text]
            while waiting:
                new = near[waiting.pop()].keys() - some
                some |= new
                waiting += new
            seen |= some
            found.append(sorted(some))
    return found


def joining(near: Near, cluster: Sequence[int], chosen: set[int]) -> Centres | None:
    """Each text with the most similar centre that it matches; None if one matches none."""
    joined = {}
    for text in cluster:
        able = [text] if text in chosen else sorted(chosen & near[text].keys(), key=lambda one: (-near[text][one], one))
        if not able:
            return None
        joined[text] = able[0]
    return joined


def exchanged(near: Near, cluster: Sequence[int], documents: Sequence[int], joined: Centres) -> Centres:
    """The centres after the moves that raise the value."""
    for _ in range(8):
        before = joined
        for text in cluster:
            for chosen in moves(near, joined, text):
                found = joining(near, cluster, chosen)
                if found is not None and value(near, documents, found) > value(near, documents, joined):
                    joined = found
                    break
        if joined == before:
            break
    return joined


def moves(near: Near, joined: Centres, text: int) -> Iterator[set[int]]:
    """The centres after each move of a text, in order."""
    chosen = set(joined.values())
    if text in chosen:
        yield chosen - {text}
        return
    reached = chosen & near[text].keys()
    single = {one for one in reached if list(joined.values()).count(one) == 1}
    for out in (single | {joined[text]}, reached, single):
        yield (chosen - out) | {text}


def value(near: Near, documents: Sequence[int], joined: Centres) -> tuple[int, int]:
    """What these groups of a cluster are worth."""
    pairs = [(one, other) for one in joined for other in joined if one < other and joined[one] == joined[other]]
    kept = sum(other in near[one] for one, other in pairs)
    sizes = Counter[int]()
    for text, centre in joined.items():
        sizes[centre] += documents[text]
    alone = sum(size == 1 for size in sizes.values())
    similarity = sum(round(near[text][centre] * 10**9) for text, centre in joined.items() if text != centre)
    return 4 * kept - (len(pairs) - kept) - 120 * alone, similarity
