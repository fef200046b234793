"""Reader of HTML pages, and a text full of markup."""

from __future__ import annotations

from html.parser import HTMLParser

NASTY = "<script>alert(1)</script> </script><!-- & &amp; \"'> <img src=x onerror=alert(2)> ]]> {{ 7 * 7 }} {% raw %}"


VOID = {"meta", "br", "input", "img", "link"}


class Reader(HTMLParser):
    """A page as parsed by a browser: elements, attributes, and the text of each pane."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.panes: dict[str, str] = {}
        self.script = self.style = ""
        self._open: list[str] = []
        self._pane = ""
        self._runs = False
        self.feed(content)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        self._runs = tag == "script" and "type" not in found  # others are data
        if found.get("class") == "text":
            self._pane = str(found["id"])
            self.panes[self._pane] = ""

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "div":
            self._pane = ""

    def handle_data(self, data: str) -> None:
        if self._pane:
            self.panes[self._pane] += data
        if self._open and self._open[-1] == "script" and self._runs:
            self.script += data
        if self._open and self._open[-1] == "style":
            self.style += data

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [found for _, found in self.tags if name in str(found.get("class", "")).split()]
