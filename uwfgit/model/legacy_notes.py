"""What was met on the way to the current form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from uwfgit.model.located import Mark, Path, Place
from uwfgit.model.rules_report import Findings

_MIGRATE = "or run: uwf workflow migrate"


class Sighting(NamedTuple):
    """An older form at a place, and what is done about it."""

    form: str
    path: Path
    place: Place
    action: str


@dataclass(slots=True, kw_only=True)
class Notes:
    """Collects older forms: each form once as a warning, each failure as an error."""

    found: Findings
    sightings: list[Sighting] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def tell(
        self,
        form: str,
        path: Path,
        at: Mark,
        *,
        action: str,
        place: Place | None = None,
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
            self.found.add(
                "L1",
                path,
                f"{form} is an older form",
                hint=f"{action}, {_MIGRATE}",
                severity="warning",
                place=where,
            )

    def fail(self, message: str, path: Path, at: Mark, *, hint: str) -> None:
        """Report an older form that cannot be normalised."""
        self.found.add("L1", path, message, hint=hint, place=at.place)

    def is_misspelt(self, name: str, unknown: Iterable[str]) -> bool:
        """Tell whether a missing field is there under a name much like its own."""
        return self.found.find_similar(name, tuple(unknown)) is not None
