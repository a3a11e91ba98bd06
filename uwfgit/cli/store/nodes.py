"""Nodes as commands name them: by hash, by type, in one thread or in the store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from uwfgit.cli.frame.arguments import read_json
from uwfgit.cli.frame.context import CommandContext
from uwfgit.errors import (
    AmbiguousError,
    InvalidError,
    NotFoundError,
    Problem,
    UwfError,
)
from uwfgit.ids import Hash, find_hash
from uwfgit.model.ledger.ledger import Ledger, find_tip, load_node
from uwfgit.model.node import (
    BUILTIN_NAMES,
    DETAIL_TYPE,
    META_TYPE,
    STEP_TYPE,
    Node,
    find_builtin_schema,
    make_node,
)
from uwfgit.model.thread.record import open_record
from uwfgit.store.canonical import Json, format_path

_MISSING = object()


def fill_absent(schema: Json, value: Json) -> Json:
    """Return a payload with null, ``[]`` or nulls inside for required keys left out.

    What has no such value stays out, for the schema's own check to name.
    """
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, list):
        items = schema.get("items", True)
        return [fill_absent(items, item) for item in value]
    if not isinstance(value, dict):
        return value
    chosen = _option(schema, "object")
    properties = chosen.get("properties", {})
    filled = {
        key: fill_absent(
            _option(inner, "array") if isinstance(item, list) else inner, item
        )
        for key, item in value.items()
        for inner in (properties.get(key, True),)
    }
    for key in chosen.get("required", ()):
        if key not in filled:
            empty = _empty(properties.get(key, True))
            if empty is not _MISSING:
                filled[key] = empty
    return filled


def _option(schema: Json, kind: str) -> Json:
    """Return the schema of a kind that a choice of several has; else the schema."""
    options = schema.get("anyOf", ()) if isinstance(schema, Mapping) else ()
    fitting = (
        option
        for option in options
        if isinstance(option, Mapping) and option.get("type") == kind
    )
    return next(fitting, schema)


def _empty(schema: Json) -> Any:  # noqa: ANN401 - a JSON value, or the mark for none
    if not isinstance(schema, Mapping):
        return _MISSING
    if _allows_null(schema):
        return None
    if schema.get("type") == "array":
        return []
    if schema.get("type") == "object":
        filled = fill_absent(schema, {})
        missing = [key for key in schema.get("required", ()) if key not in filled]
        return _MISSING if missing else filled
    return _MISSING


def _allows_null(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    if None in schema.get("enum", ()):
        return True
    return any(
        isinstance(option, Mapping) and _allows_null(option)
        for option in schema.get("anyOf", ())
    )


_FILLED: Final = (STEP_TYPE, DETAIL_TYPE)
"""Types of which an adapter may leave keys out."""


def resolve_type(text: str) -> Hash:
    """Read a type: a hash, or the name of a built-in type.

    Raises:
        InvalidError: It is neither.
    """
    named = BUILTIN_NAMES.get(text)
    found = named or find_hash(text)
    if found is None:
        raise InvalidError(
            f"'{text}' is not a type",
            hint=f"a hash, or one of {', '.join(sorted(BUILTIN_NAMES))}",
        )
    return found


_SHORT: Final = re.compile(r"[0-9A-Z]{4,12}", re.ASCII)


def complete_hash(ledger: Ledger, text: str, *, thread: str | None = None) -> str:
    """Return the whole hash that a unique start of one names; else the text.

    Raises:
        NotFoundError: No node's hash starts so.
        AmbiguousError: Several do.
    """
    prefix = text.upper()
    if not _SHORT.fullmatch(prefix):
        return text
    if thread is not None:
        found = set(open_record(ledger.store, find_tip(ledger, thread)).places)
    else:
        found = {*ledger.lookup.find_hashes(prefix), *BUILTIN_NAMES.values()}
    fitting = sorted(each for each in found if each.startswith(prefix))
    if not fitting:
        raise NotFoundError("node", text, hint="a whole hash has 13 characters")
    if len(fitting) > 1:
        raise AmbiguousError("hash", text, fitting)
    return fitting[0]


def load_named_node(
    ledger: Ledger, text: str, *, thread: str | None, within: str | None = None
) -> Node:
    """Read a node by its hash.

    Args:
        ledger: Where to look.
        text: The hash.
        thread: The only thread whose nodes count.
        within: The thread whose agent asks: its nodes come first.

    Raises:
        NotFoundError: It is not there.
        AmbiguousError: Threads hold different contents; says how to choose.
    """
    text = complete_hash(ledger, text, thread=thread)
    if thread is None and within:
        with suppress(NotFoundError, AmbiguousError):
            return load_node(ledger, text, thread=within)
    try:
        return load_node(ledger, text, thread=thread)
    except AmbiguousError as exc:
        first = exc.candidates[0] if exc.candidates else "THREAD"
        exc.message = f"hash {exc.name} names different contents in several threads: "
        exc.message += ", ".join(exc.candidates)
        exc.hint = f"choose one with: --thread {first}"
        raise


def load_schema(ledger: Ledger, node_type: Hash, *, thread: str | None) -> Json:
    """Read the schema that a type is.

    Raises:
        NotFoundError: It is not there.
        InvalidError: The hash is not a schema's.
    """
    node = load_named_node(ledger, node_type, thread=thread)
    if node.type != META_TYPE:
        raise InvalidError(
            f"node {node_type} is not a schema, so it is not a type",
            hint="put the schema first: uwf cas schema put",
        )
    return node.payload


def iter_refs(ledger: Ledger, node: Node, *, thread: str | None) -> tuple[Hash, ...]:
    """Find the hashes that a node's schema marks as links, in order."""
    from uwfgit.model.schema.check import find_refs

    return find_refs(load_schema(ledger, node.type, thread=thread), node.payload)


def walk_nodes(ledger: Ledger, node: Node, *, thread: str | None) -> Iterator[Node]:
    """Yield a node and all it reaches, each once, nearest first."""
    waiting = [node]
    seen = {node.hash}
    while waiting:
        current = waiting.pop(0)
        yield current
        for ref in iter_refs(ledger, current, thread=thread):
            if ref not in seen:
                seen.add(ref)
                waiting.append(load_named_node(ledger, ref, thread=thread))


def check_node(
    ledger: Ledger, node: Node, *, thread: str | None
) -> tuple[Problem, ...]:
    """Check a node against its schema, and that all it links to is there."""
    from uwfgit.model.node import validate_node
    from uwfgit.model.schema.check import find_refs

    try:
        schema = load_schema(ledger, node.type, thread=thread)
        for ref in find_refs(schema, node.payload):
            load_named_node(ledger, ref, thread=thread)
    except UwfError as exc:
        return (Problem(code=exc.code, message=exc.message, hint=exc.hint),)
    return tuple(
        Problem(code="schema", path=format_path(v.path) or None, message=v.message)
        for v in validate_node(node, schema)
    )


def build_node(
    context: CommandContext, type_text: str, argument: str
) -> tuple[Ledger, Node]:
    """Make a node of what the command line gives, checked against its schema.

    The store, which the node is for, is opened, and made when it is missing, only
    when nothing is wrong with what was given.

    Raises:
        InvalidError: The payload does not fit; carries every problem.
    """
    from uwfgit.model.ledger import keep

    node_type = resolve_type(type_text)
    payload = read_json(context, argument, what="JSON")
    schema = find_builtin_schema(node_type)
    if schema is None:
        # A type of one's own is in a store that is there.
        ledger = context.open_ledger(write=True, create=False)
        node = make_node(node_type, payload)
        keep.check_node(ledger, node)
        return ledger, node
    if node_type in _FILLED:
        payload = fill_absent(schema, payload)
    node = make_node(node_type, payload)
    keep.check_payload(node, schema)
    return context.open_ledger(write=True), node
