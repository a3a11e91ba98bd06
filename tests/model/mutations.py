"""Workflow files with something broken in them, at random."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Final

from tests.model.workflow_text import GOOD
from uwfgit.model.yaml.core import parse_value
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
TEXTS: Final = (
    GOOD,
    *(
        file.read_text("utf-8").replace("!include procedures/planner.md", "Plan.")
        for file in sorted(EXAMPLES.glob("*.yaml"))
        if not file.stem.endswith(".replies")
    ),
)
_TOKENS: Final = (
    *("", " ", "\n", "\t", ":", ": ", "- ", "- - ", "{", "}", "[", "]", "#", "|", ">"),
    *('"', "'", "&a ", "*a", "!include x.md", "!include .", "!!str ", "!x ", "<<: "),
    *("null", "true", "0x1F", "-0", ".inf", ".nan", "1e999", "9" * 30, "012", "~"),
    *("$START", "$END", "$SUSPEND", "$status", "$ref", "$schema", "const", "enum"),
    *("oneOf", "anyOf", "allOf", "not", "if", "properties", "required", "items"),
    *("{{", "}}", "{{{a}}}", "{{#a}}", "{{/a}}", "{{^a.b}}", "{{> a}}", "{{=<% %>=}}"),
    *("{% if a %}", "{% else %}", "{% endif %}", "{% for a in b %}", "{{ a | join }}"),
    *("meta", "outputSchema", "systemPrompt", "identity", "status", "conditions"),
    *("rules", "when", "condition", "_", "__start__", "x-", "--- ", "...", "%YAML 1.1"),
    *("\u0000", "\u2028", "\ufeff", "\U0001f600", "e\u0301", "\u202e", "\r", "\x85"),
)
_VALUES: Final[tuple[Json, ...]] = (
    *(None, True, False, 0, -1, 1.5, 10**40, "", " ", "x", "$END", "$status", "{{a}}"),
    *([], [None], [[]], [{}], ["$status", "$status"], {}, {"": None}, {"role": 1}),
    *({"const": "a"}, {"enum": []}, {"oneOf": []}, {"oneOf": [True, {}]}),
    *(
        {"allOf": [{"oneOf": [{}]}]},
        {"properties": {"$status": True}},
        {"a": {"b": []}},
    ),
    *({"properties": []}, {"type": ["object", 1]}, {"required": "$status"}),
    *({"$ref": "#"}, {"pattern": "("}, {"multipleOf": 0}, {"items": False}),
)


def mutate(random: Random) -> bytes:
    """Break a good file in one to four ways."""
    text = random.choice(TEXTS)
    for _ in range(random.randint(1, 4)):
        text = random.choice(_WAYS)(text, random)
    data = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        at = random.randrange(len(data) + 1)
        data = data[:at] + random.randbytes(random.randint(1, 4)) + data[at:]
    return data


def _cut(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + text[at + random.randint(1, 60) :]


def _insert(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(_TOKENS) + text[at:]


def _replace_word(text: str, random: Random) -> str:
    words = text.split(" ")
    words[random.randrange(len(words))] = random.choice(
        [*_TOKENS, random.choice(words)]
    )
    return " ".join(words)


def _move_lines(text: str, random: Random) -> str:
    lines = text.split("\n")
    at = random.randrange(len(lines))
    taken = lines[at : at + random.randint(1, 6)]
    if random.random() < 0.5:
        del lines[at : at + len(taken)]
    to = random.randrange(len(lines) + 1)
    return "\n".join([*lines[:to], *taken, *lines[to:]])


def _indent(text: str, random: Random) -> str:
    lines = text.split("\n")
    at = random.randrange(len(lines))
    line = lines[at]
    lines[at] = random.choice([f"  {line}", f" {line}", line.removeprefix("  ")])
    return "\n".join(lines)


def _change_value(text: str, random: Random) -> str:
    """Put something else in a random place of the document."""
    try:
        value = parse_value(text)
    except Exception:  # noqa: BLE001 - already broken; the reader has its own tests
        return _insert(text, random)
    spots: list[tuple[Json, str | int]] = []
    _collect(value, spots)
    if not spots:
        return text
    holder, key = random.choice(spots)
    way = random.randrange(4)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        holder[random.choice(_TOKENS).strip()] = holder.pop(key)
    elif way == 2:
        other, at = random.choice(spots)
        holder[key] = deepcopy(other[at])
    else:
        holder[key] = deepcopy(random.choice(_VALUES))
    return dump_yaml(value)


def _collect(value: Json, spots: list[tuple[Json, str | int]]) -> None:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        spots.append((value, key))
        _collect(item, spots)


_WAYS: Final[tuple[Callable[[str, Random], str], ...]] = (
    _cut,
    _insert,
    _replace_word,
    _move_lines,
    _indent,
    _change_value,
    _change_value,
    _change_value,
)
