"""The build step that pyproject.toml cannot express: the mappings of the repository become part of the package."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithMappings(build_py):
    """Copy ``mappings/*.json`` into the built package. An editable install reads them from the repository."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "es_neardupe", "mappings")
            folder.mkdir(parents=True, exist_ok=True)
            for file in sorted(Path("mappings").glob("*.json")):
                self.copy_file(str(file), str(folder / file.name))


setup(cmdclass={"build_py": BuildWithMappings})
