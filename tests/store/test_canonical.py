from __future__ import annotations

import json
import math
import tracemalloc
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collision import COLLIDING, find_collision
from uwfgit.constants import MAX_DEPTH
from uwfgit.errors import CorruptError, InvalidError
from uwfgit.ids import Hash, is_hash
from uwfgit.store import canonical
from uwfgit.store.canonical import (
    META_TYPE,
    TEXT_TYPE,
    Json,
    decode_json,
    decode_payload,
    encode_json,
    encode_payload,
    format_path,
    node_hash,
    normalise,
    parse_payload,
)

DATA: Final = Path(__file__).parent.parent / "data" / "hash-vectors.json"
VECTORS: Final[Json] = json.loads(DATA.read_text(encoding="utf-8"))
NUMBER: Final = Hash("BEAZQGKVXMZT8")
OBJECT: Final = Hash("944RT37WX1PQ5")

SAFE: Final = 2**53 - 1
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5)
    ),
    max_leaves=25,
)


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(vector, id=f"{number}-{vector['hash']}")
        for number, vector in enumerate(VECTORS["vectors"])
    ],
)
def test_a_node_has_the_hash_the_public_store_gives_it(vector: Json) -> None:
    payload = normalise(vector["payload"])

    assert node_hash(Hash(vector["type"]), payload) == vector["hash"]


def test_there_are_as_many_vectors_as_were_observed() -> None:
    assert len(VECTORS["vectors"]) == 54


def test_the_meta_schema_is_hashed_without_a_type() -> None:
    text = files("uwfgit.model").joinpath("schemas", "schema.json").read_bytes()
    payload = normalise(json.loads(text))

    assert payload == normalise(VECTORS["selfHash"]["payload"])
    assert node_hash(META_TYPE, payload) == META_TYPE == VECTORS["selfHash"]["hash"]


def test_another_schema_is_hashed_with_the_meta_schema_as_type() -> None:
    payload = {"type": "string"}

    assert node_hash(META_TYPE, payload) == TEXT_TYPE


def test_the_type_is_part_of_the_hash() -> None:
    assert node_hash(NUMBER, {}) != node_hash(OBJECT, {})


def _nested(depth: int) -> Json:
    value: Json = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        pytest.param(math.nan, "(root)", id="nan"),
        pytest.param({"a": [1, math.inf]}, "a[1]", id="infinity"),
        pytest.param({"a": {"b": -math.inf}}, "a.b", id="minus-infinity"),
        pytest.param([2**53], "[0]", id="2-to-the-53"),
        pytest.param([-(2**53)], "[0]", id="minus-2-to-the-53"),
        pytest.param({"n": 10**400}, "n", id="an-integer-without-end"),
        pytest.param("\ud800", "(root)", id="lone-high-surrogate"),
        pytest.param({"x": ["a", "b\udfff"]}, "x[1]", id="lone-low-surrogate"),
        pytest.param("\ud83d\ude00", "(root)", id="a-pair-of-surrogates-unjoined"),
        pytest.param({"a": {"k\ud800": 1}}, r"a.k\ud800", id="surrogate-in-a-key"),
        pytest.param({"a": {1: "x"}}, "a", id="integer-key"),
        pytest.param([{None: 1}], "[0]", id="null-key"),
        pytest.param({True: 1}, "(root)", id="boolean-key"),
        pytest.param({"a": b"x"}, "a", id="bytes"),
        pytest.param([{1, 2}], "[0]", id="set"),
        pytest.param(_nested(MAX_DEPTH + 1), "[0]" * MAX_DEPTH, id="too-deep"),
    ],
)
def test_a_value_json_does_not_have_is_refused_with_its_path(
    value: Json, path: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        normalise(value)

    assert [problem.path for problem in caught.value.problems] == [path]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(1.0, 1, id="integral-float"),
        pytest.param(-0.0, 0, id="minus-zero"),
        pytest.param(float(SAFE), SAFE, id="largest-safe-float"),
        pytest.param(-float(SAFE), -SAFE, id="smallest-safe-float"),
        pytest.param(2.0**53, 2.0**53, id="a-float-beyond-stays-one"),
        pytest.param(1e300, 1e300, id="a-huge-float-stays-one"),
        pytest.param(0.1, 0.1, id="fraction"),
        pytest.param(5e-324, 5e-324, id="the-least-float"),
        pytest.param(SAFE, SAFE, id="largest-safe-integer"),
        pytest.param(True, True, id="true-is-not-one"),
        pytest.param(False, False, id="false-is-not-zero"),
        pytest.param((1.0, (2.0,)), [1, [2]], id="tuples"),
        pytest.param("e\u0301", "e\u0301", id="text-is-not-composed"),
        pytest.param({"b": 1.0, "a": None}, {"a": None, "b": 1}, id="mapping"),
        pytest.param(_nested(MAX_DEPTH), _nested(MAX_DEPTH), id="as-deep-as-may-be"),
    ],
)
def test_a_value_has_one_form(value: Json, expected: Json) -> None:
    found = normalise(value)

    assert repr(found) == repr(expected)


def test_keys_are_ordered_by_their_encoded_bytes_not_by_code_points() -> None:
    # In UTF-8 the second is shorter, and the last two swap sides under UTF-16.
    keys = ["\U0001f600", "é", "zz", "a", "\uffee", "b"]

    found = normalise(dict.fromkeys(keys))

    assert list(found) == ["a", "b", "zz", "é", "\uffee", "\U0001f600"]


def test_the_file_orders_keys_by_code_points() -> None:
    data = encode_json(normalise({"zz": 1, "é": 2, "b": 3}))

    assert data == '{\n  "b": 3,\n  "zz": 1,\n  "é": 2\n}\n'.encode()


@given(values)
def test_what_was_encoded_decodes_to_the_one_form(value: Json) -> None:
    form = normalise(value)

    assert repr(decode_json(encode_json(form))) == repr(form)


@given(values)
def test_the_bytes_are_those_of_the_standard_library(value: Json) -> None:
    form = normalise(value)
    text = json.dumps(form, indent=2, sort_keys=True, ensure_ascii=False)

    assert encode_json(form) == f"{text}\n".encode()


@given(values)
def test_normalising_twice_changes_nothing(value: Json) -> None:
    once = normalise(value)

    assert repr(normalise(once)) == repr(once)


@given(st.dictionaries(st.text(), scalars, max_size=8), st.randoms())
def test_the_order_of_insertion_does_not_show(
    value: dict[str, Json], rnd: Random
) -> None:
    pairs = list(value.items())
    rnd.shuffle(pairs)

    one, other = normalise(value), normalise(dict(pairs))

    assert list(one) == sorted(value, key=lambda k: (len(k.encode()), k.encode()))
    assert repr(one) == repr(other)
    assert node_hash(OBJECT, one) == node_hash(OBJECT, other)


@given(values)
def test_a_hash_has_the_shape_of_one(value: Json) -> None:
    assert is_hash(node_hash(OBJECT, normalise(value)))


@given(values)
def test_what_another_codec_writes_is_taken_only_where_it_is_the_same(
    value: Json,
) -> None:
    written = msgspec.json.encode(value, order="sorted")
    data = msgspec.json.format(written, indent=2) + b"\n"
    try:
        found = decode_json(data)
    except CorruptError:
        return

    assert encode_json(found) == data


def _indented(depth: int) -> bytes:
    down = "".join(f"[\n{'  ' * level}" for level in range(1, depth))
    up = "".join(f"\n{'  ' * level}]" for level in range(depth - 2, -1, -1))
    return f"{down}[]{up}\n".encode()


def test_a_payload_may_be_as_deep_as_the_limit_says() -> None:
    assert decode_json(_indented(MAX_DEPTH)) == _nested_lists(MAX_DEPTH)


def _nested_lists(depth: int) -> Json:
    value: Json = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no-newline"),
        pytest.param(b"{}\n\n", id="two-newlines"),
        pytest.param(b"{}\r\n", id="crlf"),
        pytest.param(b" {}\n", id="leading-blank"),
        pytest.param(b"\xef\xbb\xbf{}\n", id="bom"),
        pytest.param(b'{"a": 1}\n', id="not-indented"),
        pytest.param(b'{\n  "b": 1,\n  "a": 1\n}\n', id="unsorted"),
        pytest.param(b'{\n  "a": 1,\n  "a": 1\n}\n', id="duplicate-keys"),
        pytest.param(b"1.0\n", id="integral-float"),
        pytest.param(b"-0\n", id="minus-zero"),
        pytest.param(b"-0.0\n", id="minus-zero-float"),
        pytest.param(b"1E5\n", id="another-notation"),
        pytest.param(b"9007199254740992\n", id="2-to-the-53"),
        pytest.param(b"NaN\n", id="nan"),
        pytest.param(b"Infinity\n", id="infinity"),
        pytest.param(b"1e999\n", id="a-number-that-overflows"),
        pytest.param(b"9" * 5000 + b"\n", id="digits-without-end"),
        pytest.param(b'"\\u00e9"\n', id="escaped-letter"),
        pytest.param(b'"\\ud800"\n', id="escaped-surrogate"),
        pytest.param(b'"\xff"\n', id="not-utf-8"),
        pytest.param(b'"\xed\xa0\x80"\n', id="encoded-surrogate"),
        pytest.param(b"[" * 100_000, id="nested-without-end"),
        pytest.param(b"[" * 300 + b"]" * 300 + b"\n", id="nested-too-deep"),
        pytest.param(b"{\n}\n", id="empty-mapping-in-two-lines"),
        pytest.param(_indented(MAX_DEPTH + 1), id="indented-too-deep"),
        pytest.param(b"1e16\n", id="a-large-float-as-other-codecs-write-it"),
        pytest.param(b"[\n  9007199254740992\n]\n", id="2-to-the-53-in-a-list"),
    ],
)
def test_bytes_that_are_not_exactly_those_of_a_payload_are_corrupt(
    data: bytes,
) -> None:
    with pytest.raises(CorruptError):
        decode_json(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"x", id="no-json"),
        pytest.param(b"{", id="unfinished"),
        pytest.param(b'"\xff"\n', id="not-utf-8"),
        pytest.param(b"[" * 100_000, id="nested-without-end"),
    ],
)
def test_what_is_no_payload_at_all_is_corrupt_unchecked_too(data: bytes) -> None:
    with pytest.raises(CorruptError):
        parse_payload(OBJECT, data)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("a\r\nb", id="crlf"),
        pytest.param("\ufeffa\n\n", id="bom-and-newlines"),
        pytest.param("\0", id="nul"),
        pytest.param('{"a": 1}', id="looks-like-json"),
    ],
)
def test_a_text_is_its_own_bytes(text: str) -> None:
    data = encode_payload(TEXT_TYPE, text)

    assert data == text.encode()
    assert decode_payload(TEXT_TYPE, data) == text


def test_a_string_of_another_type_is_json() -> None:
    data = encode_payload(NUMBER, "a")

    assert data == b'"a"\n'
    assert decode_payload(NUMBER, data) == "a"


def test_a_text_node_holds_text_only() -> None:
    with pytest.raises(InvalidError):
        encode_payload(TEXT_TYPE, {"a": 1})


def test_a_text_that_is_not_utf_8_is_corrupt() -> None:
    with pytest.raises(CorruptError):
        decode_payload(TEXT_TYPE, b"\xff")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param((), "", id="root"),
        pytest.param(("steps", 2, "output"), "steps[2].output", id="mixed"),
        pytest.param((0, 1), "[0][1]", id="lists"),
        pytest.param(("\u202e", "é"), r"\u202e.\xe9", id="stays-ascii"),
    ],
)
def test_a_path_is_written_as_plain_text(
    path: tuple[str | int, ...], expected: str
) -> None:
    assert format_path(path) == expected


def test_the_two_colliding_texts_have_one_hash_and_were_found_as_told() -> None:
    one, other = COLLIDING

    assert one != other
    assert node_hash(TEXT_TYPE, one) == node_hash(TEXT_TYPE, other) == "3SGPDA16932MK"
    assert find_collision() == COLLIDING


def test_keys_of_many_or_large_payloads_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Full, it would take none of these whatever their size.
    monkeypatch.setattr(canonical, "_ORDERS", {})
    payloads = [
        *(encode_json({f"{number}-{'x' * 1_000_000}": 1}) for number in range(4)),
        *(
            encode_json({f"{n}-{key:0100}": 1 for key in range(5_000)})
            for n in range(4)
        ),
    ]
    tracemalloc.start()
    for payload in payloads:
        decode_json(payload)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 500_000
