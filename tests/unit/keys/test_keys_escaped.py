"""Escaped pages: values whose markup is text are read as the pages that they stand for."""

from __future__ import annotations

import json
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import in_seconds

from es_neardupe.keys.prepare import escaped
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.options import Clean

HTML = Preparation(Clean.HTML)
PAGE = '<div class="x">\n<p>Caf\u00e9 &amp; tea, "both" \\ \U0001f600</p>\t<p hidden>no</p> two<br/>lines</div>'


@pytest.mark.parametrize(
    "value",
    [
        PAGE,
        escape(PAGE),
        escape(escape(PAGE, quote=False)),
        f"  <![CDATA[{PAGE}]]>\n",
        f"<description><![CDATA[{PAGE}]]></description>",
        f"<item>\n<content:encoded>{escape(PAGE)}</content:encoded>\n</item>",
        json.dumps(PAGE),
        json.dumps(PAGE, ensure_ascii=False).replace("/", "\\/")[1:-1],
        json.dumps(PAGE).replace("<", "\\u003c").replace(">", "\\u003E"),
        json.dumps(escape(PAGE)),
        escape(f"<![CDATA[{PAGE}]]>"),
    ],
    ids=["page", "once", "twice", "CDATA", "feed", "item", "JSON", "in JSON", "JSON without <", "both", "CDATA inside"],
)
def test_a_page_is_equal_however_it_is_escaped(value: str) -> None:
    assert HTML.text(value) == HTML.text(PAGE)
    placed = HTML.placed(value)
    assert (placed.prepared, placed.original) == (HTML.text(PAGE), value)
    assert [value[start:end] for start, end in placed.spans.tolist()][1:] == ["tea", "both", "two", "lines"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Use &lt;div&gt; instead of &lt;span&gt;.",
        "The tags &lt;p&gt; and &lt;/b&gt; are no pair.",
        "<p>An element: &lt;p&gt;text&lt;/p&gt;</p> and more",
        "<pre><code>&lt;p&gt;text&lt;/p&gt;</code></pre>",
        "<script>a = '<\\/p>'</script><p>b</p>",
        "<svg><![CDATA[a]]></svg>",
        "<![CDATA[a]]> and more",
        "<![CDATA[",
        '"Quoted"',
        '"She said \\"yes\\""',
        '"',
        "\\",
        "R&amp;D &amp; more",
    ],
)
def test_other_values_stay(value: str) -> None:
    assert escaped.unescaped(value) == value
    assert escaped.placed(value) is None


PARTS = st.sampled_from(
    [
        *(
            " ",
            "\n",
            "<",
            ">",
            "/",
            "a",
            "p",
            "b",
            "word",
            "\u00e9",
            "<p>",
            "</p>",
            "<br>",
            "<pre>",
            "<![CDATA[",
            "]]>",
        ),
        *("&lt;", "&gt;", "&", "&amp;", "&amp", "&lt", "&#60;", "&#x3c;", "&notit;", "&amplified", "&amp" + "a" * 40),
        *('"', "\\", '\\"', "\\n", "\\u003c", "\\u003e", "\\/", "\\ud83d", "\\ude00", "\\u00e9"),
        *("&lt;p&gt;", "&lt;/p&gt;", "&lt;br&gt;", "&amp;lt;p&amp;gt;"),
    ]
)


@given(st.lists(PARTS, max_size=16).map("".join))
def test_places_are_those_of_the_page(value: str) -> None:
    placed = escaped.placed(value)
    assert escaped.unescaped(value) == (value if placed is None else placed.prepared)


@pytest.mark.parametrize(
    "part", ["&lt;p&gt;", "&amp;", "<a", "</p>", "<![CDATA[", "<\\/", "\\u003c", "\\", '"', "&lt;p "]
)
def test_hostile_values_take_linear_time(part: str) -> None:
    with in_seconds(5):
        escaped.unescaped(part * 20_000)
