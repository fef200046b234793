"""The settings of an index: which fields, which scheme. Chosen once by ``init``, stored in the mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.keys.scheme import Scheme, choose_bands
from es_neardupe.options import DEFAULT_PREFIX, PRESETS

__all__ = ["Settings"]

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Settings:
    """What ``init`` decides for an index.

    ``threshold`` and ``detection`` say which keys are wanted: of the pairs that are exactly ``threshold``
    similar, the share ``detection`` must become candidates. ``bands`` and ``rows``, given together,
    overrule that choice; with them, ``agree`` bands may be asked of a candidate. ``sample_mod`` makes one in so many
    shingles a sampled key besides, for ``contained``; 0: none. ``relations`` are those of join fields whose documents
    are processed; without any, all but children. Raises `SettingsError` for values out of range.
    """

    fields: tuple[str, ...]
    threshold: float = 0.8
    detection: float = 0.99
    shingle: int = 5
    permutations: int = 128
    bands: int | None = None
    rows: int | None = None
    agree: int = 1
    sample_mod: int = 0
    prefix: str = DEFAULT_PREFIX
    relations: tuple[str, ...] = ()
    scheme: Scheme = field(init=False)

    def __post_init__(self) -> None:
        self._check_names()
        object.__setattr__(self, "fields", tuple(self.fields))
        object.__setattr__(self, "relations", tuple(sorted(set(self.relations))))
        if (self.bands is None) != (self.rows is None):
            raise SettingsError("bands and rows belong together: give both, or neither.")
        bands, rows = self.bands, self.rows
        if bands is None or rows is None:
            if self.agree != 1:
                raise SettingsError("agree takes bands and rows: those that are chosen are made for one band.")
            bands, rows = choose_bands(self.threshold, self.detection, self.permutations)
        elif not 0 < self.threshold <= 1:
            raise SettingsError(f"The threshold must lie in (0, 1], not {self.threshold}.")
        elif not 0 < self.detection < 1:
            raise SettingsError(f"The detection must lie between 0 and 1, not {self.detection}.")
        scheme = Scheme(
            shingle=self.shingle,
            permutations=self.permutations,
            bands=bands,
            rows=rows,
            agree=self.agree,
            sample_mod=self.sample_mod,
        )
        object.__setattr__(self, "scheme", scheme)

    @classmethod
    def chosen(cls, fields: tuple[str, ...], *, preset: str | None = None, **options: Any) -> Settings:
        """Settings by the options that were given: None stands for that of the preset, or else the default.

        Raises `SettingsError` for an unknown preset, and for options that contradict it.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if preset is None:
            return cls(fields, **given)
        if preset not in PRESETS:
            raise SettingsError(f"There is no preset {preset!r}. Known: {', '.join(PRESETS)}.")
        fixed = PRESETS[preset]
        for name in sorted(fixed.keys() & given.keys() - {"threshold"}):
            if given[name] != fixed[name]:
                raise SettingsError(
                    f"The preset {preset} has {name} {fixed[name]}, not {given[name]}: leave out either `preset` or "
                    f"--{name}."
                )
        return cls(fields, **{**fixed, **given})

    def _check_names(self) -> None:
        if isinstance(self.fields, str):
            raise SettingsError(f"fields is a list of names, not one name: ({self.fields!r},).")
        if not self.fields or not all(self.fields):
            raise SettingsError("Name at least one text field with `fields`.")
        if len(set(self.fields)) < len(self.fields):
            raise SettingsError(f"A field is named twice: {', '.join(self.fields)}.")
        if not _PREFIX.fullmatch(self.prefix):
            raise SettingsError(
                f"The prefix {self.prefix!r} cannot be a field name: a letter, then letters, digits, _ or -."
            )
        if any(name == self.prefix or name.startswith(f"{self.prefix}.") for name in self.fields):
            raise SettingsError(f"A field of ours cannot be fingerprinted: {', '.join(self.fields)}.")

    def to_meta(self) -> dict[str, Any]:
        """The JSON object stored in the mapping's ``_meta`` under the prefix."""
        relations = {"relations": list(self.relations)} if self.relations else {}
        return {
            "id": self.scheme.id,
            "scheme": self.scheme.to_dict(),
            "fields": list(self.fields),
            "threshold": self.threshold,
            "detection": self.detection,
            **relations,
        }

    @classmethod
    def from_meta(cls, meta: object, prefix: str) -> Settings:
        """Read what `to_meta` wrote. Raises `IndexUnusable` if it is anything else."""
        try:
            return cls._read_meta(meta, prefix)
        except (SettingsError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise IndexUnusable(
                f"The stored settings under _meta.{prefix} cannot be read ({error!r}): were they edited by hand?"
            ) from error

    @classmethod
    def _read_meta(cls, meta: object, prefix: str) -> Settings:
        if not isinstance(meta, Mapping):
            raise TypeError("not an object")
        fields, relations = meta["fields"], meta.get("relations", [])
        for what, names in (("fields", fields), ("relations", relations)):
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError(f"{what} is no list of names")
        scheme = Scheme.from_dict(meta["scheme"])
        if scheme.id != meta["id"]:
            raise ValueError(f"scheme id {meta['id']} does not fit its parts ({scheme.id})")
        settings = cls(
            fields=tuple(fields),
            threshold=float(meta["threshold"]),
            detection=float(meta["detection"]),
            shingle=scheme.shingle,
            permutations=scheme.permutations,
            bands=scheme.bands,
            rows=scheme.rows,
            agree=scheme.agree,
            sample_mod=scheme.sample_mod,
            prefix=prefix,
            relations=tuple(relations),
        )
        if settings.scheme != scheme:
            raise ValueError(f"scheme {scheme.id} is of another version of this program")
        return settings

    def differences(self, other: Settings) -> list[str]:
        """What keeps two settings apart, as ``name: mine, not theirs``; empty if there is nothing."""
        mine, theirs = self._comparable(), other._comparable()
        return [f"{name}: {mine[name]}, not {theirs[name]}" for name in mine if mine[name] != theirs[name]]

    def _comparable(self) -> dict[str, Any]:
        scheme = {name: value for name, value in asdict(self.scheme).items() if name != "version"}
        chosen = {"fields": "+".join(self.fields), "threshold": self.threshold, "detection": self.detection}
        return chosen | scheme | {"relations": "+".join(self.relations) or "all but children"}
