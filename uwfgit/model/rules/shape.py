"""Rules S*: which fields there are, of which type; gives what the others check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from uwfgit.constants import END, START, SUSPEND, WORKFLOW_VERSION
from uwfgit.model.findings import RuleFindings, is_free, kind_of
from uwfgit.model.yaml.located import ValuePath
from uwfgit.store.canonical import Json

RESERVED: Final = (START, END, SUSPEND)

_MERGE: Final = "<<"
_MERGE_HINT: Final = "YAML 1.2 has no merge keys: write the fields out"
NAME_PATTERN: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ROLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_STATUS_MAX: Final = 64


class _Field(NamedTuple):
    kinds: tuple[type, ...]
    wanted: str
    required: bool = True


_TEXT: Final = _Field((str,), "text")
_MAPPING: Final = _Field((dict,), "a mapping")
_TEXT_OR_NOTHING: Final = _Field((str, type(None)), "text", required=False)

_WORKFLOW_FIELDS: Final = {
    "version": _Field((int,), "a whole number", required=False),
    "name": _TEXT,
    "description": _TEXT,
    "roles": _MAPPING,
    "graph": _MAPPING,
    "inputs": _Field((dict,), "a mapping", required=False),
}
_ROLE_FIELDS: Final = {
    "description": _TEXT,
    "goal": _TEXT,
    "capabilities": _Field((list,), "a list of texts"),
    "procedure": _TEXT,
    "output": _TEXT,
    "frontmatter": _MAPPING,
}
_CHILD_FIELDS: Final = {
    "description": _TEXT,
    "workflow": _TEXT,
    "frontmatter": _MAPPING,
    "inputs": _Field((dict,), "a mapping", required=False),
}
"""Of a role that a workflow does."""
_TARGET_FIELDS: Final = {
    "role": _TEXT,
    "prompt": _TEXT,
    "location": _TEXT_OR_NOTHING,
}
_LISTED_FIELDS: Final = {**_TARGET_FIELDS, "when": _TEXT_OR_NOTHING}

_OTHER_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "frontmatter": ("schema", "output_schema", "json_schema", "jsonSchema"),
    "procedure": ("instructions", "instruction", "steps"),
    "goal": ("identity", "system", "system_prompt", "persona"),
    "capabilities": ("skills", "tools"),
    "output": ("report", "deliverable"),
    "role": ("to", "target", "next"),
    "prompt": ("message", "instruction", "task"),
    "roles": ("agents",),
    "graph": ("edges", "transitions", "flow"),
}
"""What people write for a field, that is not spelled much like it."""


class DraftEdge(Struct, frozen=True, kw_only=True):
    """One target in the graph; fields that do not hold are ``None``.

    ``status`` is ``None`` for an entry of a list.
    """

    source: str
    status: str | None
    path: ValuePath
    role: str | None
    prompt: str | None
    location: str | None


class Draft(Struct, kw_only=True):
    """The parts of a document that have the right shape.

    ``whole`` is false when a part of the graph has not, so that what is
    missing from it proves nothing.
    """

    roles: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    nodes: dict[str, list[DraftEdge]] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    has_roles: bool = False
    has_graph: bool = False
    whole: bool = True


def check_shape(found: RuleFindings, *, stem: str | None, older: bool) -> Draft:
    """Report rules S* and give what has the right shape.

    Args:
        found: Where problems go.
        stem: The name the file's name asks for; ``None`` for no file.
        older: The document has an older form that could not be normalised, so
            that its fields are not judged.
    """
    draft = Draft()
    document = found.doc.value
    if not isinstance(document, dict):
        what = "is empty" if document is None else f"is {kind_of(document)}"
        hint = "start with 'name:', 'description:', 'roles:' and 'graph:'"
        found.add("S3", (), f"the workflow {what}, not a mapping", hint=hint)
        return draft
    _check_fields(found, (), document, _WORKFLOW_FIELDS, older=older)
    _check_version(found, document)
    _check_name(found, document, stem)
    if isinstance(document.get("roles"), dict):
        draft.has_roles = True
        _check_roles(found, document["roles"], draft, older=older)
    if isinstance(document.get("graph"), dict):
        draft.has_graph = True
        if not older:
            _check_graph(found, document["graph"], draft)
    return draft


def _check_fields(
    found: RuleFindings,
    path: ValuePath,
    value: Mapping[str, Json],
    fields: Mapping[str, _Field],
    *,
    older: bool = False,
) -> None:
    missing = [n for n, rule in fields.items() if rule.required and n not in value]
    unknown = [n for n in value if n not in fields and not is_free(n)]
    if _MERGE in unknown and missing and not older:
        names = ", ".join(f"'{name}'" for name in missing)
        message = f"'{_MERGE}' merges nothing; missing are: {names}"
        found.add("S1", (*path, _MERGE), message, hint=_MERGE_HINT, key=True)
        unknown.remove(_MERGE)
        missing = []
    if not older:
        for name in missing:
            meant = _report_missing(found, path, name, unknown)
            unknown = [each for each in unknown if each != meant]
        for name in unknown:
            _report_unknown(found, path, name, fields)
    for name, rule in fields.items():
        if name in value:
            _check_type(found, (*path, name), value[name], rule)


def _report_missing(
    found: RuleFindings, path: ValuePath, name: str, unknown: Sequence[str]
) -> str | None:
    """Report a field that is missing; return what seems to stand for it, if any."""
    # Another word that people write for it, or much like it.
    words = _OTHER_WORDS.get(name, ())
    said = next((each for each in unknown if each in words), None)
    meant = said or found.find_similar(name, unknown)
    if meant is None:
        message, hint = f"field '{name}' is missing", f"add '{name}:'"
        found.add("S1", (*path, name), message, hint=hint)
    else:
        message = f"field '{name}' is missing, '{meant}' is not known"
        hint = f"write '{name}' for '{meant}'"
        place = found.doc.place((*path, meant), key=True)
        found.add("S1", (*path, name), message, hint=hint, place=place)
    return meant


def _report_unknown(
    found: RuleFindings, path: ValuePath, name: str, fields: Mapping[str, _Field]
) -> None:
    meant = found.find_similar(name, fields)
    if meant is not None:
        hint = f"did you mean '{meant}'?"
    elif name == _MERGE:
        hint = _MERGE_HINT
    else:
        hint = f"remove it, or name it 'x-{name}' to keep it"
    message = f"field '{name}' is not known"
    found.add("S2", (*path, name), message, hint=hint, key=True, severity="warning")


def _check_type(
    found: RuleFindings, path: ValuePath, value: Json, rule: _Field
) -> None:
    if isinstance(value, rule.kinds) and not isinstance(value, bool):
        if isinstance(value, list):
            for index, item in enumerate(value):
                _check_type(found, (*path, index), item, _TEXT)
        return
    name = path[-1] if isinstance(path[-1], str) else f"{path[-2]}[{path[-1]}]"
    message = f"'{name}' is {kind_of(value)}, not {rule.wanted}"
    quote = str in rule.kinds and isinstance(value, (int, float, bool))
    hint = "put it in quotes" if quote else f"write {rule.wanted}"
    found.add("S3", path, message, hint=hint)


def _check_version(found: RuleFindings, document: Mapping[str, Json]) -> None:
    if "version" not in document:
        message = f"no 'version', taken for {WORKFLOW_VERSION}"
        hint = f"add 'version: {WORKFLOW_VERSION}'"
        found.add("S10", ("version",), message, hint=hint, severity="warning")
        return
    version = document["version"]
    if not isinstance(version, int) or isinstance(version, bool):
        return
    if version != WORKFLOW_VERSION:
        message = f"there is no version {version} of the form of workflow files"
        hint = (
            f"write 'version: {WORKFLOW_VERSION}': it counts forms of the file, "
            "not versions of your workflow"
        )
        found.add("S11", ("version",), message, hint=hint)


def _check_name(
    found: RuleFindings, document: Mapping[str, Json], stem: str | None
) -> None:
    name = document.get("name")
    if not isinstance(name, str):
        return
    if not NAME_PATTERN.fullmatch(name):
        message = f"name '{name}' has the wrong form"
        hint = "use lower-case letters, digits and single hyphens: solve-issue"
        found.add("S5", ("name",), message, hint=hint)
    elif stem is not None and name != stem:
        message = f"name '{name}' is not the file's name '{stem}'"
        hint = f"name the workflow '{stem}' or the file '{name}.yaml'"
        found.add("S6", ("name",), message, hint=hint)


def _check_roles(
    found: RuleFindings, roles: Mapping[str, Json], draft: Draft, *, older: bool
) -> None:
    seen: dict[str, str] = {}
    for name, role in roles.items():
        if is_free(name):
            continue
        path: ValuePath = ("roles", name)
        if name in RESERVED:
            hint = "give the role another name"
            message = f"'{name}' is reserved and cannot be a role"
            found.add("R1", path, message, hint=hint, key=True)
            continue
        _check_role_name(found, path, name, seen)
        if isinstance(role, dict):
            draft.roles[name] = role
            _check_role(found, path, role, older=older)
        else:
            draft.roles[name] = {}
            _check_type(found, path, role, _MAPPING)
    if not draft.roles and not any(name in RESERVED for name in roles):
        hint = "add at least one role"
        found.add("S12", ("roles",), "the workflow has no role", hint=hint, key=True)


def _check_role(
    found: RuleFindings, path: ValuePath, role: Mapping[str, Json], *, older: bool
) -> None:
    if "workflow" not in role:
        _check_fields(found, path, role, _ROLE_FIELDS, older=older)
        return
    _check_fields(found, path, role, _CHILD_FIELDS, older=older)
    name = role["workflow"]
    if isinstance(name, str) and not NAME_PATTERN.fullmatch(name):
        message = f"'{name}' is not the name of a workflow"
        hint = "name a registered workflow, or a file of .workflows/ without '.yaml'"
        found.add("S5", (*path, "workflow"), message, hint=hint)


def _check_role_name(
    found: RuleFindings, path: ValuePath, name: str, seen: dict[str, str]
) -> None:
    if not _ROLE_NAME.fullmatch(name):
        message = f"role name '{name}' has the wrong form"
        hint = "use up to 64 letters, digits, '-' and '_', a letter first"
        found.add("S7", path, message, hint=hint, key=True)
    earlier = seen.setdefault(name.casefold(), name)
    if earlier != name:
        message = f"role names '{earlier}' and '{name}' differ in case only"
        found.add("S9", path, message, hint="rename one of them", key=True)


def _check_graph(found: RuleFindings, graph: Mapping[str, Json], draft: Draft) -> None:
    for name, node in graph.items():
        if is_free(name):
            continue
        path: ValuePath = ("graph", name)
        if isinstance(node, dict):
            draft.nodes[name] = list(_check_statuses(found, path, name, node))
        elif isinstance(node, list):
            draft.listed.add(name)
            if not node:
                message = f"'{name}' has an empty list of targets"
                hint = "add an entry with 'role:' and 'prompt:'"
                found.add("S12", path, message, hint=hint)
            draft.nodes[name] = [
                _check_target(found, (*path, index), target, _LISTED_FIELDS)
                for index, target in enumerate(node)
            ]
        else:
            draft.nodes[name] = []
            draft.whole = False
            _check_type(found, path, node, _MAPPING)
    edges = [edge for node in draft.nodes.values() for edge in node]
    draft.whole = draft.whole and all(edge.role is not None for edge in edges)


def _check_statuses(
    found: RuleFindings, path: ValuePath, name: str, node: Mapping[str, Json]
) -> Iterator[DraftEdge]:
    for status, target in node.items():
        if is_free(status):
            continue
        own = (*path, status)
        if name != START and not is_status(status):
            message, hint = describe_bad_status(status)
            found.add("S8", own, message, hint=hint, key=True)
        yield _check_target(found, own, target, _TARGET_FIELDS)


def _check_target(
    found: RuleFindings, path: ValuePath, target: Json, fields: Mapping[str, _Field]
) -> DraftEdge:
    values: Mapping[str, Json] = target if isinstance(target, dict) else {}
    if isinstance(target, dict):
        _check_fields(found, path, target, fields)
    else:
        _check_type(found, path, target, _MAPPING)
    prompt = values.get("prompt")
    if isinstance(prompt, str) and not prompt.strip():
        hint = "say what the next role has to do"
        found.add("S4", (*path, "prompt"), "the prompt is blank", hint=hint)
    return DraftEdge(
        source=str(path[1]),
        status=path[2] if isinstance(path[2], str) else None,
        path=path,
        role=_text(values.get("role")),
        prompt=_text(prompt),
        location=_text(values.get("location")),
    )


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def is_status(text: str) -> bool:
    """Whether a text may be a ``$status``."""
    return 0 < len(text) <= _STATUS_MAX and text.isprintable() and text == text.strip()


def describe_bad_status(text: str) -> tuple[str, str]:
    """Return message and hint for a text that may not be a ``$status``."""
    return (
        f"status '{text[:_STATUS_MAX]}' has the wrong form",
        "use 1 to 64 printable characters without blanks at the ends",
    )
