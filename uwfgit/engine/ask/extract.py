"""What a reply means for its role's schema; the only place that decides (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import STATUS, SUSPEND
from uwfgit.engine.ask.splitter import Split, Wanted, split_reply
from uwfgit.errors import OverrunError, Problem
from uwfgit.model.bounded import run_bounded
from uwfgit.model.schema.check import validate_value
from uwfgit.model.schema.messages import (
    Violation,
    describe_overrun,
    name_value,
    shorten,
)
from uwfgit.model.schema.variants import (
    Form,
    Variant,
    find_variants,
    is_named,
    merge_forms,
    narrow_schema,
)
from uwfgit.store.canonical import Json, format_path, normalise

STATUS_CODE: Final = "reply-status"
FIELD_CODE: Final = "reply-field"
REASON: Final = "reason"

_PLAIN_STATUS: Final = "status"
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


class Extraction(Struct, frozen=True, kw_only=True):
    """A reply that satisfied its schema, or that asks for a person.

    ``output`` is normalised. That of a suspended one is ``$status`` and
    ``reason``, whatever the schema says.
    """

    output: dict[str, Json]
    body: str
    warnings: tuple[str, ...] = ()
    suspended: bool = False


def extract_reply(
    text: str, *, schema: Json, listed: bool, is_link: Callable[[str], bool]
) -> Extraction | tuple[Problem, ...]:
    """Read a reply, or tell every problem with it.

    Args:
        text: The whole reply.
        schema: The role's schema.
        listed: The role's graph node is a list; its schema need not fix a
            ``$status``, and then any fields will do.
        is_link: Tells which strings ``format: ocas_ref`` accepts.

    One that cannot be checked within limits has the problem that it is so.
    """
    try:
        return run_bounded(
            lambda: _extract(text, schema, listed=listed, is_link=is_link),
            "checking the answer",
        )
    except OverrunError as exc:
        return (_field_problem(describe_overrun(exc)),)


def _extract(
    text: str, schema: Json, *, listed: bool, is_link: Callable[[str], bool]
) -> Extraction | tuple[Problem, ...]:
    form = merge_forms(schema)
    clean = _SURROGATE.sub(_REPLACEMENT, text)
    is_any = listed and STATUS not in form.properties
    names = {STATUS} if _PLAIN_STATUS in form.properties else {STATUS, _PLAIN_STATUS}
    wanted = Wanted(
        accepts=lambda fields: is_any or not names.isdisjoint(fields),
        hints=lambda inner: (":" if is_any else _PLAIN_STATUS) in inner,
    )
    split = split_reply(clean, wanted)
    if not isinstance(split, Split):
        found = _split_without_status(clean, schema, form)
        if found is None:
            return split
        split = found
    if STATUS not in split.fields and _PLAIN_STATUS in split.fields:
        split = _rename_status(split, form)
    if clean != text or "\0" in split.body:
        split = _clean_body(split, is_changed=clean != text)
    if split.fields.get(STATUS) == SUSPEND:
        reason = split.fields.get(REASON, "")
        if not isinstance(reason, str):
            reason = json.dumps(reason, ensure_ascii=False)
        return Extraction(
            output=normalise({STATUS: SUSPEND, REASON: reason}),
            body=split.body,
            warnings=split.warnings,
            suspended=True,
        )
    return _extract_fields(split, schema, form, listed=listed, is_link=is_link)


def _split_without_status(text: str, schema: Json, form: Form) -> Split | None:
    """Read a reply whose block lacks the status, where the role has but one."""
    statuses = {variant.status for variant in find_variants(schema)}
    if len(statuses) != 1:
        return None
    known = form.properties.keys() - {STATUS}
    wanted = Wanted(
        accepts=lambda fields: (
            not fields or not known or not known.isdisjoint(fields.keys())
        ),
        hints=lambda inner: ":" in inner,
    )
    split = split_reply(text, wanted)
    if not isinstance(split, Split):
        return None
    status = statuses.pop()
    warning = f"the block has no {STATUS}; taken for '{status}', the only one"
    fields: dict[str, Json] = {STATUS: status, **split.fields}
    return replace(split, fields=fields, warnings=(*split.warnings, warning))


def _rename_status(split: Split, form: Form) -> Split:
    """Read ``status`` as ``$status`` where the schema has no ``status``."""
    fields = split.fields
    status = fields[_PLAIN_STATUS]
    is_declared = _PLAIN_STATUS in form.properties
    if is_declared or (STATUS not in form.properties and status != SUSPEND):
        return split
    rest = {name: item for name, item in fields.items() if name != _PLAIN_STATUS}
    warning = f"'{_PLAIN_STATUS}' was read as '{STATUS}'"
    warnings = (*split.warnings, warning)
    return replace(split, fields={STATUS: status, **rest}, warnings=warnings)


def _clean_body(split: Split, *, is_changed: bool) -> Split:
    body = split.body.replace("\0", _REPLACEMENT)
    warnings = split.warnings
    if is_changed:
        warnings = (*warnings, "characters that are no text were replaced")
    if body != split.body:
        warnings = (*warnings, "NUL characters in the body were replaced")
    return replace(split, body=body, warnings=warnings)


def _extract_fields(
    split: Split,
    schema: Json,
    form: Form,
    *,
    listed: bool,
    is_link: Callable[[str], bool],
) -> Extraction | tuple[Problem, ...]:
    variants = find_variants(schema)
    status = split.fields.get(STATUS)
    chosen: Form | Variant | None
    chosen = next((each for each in variants if each.status == status), None)
    if chosen is None and variants:
        return (_wrong_status(split.fields, variants),)
    if chosen is None:
        # A schema that names nothing means nothing by it.
        names_nothing = not form.properties and not form.closed
        chosen = replace(form, open=True) if names_nothing else form
    kept: dict[str, Json] = {}
    warnings = [*split.warnings]
    for name, value in split.fields.items():
        if is_named(chosen, name) or (name == STATUS and not listed):
            kept[name] = value
            continue
        owners = [each.status for each in variants if name in each.properties]
        why = f"belongs to {STATUS} '{owners[0]}'" if owners else "is not known"
        warnings.append(shorten(f"field '{name}' {why} and was dropped"))
    output = normalise(kept)
    violations = validate_value(schema, output, is_link=is_link)
    if violations and isinstance(chosen, Variant):
        # Against the chosen alternative alone the messages name what is wrong.
        narrow = narrow_schema(schema, chosen.path)
        violations = validate_value(narrow, output, is_link=is_link) or violations
    if violations:
        return tuple(map(_field_problem, violations))
    return Extraction(output=output, body=split.body, warnings=tuple(warnings))


def _wrong_status(fields: Mapping[str, Json], variants: Iterable[Variant]) -> Problem:
    allowed = dict.fromkeys(each.status for each in variants) | {SUSPEND: None}
    found = name_value(fields[STATUS]) if STATUS in fields else "nothing"
    return Problem(
        code=STATUS_CODE,
        path=STATUS,
        message=shorten(f"found {found}, must be one of {', '.join(allowed)}"),
        hint="give the status that fits what you did",
    )


def _field_problem(violation: Violation) -> Problem:
    return Problem(
        code=FIELD_CODE,
        path=format_path(violation.path) or None,
        message=violation.message,
    )
