"""Build the documentation site: the pages of docs/, and the reference made from the program.

docs/README.md is the start page, and its list of pages is the navigation: a section is a heading, a page is the link in
the first cell of a row. A page that is not in the list is an error, as is every link without a target. A comment
``<!-- search: words; other words -->`` names searches that this place answers, before all others, also in other words
(``site_static/search.js``). The site loads
nothing from other servers, and can be read and searched as files. Sphinx and nbconvert are imported where they are
needed, because tests import this module.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pygments.lexer import RegexLexer, bygroups, using
from pygments.lexers.data import JsonLexer
from pygments.token import Keyword, Name, Text

sys.path.insert(0, str(Path(__file__).parent))

import site_reference

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REPOSITORY = os.environ.get("ES_NEARDUPE_REPOSITORY", "").rstrip("/")
"""Address of the public repository, as in setup.py, to link sources. Without it, the site has copies of them."""

START = DOCS / "README.md"
PLACES = {
    START: "index.md",
    DOCS / "search.md": f"{site_reference.page_of('search')}.md",
    ROOT / "README.md": "overview.md",
    ROOT / "CHANGELOG.md": "changelog.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "SECURITY.md": "security.md",
}
"""Pages with another name on the site, or from outside of docs/."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
BLOCK = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
ANSWERS = re.compile(r"^<!-- search: (.*) -->$", re.MULTILINE)
ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\)", re.MULTILINE)

CONFIGURATION: dict[str, Any] = {
    "project": "es-neardupe",
    "extensions": ["myst_parser"],
    "root_doc": "index",
    "nitpicky": True,
    "myst_heading_anchors": 6,
    "myst_enable_extensions": ["attrs_block"],
    "html_theme": "furo",
    "html_title": f"es-neardupe {version('es-neardupe')}",
    "html_copy_source": False,
    "html_use_index": False,
    "html_static_path": [str(Path(__file__).parent / "site_static")],
    "html_css_files": ["site.css"],
    "html_js_files": [("search.js", {"defer": "defer"})],
    "smartquotes": False,  # options begin with two hyphens
    "html_show_sphinx": False,
    "html_show_copyright": False,
    "html_theme_options": {"navigation_with_keys": True},
    "pygments_style": "default",
}


class Request(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """A request as the servers' documentation shows it: method and path, then a body of JSON."""

    name = "Request"
    tokens = {  # noqa: RUF012
        "root": [
            (r"(GET|POST|PUT|DELETE|HEAD)( )(\S+)(\n)", bygroups(Keyword, Text, Name, Text)),
            (r"(?s).+", using(JsonLexer)),
        ]
    }


# From the repository to the sources of the site


def place(file: Path) -> str:
    """Name of a page in the sources of the site."""
    return PLACES.get(file) or file.relative_to(DOCS).with_suffix(".md").as_posix()


def is_page(file: Path) -> bool:
    """Whether a file of the repository is a page of the site."""
    return file in PLACES or (file.suffix in (".md", ".ipynb") and file.is_relative_to(DOCS))


def pages() -> list[Path]:
    """The files that are pages."""
    return [*PLACES, *sorted(file for file in DOCS.rglob("*") if is_page(file) and file not in PLACES)]


def page_text(file: Path, sources: Path) -> str:
    """The text of a page, with links that lead to the same files from its place on the site."""
    here = (sources / place(file)).parent
    text = notebook(file, here) if file.suffix == ".ipynb" else file.read_text("utf-8")

    def moved(link: re.Match[str]) -> str:
        target = (file.parent / link[1]).resolve()
        if is_page(target):
            return os.path.relpath(sources / place(target), here)
        if target.is_relative_to(DOCS) or (file.suffix == ".ipynb" and not target.exists()):
            return link[1] if file.is_relative_to(DOCS) else os.path.relpath(sources / target.relative_to(DOCS), here)
        if REPOSITORY:
            return f"{REPOSITORY}/blob/main/{target.relative_to(ROOT).as_posix()}"
        return os.path.relpath(target, here)  # Sphinx copies it

    def answer(searches: re.Match[str]) -> str:
        return "\n\n".join(f"```{{index}} ! single: {words}\n```" for words in searches[1].split("; "))

    text = ANSWERS.sub(answer, text)
    parts = BLOCK.split(text)  # text and fenced blocks in turn
    return "".join(part if number % 2 else LINK.sub(moved, part) for number, part in enumerate(parts))


def notebook(file: Path, folder: Path) -> str:
    """A notebook with its stored outputs as Markdown. Pictures among them are written into the folder."""
    import nbconvert

    text, resources = nbconvert.MarkdownExporter().from_filename(str(file), {"output_files_dir": f"{file.stem}_files"})
    for name, picture in resources["outputs"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture)
    return str(text)


def sections() -> dict[str, list[tuple[str, Path]]]:
    """Section of the start page -> (title, file) of its pages."""
    parts = re.split(r"^## (.*)$", START.read_text("utf-8"), flags=re.MULTILINE)
    found = {
        title: [(name, (DOCS / target).resolve()) for name, target in ROW.findall(text)]
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {title: listed for title, listed in found.items() if any(is_page(file) for _, file in listed)}


def navigation() -> str:
    """The tables of contents of the start page. Commands are below the list of commands."""
    commands = {DOCS / f"{name}.md" for name in site_reference.command_words()}
    seen, text = set(commands), ""
    for title, listed in sections().items():
        entries = ["reference/commands"] if title == "Reference" else []
        for name, file in listed:
            if is_page(file) and file not in seen:
                entries.append(f"{name} <{place(file)}>")
                if f"reference/{file.stem}" in site_reference.PAGES:
                    entries.append(f"reference/{file.stem}")
        seen |= {file for _, file in listed}
        if entries:
            text += contents(entries, title)
    return text


def contents(entries: list[str], caption: str) -> str:
    """A hidden table of contents."""
    lines = "\n".join(entries)
    return f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n:caption: {caption}\n\n{lines}\n```\n"


def write_sources(sources: Path) -> None:
    """Write the sources of the site into a folder."""
    ignored = shutil.ignore_patterns("*.md", "*.ipynb")
    shutil.copytree(DOCS, sources, ignore=ignored, dirs_exist_ok=True)
    for file in pages():
        text = page_text(file, sources)
        target = sources / place(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + navigation() if file == START else text, "utf-8")
    for name, text in site_reference.pages():
        (sources / name).parent.mkdir(exist_ok=True)
        (sources / name).write_text(text, "utf-8")


def build(target: Path) -> None:
    """Write the site into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        write_sources(Path(folder))
        convert(Path(folder), target)


def convert(sources: Path, target: Path) -> None:
    """Convert sources to a site. A warning of Sphinx ends the program."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    with tempfile.TemporaryDirectory() as trees, docutils_namespace():
        app = Sphinx(
            str(sources),
            None,
            str(target),
            trees,
            "html",
            CONFIGURATION,
            None,
            sys.stderr,
            warningiserror=True,
            parallel=os.cpu_count() or 1,
        )
        app.add_lexer("http", Request)
        app.add_lexer("jsonl", JsonLexer)
        app.build()
    if app.statuscode:
        sys.exit("The site has warnings.")


# What the site loads, and where it leads


class _References(HTMLParser):
    """Addresses that a page loads, and addresses that it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a":
            self.linked.append(given.get("href") or "#")
        else:
            loading = ("src", "href", "data", "srcset", "poster", "action")
            self.loaded += [address for name in loading if (address := given.get(name))]


def references(site: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """(file, addresses that it loads, addresses that it links to) of each page and style of the site."""
    for file in sorted(site.rglob("*")):
        if file.suffix == ".html":
            parser = _References()
            parser.feed(file.read_text("utf-8"))
            styles = re.findall(r"url\(\s*['\"]?([^)'\"]+)", file.read_text("utf-8"))
            yield file, [*parser.loaded, *styles], parser.linked
        elif file.suffix == ".css":
            text = file.read_text("utf-8")
            yield file, _styles(text), []


def _styles(text: str) -> list[str]:
    return [a or b for a, b in re.findall(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)", text)]


def is_external(address: str) -> bool:
    """Whether an address leads to another server."""
    return bool(urlsplit(address).netloc) or address.startswith("//")


def external_links(site: Path) -> Mapping[str, list[str]]:
    """Address on another server -> the pages that link to it."""
    found: dict[str, list[str]] = {}
    for file, _, linked in references(site):
        for address in sorted(set(filter(is_external, linked))):
            found.setdefault(address, []).append(file.relative_to(site).as_posix())
    return dict(sorted(found.items()))


def main() -> None:
    """Build, list the external links, and with ``--serve`` show the site on this machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "site", metavar="FOLDER", help="default: site")
    parser.add_argument("--serve", action="store_true", help="serve the site on a port of this machine")
    given = parser.parse_args()
    shutil.rmtree(given.output, ignore_errors=True)
    build(given.output)
    links = external_links(given.output)
    listed = [
        f"{address}  {where[0]}" + (f" and {len(where) - 1} more" if where[1:] else "")
        for address, where in links.items()
    ]
    (given.output / "external-links.txt").write_text("\n".join(listed) + "\n", "utf-8")
    print(
        f"{given.output}: {len(list(given.output.rglob('*.html')))} pages. They link to other servers:",
        *listed,
        sep="\n  ",
    )
    if given.serve:
        handler = partial(SimpleHTTPRequestHandler, directory=str(given.output))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            print(f"http://127.0.0.1:{server.server_port}/", flush=True)
            server.serve_forever()


if __name__ == "__main__":
    main()
