"""The documentation site: it builds without warnings, has every page, loads nothing from other servers, and its
reference is that of the program."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from browsers import chromium
from docs_pages import DOCS
from golden_tools import FOLDER
from pydantic import ValidationError
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import es_neardupe
from es_neardupe import NearDupe

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

build: Any = import_module("site_build")
reference: Any = import_module("site_reference")
pictures: Any = import_module("pictures")

pytestmark = [
    pytest.mark.xdist_group("site"),  # it is built once
    pytest.mark.filterwarnings("ignore:'myst_parser[.].*is deprecated"),  # it uses an older name of Sphinx
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``scripts/site`` does it: warnings are errors."""
    target = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, str(ROOT / "scripts" / "site_build.py"), "--output", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def references(site: Path) -> list[tuple[Path, list[str], list[str]]]:
    """(file, what it loads, what it links to) of each page and style."""
    return list(build.references(site))


# Pages and links


def test_each_page_is_once_in_the_navigation(site: Path) -> None:
    start = (site / "index.html").read_text("utf-8")
    (tree,) = re.findall(r'<div class="sidebar-tree">(.*?)\n</div>', start, re.DOTALL)
    listed = re.findall(r'class="reference internal" href="([^"#]+)"', tree)
    expected = [Path(build.place(file)).with_suffix(".html").as_posix() for file in build.pages()[1:]]
    assert sorted(listed) == sorted([*expected, *(f"{page}.html" for page in reference.PAGES)])


def test_each_page_is_that_of_its_source(site: Path) -> None:
    """None is overwritten by a page that Sphinx makes itself, such as that of its search."""
    for file in build.pages():
        page = (site / build.place(file)).with_suffix(".html").read_text("utf-8")
        if file.suffix == ".md":
            (title, *_) = re.findall(r"^# (.*)$", file.read_text("utf-8"), re.MULTILINE)
            (shown,) = re.findall(r"<h1>(.*?)<a class=\"headerlink\"", page, re.DOTALL)
            assert re.sub(r"<[^>]*>", "", shown) == title.replace("`", ""), file
    assert 'id="search-results"' in (site / "search.html").read_text("utf-8")


def test_sections_of_the_navigation() -> None:
    assert list(build.sections()) == ["Start", "Guides", "Concepts", "Reference", "Operations", "Project"]


def test_links_lead_to_files_and_anchors(site: Path, references: list[tuple[Path, list[str], list[str]]]) -> None:
    anchors = {file: set(re.findall(r'\bid="([^"]+)"', file.read_text("utf-8"))) for file in site.rglob("*.html")}
    checked = 0
    for file, loaded, linked in references:
        for address in {*loaded, *linked}:
            if not build.is_external(address) and not address.startswith(("data:", "#", "javascript:")):
                path, _, anchor = unquote(urlsplit(address)._replace(query="").geturl()).partition("#")
                target = (file.parent / path).resolve()
                assert target.is_file(), f"{file.relative_to(site)}: {address}"
                assert not anchor or target not in anchors or anchor in anchors[target], f"{file.name}: {address}"
                checked += 1
    assert checked > 3000


def test_nothing_is_loaded_from_other_servers(site: Path, references: list[tuple[Path, list[str], list[str]]]) -> None:
    loaded = [(file.relative_to(site), address) for file, addresses, _ in references for address in addresses]
    assert any(str(address).endswith(".js") or ".js?" in str(address) for _, address in loaded)
    assert [one for one in loaded if build.is_external(one[1])] == []
    assert any(file.suffix == ".css" for file, _, _ in references)


def test_external_links_are_listed(site: Path) -> None:
    links = build.external_links(site)
    assert [line.split()[0] for line in (site / "external-links.txt").read_text("utf-8").splitlines()] == list(links)
    assert len(links) > 5
    assert [address for address in links if urlsplit(address).scheme != "https"] == []


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[a page](missing.md)", "missing.md"),
        ("[a heading](#missing)", "missing"),
        ("[a heading of another page](other.md#missing)", "missing"),
        ("![a picture](missing.svg)", "missing.svg"),
    ],
)
def test_what_leads_nowhere_is_an_error(
    text: str, warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "index.md").write_text(f"# Start\n\n{text}\n{build.contents(['other'], 'Pages')}", "utf-8")
    (sources / "other.md").write_text("# Other\n", "utf-8")
    with pytest.raises(SystemExit, match="warnings"):
        build.convert(sources, tmp_path / "site")
    assert warning in capsys.readouterr().err


def test_a_page_that_is_not_listed_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "index.md").write_text("# Start\n", "utf-8")
    (sources / "other.md").write_text("# Other\n", "utf-8")
    with pytest.raises(SystemExit, match="warnings"):
        build.convert(sources, tmp_path / "site")
    assert "toctree" in capsys.readouterr().err


@pytest.fixture(scope="module")
def search(site: Path) -> Iterator[Callable[[str], str]]:
    """Search the site, as files; returns the address of the first hit."""
    with chromium() as browser:
        browser.get((site / "search.html").as_uri())
        WebDriverWait(browser, 60).until(lambda driver: driver.execute_script("return Search.hasIndex()"))

        def first(words: str) -> str:
            script = "const [page, , anchor] = Search._performSearch(...Search._parseQuery(arguments[0])).at(-1) ?? []"
            return str(browser.execute_script(f"{script}; return page + anchor", words)).rpartition("/")[2]

        yield first


def test_the_search_works_on_files(site: Path) -> None:
    with chromium() as browser:
        browser.get(f"{(site / 'search.html').as_uri()}?q=locality-sensitive+hashing")
        hits = WebDriverWait(browser, 60).until(
            lambda driver: driver.find_elements(By.CSS_SELECTOR, "#search-results ul.search li a")
        )
        assert ".html" in str(hits[0].get_attribute("href"))


def answers() -> Iterator[tuple[str, str]]:
    """(search, page that answers it) of each comment for the search."""
    for file in build.pages():
        if file.suffix == ".md":
            for found in build.ANSWERS.findall(file.read_text("utf-8")):
                yield from ((words, Path(build.place(file)).stem) for words in found.split("; "))


QUESTIONS = {
    "pick a threshold": "init",
    "how big will my index become": "scale",
    "undo": "recipes",
    "rollback": "recipes",
    "nightly": "recipes",
    "delete duplicates": "recipes",
    "0.8": "resemblance",
    "hide copies": "recipes",
    "num_perm": "parameters",
    "rag": "recipes",
    "email": "recipes",
    "training data": "recipes",
    "remove all traces": "recipes",
    "fold results": "recipes",
    "same text different id": "plain-requests",
    "opensearch serverless": "managed",
    "read-only index": "sidecar",
    "recall": "accuracy",
    "datasketch": "comparison",
    "permissions": "roles",
    "docker": "containers",
    "install": "install",
}
"""Questions of newcomers, and the pages that answer them."""

IN_OTHER_WORDS = {
    "How do I pick the right threshold?": "init",
    "which threshold is best": "init",
    "how much disk space does the index need": "scale",
    "how much for 10 million documents": "scale",
    "how do I roll back": "recipes",
    "remove all traces of it from my index": "recipes",
    "run it nightly": "recipes",
    "how can I delete the duplicates": "recipes",
    "what does 0.8 mean": "resemblance",
    "the same text with different ids": "plain-requests",
    "does it work on OpenSearch Serverless": "managed",
    "how do I change the threshold": "migrate",
    "why are these two in one group?": "evidence",
    "is anything sent to the cloud": "threat-model",
    "group is too large": "boilerplate",
    "the same story several times in my search": "recipes",
    "compare web pages without menus": "recipes",
    "who copied my article": "recipes",
    "which privileges do I need": "roles",
    "two reviewers disagree": "decisions",
    "which documents failed": "logs",
    "memory of group": "sizes",
}
"""Such questions in words that no page lists."""


@pytest.mark.parametrize(("words", "answer"), [*QUESTIONS.items(), *IN_OTHER_WORDS.items()])
def test_the_first_hit_answers_the_question(words: str, answer: str, search: Callable[[str], str]) -> None:
    page, _, anchor = search(words).partition("#")
    assert page == answer
    assert anchor.startswith("index-")


def test_each_search_has_one_answer() -> None:
    found = list(answers())
    assert len(dict(found)) == len(found)
    assert QUESTIONS.items() <= dict(found).items()


@pytest.mark.parametrize("page", sorted({*QUESTIONS.values(), *IN_OTHER_WORDS.values()}))
def test_answers_are_two_clicks_from_the_readme(page: str) -> None:
    """At most: a link of the README, and one of a page that it links to."""
    target, linked = DOCS / f"{page}.md", {ROOT / "README.md"}
    for _ in range(2):
        linked |= {
            (file.parent / link).resolve()
            for file in linked
            if file.suffix == ".md"
            for link in build.LINK.findall(file.read_text("utf-8").replace("#", " #"))
        }
    assert target in linked


# Pictures


@pytest.mark.parametrize("name", ["architecture", "detection"])
def test_pictures_are_those_of_their_script(name: str) -> None:
    assert (DOCS / "pictures" / f"{name}.svg").read_text("utf-8") == getattr(pictures, name)()


def test_each_picture_is_shown() -> None:
    shown = {
        name for page in DOCS.rglob("*.md") for name in re.findall(r"pictures/([\w.-]+)\)", page.read_text("utf-8"))
    }
    assert shown == {file.name for file in (DOCS / "pictures").iterdir()}


# Notebooks


def test_notebooks_become_pages(tmp_path: Path) -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    book = nbformat.v4.new_notebook(metadata={"language_info": {"name": "python"}})
    shown = nbformat.v4.new_output("display_data", {"image/png": picture})
    printed = nbformat.v4.new_output("stream", text="two groups\n")
    book.cells = [
        nbformat.v4.new_markdown_cell("# From an index to groups"),
        nbformat.v4.new_code_cell("print('two groups')", outputs=[printed, shown]),
    ]
    file = tmp_path / "groups.ipynb"
    nbformat.write(book, file)
    text = build.notebook(file, tmp_path)
    assert text.startswith("# From an index to groups\n")
    assert "```python\nprint('two groups')\n```" in text
    assert "    two groups" in text
    (link,) = re.findall(r"!\[png\]\((groups_files/[\w.]+)\)", text)
    assert (tmp_path / link).read_bytes() == b64decode(picture)


# The reference


@cache
def page(name: str) -> str:
    """A page that is made from the program."""
    pages: dict[str, str] = dict(reference.pages())
    return pages[f"reference/{name}.md"]


def test_commands_and_options() -> None:
    text = page("commands")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == ["Prepare", "Find", "Group", "Inspect", "Options from A to Z"]
    for word in reference.command_words():
        assert f"\n| [{word}](../{reference.page_of(word)}.md) | " in text
    rows = re.findall(r"^\| `(--[a-z-]+)` \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 100
    assert [row for row in rows if not row[1]] == []
    assert "--url" not in {option for option, _, _ in rows}


def test_python_has_each_name_and_method() -> None:
    named = re.findall(r"^##+ `([\w.]+)`$", page("python"), re.MULTILINE)
    methods = {f"NearDupe.{name}" for name in vars(NearDupe) if not name.startswith("_")}
    assert set(es_neardupe.__all__) | methods <= set(named)
    assert len(named) == len(set(named))


@cache
def printed() -> dict[str, list[Any]]:
    """Command -> the objects that it prints with ``--json`` in the golden files."""
    found: dict[str, list[Any]] = {}
    for file in sorted(FOLDER.glob("*/*.json")):
        for one in json.loads(file.read_text("utf-8")):
            words = one["command"]
            option = next((f" {word}" for word in ("--history", "--suggest-keep") if word in words), "")
            found.setdefault(words[0] + option, []).extend(line for line in one["out"] if isinstance(line, dict))
    return found


MASKED = re.compile(r"[A-Z]+")
"""Placeholder for times and durations in golden files."""


@pytest.mark.parametrize("command", reference.RESULTS)
def test_fields_are_those_that_commands_print(command: str) -> None:
    """None is missing, none is unknown, and each has the type of the reference."""
    lines = printed()[command]
    assert lines
    for line in lines:
        try:
            reference.RESULTS[command].model_validate(line)
        except ValidationError as error:
            wrong = [one for one in error.errors() if not MASKED.fullmatch(str(one["input"]))]
            assert wrong == [], command


def test_fields_have_their_meaning() -> None:
    """Fields are explained in the reference by the docstrings below them."""
    text = page("json")
    assert "| `ungrouped` | int | Documents with a fingerprint that are new or changed since" in text
    assert "| `groups` | [GroupSizes](#groupsizes) |" in text
    for command, model in reference.RESULTS.items():
        (part,) = re.findall(rf"^## `{command}`$(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
        assert re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) == list(model.model_fields)
