"""The rule codes as data, and the list that rules report into."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Final

from msgspec import Struct, field

from uwfgit.errors import Problem, Severity
from uwfgit.model.yaml.located import Located, SourcePlace, ValuePath
from uwfgit.spelling import find_similar
from uwfgit.store.canonical import Json, format_path

RULES: Final[Mapping[str, str]] = {
    "Y1": "the file is not YAML",
    "Y2": "the file is not UTF-8, or holds a character YAML does not allow",
    "Y3": "a file is larger than 1 MiB",
    "Y4": "more than one document in a file",
    "Y5": "a tag that is not known, or not allowed here",
    "Y6": "a key is given twice",
    "Y7": "a key that is not text",
    "Y8": "an alias that names no anchor, or holds itself",
    "Y9": "too many values with aliases expanded",
    "Y10": "nested deeper than 100 levels",
    "Y11": "a number that cannot be stored, or a value its tag does not fit",
    "Y12": "an included file that is not there",
    "Y13": "an include that leads out of the including file's directory",
    "Y14": "files that include each other",
    "Y15": "a file that cannot be read",
    "Y16": "what stands behind ' #' is a comment, and reads like text (warning)",
    "Y17": "git left marks of a conflict, or a pointer of Git LFS, in a file's place",
    "S1": "a field is missing",
    "S2": "a field that is not known (warning)",
    "S3": "a field has the wrong type",
    "S4": "a prompt is blank",
    "S5": "the workflow's name has the wrong form",
    "S6": "the workflow's name is not the file's",
    "S7": "a role's name has the wrong form",
    "S8": "a status has the wrong form",
    "S9": "two role names differ in case only",
    "S10": "no version is given (warning)",
    "S11": "a version this program does not know",
    "S12": "no role, or a list of targets that is empty",
    "S13": "a condition that is no JSONata",
    "R1": "a role has a reserved name",
    "R2": "a graph node that is not a role",
    "R3": "a role without a graph node",
    "G1": "$START is missing or lacks 'new'",
    "G2": "$START lacks 'resume' (warning)",
    "G3": "$END has edges",
    "G4": "$SUSPEND is a graph node",
    "G5": "$SUSPEND is a target",
    "G6": "an edge leads to a role that is not there",
    "G7": "a role cannot be reached from $START",
    "G8": "$END cannot be reached from a role (warning)",
    "C1": "a schema defines a name the engine gives to templates",
    "C2": "a variant without a $status const",
    "C3": "two variants with one $status",
    "C4": "a graph status that the role cannot report",
    "C5": "a status with no edge",
    "C6": "a schema that does not fix $status",
    "C7": "a variant does not require $status (warning)",
    "C8": "a schema declares $SUSPEND, or error (warning)",
    "J1": "a schema that is not valid draft 2020-12",
    "J2": "a schema uses a keyword that is refused",
    "J3": "a required property that is not declared (warning)",
    "J4": "a format that is not known (warning)",
    "J5": "additionalProperties: false refuses what a variant declares (warning)",
    "T1": "a template does not parse",
    "T2": "a template names a variable that is not declared",
    "T3": "a template uses a property that may be absent (warning)",
    "T4": "a $START prompt names a variable that is always empty (warning)",
    "T5": "a template holds Liquid",
    "L1": "an older form (warning; an error where it cannot be read)",
}
"""What each code stands for; every problem of a workflow file has one of them."""

_MAX_SEARCHES: Final = 200
_MAX_KNOWN: Final = 200
_MAX_NAME: Final = 80
_MAX_LISTED: Final = 10
_MAX_MESSAGE: Final = 400


class RuleFindings(Struct, kw_only=True):
    """Collects the problems of one document, each with its place."""

    doc: Located
    problems: list[Problem] = field(default_factory=list)
    searches: int = 0

    def find_similar(self, name: str, known: Collection[str]) -> str | None:
        """Find the known name that was most likely meant.

        A hostile document gets no more than a fixed amount of searching.
        """
        self.searches += 1
        if self.searches > _MAX_SEARCHES or len(name) > _MAX_NAME:
            return None
        folded: dict[str, str] = {}
        for each in islice(known, _MAX_KNOWN):
            if len(each) <= _MAX_NAME:
                folded.setdefault(each.casefold(), each)
        found = find_similar(name, folded)
        return folded[found] if found else None

    def add(
        self,
        code: str,
        path: ValuePath,
        message: str,
        *,
        hint: str,
        key: bool = False,
        severity: Severity = "error",
        place: SourcePlace | None = None,
    ) -> None:
        """Report a problem at a path: at its value, its key, or a given place.

        A problem of a value that could not be read at all is not reported
        again.
        """
        where = place or self.doc.place(path, key=key)
        if where in self.doc.broken:
            return
        self.problems.append(
            Problem(
                code=code,
                message=_one_line(message),
                hint=_one_line(hint),
                path=format_path(path) or None,
                file=where.file,
                line=where.line,
                column=where.column,
                severity=severity,
            )
        )


def list_names(names: Iterable[str]) -> str:
    """Name a few things for a message: ``'a', 'b'``, at most ten."""
    first = list(islice(names, _MAX_LISTED + 1))
    shown = ", ".join(f"'{name}'" for name in first[:_MAX_LISTED])
    return f"{shown} and more" if len(first) > _MAX_LISTED else shown


def _one_line(text: str) -> str:
    """Keep a name from a file from breaking the line, or filling the screen."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"


def is_free(key: Json) -> bool:
    """Whether a key is the author's own (``x-…``)."""
    return isinstance(key, str) and key.startswith("x-")


def kind_of(value: Json) -> str:
    """Name a value's type as a person says it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "a mapping"
