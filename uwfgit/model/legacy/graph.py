"""Older forms of the graph: rules, named conditions, edges without a prompt (pure)."""

from __future__ import annotations

from typing import Final

from uwfgit.constants import END, NEW, RESUME, START
from uwfgit.model.findings import is_free, kind_of
from uwfgit.model.legacy.parts import Notes
from uwfgit.model.yaml.edit_marks import (
    MarkedEntry,
    drop,
    entries,
    is_list,
    is_map,
    items,
    make_mark,
    map_entries,
    map_items,
    put,
    put_after,
    rename,
    text_of,
    update,
    with_entries,
    with_items,
)
from uwfgit.model.yaml.located import Mark, ValuePath

LIST_PROMPT: Final = "Continue with your part of the task."
UNIT: Final = "_"
"""Status of a role that had only one way to end."""

_STATES: Final = {"__start__": START, "__end__": END}
_RULE_FIELDS: Final = ("from", "to", "when", "prompt", "location")
_TARGET_FIELDS: Final = ("role", "prompt", "location", "when")


def mend_rules(root: Mark, notes: Notes) -> Mark:
    """Write ``rules`` as a graph of lists."""
    rules = root.child("rules")
    key = root.key("rules")
    if rules is None or key is None or not is_list(rules):
        return root
    if "graph" in root.value:
        hint = "keep the graph, and remove the rules"
        notes.fail("'rules' stands beside 'graph'", ("rules",), key, hint=hint)
        return root
    nodes: dict[str, tuple[Mark, list[Mark]]] = {}
    for index, rule in enumerate(items(rules)):
        path: ValuePath = ("rules", index)
        problem = _find_wrong(rule)
        if problem is not None:
            hint = "write {from: ROLE, to: ROLE, when: EXPRESSION}"
            notes.fail(f"a rule {problem}", path, rule, hint=hint)
            return root
        _add_rule(nodes, rule)
    for role, at, _ in entries(root.child("roles")):
        if role not in nodes and not is_free(role):
            nodes[role] = (at, [])
    graph = with_entries(
        make_mark({}, key),
        (
            MarkedEntry(n, make_mark(n, at), _list_of(at, e))
            for n, (at, e) in nodes.items()
        ),
    )
    action = "write a 'graph' of lists, each with a last entry to $END"
    notes.tell("'rules'", ("rules",), key, action=action)
    return rename(put(root, "rules", graph), "rules", "graph")


def _find_wrong(rule: Mark) -> str | None:
    if not is_map(rule):
        return f"is {kind_of(rule.value)}, not a mapping"
    for name in ("from", "to"):
        if text_of(rule.child(name)) is None:
            return f"has no '{name}' of text"
    unknown = [n for n in rule.value if n not in _RULE_FIELDS and not is_free(n)]
    return f"has a field '{unknown[0]}', which is not known" if unknown else None


def _add_rule(nodes: dict[str, tuple[Mark, list[Mark]]], rule: Mark) -> None:
    by_name = {entry.name: entry for entry in entries(rule)}
    source, target = by_name.pop("from"), by_name.pop("to")
    name = str(_STATES.get(source.value.value, source.value.value))
    role = _STATES.get(target.value.value)
    role_mark = target.value if role is None else make_mark(role, target.value)
    when = by_name.get("when")
    if when is not None and when.value.value is None:
        del by_name["when"]
    edge = with_entries(
        make_mark({}, rule),
        (MarkedEntry("role", target.key, role_mark), *by_name.values()),
    )
    nodes.setdefault(name, (source.value, []))[1].append(edge)


def _list_of(at: Mark, edges: list[Mark]) -> Mark:
    """Make a list that ends at ``$END``, as the rules did when none held."""
    if not edges or edges[-1].value.get("when") is not None:
        edges = [*edges, make_mark({"role": END}, at)]
    return with_items(make_mark([], at), (_with_prompt(edge) for edge in edges))


def _with_prompt(edge: Mark) -> Mark:
    if edge.value.get("prompt") is not None:
        return edge
    after = "when" if "when" in edge.value else "role"
    return put_after(edge, "prompt", make_mark(LIST_PROMPT, edge), after=after)


def mend_conditions(root: Mark, notes: Notes) -> Mark:
    """Write named conditions where they are used."""
    key = root.key("conditions")
    named = _read_conditions(root, notes)
    if named is None:
        return root
    before = len(notes.found.problems)
    root = update(
        root,
        ("graph",),
        lambda graph: map_entries(graph, lambda each: _mend_node(each, named, notes)),
    )
    failed = any(each.severity == "error" for each in notes.found.problems[before:])
    if key is None or failed:
        return root
    action = "write each expression as 'when:' where it is used"
    notes.tell("'conditions'", ("conditions",), key, action=action)
    return drop(root, "conditions")


def _read_conditions(root: Mark, notes: Notes) -> dict[str, Mark] | None:
    named: dict[str, Mark] = {}
    block, hint = root.child("conditions"), "write each expression as 'when:'"
    if block is not None and not is_map(block) and block.value is not None:
        message = f"'conditions' is {kind_of(block.value)}, not a mapping"
        notes.fail(message, ("conditions",), block, hint=hint)
        return None
    for name, key, value in entries(block):
        expression = value.child("expression") if is_map(value) else value
        if expression is None or text_of(expression) is None:
            message = f"condition '{name}' has no expression"
            notes.fail(message, ("conditions", name), key, hint=hint)
            return None
        named[name] = expression
    return named


def _mend_node(node: MarkedEntry, named: dict[str, Mark], notes: Notes) -> Mark:
    path: ValuePath = ("graph", node.name)
    if is_free(node.name):
        return node.value
    if is_map(node.value):
        for status, _, target in entries(node.value):
            key = target.key("condition") if is_map(target) else None
            if key is not None:
                message = f"the edge of status '{status}' has a condition"
                hint = "a condition stands in a list of edges"
                own = (*path, status, "condition")
                notes.fail(message, own, key, hint=hint)
        return node.value
    return map_items(
        node.value,
        lambda at, edge: _mend_condition((*path, at), edge, named, notes),
    )


def _mend_condition(
    path: ValuePath, edge: Mark, named: dict[str, Mark], notes: Notes
) -> Mark:
    key, value = edge.key("condition"), edge.child("condition")
    if key is None or value is None:
        return edge
    own = (*path, "condition")
    hint = "write the expression itself as 'when:'"
    if "when" in edge.value:
        notes.fail("'condition' stands beside 'when'", own, key, hint="keep one")
        return edge
    if value.value is None:
        notes.tell("'condition'", own, key, action="leave it out where there is none")
        return drop(edge, "condition")
    expression = named.get(value.value) if isinstance(value.value, str) else None
    if expression is None:
        message = f"condition '{value.value}' is not among 'conditions'"
        notes.fail(message, own, value, hint=hint)
        return edge
    notes.tell("'condition'", own, key, action=hint)
    return rename(put(edge, "condition", expression), "condition", "when")


def mend_targets(entry: MarkedEntry, notes: Notes) -> Mark:
    """Give a list's edges their prompts, and ``$START`` its two edges."""
    path: ValuePath = ("graph", entry.name)
    node = entry.value
    if is_list(node):
        return map_items(node, lambda at, edge: _mend_prompt((*path, at), edge, notes))
    if entry.name == START and is_map(node) and UNIT in node.value:
        return _mend_start(path, node, notes)
    return node


def _mend_prompt(path: ValuePath, edge: Mark, notes: Notes) -> Mark:
    if not is_map(edge) or "role" not in edge.value:
        return edge
    nothing = edge.child("prompt")
    if nothing is not None and nothing.value is not None:
        return edge
    unknown = [n for n in edge.value if n not in _TARGET_FIELDS and not is_free(n)]
    if notes.is_misspelt("prompt", unknown):
        return edge
    action = f"add 'prompt: {LIST_PROMPT}'"
    notes.tell("a list edge without a prompt", path, nothing or edge, action=action)
    if nothing is not None:
        return put(edge, "prompt", make_mark(LIST_PROMPT, nothing))
    return _with_prompt(edge)


def _mend_start(path: ValuePath, node: Mark, notes: Notes) -> Mark:
    key, target = node.key(UNIT), node.child(UNIT)
    if key is None or target is None:
        return node
    beside = [name for name in (NEW, RESUME) if name in node.value]
    own = (*path, UNIT)
    if beside:
        message = f"'{UNIT}' stands beside '{beside[0]}'"
        notes.fail(message, own, key, hint="keep 'new' and 'resume'")
        return node
    action = "write the edges 'new' and 'resume'"
    notes.tell(f"'$START' with '{UNIT}'", own, key, action=action)
    return put_after(rename(node, UNIT, NEW), RESUME, target, after=NEW)
