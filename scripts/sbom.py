"""Software bill of materials: a CycloneDX file of everything that an installed es-neardupe runs.

    scripts/sbom [FILE]

It lists the Python packages of the environment that es-neardupe and its extras for users need, directly or indirectly,
and the servers that ``node start`` downloads, with the pinned checksums of their jars. FILE is by default
``dist/es-neardupe-VERSION.cdx.json``. With SOURCE_DATE_EPOCH, the same environment gives the same bytes.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from es_neardupe.local_server.versions import SUPPORTED, Release

PACKAGE = "es-neardupe"
EXTRAS = ("local", "demo", "plot", "watch", "cluster", "serve", "tables", "mcp")
"""The extras for users; ``dev`` and ``bench`` are for work on the project itself."""

_SCHEMA = SchemaVersion.V1_6
_CLASSIFIER = "License :: OSI Approved :: "


def requirements(package: str, extras: Iterable[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The installed packages that a package needs in this environment, each with the extras that it is needed with.

    Raises `SystemExit` if one is missing.
    """
    found = installed(package)
    for text in found.requires or ():
        needed = Requirement(text)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(needed.name), frozenset(needed.extras)


def installed(package: str) -> Distribution:
    """An installed package. Raises `SystemExit` if it is missing."""
    try:
        return distribution(package)
    except PackageNotFoundError:
        sys.exit(f"{package} is not installed: run scripts/sbom, which installs everything.")


def closure(extras: Iterable[str]) -> dict[str, set[str]]:
    """Package -> the packages that it needs, for es-neardupe with these extras and everything below it."""
    graph: dict[str, set[str]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(PACKAGE, frozenset(extras))]
    while waiting:
        package, wanted = waiting.pop()
        if (package, wanted) in seen:
            continue
        seen.add((package, wanted))
        needed = [one for one in requirements(package, wanted) if one[0] != PACKAGE]
        graph.setdefault(package, set()).update(name for name, _ in needed)
        waiting += needed
    return graph


def python_component(package: str, scope: ComponentScope) -> Component:
    """The component of an installed Python package."""
    found = installed(package)
    return Component(
        name=package,
        version=found.version,
        type=ComponentType.APPLICATION if package == PACKAGE else ComponentType.LIBRARY,
        purl=PackageURL("pypi", name=package, version=found.version),
        licenses=licenses(found),
        scope=scope,
        bom_ref=f"pypi:{package}@{found.version}",
    )


def licenses(found: Distribution) -> Iterator[License]:
    """The licence in the metadata of a package: an expression, else what its classifiers name, else the name in the
    field of older packages, which can also hold a whole licence text."""
    factory = LicenseFactory()
    metadata: Any = found.metadata  # a message, whose type here has no `get`
    expression, plain = metadata.get("License-Expression"), metadata.get("License", "")
    names = [one.removeprefix(_CLASSIFIER) for one in metadata.get_all("Classifier", []) if one.startswith(_CLASSIFIER)]
    if expression:
        yield factory.make_from_string(expression)
    elif names:
        yield from map(factory.make_with_name, names)
    elif plain and "\n" not in plain:
        yield factory.make_from_string(plain)


def server_component(release: Release) -> Component:
    """The component of a server that ``node start`` downloads."""
    group, name, version = release.coordinates.partition("+")[0].split(":")
    return Component(
        group=group,
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        purl=PackageURL("maven", group, name, version),
        scope=ComponentScope.OPTIONAL,
        bom_ref=f"server:{release.slug}",
    )


def jar_component(coordinates: str, sha256: str) -> Component:
    """The component of a jar."""
    group, name, version, *classifier = coordinates.split(":")
    return Component(
        group=group,
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        purl=PackageURL("maven", group, name, version, {"classifier": classifier[0]} if classifier else None),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)],
        scope=ComponentScope.OPTIONAL,
        bom_ref=f"jar:{coordinates}",
    )


def bill(releases: Iterable[Release] = SUPPORTED) -> Bom:
    """The bill of materials of this environment."""
    bom = Bom()
    bom.metadata.timestamp = timestamp(os.environ)
    graph, required = closure(EXTRAS), closure(())
    scopes = {name: ComponentScope.REQUIRED if name in required else ComponentScope.OPTIONAL for name in graph}
    packages = {name: python_component(name, scope) for name, scope in sorted(scopes.items())}
    bom.metadata.component = packages[PACKAGE]
    bom.components.update(one for name, one in packages.items() if name != PACKAGE)
    for name, needed in sorted(graph.items()):
        bom.register_dependency(packages[name], [packages[one] for one in sorted(needed)])
    jars: dict[tuple[str, str], Component] = {}
    servers = []
    for release in releases:
        servers.append(server_component(release))
        pinned = sorted(release.jars().items())
        jars |= {one: jar_component(*one) for one in pinned if one not in jars}
        bom.register_dependency(servers[-1], [jars[one] for one in pinned])
    bom.components.update([*servers, *jars.values()])
    bom.register_dependency(packages[PACKAGE], servers)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(sorted(str(one.bom_ref) for one in bom.components)))
    return bom


def timestamp(environ: Mapping[str, str]) -> datetime:
    """The time of SOURCE_DATE_EPOCH, else now."""
    epoch = environ.get("SOURCE_DATE_EPOCH")
    return datetime.now(timezone.utc) if epoch is None else datetime.fromtimestamp(int(epoch), timezone.utc)


def written(bom: Bom) -> str:
    """The file. Raises `SystemExit` if it does not conform to the CycloneDX schema."""
    text: str = make_outputter(bom, OutputFormat.JSON, _SCHEMA).output_as_string(indent=1) + "\n"
    if (error := JsonStrictValidator(_SCHEMA).validate_str(text)) is not None:
        sys.exit(f"the file does not conform to CycloneDX {_SCHEMA.to_version()}: {error}")
    return text


def main() -> None:
    bom = bill()
    version = installed(PACKAGE).version
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("dist", f"{PACKAGE}-{version}.cdx.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(written(bom), "utf-8")
    print(f"{file}: {len(bom.components)} components")


if __name__ == "__main__":
    main()
