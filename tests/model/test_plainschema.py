"""What is valid at a glance is valid by the meta-schema too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from uwfgit.model.schema.plain import _KEYWORDS, is_plainly_valid
from uwfgit.store.canonical import Json

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["string", "object", "", "x", "(", "a+"]),
    st.lists(st.one_of(st.sampled_from(["a", "b"]), st.integers(0, 1)), max_size=3),
    st.dictionaries(st.sampled_from(["a", "type"]), st.just({}), max_size=2),
)
KEYWORDS = st.sampled_from([*_KEYWORDS, "multipleOf", "x-own"])
SCHEMAS = st.recursive(
    st.one_of(st.booleans(), st.dictionaries(KEYWORDS, VALUES, max_size=4)),
    lambda inner: st.one_of(
        st.dictionaries(KEYWORDS, inner, max_size=3),
        st.fixed_dictionaries({"oneOf": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from("ab"), inner)}
        ),
    ),
    max_leaves=6,
)


def is_valid(schema: Json) -> bool:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return False
    return True


@given(SCHEMAS)
def test_what_is_plainly_valid_is_valid(schema: Json) -> None:
    if is_plainly_valid(schema):
        assert is_valid(schema)


@pytest.mark.parametrize("name", sorted(_KEYWORDS))
@given(value=VALUES)
def test_each_keyword_takes_no_more_than_the_meta_schema(
    name: str, value: Json
) -> None:
    if is_plainly_valid({name: value}):
        assert is_valid({name: value})


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            {
                "oneOf": [
                    {
                        "properties": {
                            "$status": {"const": "ready"},
                            "plan": {"type": "string", "minLength": 1},
                        },
                        "required": ["$status", "plan"],
                        "additionalProperties": False,
                    },
                    {"properties": {"$status": {"enum": ["no", "later"]}}},
                ]
            },
            id="a-roles-usual-schema",
        ),
        pytest.param({"type": "array", "items": {"type": "integer"}}, id="a-list"),
        pytest.param(True, id="anything"),
    ],
)
def test_a_usual_schema_needs_no_second_look(schema: Json) -> None:
    assert is_plainly_valid(schema)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"pattern": "("}, id="no-pattern"),
        pytest.param({"type": ["string", "string"]}, id="a-type-twice"),
        pytest.param({"type": []}, id="no-type"),
        pytest.param({"type": "strng"}, id="an-unknown-type"),
        pytest.param({"required": ["a", "a"]}, id="a-name-twice"),
        pytest.param({"minLength": True}, id="a-flag-for-a-number"),
        pytest.param({"properties": {"a": 1}}, id="no-schema-inside"),
        pytest.param({"x-own": 1}, id="a-key-of-ones-own"),
        pytest.param("text", id="no-schema"),
    ],
)
def test_anything_else_is_left_to_the_meta_schema(schema: Json) -> None:
    assert not is_plainly_valid(schema)
