"""What makes a workflow file valid (pure).

The codes stand in ``findings.RULES``; each module beside this one reports one
family of them.
"""

from __future__ import annotations

from uwfgit.errors import OverrunError, Problem
from uwfgit.model.bounded import run_bounded
from uwfgit.model.findings import RULES, RuleFindings
from uwfgit.model.legacy.read import Normalised, normalise_document
from uwfgit.model.rules.graph import FindSyntaxError, check_conditions, check_graph
from uwfgit.model.rules.schema import check_edges, check_schemas
from uwfgit.model.rules.shape import Draft, check_shape
from uwfgit.model.rules.template import check_templates
from uwfgit.model.schema.messages import describe_overrun
from uwfgit.model.yaml.cut_text import find_cuts
from uwfgit.model.yaml.located import Located
from uwfgit.model.yaml.problems import sort_problems

__all__ = ["RULES", "check_document", "check_normalised"]


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
    found = RuleFindings(doc=normalised.doc)
    found.problems.extend(normalised.problems)
    # What an older form leaves out would be reported again by other names.
    is_whole = normalised.is_whole
    draft = check_shape(found, stem=stem, older=not is_whole)
    if is_whole:
        incomplete = _check_roles(found, draft) if draft.has_roles else set()
        check_graph(found, draft, incomplete=incomplete)
    if find_syntax_error is not None:
        check_conditions(found, find_syntax_error)
    _check_comments(found)
    return sort_problems(found.problems)


def _check_comments(found: RuleFindings) -> None:
    """Warn of what YAML cuts off a text: ``goal: Fix #12`` says ``Fix``."""
    seen: set[tuple[str | None, int]] = set()
    for cut in find_cuts(found.doc.mark):
        source = cut.mark.source
        if not cut.is_text or (source.file, cut.start) in seen:
            continue
        seen.add((source.file, cut.start))
        hint = "put the text in quotes, or write '# ' with a blank for a comment"
        message = "what follows ' #' is a comment, and no part of the text"
        place = source.place_at(cut.mark.end)
        found.add("Y16", (), message, hint=hint, severity="warning", place=place)


def _check_roles(found: RuleFindings, draft: Draft) -> set[str]:
    """Check what schemas say; give the roles whose edges are not all known."""

    def check() -> set[str]:
        variants = check_schemas(found, draft)
        incomplete = check_edges(found, draft, variants)
        check_templates(found, draft, variants)
        return incomplete

    try:
        return run_bounded(check, "checking the roles")
    except OverrunError as exc:
        message = describe_overrun(exc).message
        found.add("J1", ("roles",), f"a schema {message}", hint=exc.hint or "")
        return set(draft.roles)
