from __future__ import annotations

from typing import Any, Final

from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import (
    STEP_TYPE,
    Node,
    find_builtin_schema,
    make_node,
    read_payload,
    validate_node,
)
from uwfgit.model.thread.step import (
    Child,
    Code,
    Snapshot,
    StepFields,
    StepNode,
    Usage,
    write_fields,
)

_NODES: Final = {"start", "prev", "output", "detail"}
ONE: Final = Hash("0000000000001")
WHOLE: Final = StepFields(
    role="worker",
    body="Did it.",
    agent="claude",
    edge_prompt="Begin.",
    note="Again",
    cwd="/home/ada",
    started_at_ms=1,
    completed_at_ms=2,
    usage=Usage(
        turns=1,
        input_tokens=2,
        output_tokens=3,
        duration_ms=4,
        cost_usd=0.5,
        cache_read_tokens=6,
        cache_write_tokens=7,
    ),
    previous_attempts=(ONE,),
    code=Code(
        before="a" * 40,
        after="b" * 40,
        snapshot=Snapshot(before=Oid("c" * 40), after=None),
        shared=(ThreadId("01J00000000000000000000001"),),
    ),
    extracted_by="frontmatter",
    warnings=("Look",),
    child=Child(thread=ThreadId("01J00000000000000000000002"), oid=Oid("d" * 40)),
)


def _node(fields: StepFields) -> Node:
    payload = {**write_fields(fields), **dict.fromkeys(_NODES, ONE)}
    return make_node(STEP_TYPE, payload)


def _read(fields: StepFields) -> StepFields:
    read = read_payload(_node(fields), StepNode)
    names = StepFields.__struct_fields__
    return StepFields(**{name: getattr(read, name) for name in names})


def _schema() -> dict[str, Any]:
    schema = find_builtin_schema(STEP_TYPE)
    assert isinstance(schema, dict)
    return schema


def test_the_fields_are_those_of_the_schema() -> None:
    assert write_fields(WHOLE).keys() | _NODES == _schema()["properties"].keys()


def test_what_is_left_out_is_what_the_schema_does_not_require() -> None:
    plain = StepFields(
        role="r",
        body="",
        agent="a",
        edge_prompt="",
        cwd="/",
        note=None,
        started_at_ms=0,
        completed_at_ms=0,
        usage=None,
        previous_attempts=None,
        code=Code(before=None, after=None),
        extracted_by=None,
        warnings=(),
    )

    assert write_fields(plain).keys() | _NODES == set(_schema()["required"])
    assert _read(plain) == plain


def test_fields_read_back_as_they_were_written() -> None:
    assert _read(WHOLE) == WHOLE


def test_what_is_written_fits_the_schema() -> None:
    assert validate_node(_node(WHOLE), _schema()) == ()
