"""Requests for duplicates: plans, error messages, schema, explanations. No server."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from es_neardupe.commands.duplicates.request_explain import explain, warnings
from es_neardupe.commands.duplicates.request_json import example, names, schema
from es_neardupe.commands.duplicates.request_plan import (
    RATIO,
    SHARED,
    ContentPlan,
    DuplicatesPlan,
    OverlapsPlan,
    RequestPlan,
    SchemeKeys,
    parse_request,
)
from es_neardupe.errors import SettingsError
from es_neardupe.options import Matching, MeasureName
from es_neardupe.similarity.features import Combine, Flatten, Ngrams, Sentences, Values, Words, describe

JSON = dict[str, Any]
TITLE = {"type": "fields:simple", "fields": ["title"]}
WORDS = {"type": "featureSource:words", "fields": TITLE}
FLAT = {"type": "featureSource:flatten", "source": WORDS}
PAIRS = {"type": "documentPairs:reference", "use": "similarPairs"}
CONTENT: dict[str, Any] = {
    "type": "documentContent",
    "documents": {"type": "documents:fromDocumentPairs", "documentPairs": PAIRS},
    "fields": {"type": "contentFields:simple", "fields": {"title": {}, "abstract": {"maxValueLength": 250}}},
}


def stage(features: Any = WORDS, *, min: Any = 1, **more: Any) -> JSON:
    """A stage that finds pairs."""
    similarity = more.pop("similarity", {"type": f"pairwiseSimilarity:{RATIO}", "features": FLAT})
    return {
        "type": "documentPairs:duplicates",
        "hashGrouping": {"features": features},
        "validation": {"pairwiseSimilarity": similarity, "min": min},
        **more,
    }


def request(*, components: Mapping[str, Any] | None = None, **stages: Any) -> JSON:
    """A request with the stage ``similarPairs`` and others."""
    return {"components": dict(components or {}), "stages": {"similarPairs": stage(), **stages}}


def duplicates(made: RequestPlan) -> DuplicatesPlan:
    """The one stage that finds pairs."""
    (one,) = (stage for stage in made.stages if isinstance(stage, DuplicatesPlan))
    return one


def message_of(given: Any) -> str:
    """The error message of an invalid request."""
    with pytest.raises(SettingsError) as caught:
        parse_request(given)
    message = str(caught.value)
    assert "\n" not in message
    assert "pydantic" not in message
    return message


# Requests of the documentation that defines their form

GOLDEN = Path(__file__).parents[2] / "golden"
CREATED = {"query_string": {"query": "created:[2015 TO 2017]"}}
ALL = {"id": None, "title": None, "author_name": None, "created": None, "updated": None, "abstract": 250}


def printed(name: str) -> RequestPlan:
    return parse_request((GOLDEN / f"request_{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["identical_titles", "identical_titles_with_content"])
def test_identical_titles_as_printed(name: str) -> None:
    plan = duplicates(printed(name))
    assert (plan.query, plan.max_group, plan.explanations) == (CREATED, 200, True)
    assert plan.grouping == plan.validations[0].features == Values(("title",))
    assert (plan.validations[0].min, plan.validations[0].max) == (1, 1)


def test_near_identical_titles_as_printed() -> None:
    plan = duplicates(printed("near_identical_titles"))
    assert (plan.query, plan.max_group, plan.explanations) == (CREATED, 200, True)
    assert plan.grouping == Ngrams(5, Words(("title",)))
    assert plan.validations[0].features == Flatten(Words(("title",)))
    assert (plan.validations[0].measure, plan.validations[0].min, plan.validations[0].max) == (RATIO, 0.9, 0.999)


@pytest.mark.parametrize(
    ("name", "stage"), [("identical_titles_with_content", "content"), ("near_identical_titles", "documents")]
)
def test_content_as_printed(name: str, stage: str) -> None:
    assert printed(name).stages[1:] == (ContentPlan(stage, "similarPairs", ALL, None),)


# Example requests


EXAMPLES = {
    "boilerplate-sentences": Flatten(Sentences(("body",))),
    "copies-across-indices": Words(("body",)),
    "copies-between-fields": Words(("title", "body")),
    "identical-titles": Values(("title",)),
    "near-identical-abstracts": Ngrams(5, Words(("abstract",))),
    "near-identical-titles": Ngrams(5, Words(("title",))),
    "records": Ngrams(2, Words(("title",))),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_requests(name: str) -> None:
    plan = duplicates(parse_request(example(name)))
    assert plan.grouping == EXAMPLES[name]
    assert plan.across_indices == (name == "copies-across-indices")


def test_names_of_example_requests() -> None:
    assert names() == sorted(EXAMPLES)
    with pytest.raises(SettingsError, match="Unknown example 'x'") as caught:
        example("x")
    assert all(name in str(caught.value) for name in EXAMPLES)


# Plans


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"type": "query:all"}, None),
        ({"type": "query:string", "query": "a:b"}, {"query_string": {"query": "a:b"}}),
        ({"type": "query:reference", "use": "recent"}, {"query_string": {"query": "date:2024"}}),
        ({"term": {"a": 1}}, {"term": {"a": 1}}),
        ({"query": {"term": {"a": 1}}}, {"term": {"a": 1}}),
    ],
)
def test_queries(query: JSON, expected: JSON | None) -> None:
    recent = {"recent": {"type": "query:string", "query": "date:2024"}}
    assert duplicates(parse_request(request(components=recent, similarPairs=stage(query=query)))).query == expected


@pytest.mark.parametrize("kind", ["typed", "DSL"])
def test_a_query_string_that_no_server_answers(kind: str) -> None:
    text = "(" * 5000
    query = {"query_string": {"query": text}} if kind == "DSL" else {"type": "query:string", "query": text}
    said = message_of(request(similarPairs=stage(query=query)))
    assert "stages.similarPairs.query cannot be sent. The query string has 5,000 nested brackets" in said


def test_without_a_query_all_documents() -> None:
    assert duplicates(parse_request(request())).query is None


def test_defaults() -> None:
    plan = duplicates(parse_request({"stages": {"similarPairs": stage()}}))
    assert (plan.max_group, plan.explanations, plan.across_indices, plan.validations[0].max) == (200, False, False, 1)


@pytest.mark.parametrize("measure", [one.value for one in MeasureName])
def test_every_measure_has_its_similarity(measure: str) -> None:
    more: dict[str, dict[str, Any]] = {
        "bag": {"ngram": 3},
        "edit": {},
        "jaccard": {"matching": "information", "shingle": 4},
    }
    given = {"type": f"pairwiseSimilarity:{measure}", "fields": TITLE, **more.get(measure, {})}
    found = duplicates(parse_request(request(similarPairs=stage(similarity=given)))).validations[0]
    assert (found.measure, found.features, found.fields) == (measure, None, ("title",))
    if measure == "jaccard":
        assert (found.matching, found.shingle) == (Matching.INFORMATION, 4)
    assert found.ngram == (3 if measure == "bag" else 1)


def test_a_symbol_is_its_measure() -> None:
    for measure in (one for one in MeasureName if one.symbol):
        types = [f"pairwiseSimilarity:{name}" for name in (measure.value, measure.symbol)]
        stages = [stage(similarity={"type": one, "fields": TITLE}) for one in types]
        one, other = (duplicates(parse_request(request(similarPairs=made))) for made in stages)
        assert one == other


def test_an_estimate_is_always_explained() -> None:
    """The explanation has its interval."""
    given = stage(similarity={"type": "pairwiseSimilarity:estimate", "fields": TITLE}, output={"explanations": False})
    assert duplicates(parse_request(request(similarPairs=given))).explanations


def test_grouping_by_the_keys_of_the_index() -> None:
    assert duplicates(parse_request(request(similarPairs=stage("scheme")))).grouping == SchemeKeys()


def test_references_to_references() -> None:
    components = {
        "one": {"type": "fields:reference", "use": "two"},
        "two": {"type": "fields:simple", "fields": ["title", "body"]},
        "words": {"type": "featureSource:words", "fields": {"type": "fields:reference", "use": "one"}},
        "similar": {
            "type": f"pairwiseSimilarity:{RATIO}",
            "features": {"type": "featureSource:reference", "use": "words"},
        },
    }
    grams = {"type": "featureSource:ngrams", "window": 3, "source": {"type": "featureSource:reference", "use": "words"}}
    made = stage(grams, similarity={"type": "pairwiseSimilarity:reference", "use": "similar"})
    plan = duplicates(parse_request(request(components=components, similarPairs=made)))
    assert plan.grouping == Ngrams(3, Words(("title", "body")))
    assert plan.validations[0].features == Words(("title", "body"))


def test_stages_that_find_pairs_come_first() -> None:
    overlaps = {"type": "documentPairs:overlaps", "documentPairs": PAIRS, "fields": TITLE, "limit": 7}
    given = {"stages": {"o": overlaps, "c": CONTENT | {"limit": 3}, "similarPairs": stage()}}
    plan = parse_request(given)
    assert [one.name for one in plan.stages] == ["similarPairs", "o", "c"]
    assert plan.stages[1] == OverlapsPlan("o", "similarPairs", ("title",), 5, 7)
    assert plan.stages[2] == ContentPlan("c", "similarPairs", {"title": None, "abstract": 250}, 3)


def test_a_byte_order_mark_is_ignored() -> None:
    """Some editors on Windows write one."""
    assert parse_request("\ufeff" + json.dumps(request())) == parse_request(request())


# Invalid requests

AT = "stages.similarPairs"
GRAMS = {"type": "featureSource:ngrams", "window": 5, "source": WORDS}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"qeury": {}}, f"{AT}.qeury is unknown; allowed properties: type, hashGrouping, validation, query, output."),
        ({"type": "duplicates"}, f'{AT}.type is "duplicates"; allowed: documentPairs:duplicates, documentContent, '),
        ({"validation": None}, f"{AT}.validation is null; allowed: an object."),
        ({"output": {"explanations": "yes"}}, f'{AT}.output.explanations is "yes"; allowed: true or false.'),
        ({"query": {}}, f"{AT}.query is {{}}; allowed: a non-empty object."),
        ({"query": {"query": {}}}, f"{AT}.query.query is {{}}; allowed: a non-empty object."),
        ({"query": None}, f"{AT}.query is null; allowed: an object."),
        ({"query": {"type": "query:x"}}, f'{AT}.query.type is "query:x"; allowed: query:string, query:all, query:'),
        ({"query": {"type": "query:string"}}, f"{AT}.query.query is missing; allowed properties: type, query."),
    ],
)
def test_invalid_stages(change: JSON, expected: str) -> None:
    assert expected in message_of(request(similarPairs=stage() | change))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"mim": 0.5}, "mim is unknown; allowed properties: pairwiseSimilarity, min, max."),
        (
            {"min": None},
            "min is null; allowed: a number from 0 to 1, or for featureIntersectionSize an integer from 0 to ",
        ),
        ({"min": "0.9"}, 'min is "0.9"; allowed: a number from 0 to 1, or'),
        ({"min": True}, "min is true; allowed: a number from 0 to 1, or"),
        ({"min": -0.1}, "min is -0.1; allowed: a number from 0 to 1."),
        ({"max": 90}, "max is 90; allowed: a number from 0 to 1."),
        ({"min": 0.9, "max": 0.5}, "min is 0.9; allowed: at most max, which is 0.5."),
        ({"pairwiseSimilarity": 5}, "pairwiseSimilarity is 5; allowed: an object with one of the types pairwiseSim"),
        ({"pairwiseSimilarity": {}}, "pairwiseSimilarity.type is missing; allowed: pairwiseSimilarity:featureInter"),
        (
            {"pairwiseSimilarity": {"type": "pairwiseSimilarity:edit", "fields": TITLE, "shingle": 5}},
            "pairwiseSimilarity.shingle is unknown; allowed properties: type, fields.",
        ),
        (
            {"pairwiseSimilarity": {"type": "pairwiseSimilarity:bag", "fields": TITLE, "ngram": 8}},
            "pairwiseSimilarity.ngram is 8; allowed: an integer from 1 to 7.",
        ),
        (
            {"pairwiseSimilarity": {"type": "pairwiseSimilarity:jaccard", "fields": TITLE, "matching": "exact"}},
            'pairwiseSimilarity.matching is "exact"; allowed: "literal" or "information".',
        ),
    ],
)
def test_invalid_validations(change: JSON, expected: str) -> None:
    made = stage()
    made["validation"] |= change
    assert f"{AT}.validation.{expected}" in message_of(request(similarPairs=made))


def test_a_validation_without_min() -> None:
    made = stage()
    del made["validation"]["min"]
    assert f"{AT}.validation.min is missing; allowed properties: " in message_of(request(similarPairs=made))


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("schema", ' is "schema"; allowed: "scheme" or an object'),
        (
            ["scheme"],
            ' is ["scheme"]; allowed: an object with one of the types featureSource:values, featureSource:words',
        ),
        ({"type": "featureSource:word"}, '.type is "featureSource:word"; allowed: featureSource:values, '),
        ({"type": 5}, ".type is 5; allowed: featureSource:values, "),
        ({"fields": TITLE}, ".type is missing; allowed: featureSource:values, "),
        ({"type": "featureSource:words"}, ".fields is missing; allowed properties: type, fields, perField."),
        (WORDS | {"fields": ["title"]}, '.fields is ["title"]; allowed: an object with one of the types fields:simple'),
        (WORDS | {"fields": TITLE | {"fields": []}}, ".fields.fields is []; allowed: a non-empty array."),
        (WORDS | {"fields": TITLE | {"fields": "title"}}, '.fields.fields is "title"; allowed: an array of strings.'),
        (WORDS | {"fields": TITLE | {"fields": ["t", 5]}}, ".fields.fields[1] is 5; allowed: a string."),
        (WORDS | {"fields": TITLE | {"fields": [""]}}, '.fields.fields[0] is ""; allowed: a non-empty string.'),
        (
            WORDS | {"fields": TITLE | {"fields": ["t", "t"]}},
            '.fields.fields is ["t", "t"]; allowed: an array without duplicates.',
        ),
        (GRAMS | {"window": 0}, ".window is 0; allowed: an integer from 1 to 1,000."),
        (GRAMS | {"window": -(2**40)}, ".window is -1099511627776; allowed: an integer from 1 to 1,000."),
        (GRAMS | {"window": 2.5}, ".window is 2.5; allowed: an integer from 1 to 1,000."),
        (GRAMS | {"window": True}, ".window is true; allowed: an integer from 1 to 1,000."),
        (
            GRAMS | {"source": WORDS | {"type": "featureSource:values"}},
            ".source is featureSource:values, which makes features without parts; allowed: words, characters, ",
        ),
    ],
)
def test_invalid_features(features: Any, expected: str) -> None:
    assert f"{AT}.hashGrouping.features{expected}" in message_of(request(similarPairs=stage(features)))


@pytest.mark.parametrize("size", [1, 0, 10_001, "200", 1.5, None])
def test_invalid_group_sizes(size: Any) -> None:
    made = stage()
    made["hashGrouping"]["pairing"] = {"maxHashGroupSize": size}
    expected = f"{AT}.hashGrouping.pairing.maxHashGroupSize is {json.dumps(size)}; allowed: an integer from 2 to 10"
    assert expected in message_of(request(similarPairs=made))


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ([], "components is []; allowed: an object."),
        ({"a": 5}, "components.a is 5; allowed: an object with one of the types fields:simple, "),
        ({"a b": TITLE | {"x": 1}}, 'components["a b"].x is unknown; allowed properties: type, fields.'),
        ({"": TITLE}, "components has an empty property name; allowed: non-empty names."),
        ({"a": {"type": "fields:reference", "use": "a"}}, 'components.a.use refers back to itself: "a" -> "a".'),
        (
            {
                "a": {"type": "featureSource:flatten", "source": {"type": "featureSource:reference", "use": "b"}},
                "b": {"type": "featureSource:reference", "use": "a"},
            },
            'components.b.use refers back to itself: "a" -> "b" -> "a".',
        ),
        (
            {"a": {"type": "fields:reference", "use": "b"}, "b": {"type": "query:all"}},
            'components.a.use is "b", which has another type; allowed: "a".',
        ),
    ],
)
def test_invalid_components(components: Any, expected: str) -> None:
    assert expected in message_of(request() | {"components": components})


def test_a_missing_reference() -> None:
    given = request(similarPairs=stage(WORDS | {"fields": {"type": "fields:reference", "use": "source"}}))
    place = f"{AT}.hashGrouping.features.fields.use"
    expected = f'{place} is "source", which is not a component; allowed: '
    assert expected + "none, because no component has a type fields:*." in message_of(given)
    assert expected + '"sourceFields".' in message_of(given | {"components": {"sourceFields": TITLE}})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"limit": 0}, 'limit is 0; allowed: an integer from 1 to 100,000,000 or "unlimited".'),
        ({"limit": "all"}, 'limit is "all"; allowed: an integer from 1 to 100,000,000 or "unlimited".'),
        ({"documents": {}}, "documents.type is missing; allowed properties: type, documentPairs."),
        (
            {"documents": CONTENT["documents"] | {"documentPairs": PAIRS | {"use": "content"}}},
            'documents.documentPairs.use is "content", which does not find pairs; allowed: "similarPairs".',
        ),
        (
            {"fields": {"type": "contentFields:simple", "fields": {}}},
            "fields.fields is {}; allowed: a non-empty obj",
        ),
        (
            {"fields": {"type": "contentFields:simple", "fields": {"t": {"maxValueLength": 0}}}},
            "fields.fields.t.maxValueLength is 0; allowed: an integer from 1 to 10,000,000",
        ),
    ],
)
def test_invalid_contents(change: JSON, expected: str) -> None:
    assert f"stages.content.{expected}" in message_of(request(content=CONTENT | change))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "The request is empty"),
        (" \n", "The request is empty"),
        ("\ufeff", "The request is empty"),
        ("{", "The request is not valid JSON: Expecting property name enclosed in double quotes in line 1, column 2."),
        ('{"stages": }', "The request is not valid JSON: Expecting value in line 1, column 12."),
        ("[]", "A request is a JSON object, not []."),
        ("5", "A request is a JSON object, not 5."),
        ("null", "A request is a JSON object, not null."),
        ('"x"', 'A request is a JSON object, not "x".'),
        ("{}", "stages is missing; allowed properties: stages, components."),
        ('{"stages": {}}', "stages is {}; allowed: a non-empty object."),
        ('{"stages": {}, "stages": {}}', "stages occurs twice; allowed: once."),
        ('{"stages": {"s": {"min": 1, "min": 2}}}', "stages.s.min occurs twice; allowed: once."),
        ('{"stages": {"s": {"min": NaN}}}', "stages.s.min is not a valid number"),
        ('{"stages": {"s": {"min": -Infinity}}}', "stages.s.min is not a valid number"),
        ('{"stages": {"s": {"min": 1e400}}}', "stages.s.min is not a valid number"),
        ('{"stages": {"s": {"min": 1' + "0" * 400 + "}}}", "stages.s.min is not a valid number"),
        ('{"stages": {"s": {"min": 1' + "0" * 9000 + "}}}", "stages.s.min is not a valid number"),
        ('{"stages": {"s": "\\ud800"}}', "stages.s contains half of a surrogate pair"),
        ('{"stages": {"\\ud800": 1}}', "stages contains half of a surrogate pair"),
        ("[" * 100_000, "The request is nested deeper than 50 levels."),
        ('{"stages": ' + '{"a": ' * 60 + "1" + "}" * 61, "is nested deeper than 50 levels."),
    ],
)
def test_texts_that_are_not_a_request(text: str, expected: str) -> None:
    message = message_of(text)
    assert expected in message
    assert len(message) < 200


def test_objects_that_are_not_json() -> None:
    around: JSON = request()
    around["stages"]["more"] = around
    assert "nested deeper than 50 levels" in message_of(around)
    assert "stages is of the Python type set; allowed: JSON values." in message_of({"stages": {1}})
    assert "stages has the property name 5; allowed: strings." in message_of({"stages": {5: 1}})
    for number in (float("nan"), 10**400, -(10**5000)):
        assert "stages.s.min is not a valid number" in message_of({"stages": {"s": {"min": number}}})


def test_names_that_are_long_or_have_lines() -> None:
    message = message_of(request(components={"x\ny" * 10_000: TITLE | {"z": 1}}))
    assert message.startswith('Invalid request: components["x\\ny')
    assert len(message) < 200
    lines = {"x\ny": {"type": "fields:reference", "use": "none"}}
    assert 'allowed: "x\\ny".' in message_of(request(components=lines))
    circle = {f"c{n}": {"type": "fields:reference", "use": f"c{(n + 1) % 1100}"} for n in range(1100)}
    assert message_of(request(components=circle)).endswith('"c10" -> "c11" -> 1,089 more.')


def test_sources_nested_too_deeply() -> None:
    """A chain of components is a deep tree without being deep JSON."""
    chain = {
        f"c{n}": {"type": "featureSource:flatten", "source": {"type": "featureSource:reference", "use": f"c{n + 1}"}}
        for n in range(1100)
    }
    assert "is nested too deeply; allowed: up to 20" in message_of(request(components=chain | {"c1100": WORDS}))


def everything() -> JSON:
    """A request with all kinds of parts."""
    made = json.loads(example("near-identical-abstracts"))
    made["stages"]["bags"] = stage(
        "scheme", similarity={"type": "pairwiseSimilarity:bag", "fields": TITLE, "ngram": 2}, query={"term": {"a": 1}}
    )
    return copy.deepcopy(dict(made))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for step, one in below for place in places(one, (*path, step)))]


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["featureSource:words", "scheme", "unlimited", "fields:reference", "sourceFields", "similarPairs"]),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.sampled_from(["type", "use", "fields", "x", ""]), st.text(max_size=5), max_size=3),
    st.sampled_from([WORDS, FLAT, TITLE, CONTENT, PAIRS]),
)


def mutated(data: st.DataObject) -> JSON:
    """A request with random values in a few places."""
    changed = everything()
    for _ in range(data.draw(st.integers(1, 3))):
        (*above, last) = data.draw(st.sampled_from(places(changed)[1:]))
        at: Any = changed
        for step in above:
            at = at[step]
        at[last] = data.draw(JUNK.map(copy.deepcopy))
        if isinstance(at, dict) and data.draw(st.booleans()):
            at[data.draw(st.text(max_size=4))] = data.draw(JUNK.map(copy.deepcopy))
    return changed


def varied(data: st.DataObject) -> JSON:
    """A request with other numbers, most of them in their ranges, and without some stages to which no other refers."""
    changed = everything()
    kept = data.draw(st.sets(st.sampled_from(["bags", "documents", "overlaps"])))
    changed["stages"] = {name: one for name, one in changed["stages"].items() if name in {*kept, "similarPairs"}}
    for path in places(changed)[1:]:
        at: Any = changed
        for step in path[:-1]:
            at = at[step]
        if path[-1] in ("min", "max"):
            at[path[-1]] = data.draw(st.floats(0.01, 0.8) if path[-1] == "min" else st.floats(0.8, 1))
        elif type(at[path[-1]]) is int:
            at[path[-1]] += data.draw(st.integers(0, 2))
    return changed


@given(st.data())
def test_any_change_is_a_request_or_one_message(data: st.DataObject) -> None:
    """Any value in any place gives a plan, or an error in one line."""
    changed = mutated(data)
    message = ""
    try:
        assert parse_request(changed).stages
    except SettingsError as error:
        message = str(error)
    assert re.fullmatch("(Invalid request: .+)?", message)


@given(st.text(max_size=30) | st.text('{}[]":,0eE+-1. ', max_size=30))
def test_any_text_is_a_request_or_one_message(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_request(text)


# Schema


def properties(definition: Mapping[str, Any]) -> set[str]:
    return set(definition.get("properties", ()))


VALUES = {"type": "featureSource:values", "fields": TITLE}
SIZE = {"type": "pairwiseSimilarity:featureIntersectionSize", "features": FLAT}


def test_hair_and_facial_hair_as_one_feature() -> None:
    """Each field apart in the similarity; a reference inside a combination is followed."""
    faces = {"type": "fields:simple", "fields": ["hair", "beard"]}
    hair = {"type": "featureSource:values", "fields": {"type": "fields:simple", "fields": ["hair"]}}
    combine = {"type": "featureSource:combine", "sources": [{"type": "featureSource:reference", "use": "hair"}, VALUES]}
    shared = SIZE | {"features": VALUES | {"fields": faces, "perField": True}}
    made = stage(combine, similarity=shared) | {"validation": {"pairwiseSimilarity": shared, "min": 5}}
    plan = duplicates(parse_request(request(components={"hair": hair}, similarPairs=made)))
    assert plan.grouping == Combine((Values(("hair",)), Values(("title",))))
    (validation,) = plan.validations
    assert validation.features == Values(("hair", "beard"), apart=True)
    assert (validation.measure, validation.min, validation.max) == (SHARED, 5, math.inf)
    assert plan.fields == ("hair", "beard", "title")
    lines = "\n".join(explain(plan_of(made, hair=hair), "faces"))
    assert "Grouping: by combinations of entire values from field: hair and entire values from field: title." in lines
    assert "is the number of shared features, each counted once: entire values from fields: hair, beard (each" in lines
    assert "A pair passes with a similarity of 5 or more." in lines


def plan_of(made: JSON, **components: JSON) -> RequestPlan:
    return parse_request(request(components=components, similarPairs=made))


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"type": "featureSource:combine"}, ".sources is missing; allowed properties: type, sources."),
        (
            {"type": "featureSource:combine", "sources": [VALUES]},
            '.sources is [{"type": "featureSource:values", "fields": {"type": "fields...; allowed: an array of two or '
            "more feature sources.",
        ),
        ({"type": "featureSource:combine", "sources": VALUES}, "; allowed: an array of two or more feature sources."),
        (
            {"type": "featureSource:combine", "sources": [VALUES, {"type": "x"}]},
            '.sources[1].type is "x"; allowed: featureSource:values, ',
        ),
        (VALUES | {"perField": 1}, ".perField is 1; allowed: true or false."),
        (
            {"type": "featureSource:ngrams", "window": 2, "source": VALUES},
            ".source is featureSource:values, which makes features without parts; allowed: words, characters, ",
        ),
        (
            {
                "type": "featureSource:ngrams",
                "window": 2,
                "source": {"type": "featureSource:combine", "sources": [VALUES, WORDS]},
            },
            ".source is featureSource:combine, which makes features without parts; allowed: words, characters, ",
        ),
    ],
)
def test_invalid_combinations(features: Any, expected: str) -> None:
    message = message_of(request(similarPairs=stage(features)))
    assert f"{AT}.hashGrouping.features" in message
    assert expected in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"min": 1.5}, "min is 1.5; allowed: an integer from 0 to 1,000,000,000, a number of shared features."),
        ({"min": -1}, "min is -1; allowed: an integer from 0 to 1,000,000,000, a number of shared features."),
        ({"min": 3, "max": 2}, "min is 3; allowed: at most max, which is 2."),
        ({"max": "6"}, 'max is "6"; allowed: a number from 0 to 1, or for featureIntersectionSize an integer from 0'),
        ({"max": None}, "max is null; allowed: a number from 0 to 1, or for featureIntersectionSize an integer from 0"),
    ],
)
def test_invalid_numbers_of_shared_features(change: JSON, expected: str) -> None:
    made = stage() | {"validation": {"pairwiseSimilarity": SIZE, "min": 1} | change}
    assert f"{AT}.validation.{expected}" in message_of(request(similarPairs=made))


def test_two_validations() -> None:
    made = stage() | {
        "validation": [
            {"pairwiseSimilarity": SIZE, "min": 3},
            {"pairwiseSimilarity": {"type": "pairwiseSimilarity:S_L", "fields": TITLE}, "min": 0.5, "max": 0.9},
        ]
    }
    plan = duplicates(plan_of(made))
    assert [(one.measure, one.min, one.max) for one in plan.validations] == [
        (SHARED, 3, math.inf),
        ("containment-longer", 0.5, 0.9),
    ]
    lines = "\n".join(explain(plan_of(made), "news"))
    assert "Of the pairs that pass, a further similarity is containment-longer (literal matching; w = 5" in lines
    made["validation"][1]["min"] = 2
    assert f"{AT}.validation[1].min is 2; allowed: a number from 0 to 1." in message_of(request(similarPairs=made))
    made["validation"][1] = made["validation"][0] | {"min": 1}
    same = f"{AT}.validation[1].pairwiseSimilarity is the same as that of validation[0]; allowed: each similarity once."
    assert same in message_of(request(similarPairs=made))
    made["validation"] = []
    assert f"{AT}.validation is []; allowed: a non-empty array." in message_of(request(similarPairs=made))


DAYS = {"type": "query:string", "query": "created:[2015 TO 2017]"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            DAYS,
            "if created is a date, a range up to 2017 ends with the first day of 2017. To include all of it, write ",
        ),
        (DAYS | {"query": 'a b AND (created:[* TO "2017-05"] OR x:1)'}, "a range up to 2017-05 ends with the first"),
        (DAYS | {"query": "published.on:<=2017"}, "if published.on is a date, a range up to 2017 ends"),
        (DAYS | {"query": "created:>2015"}, "if created is a date, a range after 2015 excludes only the first day"),
        (DAYS | {"query": "created:{2015 TO *]"}, "if created is a date, a range after 2015 excludes only the first"),
        ({"range": {"created": {"gte": 2015, "lte": 2017}}}, "if created is a date, a range up to 2017 ends with"),
        ({"bool": {"filter": [{"range": {"created": {"lte": "2017-05"}}}]}}, "a range up to 2017-05 ends with the"),
        ({"query": {"bool": {"must": {"query_string": DAYS}}}}, "a range up to 2017 ends with the first day of 2017"),
        (DAYS | {"query": "created:[2015 TO 2017-12-31]"}, ""),
        (DAYS | {"query": "created:[2015 TO 2018}"}, ""),
        (DAYS | {"query": "created:>=2015 title:[a TO z] year:2017"}, ""),
        ({"range": {"created": {"gte": "2015", "lt": "2018"}}}, ""),
    ],
)
def test_ranges_that_end_inside_a_year(query: JSON, expected: str) -> None:
    found = "\n".join(warnings(plan_of(stage(VALUES, similarity=RATIO_OF_VALUES, query=query, min=1))))
    assert expected in found
    assert bool(found) == bool(expected)


RATIO_OF_VALUES = {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": VALUES}


def test_an_example_with_other_fields() -> None:
    """Every example that compares all its fields alike; what it reads are these fields too."""
    for name in names():
        if name == "records":
            with pytest.raises(SettingsError, match="compares several fields, each in another way"):
                example(name, ["headline"])
            continue
        plan = parse_request(example(name, ["headline", "teaser", "headline"]))
        assert duplicates(plan).fields == ("headline", "teaser")
        assert all(set(one.fields) == {"headline", "teaser"} for one in plan.stages)


def test_schema() -> None:
    made = schema()
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert properties(made) == {"components", "stages"}
    assert made["additionalProperties"] is False
    objects = [one for one in made["$defs"].values() if one.get("type") == "object"]
    assert len(objects) > 20
    assert all(one["additionalProperties"] is False for one in objects)
    (validation,) = (one for one in objects if properties(one) == {"pairwiseSimilarity", "min", "max"})
    assert validation["properties"]["min"] | {"title": ""} == {
        "maximum": 1_000_000_000,
        "minimum": 0,
        "title": "",
        "type": "number",
    }
    assert json.loads(json.dumps(made)) == made


VALIDATOR = Draft202012Validator(schema())


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("request_*.json")), ids=lambda file: file.stem)
def test_documented_requests_fit_the_schema(file: Path) -> None:
    VALIDATOR.validate(json.loads(file.read_text("utf-8")))


@pytest.mark.parametrize("name", names())
def test_example_requests_fit_the_schema(name: str) -> None:
    VALIDATOR.validate(json.loads(example(name)))


@given(st.data())
def test_valid_requests_fit_the_schema(data: st.DataObject) -> None:
    """The schema does not check references, so it may accept an invalid request, but never reject a valid one."""
    changed = data.draw(st.sampled_from([varied, varied, mutated]))(data)
    try:
        parse_request(changed)
    except SettingsError:
        reject()
    assert VALIDATOR.is_valid(changed)


# In plain words


def test_explanation_of_near_identical_titles() -> None:
    lines = explain(parse_request(example("near-identical-titles")), "news")
    text = "\n".join(lines)
    for expected in (
        "similarPairs: find pairs of similar documents in news.",
        "1. Scope: all documents.",
        "2. Grouping: by 5-grams of words from field: title.",
        "shared by more than 200 documents is skipped and counted; the largest of these groups are listed.",
        "flattened composites of words from field: title.",
        "a similarity from 0.9 to 0.999, both inclusive.",
        "documents: read every document in the pairs of similarPairs.",
        "Fields: title, body (at most 250 characters).",
        "Note: similarPairs: documents without a common run of 5 elements are never compared.",
    ):
        assert expected in text


def test_explanation_names_scope_measure_and_indices() -> None:
    given = stage(
        similarity={"type": "pairwiseSimilarity:containment", "fields": TITLE, "matching": "information"},
        query={"type": "query:string", "query": "müde"},
    )
    given["hashGrouping"]["pairing"] = {"acrossIndices": True}
    text = "\n".join(explain(parse_request(request(similarPairs=given)), "a,b"))
    assert 'the documents that match {"query_string": {"query": "müde"}}' in text
    assert "containment (information matching; w = 5; words of the shorter text" in text
    assert "of two different indices" in text
    assert "a similarity of exactly 1." in text


@pytest.mark.parametrize(
    ("features", "min", "expected"),
    [
        (FLAT, 0.9, "grouping by single words is inefficient"),
        (GRAMS | {"window": 1}, 0.9, "grouping by single words is inefficient"),
        (
            GRAMS | {"window": 3, "source": WORDS | {"type": "featureSource:characters"}},
            0.9,
            "grouping by characters or by short n-grams",
        ),
        (WORDS, 0.9, "documents with similar values are never compared"),
        (GRAMS, 0.9, "without a common run of 5 elements are never compared"),
        ("scheme", 0.9, "share a key with a probability that depends on their resemblance"),
        (GRAMS, 0, "with min 0 every candidate pair passes"),
    ],
)
def test_warnings(features: Any, min: float, expected: str) -> None:
    assert expected in "\n".join(warnings(parse_request(request(similarPairs=stage(features, min=min)))))


def test_warning_of_composites_that_are_compared_whole() -> None:
    whole = stage(GRAMS, similarity={"type": f"pairwiseSimilarity:{RATIO}", "features": WORDS}, min=0.5)
    assert "Use featureSource:flatten" in "\n".join(warnings(parse_request(request(similarPairs=whole))))


def test_identical_titles_need_no_warning() -> None:
    assert warnings(parse_request(example("identical-titles"))) == []


def test_descriptions_are_those_of_the_model() -> None:
    assert describe(Values(("title",))) == "entire values from field: title"
    assert describe(Flatten(Words(("title",)))) == "flattened composites of words from field: title"
