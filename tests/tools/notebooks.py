"""The notebooks of docs/notebooks: run them, compare their outputs with the stored ones, store new ones.

scripts/notebooks [--write] [--url URL]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

from es_neardupe.local_server import control

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

_PACKAGE = "licensedcode-data"
_MASKED = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")
"""Addresses in memory."""


def stored(file: Path) -> NotebookNode:
    """A notebook with the outputs that are in the repository."""
    book: NotebookNode = nbformat.read(file, as_version=4)
    return book


def run(file: Path, url: str) -> NotebookNode:
    """The notebook with new outputs, of a kernel of its own that uses this server. Raises `CellExecutionError`."""
    notebook = stored(file)
    environ = {**os.environ, "ES_NEARDUPE_URL": url}
    with TemporaryDirectory() as sockets:
        # Without ports, which other users of the machine could listen to.
        config = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
        client = NotebookClient(notebook, config=config, kernel_name="python3", timeout=240, record_timing=False)
        client.execute(env=environ, cwd=str(FOLDER))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.language_info = {"name": "python"}  # without the version of this Python
    return notebook


def outputs(notebook: NotebookNode) -> Iterator[str]:
    """What the reader sees of each output: its text, or for a picture only that it is one. Tables are compared as text,
    words without the blanks between them, since each version of pandas aligns columns in its own way."""
    for number, cell in enumerate(notebook.cells, 1):
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                text = output.text
            elif "image/png" in output.data:
                text = "a picture"
            else:
                text = output.data["text/plain"]
            yield f"cell {number}: {' '.join(_MASKED.sub('<...>', text).split())}"


def texts_are_those_of(notebook: NotebookNode) -> bool:
    """Whether the installed texts are those that the stored outputs are about: each release has more licences."""
    return any(f"{_PACKAGE} {version(_PACKAGE)}" in output for output in outputs(notebook))


def main() -> None:
    """Run all notebooks, and report or store what has changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the outputs")
    parser.add_argument("--url", help="an OpenSearch (default: a local one)")
    arguments = parser.parse_args()
    url = arguments.url or control.start(say=print).url
    changed = []
    for file in NOTEBOOKS:
        before, after = stored(file), run(file, url)
        if list(outputs(before)) != list(outputs(after)):
            changed.append(file.name)
        if arguments.write:
            nbformat.write(after, file)
        print(f"{file.name}: {'changed' if file.name in changed else 'unchanged'}")
    if changed and not arguments.write:
        sys.exit("Store the outputs with scripts/notebooks --write.")


if __name__ == "__main__":
    main()
