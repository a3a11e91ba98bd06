"""Rule L1: forms of earlier times, which are named, not guessed at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from uwfgit.constants import START
from uwfgit.model.located import Path
from uwfgit.model.rules_report import Findings
from uwfgit.store.canonical import Json

_ROLE_FORMS: Final = {
    "meta": "name the schema 'frontmatter'",
    "outputSchema": "name the schema 'frontmatter'",
    "systemPrompt": "write 'goal', 'capabilities', 'procedure' and 'output'",
    "identity": "name it 'goal'",
    "prepare": "make it part of 'procedure'",
    "execute": "make it part of 'procedure'",
    "report": "name it 'output'",
}
_PHASES: Final = frozenset(("identity", "prepare", "execute", "report"))
_UNIT: Final = "_"


class _Sighting(NamedTuple):
    form: str
    path: Path
    hint: str


def check_legacy(found: Findings) -> bool:
    """Report rule L1, each form once; tell whether there is an older form."""
    seen: set[str] = set()
    for form, path, hint in _sightings(found.doc.value):
        if form not in seen:
            seen.add(form)
            message = f"{form} is an older form"
            found.add("L1", path, message, hint=hint, key=True)
    return bool(seen)


def _sightings(document: Json) -> Iterator[_Sighting]:
    if not isinstance(document, dict):
        return
    if "conditions" in document:
        hint = "write each expression as 'when:' where it is used"
        yield _Sighting("'conditions'", ("conditions",), hint)
    if isinstance(document.get("rules"), list):
        hint = "write a 'graph' of statuses, or of lists of targets"
        yield _Sighting("'rules'", ("rules",), hint)
    roles = document.get("roles")
    for name, role in (roles if isinstance(roles, dict) else {}).items():
        yield from _role_sightings(("roles", name), role)
    graph = document.get("graph")
    for name, node in (graph if isinstance(graph, dict) else {}).items():
        yield from _node_sightings(("graph", name), name, node)


def _role_sightings(path: Path, role: Json) -> Iterator[_Sighting]:
    if not isinstance(role, dict):
        return
    for name, hint in _ROLE_FORMS.items():
        if name in role:
            # identity, prepare, execute and report are one form.
            form = "a role of identity, prepare, execute and report"
            yield _Sighting(
                form if name in _PHASES else f"'{name}'", (*path, name), hint
            )


def _node_sightings(path: Path, name: str, node: Json) -> Iterator[_Sighting]:
    if isinstance(node, dict) and _UNIT in node:
        if name == START:
            hint = "write the edges 'new' and 'resume'"
            yield _Sighting("'$START' with '_'", (*path, _UNIT), hint)
        else:
            hint = "name the status: 'done', in the graph and as $status const"
            yield _Sighting("status '_'", (*path, _UNIT), hint)
    targets = (
        enumerate(node)
        if isinstance(node, list)
        else (node.items() if isinstance(node, dict) else ())
    )
    for key, target in targets:
        if isinstance(target, dict) and "condition" in target:
            hint = "write the expression itself as 'when:'"
            yield _Sighting("'condition'", (*path, key, "condition"), hint)
