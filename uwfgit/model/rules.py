"""What makes a workflow file valid, and the workflow a valid one is (pure).

The codes stand in ``rules_report.RULES``; each ``rules_*`` module reports one
family of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from uwfgit.constants import WORKFLOW_VERSION
from uwfgit.errors import Problem
from uwfgit.model.legacy import Normalised, normalise_document
from uwfgit.model.rules_graph import check_graph
from uwfgit.model.rules_report import RULES, Findings, is_free
from uwfgit.model.rules_schema import check_edges, check_schemas
from uwfgit.model.rules_shape import check_shape
from uwfgit.model.rules_template import check_templates
from uwfgit.model.rules_when import FindSyntaxError, check_conditions
from uwfgit.model.workflow import Edges, Role, Target, Workflow
from uwfgit.model.yamlcore import Located, sort_problems
from uwfgit.store.canonical import Json

__all__ = ["RULES", "check_document", "check_normalised", "workflow_from_document"]


def check_document(doc: Located, *, stem: str | None) -> tuple[Problem, ...]:
    """Check a document against every rule, in the order of its lines.

    Args:
        doc: The document.
        stem: The name the workflow must have for its file's sake; ``None``
            when it comes from no file.
    """
    return check_normalised(normalise_document(doc), stem=stem)


def check_normalised(
    normalised: Normalised,
    *,
    stem: str | None,
    find_syntax_error: FindSyntaxError | None = None,
) -> tuple[Problem, ...]:
    """Check a document as :func:`check_document` does, once it is normalised.

    Args:
        normalised: The document.
        stem: The name the workflow must have.
        find_syntax_error: Reads conditions; without it they are not checked.
    """
    found = Findings(doc=normalised.doc)
    found.problems.extend(normalised.problems)
    # What an older form leaves out would be reported again by other names.
    is_whole = normalised.is_whole
    draft = check_shape(found, stem=stem, older=not is_whole)
    if is_whole:
        if draft.has_roles:
            variants = check_schemas(found, draft)
            incomplete = check_edges(found, draft, variants)
            check_templates(found, draft, variants)
        else:
            incomplete = set()
        check_graph(found, draft, incomplete=incomplete)
    if find_syntax_error is not None:
        check_conditions(found, find_syntax_error)
    return sort_problems(found.problems)


def workflow_from_document(doc: Located) -> Workflow:
    """Read a document of the current form that has no error."""
    value = doc.value
    return Workflow(
        version=value.get("version", WORKFLOW_VERSION),
        name=value["name"],
        description=value["description"],
        roles={
            name: _role(role)
            for name, role in value["roles"].items()
            if not is_free(name)
        },
        graph={
            name: _edges(node)
            for name, node in value["graph"].items()
            if not is_free(name)
        },
        inputs=value.get("inputs"),
        extra={name: item for name, item in value.items() if is_free(name)},
    )


def _role(value: Mapping[str, Json]) -> Role:
    return Role(
        description=value["description"],
        goal=value["goal"],
        capabilities=tuple(value["capabilities"]),
        procedure=value["procedure"],
        output=value["output"],
        schema=value["frontmatter"],
    )


def _edges(node: Json) -> Edges:
    if isinstance(node, list):
        return tuple(_target(target) for target in node)
    return {
        status: _target(target)
        for status, target in node.items()
        if not is_free(status)
    }


def _target(value: Mapping[str, Json]) -> Target:
    return Target(
        role=value["role"],
        prompt=value["prompt"],
        location=value.get("location"),
        when=value.get("when"),
    )
