"""The form that starts a thread, with a field for each input of its workflow (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from uwfgit.model.wording import shown_lines
from uwfgit.web.render.forms.form import INPUT, button, form
from uwfgit.web.render.frame import Site, fold
from uwfgit.web.render.markup import Carried, Html, div, tag

_EXAMPLES: Final = {"array": '["one", "two"]', "object": '{"name": "value"}'}


Given: TypeAlias = Mapping[str, str] | None
"""What a form was sent with, that came to nothing; ``None`` before anyone typed."""


def start_form(
    site: Site, workflow: str, inputs: Mapping[str, Any] | None, given: Given = None
) -> Html | None:
    """Lay out the form that starts a thread of a workflow; filled in as it was sent."""
    if not site.may("start"):
        return None
    fields = [_input(name, schema, given) for name, schema in (inputs or {}).items()]
    task = given.get("prompt", "") if given is not None else ""
    return tag(
        "section",
        fold(
            "Start a thread",
            form(
                site,
                f"{site.links.workflows()}/{workflow}/start",
                tag(
                    "textarea",
                    # A browser takes the first line break of a text area away.
                    ("\n", task) if task else None,
                    name="prompt",
                    placeholder="The task",
                    aria_label="The task",
                    required=True,
                    rows=4,
                ),
                fields,
                div(
                    "row",
                    button("Start"),
                    button("Start and run", quiet=True, name="run", value="1"),
                ),
            ),
            is_open=given is not None,
        ),
        class_="acts",
    )


def input_types(schema: Any) -> tuple[str, ...]:  # noqa: ANN401 - a JSON Schema
    """Return the types of value that an input may be, besides null; none for any."""
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    several = kinds if isinstance(kinds, list) else [kinds]
    return tuple(each for each in several if isinstance(each, str) and each != "null")


def input_choices(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return what an input is chosen from; ``None`` if it is typed, or ticked."""
    choices, kinds = schema.get("enum"), schema.get("type")
    if isinstance(choices, list):
        return choices
    # A tick has no third state.
    is_three = kinds in (["boolean", "null"], ["null", "boolean"])
    return [None, True, False] if is_three else None


def input_text(value: Any) -> str:  # noqa: ANN401 - a JSON value
    """Write a value as a person writes it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def default_text(schema: Any) -> str:  # noqa: ANN401 - a JSON Schema
    """Return what the field of an input holds before anyone types, as it is sent."""
    default = schema.get("default") if isinstance(schema, Mapping) else None
    return "" if default is None else shown_lines(input_text(default))


def _input(name: str, schema: Any, given: Given) -> Html:  # noqa: ANN401 - a JSON Schema
    known = schema if isinstance(schema, Mapping) else {}
    told = known.get("description")
    return tag(
        "label",
        tag("span", name, class_="name"),
        _control(f"{INPUT}{name}", known, given),
        tag("small", str(told)) if told else None,
        class_="input",
    )


def _control(field: str, schema: Mapping[str, Any], given: Given) -> Html:
    choices, kinds = input_choices(schema), input_types(schema)
    if choices is not None:
        return _choice(field, choices, schema, given)
    if kinds == ("boolean",):
        # A tick that is not set is not sent.
        ticked = field in given if given is not None else schema.get("default") is True
        return tag("input", type="checkbox", name=field, checked=ticked)
    shown_first = default_text(schema)
    is_text = not kinds or "string" in kinds
    # What is emptied is the empty text, where the input may be one; else nothing.
    is_needed = "default" not in schema or (bool(shown_first) and not is_text)
    text = given.get(field, "") if given is not None else shown_first
    if "\n" in shown_first:
        words = ("\n", text)
        return tag("textarea", *words, name=field, required=is_needed, rows=4)
    only = kinds[0] if len(kinds) == 1 else ""
    is_number = only in {"integer", "number"}
    return tag(
        "input",
        type="number" if is_number else "text",
        name=field,
        **(_bounds(schema, only) if is_number else {}),
        value=Carried(text) if text else None,
        placeholder=_EXAMPLES.get(only),
        required=is_needed,
    )


def _bounds(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        "step": "any" if kind == "number" else 1,
        "min": _bound(schema, "minimum"),
        "max": _bound(schema, "maximum"),
    }


def _bound(schema: Mapping[str, Any], name: str) -> int | float | None:
    value = schema.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


def _choice(
    field: str, choices: Sequence[Any], schema: Mapping[str, Any], given: Given
) -> Html:
    options = [input_text(each) for each in choices]
    chosen = [input_text(schema["default"])] if "default" in schema else []
    if given is not None and given.get(field) in options:
        chosen = [given[field]]
    return tag(
        "select",
        None if chosen else tag("option", "choose one", value=""),
        [
            tag("option", each, value=Carried(each), selected=each in chosen)
            for each in options
        ],
        name=field,
        required=not chosen,
    )
