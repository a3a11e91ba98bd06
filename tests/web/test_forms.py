"""Forms give a command what a person sees and types, and nothing else."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from uwfgit.model.workflow.inputs import require_inputs
from uwfgit.web.render.forms.start import start_form
from uwfgit.web.render.frame import ALL_ACTS, Site
from uwfgit.web.render.markup import Carried, tag
from uwfgit.web.serve.acts import typed_inputs
from uwfgit.web.serve.links import ServedLinks

SITE = Site(
    links=ServedLinks(root=""),
    name="s",
    token="T",  # noqa: S106 - a page's token
    acts=ALL_ACTS,
)

ODD: dict[str, dict[str, Any]] = {
    "level": {"enum": [1, 2, 3], "default": 2},
    "mixed": {"enum": [True, None, "x", 1.5], "default": None},
    "flag": {"enum": [True, False], "type": "boolean", "default": False},
    "loud": {"type": "boolean", "default": True},
    "unsaid": {"type": ["boolean", "null"], "default": None},
    "tags": {"type": "array", "default": ["a", "b"]},
    "options": {"type": "object", "default": {"k": 1}},
    "maybe": {"type": ["string", "null"], "default": None},
    "lines": {"type": "string", "default": "\none\ntwo \u202e"},
    "columns": {"type": "string", "default": "a\tb"},
    "any": {"default": 5},
    "both": {"type": ["integer", "string"], "default": 5},
    "ratio": {"type": "number", "default": 0.5, "minimum": 0},
}


class _Fields(HTMLParser):
    """What a browser sends of a form that nobody touched."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[str, str] = {}
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        name = found.get("name") or ""
        if tag == "input" and found.get("type") != "checkbox":
            self.sent[name] = found.get("value") or ""
        elif tag == "input" and "checked" in found:
            self.sent[name] = "on"
        elif tag in {"textarea", "select"}:
            self._open, self.sent[name] = name, ""
        elif tag == "option" and "selected" in found:
            self.sent[self._open] = found["value"] or ""

    def handle_data(self, data: str) -> None:
        if self.sent.get(self._open) == "" and data.startswith("\n"):
            self.sent[self._open] = data[1:].replace("\n", "\r\n")


def test_a_form_that_nobody_touched_gives_every_input_its_default() -> None:
    fields = _Fields()
    form = start_form(SITE, "ping", ODD)
    assert form is not None
    fields.feed(form)

    given = typed_inputs(ODD, fields.sent)

    defaults = {name: schema["default"] for name, schema in ODD.items()}
    assert require_inputs(ODD, given) == defaults


def test_a_form_that_was_refused_is_filled_in_as_it_was_sent() -> None:
    sent = {
        "token": "T",
        "prompt": "Do\r\nit",
        "input.level": "3",
        "input.mixed": "1.5",
        "input.flag": "true",
        "input.unsaid": "null",
        "input.tags": "not a list",
        "input.options": '{"k": 2}',
        "input.maybe": "",
        "input.lines": "mine\r\nand more",
        "input.columns": "x",
        "input.any": "6",
        "input.both": "7",
        "input.ratio": "0.75",
    }
    fields = _Fields()
    form = start_form(SITE, "ping", ODD, sent)
    assert form is not None
    fields.feed(form)

    # Neither "loud", which is ticked when nobody touched it.
    assert {name: text.replace("\r", "") for name, text in fields.sent.items()} == {
        name: text.replace("\r", "") for name, text in sent.items()
    }
    assert "<details open" in form


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        pytest.param({"enum": [1, 2]}, "2", {"x": 2}, id="a number to choose"),
        pytest.param({"enum": [None, "x"]}, "null", {"x": None}, id="nothing chosen"),
        pytest.param({"enum": [1]}, "", {}, id="no choice"),
        pytest.param({"type": "array"}, "[a, b]", {"x": ["a", "b"]}, id="a list"),
        pytest.param({"type": "string", "default": "y"}, "", {"x": ""}, id="emptied"),
        pytest.param({"type": "string"}, "", {}, id="never filled in"),
        pytest.param({"type": "string"}, "12", {"x": "12"}, id="digits of a text"),
        pytest.param({"type": "integer", "default": 1}, "", {}, id="emptied number"),
        pytest.param({}, "12", {"x": 12}, id="anything"),
        pytest.param({"enum": True}, "12", {"x": 12}, id="no schema"),
    ],
)
def test_a_field_is_read_as_the_command_line_reads_it(
    schema: dict[str, object], text: str, expected: dict[str, object]
) -> None:
    assert typed_inputs({"x": schema}, {"input.x": text}) == expected


def test_what_a_form_hands_on_comes_back_as_it_is() -> None:
    said = 'one\n\ttwo \u202e\u200b "quoted" <b>'

    field = tag("input", type="hidden", name="prompt", value=Carried(said))

    found: list[str | None] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda _, attrs: found.append(dict(attrs)["value"])  # type: ignore[method-assign, assignment] # one element
    parser.feed(field)
    assert found == [said]
