"""Older forms of workflow files, read as if migrated (pure).

One function for whoever reads a file and for whoever rewrites it. It changes
marks, so that what is wrong with the result is told where it was written; the
modules beside this one each know one family of forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import WORKFLOW_VERSION
from uwfgit.errors import Problem
from uwfgit.model.findings import RuleFindings, is_free
from uwfgit.model.legacy.graph import mend_conditions, mend_rules, mend_targets
from uwfgit.model.legacy.parts import Notes, Sighting
from uwfgit.model.legacy.roles import mend_role
from uwfgit.model.legacy.schema import mend_statuses
from uwfgit.model.legacy.template import mend_templates
from uwfgit.model.yaml.edit_marks import (
    MarkedEntry,
    is_map,
    make_mark,
    map_entries,
    put_first,
    update,
)
from uwfgit.model.yaml.located import Located, Mark

__all__ = ["Normalised", "Sighting", "normalise_document", "put_version"]

_Mend: TypeAlias = Callable[[MarkedEntry, Notes], Mark]


class Normalised(Struct, frozen=True, kw_only=True):
    """A document in the current form, and what it took.

    ``sightings`` has every place with an older form, ``problems`` each form
    once, and what could not be normalised as errors; with any of these the
    document is only partly of the current form.
    """

    doc: Located
    sightings: tuple[Sighting, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_older(self) -> bool:
        """Whether there was an older form."""
        return bool(self.problems)

    @property
    def is_whole(self) -> bool:
        """Whether everything could be normalised."""
        return all(problem.severity != "error" for problem in self.problems)


def normalise_document(doc: Located) -> Normalised:
    """Read older forms as the current one; a current document stays as it is.

    Doing it again changes nothing.
    """
    if not is_map(doc.mark):
        return Normalised(doc=doc)
    notes = Notes(found=RuleFindings(doc=doc))
    root = mend_rules(doc.mark, notes)
    root = mend_conditions(root, notes)
    root = _mend_each(root, "graph", mend_targets, notes)
    root = _mend_each(root, "roles", mend_role, notes)
    root, renamed = mend_statuses(root, notes)
    root = mend_templates(root, renamed, notes)
    if root is doc.mark and not notes.found.problems:
        return Normalised(doc=doc)
    if "version" not in root.value:
        root = put_version(root)
    return Normalised(
        doc=replace(doc, mark=root),
        sightings=tuple(notes.sightings),
        problems=tuple(notes.found.problems),
    )


def put_version(root: Mark) -> Mark:
    """Return a document without ``version`` the one it is taken for."""
    return put_first(root, "version", make_mark(WORKFLOW_VERSION, root))


def _mend_each(root: Mark, name: str, mend: _Mend, notes: Notes) -> Mark:
    def mend_one(entry: MarkedEntry) -> Mark:
        return entry.value if is_free(entry.name) else mend(entry, notes)

    return update(root, (name,), lambda mark: map_entries(mark, mend_one))
