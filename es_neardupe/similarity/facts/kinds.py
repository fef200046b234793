"""Kinds of facts by the names that options use: those of single kinds, and those of lists."""

from __future__ import annotations

from collections.abc import Iterable

from es_neardupe.errors import SettingsError
from es_neardupe.options import FactKind

FIGURES = frozenset({FactKind.AMOUNT, FactKind.NUMBER, FactKind.DATE, FactKind.UNIT, FactKind.CODE})
FACTS = FIGURES | {FactKind.NAME, FactKind.NEGATION}
"""Kinds by which two texts of the same form are about different things."""
OF_THE_COPY = frozenset({FactKind.STAMP, FactKind.COUNTER, FactKind.CONTACT})
"""Kinds that are about a copy or its place of publication. They decide only if they are chosen."""
ALL = frozenset(FactKind) - OF_THE_COPY

LISTS = {"figures": FIGURES, "facts": FACTS, "all": ALL}
"""Each list contains the one before."""

FACT_NAMES = {**{f"{kind.value}s": frozenset({kind}) for kind in FactKind}, **LISTS}
"""The values of an option, and the kinds that each stands for."""
NO_FACTS = "none"
"""The value of an option by which no facts decide, whatever is the default of the index."""


def parse_facts(names: str | Iterable[str]) -> frozenset[FactKind]:
    """The kinds of ``"figures,names"``, or of several such values; none of them for ``"none"``.

    Raises `SettingsError` for an unknown one.
    """
    values = names.split(",") if isinstance(names, str) else [one for part in names for one in part.split(",")]
    if [*map(str.strip, values)] == [NO_FACTS]:
        return frozenset()
    chosen: set[FactKind] = set()
    for name in map(str.strip, values):
        if name not in FACT_NAMES:
            raise SettingsError(f"Unknown kind of facts {name!r}. Known: {', '.join(FACT_NAMES)}, or {NO_FACTS} alone.")
        chosen |= FACT_NAMES[name]
    return frozenset(chosen)
