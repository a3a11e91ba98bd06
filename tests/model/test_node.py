from __future__ import annotations

import json
from importlib.resources import files
from typing import Final

import pytest

from tests.collision import COLLIDING, COLLIDING_HASH
from uwfgit.errors import InvalidError
from uwfgit.ids import Hash
from uwfgit.model.node import (
    BUILTIN_NAMES,
    FORMAT_TYPES,
    JSON_TYPES,
    META_TYPE,
    TEXT_TYPE,
    Node,
    find_builtin_node,
    find_builtin_schema,
    format_nodes,
    make_node,
    make_text,
    node_file_name,
)
from uwfgit.store.canonical import Json, node_hash, normalise

# Written out here a second time on purpose: a change of one is a new format.
FORMAT_HASHES: Final = {
    "schema": "CTS5P6RD8HMCS",
    "text": "7VQ43ZSJTEWA7",
    "workflow": "CWDYA439XBW6X",
    "start": "33HE72QSZ6Q6V",
    "step": "BADAZA8A4H6T9",
    "detail": "05AZRF10SYC3T",
    "error": "25N5TMFN2MN86",
    "suspend": "89CG2387DJBDT",
    "hold": "BGWNVNYWW10M8",
}
JSON_HASHES: Final = {
    "string": "7VQ43ZSJTEWA7",
    "number": "BEAZQGKVXMZT8",
    "integer": "B26JM4PBHPAFK",
    "boolean": "1AVHCXEJVDCPP",
    "bool": "1AVHCXEJVDCPP",
    "null": "8E33KAS0HMAZ7",
    "object": "944RT37WX1PQ5",
    "array": "D45CW047XS17Y",
}
RECORDS: Final = ["workflow", "start", "step", "detail", "error", "suspend", "hold"]


def test_the_types_of_the_format_have_the_hashes_they_have_for_ever() -> None:
    assert FORMAT_TYPES == FORMAT_HASHES
    assert JSON_TYPES == JSON_HASHES
    assert BUILTIN_NAMES == JSON_HASHES | FORMAT_HASHES


@pytest.mark.parametrize("name", FORMAT_HASHES)
def test_the_packaged_schema_of_a_type_has_its_hash(name: str) -> None:
    text = files("uwfgit.model").joinpath("schemas", f"{name}.json").read_bytes()
    payload = normalise(json.loads(text))

    assert node_hash(META_TYPE, payload) == FORMAT_HASHES[name]
    assert find_builtin_schema(Hash(FORMAT_HASHES[name])) == payload


@pytest.mark.parametrize("name", [name for name in JSON_HASHES if name != "bool"])
def test_a_json_type_is_a_schema_of_one_word(name: str) -> None:
    node = find_builtin_node(Hash(JSON_HASHES[name]))

    assert node == make_node(META_TYPE, {"type": name})
    assert node.hash == JSON_HASHES[name]


@pytest.mark.parametrize("name", RECORDS)
def test_the_schema_of_a_record_is_closed_and_titled_everywhere(name: str) -> None:
    schema = find_builtin_schema(Hash(FORMAT_HASHES[name]))

    assert schema is not None
    assert schema["title"].startswith("uwf ")
    assert schema["type"] == "object"
    open_places = list(_find_open(schema, name))
    assert open_places == []


def _find_open(schema: Json, path: str) -> list[str]:
    found = []
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is not False:
            found.append(path)
        for key, inner in schema.items():
            found += _find_open(inner, f"{path}.{key}")
    elif isinstance(schema, list):
        for inner in schema:
            found += _find_open(inner, path)
    return found


def test_every_thread_carries_each_type_of_the_format_once() -> None:
    nodes = format_nodes()

    assert [node.hash for node in nodes] == list(FORMAT_HASHES.values())
    assert {node.type for node in nodes} == {META_TYPE}
    assert all(node_hash(node.type, node.payload) == node.hash for node in nodes)


def test_another_hash_is_no_builtin() -> None:
    assert find_builtin_schema(Hash("0123456789ABC")) is None
    assert find_builtin_node(Hash("0123456789ABC")) is None


def test_a_node_is_named_by_its_normalised_payload() -> None:
    node = make_node(JSON_TYPES["object"], {"b": 1.0, "a": (2,)})

    assert node.payload == {"a": [2], "b": 1}
    assert node == make_node(JSON_TYPES["object"], {"a": [2], "b": 1})


def test_a_payload_that_is_no_json_makes_no_node() -> None:
    with pytest.raises(InvalidError):
        make_node(JSON_TYPES["object"], {"a": float("nan")})


@pytest.mark.parametrize(
    ("node", "name", "data"),
    [
        pytest.param(
            make_text("hello"),
            "95ST8MZ0QTKP9.7VQ43ZSJTEWA7.md",
            b"hello",
            id="text",
        ),
        pytest.param(
            make_node(META_TYPE, {"type": "string"}),
            "7VQ43ZSJTEWA7.CTS5P6RD8HMCS.json",
            b'{\n  "type": "string"\n}\n',
            id="schema",
        ),
        pytest.param(
            make_node(JSON_TYPES["number"], 1.0),
            "AV2WJZPG3GZTN.BEAZQGKVXMZT8.json",
            b"1\n",
            id="number",
        ),
    ],
)
def test_a_node_has_one_file_name_and_one_content(
    node: Node, name: str, data: bytes
) -> None:
    assert (node.name, node.data) == (name, data)
    assert node_file_name(node.hash, node.type) == name


def test_two_texts_of_one_hash_have_one_name_but_are_two_nodes() -> None:
    one, other = (make_text(text) for text in COLLIDING)

    assert one.hash == other.hash == COLLIDING_HASH
    assert one.type == TEXT_TYPE
    assert one.name == other.name
    assert one != other
    assert one.data != other.data
