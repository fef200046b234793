"""Build steps that pyproject.toml cannot express: the modules in C, the mappings, a README whose links work elsewhere."""

from __future__ import annotations

import gzip
import os
import re
import sys
import sysconfig
import tarfile
import time
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

REPOSITORY = os.environ.get("ES_NEARDUPE_REPOSITORY", "").rstrip("/")
"""Address of the public repository, given when a release is built."""

REQUIRE_KERNEL = bool(os.environ.get("ES_NEARDUPE_REQUIRE_KERNEL"))
"""Whether a build without the modules in C fails, as that of a release must. Otherwise numpy does their work."""

LIMITED_API = sys.version_info >= (3, 11) and not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether one build serves this Python and all later ones. The buffer protocol belongs to the limited API from 3.11 on;
builds without the global lock do not have it."""


class BuildWithMappings(build_py):
    """Copy ``mappings/*.json`` into the built package. An editable install reads them from the repository."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "es_neardupe", "mappings")
            folder.mkdir(parents=True, exist_ok=True)
            for file in sorted(Path("mappings").glob("*.json")):
                self.copy_file(str(file), str(folder / file.name))


class ReproducibleWheel(bdist_wheel):
    """Give the files of a wheel the same permissions, whatever those of the sources and the umask. Their times are
    those of SOURCE_DATE_EPOCH, if it is set."""

    def write_wheelfile(self, *args: object, **options: object) -> None:
        super().write_wheelfile(*args, **options)  # writes the last file
        for file in Path(self.bdist_dir).rglob("*"):
            file.chmod(0o755 if file.is_dir() or file.suffix == ".so" else 0o644)


class ReproducibleSource(sdist):
    """Write a source package without owners, permissions and times of the sources: those of SOURCE_DATE_EPOCH."""

    def make_archive(self, base_name: str, format: str, *args: object, base_dir: str, **options: object) -> str:
        now = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))

        def steady(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.mtime, member.uid, member.gid, member.uname, member.gname = now, 0, 0, "", ""
            return member

        archive = f"{base_name}.tar.gz"
        with gzip.GzipFile(archive, "wb", mtime=now) as file, tarfile.open(fileobj=file, mode="w") as tar:
            tar.add(base_dir, filter=steady)
        return archive


def readme() -> str:
    """README.md for a package index: links to files lead to the repository, or are plain text without one, and pictures
    are those of the repository, or left out."""
    picture = rf"![\1]({REPOSITORY}/raw/main/\2)" if REPOSITORY else ""
    target = rf"[\1]({REPOSITORY}/blob/main/\2)" if REPOSITORY else r"\1"
    text = re.sub(r"!\[([^\]]+)\]\((?!https?:)([^)]+)\)", picture, Path("README.md").read_text("utf-8"))
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)", target, text)


def urls() -> dict[str, str]:
    """Where the project lives."""
    pages = {"Documentation": "docs/README.md", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
    linked = {name: f"{REPOSITORY}/blob/main/{file}" for name, file in pages.items()}
    return {"Source": REPOSITORY, "Issues": f"{REPOSITORY}/issues", **linked} if REPOSITORY else {}


def compiled(source: Path) -> Extension:
    """A module in C."""
    # debug information contains the path of the build folder
    options = [] if sys.platform == "win32" else ["-O3", "-g0"]  # Visual C++ optimises by default
    return Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        depends=[str(header) for header in sorted(Path("es_neardupe").rglob("*.h"))],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED_API else [],
        extra_compile_args=options,
        optional=not REQUIRE_KERNEL,
        py_limited_api=LIMITED_API,
    )


setup(
    ext_modules=[compiled(source) for source in sorted(Path("es_neardupe").rglob("*.c"))],
    cmdclass={"bdist_wheel": ReproducibleWheel, "build_py": BuildWithMappings, "sdist": ReproducibleSource},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
    long_description=readme(),
    long_description_content_type="text/markdown",
    project_urls=urls(),
)
