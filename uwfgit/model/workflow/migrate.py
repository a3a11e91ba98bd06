"""Workflow files brought to the current form by editing their text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import Problem, WorkflowError
from uwfgit.model.findings import RuleFindings
from uwfgit.model.legacy.read import (
    Normalised,
    Sighting,
    normalise_document,
    put_version,
)
from uwfgit.model.rules.shape import check_shape
from uwfgit.model.workflow.include import open_includes
from uwfgit.model.workflow.source import read_file
from uwfgit.model.yaml.apply_changes import Left, Rewritten, rewrite_text
from uwfgit.model.yaml.core import read_yaml
from uwfgit.model.yaml.edit_marks import MarkedEntry, entries, is_map, text_of
from uwfgit.model.yaml.edits import EditError
from uwfgit.model.yaml.line_ends import with_ends_of
from uwfgit.model.yaml.located import IncludeReader, Located, SourcePlace
from uwfgit.model.yaml.problems import sort_problems
from uwfgit.store.canonical import format_path
from uwfgit.store.files import write_over

_BOM = "\ufeff"


class MigrationChange(Struct, frozen=True, kw_only=True):
    """One thing that is done to a file, with the place it had before."""

    form: str
    action: str
    path: str | None
    place: SourcePlace


class Migration(Struct, frozen=True, kw_only=True):
    """A file's text before and after; ``problems`` is what could not be done."""

    before: str
    text: str
    changes: tuple[MigrationChange, ...] = ()
    problems: tuple[Problem, ...] = ()


def migrate_file(path: Path, *, shown: Path | None = None) -> Migration:
    """Say what a workflow file would be in the current form; nothing is written.

    Args:
        path: The file.
        shown: How problems name it.

    Raises:
        NotFoundError: There is no such file.
        WorkflowError: It cannot be read as YAML.
    """
    return migrate_text(
        read_file(path),
        file=str(shown or path),
        include=open_includes(path, shown=shown),
    )


def migrate_text(
    content: bytes, *, file: str | None = None, include: IncludeReader | None = None
) -> Migration:
    """Bring a file's content to the current form (pure).

    Comments and layout stay. Doing it again changes nothing.

    Raises:
        WorkflowError: It cannot be read as YAML.
    """
    located = _read(content, file, include)
    before = content.decode()
    if not isinstance(located.value, dict):
        found = RuleFindings(doc=located)
        check_shape(found, stem=None, older=False)
        return Migration(before=before, text=before, problems=tuple(found.problems))
    normalised = _normalise(located)
    problems = [each for each in normalised.problems if each.severity == "error"]
    if normalised.doc is located:
        return Migration(before=before, text=before, problems=tuple(problems))
    sightings, changes = normalised.sightings, _changes(located, normalised)
    remarked = _remark_conditions(located, normalised)
    if remarked is not None:
        located = _read(remarked.encode(), file, include)
        normalised = _normalise(located)
    rewritten = _rewrite(located, normalised, file, include)
    if rewritten is None:
        found = RuleFindings(doc=located)
        found.add(
            "L1",
            (),
            "the file cannot be brought to the current form by editing its text",
            hint="write each collection on lines of its own, without anchors, and "
            "try again",
        )
        problems += found.problems
        return Migration(before=before, text=before, problems=sort_problems(problems))
    bom = _BOM if before.startswith(_BOM) else ""
    problems += _left(located, rewritten.left, sightings)
    unreached = {mark.source.file for _, mark in rewritten.left}
    return Migration(
        before=before,
        text=bom + rewritten.text,
        changes=tuple(each for each in changes if each.place.file not in unreached),
        problems=sort_problems(problems),
    )


def _read(content: bytes, file: str | None, include: IncludeReader | None) -> Located:
    located, problems = read_yaml(content, file=file, include=include)
    if problems or located is None:
        raise WorkflowError(problems)
    return located


def _normalise(located: Located) -> Normalised:
    normalised = normalise_document(located)
    root = normalised.doc.mark
    if is_map(root) and "version" not in root.value:
        doc = replace(normalised.doc, mark=put_version(root))
        return replace(normalised, doc=doc)
    return normalised


def _remark_conditions(located: Located, normalised: Normalised) -> str | None:
    """Write names and descriptions of conditions as comments above their block.

    The block goes, and what is written where they are used is the expression
    alone. ``None`` where there is nothing to keep, or no line to keep it on.
    """
    root = located.mark
    key, block = root.key("conditions"), root.child("conditions")
    if key is None or "conditions" in normalised.doc.value or key.start < 0:
        return None
    text = root.source.text
    at = text.rfind("\n", 0, key.start) + 1
    if text[at : key.start].strip():
        return None
    lines = [f"#   {_described(entry)}\n" for entry in entries(block)]
    if not lines:
        return None
    heading = "# Conditions, which stand where they are used:\n"
    return with_ends_of(text, "".join((text[:at], heading, *lines, text[at:])))


def _described(entry: MarkedEntry) -> str:
    told = text_of(entry.value.child("description")) if is_map(entry.value) else None
    expression = entry.value.child("expression") if is_map(entry.value) else entry.value
    said = f"{entry.name}: {told or text_of(expression) or ''}"
    line = "".join(each if each.isprintable() else " " for each in said)
    return " ".join(line.split())


def _rewrite(
    located: Located,
    normalised: Normalised,
    file: str | None,
    include: IncludeReader | None,
) -> Rewritten | None:
    """Edit the text; ``None`` when no edit gives a text that reads as it shall."""
    for fine in (True, False):
        old, new = located.mark, normalised.doc.mark
        with contextlib.suppress(EditError, WorkflowError):
            rewritten = rewrite_text(old.source, old, new, fine=fine)
            again = _read(rewritten.text.encode(), file, include)
            if _normalise(again).doc.value == normalised.doc.value:
                return rewritten
    return None


def _changes(located: Located, normalised: Normalised) -> tuple[MigrationChange, ...]:
    changes = [
        MigrationChange(
            form=sighting.form,
            action=sighting.action,
            path=format_path(sighting.path) or None,
            place=sighting.place,
        )
        for sighting in dict.fromkeys(normalised.sightings)
    ]
    if "version" not in located.value:
        action = f"add 'version: {normalised.doc.value['version']}'"
        changes.append(
            MigrationChange(
                form="no 'version'",
                action=action,
                path="version",
                place=located.mark.place,
            )
        )
    return tuple(sorted(changes, key=lambda each: (each.place.line, each.place.column)))


def _left(
    located: Located, left: Iterable[Left], sightings: Iterable[Sighting]
) -> list[Problem]:
    found = RuleFindings(doc=located)
    actions: dict[str | None, list[str]] = {}
    for each in dict.fromkeys(sightings):
        actions.setdefault(each.place.file, []).append(each.action)
    for path, mark in left:
        file = mark.source.file
        message = (
            f"'{file or 'an included file'}' has older forms, and is included here"
        )
        ways = "; ".join(dict.fromkeys(actions.get(file, ())))
        hint = f"change that file by hand: {ways}" if ways else "change it by hand"
        found.add("L1", path, message, hint=hint, place=mark.place)
    return found.problems


def write_migrated(path: Path, migration: Migration) -> None:
    """Put the new text in the file's place, at once, with the file's own mode."""
    real = path.resolve()
    mode = real.stat().st_mode & 0o7777
    write_over(real, migration.text.encode(), mode=mode, fsync=True)
