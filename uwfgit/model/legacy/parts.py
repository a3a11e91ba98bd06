"""A role's ends taken apart: its schema, its edges, its output (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field

from uwfgit.model.findings import RuleFindings, is_free
from uwfgit.model.yaml.edit_marks import (
    entries,
    is_list,
    is_map,
    items,
    put,
    with_items,
)
from uwfgit.model.yaml.located import Mark, SourcePlace, ValuePath
from uwfgit.store.canonical import Json

_MIGRATE = "or run: uwf workflow migrate"
_BY_HAND = "in that file by hand"
"""For a file that is included: migrate rewrites the file it is given, no other."""


class Sighting(NamedTuple):
    """An older form at a place, and what is done about it."""

    form: str
    path: ValuePath
    place: SourcePlace
    action: str


class Notes(Struct, kw_only=True):
    """Collects older forms: each form once as a warning, each failure as an error."""

    found: RuleFindings
    sightings: list[Sighting] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def tell(
        self,
        form: str,
        path: ValuePath,
        at: Mark,
        *,
        action: str,
        place: SourcePlace | None = None,
    ) -> None:
        """Note an older form that was normalised.

        Args:
            form: What it is, as the start of a sentence.
            path: Where it stands, by the keys of the file.
            at: The mark whose place is shown.
            action: What it becomes: an instruction that mends it by hand.
            place: A place inside the mark that is shown instead.
        """
        where = place or at.place
        self.sightings.append(Sighting(form, path, where, action))
        if form not in self._told:
            self._told.add(form)
            is_own = at.source.file == self.found.doc.mark.source.file
            self.found.add(
                "L1",
                path,
                f"{form} is an older form",
                hint=f"{action}, {_MIGRATE if is_own else _BY_HAND}",
                severity="warning",
                place=where,
            )

    def fail(self, message: str, path: ValuePath, at: Mark, *, hint: str) -> None:
        """Report an older form that cannot be normalised."""
        self.found.add("L1", path, message, hint=hint, place=at.place)

    def is_misspelt(self, name: str, unknown: Iterable[str]) -> bool:
        """Whether a missing field is there under a name much like its own."""
        return self.found.find_similar(name, tuple(unknown)) is not None


BRANCHES: Final = ("allOf", "anyOf", "oneOf")
MAX_DEPTH: Final = 40


class RoleEnds(Struct, frozen=True, kw_only=True):
    """A role's schema, its edges and its output, by the keys of the file."""

    name: str
    schema: Mark
    schema_path: ValuePath
    node: Mark | None
    output: Mark | None

    @property
    def node_path(self) -> ValuePath:
        """Where its edges stand."""
        return ("graph", self.name)

    @property
    def drawn(self) -> tuple[str, ...]:
        """The statuses that have an edge."""
        return tuple(e.name for e in entries(self.node) if not is_free(e.name))


def each_branch(
    schema: Mark,
    change: Callable[[ValuePath, Mark], Mark],
    *,
    keys: Iterable[str] = BRANCHES,
) -> Mark:
    """Change the alternatives of a schema; told of each its path from here."""
    for key in keys:
        branches = schema.child(key)
        if branches is None or not is_list(branches):
            continue
        old = items(branches)
        new = [
            change((key, at), each) if is_map(each) else each
            for at, each in enumerate(old)
        ]
        if any(a is not b for a, b in zip(new, old, strict=True)):
            schema = put(schema, key, with_items(branches, new))
    return schema


def objects_of(schema: Json, depth: int = 0) -> list[Mapping[str, Json]]:
    """Return a schema and the alternatives in it: all describe the same object."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return []
    found: list[Mapping[str, Json]] = [schema]
    for key in BRANCHES:
        for branch in branches_of(schema, key):
            found += objects_of(branch, depth + 1)
    return found


def branches_of(schema: Mapping[str, Json], key: str) -> list[Json]:
    """Return the alternatives under a keyword."""
    branches = schema.get(key)
    return branches if isinstance(branches, list) else []


def properties_of(schema: Json) -> Mapping[str, Json]:
    """Return a schema's own properties."""
    own = schema.get("properties") if isinstance(schema, Mapping) else None
    return own if isinstance(own, dict) else {}


def declares(schema: Json, name: str) -> bool:
    """Whether a schema, or an alternative in it, has a property."""
    return any(name in properties_of(each) for each in objects_of(schema))
