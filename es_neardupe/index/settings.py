"""Settings of an index: text fields, threshold and scheme. ``init`` stores them in the mapping."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import Enum
from numbers import Real
from typing import Any

from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.scheme import Scheme, check_whole, choose_bands
from es_neardupe.keys.unit import Unit, shingle_of, shingle_option
from es_neardupe.lists import as_list
from es_neardupe.options import BY_LENGTHS, DEFAULT_PREFIX, PRESETS, Clean, Mask, MeasureName, Versions, preset_measure
from es_neardupe.wording import option

OPTIONAL_IN_META = ("relations", "measure", "min", "groups_only", "group_field", "versions")
"""Names that `Settings.to_meta` leaves out for their defaults."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def check_prefix(prefix: str) -> None:
    """Raises `SettingsError` for a prefix that no index can have."""
    _check_name("prefix", prefix)


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SettingsError(f"The {kind} {name!r} is not valid: use a letter, then letters, digits, _ or -.")


@dataclass(frozen=True)
class Settings:
    """The settings that ``init`` chooses for an index.

    The keys are derived from ``threshold`` and ``detection``: of the pairs with a similarity of exactly ``threshold``,
    at least the share ``detection`` become candidates. ``bands`` and ``rows``, given together, replace this choice;
    then ``agree`` is the number of bands that candidates must share. ``sample_mod``: one in this many shingles is also
    stored as a sampled key, for ``contained``; 0 for none. ``relations``: the relations of join fields whose documents
    are processed; by default all but children. Raises `SettingsError` for values out of range.
    """

    fields: tuple[str, ...]
    threshold: float = 0.8
    detection: float = 0.99
    shingle: int = 5
    """Words, or with ``unit`` characters or shapes, in a shingle."""
    permutations: int = 128
    bands: int | None = None
    rows: int | None = None
    agree: int = 1
    sample_mod: int = 0
    prefix: str = DEFAULT_PREFIX
    relations: tuple[str, ...] = ()
    unit: Unit = Unit.WORD
    clean: Clean | str | None = None
    """What is left out of texts before their keys are made."""
    mask: Sequence[Mask] | Sequence[str] = ()
    """Kinds of parts of texts that are replaced by placeholders; also their names separated by commas, or ``all``."""
    measure: MeasureName = MeasureName.RESEMBLANCE
    """The measure that decides a match unless another one is given."""
    min: float | None = None
    """The minimum by ``measure``, if that is not the resemblance."""
    groups_only: bool = False
    """Whether the prefix holds groups of the pairs of a request, and no keys."""
    group_field: str | None = None
    """The top-level field of each document that holds a copy of its group id; None: there is none."""
    versions: Versions | None = None
    """Who sets the versions of the documents; None: the server, as far as they show."""
    scheme: Scheme = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(as_list("fields", self.fields)))
        object.__setattr__(self, "relations", tuple(sorted(set(as_list("relations", self.relations)))))
        self._check_names()
        self._check_numbers()
        object.__setattr__(self, "versions", None if self.versions is None else Versions(self.versions))
        if (self.min is None) != (self.measure is MeasureName.RESEMBLANCE):
            raise SettingsError(
                f"{option('min')} is the minimum by a measure other than resemblance: give both, or neither."
            )
        for threshold in (self.threshold_of(self.measure), self.threshold):
            if not 0 < threshold <= 1:
                raise SettingsError(f"The threshold must lie in (0, 1], not {threshold}.")
        if (self.bands is None) != (self.rows is None):
            raise SettingsError("bands and rows belong together: give both, or neither.")
        bands, rows = self.bands, self.rows
        if bands is None or rows is None:
            if self.agree != 1:
                raise SettingsError("agree requires bands and rows: the automatic choice is for one band.")
            bands, rows = choose_bands(self.threshold, self.detection, self.permutations)
        elif not 0 < self.detection < 1:
            raise SettingsError(f"The detection must lie between 0 and 1, not {self.detection}.")
        scheme = Scheme(
            shingle=self.shingle,
            permutations=self.permutations,
            bands=bands,
            rows=rows,
            agree=self.agree,
            sample_mod=self.sample_mod,
            unit=self.unit,
            preparation=Preparation.named(self.clean, self.mask),
        )
        object.__setattr__(self, "clean", scheme.preparation.clean)
        object.__setattr__(self, "mask", scheme.preparation.masks)
        object.__setattr__(self, "scheme", scheme)

    @classmethod
    def chosen(
        cls,
        fields: tuple[str, ...],
        *,
        preset: str | None = None,
        measure: str | None = None,
        **options: Any,
    ) -> Settings:
        """Settings from options: None is replaced by the value of the preset, or else the default. ``shingle`` may be
        ``5c``, for 5 characters, or ``7s``, for 7 shapes. ``measure``: that of the threshold, if the caller chooses the
        bands for it.

        Raises `SettingsError` for an unknown preset, and for options that contradict it.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if preset is None:
            return cls(fields, **_with_unit(given))
        if preset not in PRESETS:
            raise SettingsError(f"Unknown preset {preset!r}. Presets: {', '.join(PRESETS)}.")
        fixed = dict(PRESETS[preset])
        if measure is not None:
            fixed = {name: value for name, value in fixed.items() if name not in ("measure", "min")}
        if preset_measure(preset):
            if measure is None:
                raise SettingsError(
                    f"The preset {preset} needs the lengths of texts: it is for `init` and `migrate` with an index."
                )
            return cls(fields, **_with_unit({**fixed, **given}))
        for name in sorted(fixed.keys() & given.keys() - {"threshold"}):
            if given[name] != fixed[name]:
                raise SettingsError(
                    f"The preset {preset} has {name} {_said(fixed[name])}, not {_said(given[name])}: leave out either "
                    f"{option('preset')} or --{name}."
                )
        return cls(fields, **_with_unit({**fixed, **given}))

    def threshold_of(self, measure: MeasureName) -> float:
        """The minimum similarity by a measure unless another one is given."""
        return self.threshold if self.min is None or measure is not self.measure else self.min

    def as_options(self) -> str:
        """The options by which `init` chooses these settings again, without those of the prefix and the versions."""
        by_lengths = self.measure in BY_LENGTHS  # bands are then chosen by texts, and an index keeps those it has
        preset = "reader" if self.min is not None and not by_lengths else None
        usual = Settings.chosen(self.fields, preset=preset)
        bands, automatic = (self.scheme.bands, self.scheme.rows), None
        with suppress(SettingsError):
            automatic = choose_bands(self.threshold, self.detection, self.permutations)
        of_bands = {"--bands": bands[0], "--rows": bands[1]} if bands != automatic or self.agree > 1 else {}
        shingles = [shingle_option(one.shingle, one.unit) for one in (self, usual)]
        changed = {
            "--threshold": (self.min if by_lengths else self.threshold, usual.threshold),
            "--detection": (self.detection, usual.detection),
            "--shingle": (shingles[0], shingles[1]),
            "--permutations": (self.permutations, usual.permutations),
            "--agree": (self.agree, usual.agree),
            "--sample-mod": (self.sample_mod, usual.sample_mod),
        }
        options: list[tuple[str, Any]] = [
            *(("--field", name) for name in self.fields),
            ("--preset", preset),
            ("--measure", self.measure.value if by_lengths else None),
            *((name, value) for name, (value, default) in changed.items() if value != default),
            *(() if by_lengths else of_bands.items()),
            ("--clean", self.scheme.preparation.clean and self.scheme.preparation.clean.value),
            ("--mask", ",".join(one.value for one in self.scheme.preparation.masks) or None),
            *(("--relation", name) for name in self.relations),
            ("--group-field", self.group_field),
        ]
        return " ".join(f"{name} {shlex.quote(str(value))}" for name, value in options if value is not None)

    def _check_numbers(self) -> None:
        for name in ("threshold", "detection", "min"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise SettingsError(f"{name} must be a number, not {value!r}.")
        for name in ("permutations", "bands", "rows", "agree"):
            if (value := getattr(self, name)) is not None:
                check_whole(name, value)

    def _check_names(self) -> None:
        if not self.fields or not all(self.fields):
            raise SettingsError(f"Name at least one text field with {option('fields')}.")
        if len(set(self.fields)) < len(self.fields):
            raise SettingsError(f"A field is named twice: {', '.join(self.fields)}.")
        check_prefix(self.prefix)
        if any(name == self.prefix or name.startswith(f"{self.prefix}.") for name in self.fields):
            raise SettingsError(
                f"Fields under the prefix {self.prefix!r} cannot be fingerprinted: {', '.join(self.fields)}."
            )
        if self.group_field is None:
            return
        _check_name("group field", self.group_field)
        if self.group_field in {self.prefix, *(name.partition(".")[0] for name in self.fields)}:
            raise SettingsError(
                f"The group field {self.group_field!r} is in use by another field: choose another name."
            )

    def in_document(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The top-level fields of a document that hold the ``stored`` fields: the object of the prefix, and the copy of
        the group id."""
        copied = {} if self.group_field is None or "group" not in stored else {self.group_field: stored["group"]}
        return {self.prefix: stored, **copied}

    @property
    def in_documents(self) -> tuple[str, ...]:
        """The names of these fields."""
        return (self.prefix,) if self.group_field is None else (self.prefix, self.group_field)

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
            **({} if self.min is None else {"measure": self.measure.value, "min": self.min}),
            **({"groups_only": True} if self.groups_only else {}),
            **({} if self.group_field is None else {"group_field": self.group_field}),
            **({} if self.versions is None else {"versions": self.versions.value}),
        }

    @classmethod
    def from_meta(cls, meta: object, prefix: str) -> Settings:
        """Decode what `to_meta` wrote. Raises `IndexUnusable` for any other value."""
        try:
            return cls._read_meta(meta, prefix)
        except (SettingsError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise IndexUnusable(
                f"The stored settings under _meta.{prefix} cannot be read ({error!r}): were they edited by hand? "
                f"If another program stores something of this name, choose another {option('prefix')}."
            ) from error

    @classmethod
    def _read_meta(cls, meta: object, prefix: str) -> Settings:
        if not isinstance(meta, Mapping):
            raise TypeError("not an object")
        fields, relations = meta["fields"], meta.get("relations", [])
        for key, names in (("fields", fields), ("relations", relations)):
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError(f"{key} is not a list of names")
        scheme = Scheme.from_dict(meta["scheme"])
        if scheme.id != meta["id"]:
            raise ValueError(f"scheme id {meta['id']} does not match its parts ({scheme.id})")
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
            unit=scheme.unit,
            clean=scheme.preparation.clean,
            mask=scheme.preparation.masks,
            prefix=prefix,
            relations=tuple(relations),
            measure=MeasureName(meta.get("measure", MeasureName.RESEMBLANCE)),
            min=float(meta["min"]) if "min" in meta else None,
            groups_only=meta.get("groups_only", False) is True,
            group_field=meta.get("group_field"),
            versions=meta.get("versions"),
        )
        if settings.scheme != scheme:
            raise ValueError(f"scheme {scheme.id} is from another version of this program")
        return settings

    def differences(self, other: Settings) -> list[str]:
        """The differences between two settings, each as ``name: value, not other value``."""
        mine, theirs = self._comparable(), other._comparable()
        return [f"{name}: {mine[name]}, not {theirs[name]}" for name in mine if mine[name] != theirs[name]]

    def _comparable(self) -> dict[str, Any]:
        scheme = {name: value for name, value in asdict(self.scheme).items() if name not in ("version", "preparation")}
        scheme["unit"] = self.unit.value
        scheme["preparation"] = str(self.scheme.preparation)
        chosen = {"fields": "+".join(self.fields), "threshold": self.threshold, "detection": self.detection}
        relations = "+".join(self.relations) or "all but children"
        stored = "groups of a request" if self.groups_only else "keys"
        match = {"measure": self.measure.value, "min": "the threshold" if self.min is None else self.min}
        documents = {"relations": relations, "content": stored, "group field": self.group_field}
        return chosen | match | scheme | documents | {"versions": (self.versions or Versions.INTERNAL).value}


def _said(value: object) -> str:
    """A setting as its option is given."""
    if isinstance(value, Enum):
        return str(value.value)
    return ",".join(map(_said, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _with_unit(options: dict[str, Any]) -> dict[str, Any]:
    """The options with a shingle such as ``5c`` as two."""
    if "shingle" not in options or "unit" in options:
        return options
    shingle, unit = shingle_of(options["shingle"])
    return options | {"shingle": shingle, "unit": unit}
