"""A workflow as the document its file would hold (pure)."""

from __future__ import annotations

from msgspec import to_builtins

from uwfgit.model.workflow.workflow import Role, Target, Workflow


def workflow_document(workflow: Workflow) -> dict[str, object]:
    """Return a workflow as a document of the current form."""
    document: dict[str, object] = {
        "version": workflow.version,
        "name": workflow.name,
        "description": workflow.description,
        "roles": roles_payload(workflow),
        "graph": graph_payload(workflow),
    }
    if workflow.inputs is not None:
        document["inputs"] = dict(workflow.inputs)
    return {**document, **workflow.extra}


def roles_payload(workflow: Workflow) -> dict[str, object]:
    """Return the roles as JSON, schemas in full."""
    return {name: _role(role) for name, role in workflow.roles.items()}


def _role(role: Role) -> dict[str, object]:
    if role.workflow is not None:
        payload: dict[str, object] = {
            "description": role.description,
            "workflow": role.workflow,
            "frontmatter": dict(role.schema),
        }
        if role.inputs is not None:
            payload["inputs"] = dict(role.inputs)
        return payload
    return {
        "description": role.description,
        "goal": role.goal,
        "capabilities": list(role.capabilities),
        "procedure": role.procedure,
        "output": role.output,
        "frontmatter": dict(role.schema),
    }


def graph_payload(workflow: Workflow) -> dict[str, object]:
    """Return the graph as JSON; what an edge does not have is left out."""
    graph: dict[str, object] = {}
    for name, edges in workflow.graph.items():
        if isinstance(edges, tuple):
            graph[name] = [_edge(target) for target in edges]
        else:
            graph[name] = {status: _edge(target) for status, target in edges.items()}
    return graph


def _edge(target: Target) -> dict[str, object]:
    fields = ("role", "when", "prompt", "location")
    values = to_builtins(target)
    return {name: values[name] for name in fields if values.get(name) is not None}
