"""What the shells ask while one types: ``uwf __complete WORD...``.

It answers within the time of a key press, so it imports next to nothing: the
commands stand in ``words.json``, and names are read off git's own files. A
store that was not made here is only ever listed, never opened.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

FILE: Final = ":file"
FOLDER: Final = ":dir"
"""Lines that ask the shell itself for names of files, or of folders."""

STATUSES: Final = (
    "active",
    "idle",
    "running",
    "suspended",
    "diverged",
    "end",
    "cancelled",
    "corrupt",
    "earlier",
)
_CHOICES: Final = {
    "status": STATUSES,
    "format": ("text", "json", "yaml"),
    "color": ("auto", "always", "never"),
    "form": ("text", "mermaid", "dot"),
    "shell": ("bash", "zsh", "fish"),
}
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_THREAD: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)
_PACKED: Final = re.compile(
    rb"^[0-9a-f]{40} refs/heads/(thread|workflow)/([0-9A-Za-z-]+)$", re.MULTILINE
)
_TRASHED: Final = re.compile(
    rb"^[0-9a-f]{40} refs/uwf/trash/([0-9A-Z]+)$", re.MULTILINE
)
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)
_SETTING: Final = re.compile(
    r"^[ \t]*\[uwf\][^\n]*\n(?:[ \t]*[^\[\n][^\n]*\n|\n)*?"
    r"[ \t]*store[ \t]*=[ \t]*\"?([^\"\n]+?)\"?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_SUFFIX: Final = 4
_MOST_BYTES: Final = 64 * 1024 * 1024

Line = tuple[str, str]
"""A candidate, and what it is."""


def complete(words: list[str]) -> None:
    """Print the candidates for the last word, a line each: value, tab, what it is."""
    try:
        lines = list(find_candidates(words or [""]))
    except OSError:
        lines = []
    text = "".join(
        f"{value}\t{about}\n" if about else f"{value}\n" for value, about in lines
    )
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def find_candidates(words: list[str]) -> Iterator[Line]:
    """Yield what the last word can be."""
    words = _join_equals(words)
    path = os.path.join(os.path.dirname(__file__), "words.json")  # noqa: PTH118, PTH120 - pathlib costs more than all this
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        place = _Place(json.load(file))
    for word in words[:-1]:
        place.take(word)
    current = words[-1]
    if place.wants is not None:
        yield from _values(place.wants, current, place)
    elif not place.is_plain and current.startswith("--") and "=" in current:
        name, _, value = current.partition("=")
        kind = place.options.get(name)
        for found, about in _values(kind or "", value, place):
            is_path = found in {FILE, FOLDER}
            yield (found if is_path else f"{name}={found}"), about
    elif not place.is_plain and current.startswith("-"):
        yield from _starting(current, ((name, "") for name in place.options))
    elif place.commands:
        yield from _starting(current, place.commands.items())
    else:
        yield from _values(place.argument, current, place)


def _join_equals(words: list[str]) -> list[str]:
    """Undo that bash splits ``--name=value``; it wants the value alone."""
    if "=" not in words[-2:]:
        return words
    if words[-1] == "=":
        return [*words[:-1], ""]
    return [*words[:-2], words[-1]]


class _Place:
    """Where a command line has got to."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table
        self.path: list[str] = []
        self.count = 0
        self.wants: str | None = None
        self.is_plain = False
        self.store: str | None = None

    @property
    def entry(self) -> dict[str, Any]:
        found: dict[str, Any] = self.table.get(" ".join(self.path), {})
        return found

    @property
    def options(self) -> dict[str, str]:
        return {**self.entry.get("options", {}), **self.table[""]["options"]}

    @property
    def commands(self) -> dict[str, str]:
        found: dict[str, str] = self.entry.get("commands", {})
        return found

    @property
    def argument(self) -> str:
        kinds: list[str] = self.entry.get("arguments", [])
        if self.count < len(kinds):
            return kinds[self.count]
        return kinds[-1] if kinds and self.entry.get("more") else ""

    def fixed(self, kind: str) -> list[str]:
        values: list[str] = self.table[""].get("values", {}).get(kind, [])
        return values

    def take(self, word: str) -> None:
        if self.wants is not None:
            if self.wants == "store":
                self.store = word
            self.wants = None
        elif word == "--" and not self.is_plain:
            self.is_plain = True
        elif word.startswith("-") and len(word) > 1 and not self.is_plain:
            name, equals, value = word.partition("=")
            if not equals:
                self.wants = self.options.get(name) or None
            elif name == "--store":
                self.store = value
        elif self.commands:
            # An unknown command has no entry, and so nothing to offer.
            self.path.append(word)
        else:
            self.count += 1


def _values(kind: str, current: str, place: _Place) -> Iterator[Line]:
    if kind in _CHOICES:
        done, comma, last = (
            current.rpartition(",") if kind == "status" else ("", "", current)
        )
        for value in _CHOICES[kind]:
            if value.startswith(last):
                yield f"{done}{comma}{value}", ""
    elif kind in {"thread", "removed"}:
        store = _find_store(place.store)
        names = _trash(store) if kind == "removed" else _refs(store, "thread")
        yield from _threads(current, names, with_last=kind == "thread")
    elif kind == "key":
        aliases = _named("agent", place) if current == "agents." else []
        yield from ((f"agents.{name}.", "") for name in aliases)
        yield from dict.fromkeys(_keys(current, place.fixed(kind)))
    elif kind in {"agent", "remote", "role"} or place.fixed(kind):
        found = dict.fromkeys([*_named(kind, place), *place.fixed(kind)])
        yield from _starting(current, ((name, "") for name in found))
    elif kind in {"workflow", "registered"}:
        yield from _workflows(current, kind, _find_store(place.store))
    elif kind == "file":
        yield FILE, ""
    elif kind in {"folder", "store"}:
        yield FOLDER, ""


def _starting(current: str, lines: Iterable[Line]) -> Iterator[Line]:
    return (line for line in lines if line[0].startswith(current))


def _named(kind: str, place: _Place) -> list[str]:
    """Return the names of a kind that stand in files here."""
    from uwfgit.cli.words.names import list_aliases, list_remotes, list_roles

    if kind == "agent":
        return list_aliases(_read(f"{_home()}/config.yaml"))
    if kind == "remote":
        return list_remotes(_read(f"{_find_store(place.store)}/config"))
    return list(list_roles(_workflow_texts())) if kind == "role" else []


def _keys(current: str, keys: Iterable[str]) -> Iterator[Line]:
    """Yield configuration keys as far as their names are fixed."""
    typed = current.split(".")
    for key in keys:
        parts = key.split(".")
        given = [
            word if part == "<name>" and word else part
            for part, word in zip(parts, typed, strict=False)
        ]
        whole = ".".join([*given, *parts[len(given) :]])
        fixed, gap, _ = whole.partition("<name>")
        if fixed.startswith(current) and fixed != current:
            yield fixed if gap else whole, ""


def _threads(current: str, names: Iterable[str], *, with_last: bool) -> Iterator[Line]:
    """Yield thread ids, newest first, by their start or else their end."""
    if with_last and "@last".startswith(current):
        yield "@last", "the one used last here"
    wanted = current.upper()
    names = sorted(filter(_THREAD.fullmatch, names), reverse=True)
    found = [name for name in names if name.startswith(wanted)]
    if not found and len(wanted) >= _SUFFIX:
        found = [name for name in names if name.endswith(wanted)]
    for name in found:
        yield name, _started(name)


def _started(thread: str) -> str:
    at = 0
    for char in thread[:10]:
        at = at * 32 + _ALPHABET.index(char)
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at // 1000))
    except (OverflowError, ValueError, OSError):
        return ""


def _refs(store: str, folder: str) -> set[str]:
    names: set[str] = set()
    try:
        with os.scandir(f"{store}/refs/heads/{folder}") as entries:
            names.update(entry.name for entry in entries)
    except OSError:
        pass
    packed = _read(f"{store}/packed-refs")
    wanted = folder.encode()
    names.update(n.decode() for kind, n in _PACKED.findall(packed) if kind == wanted)
    return names


def _trash(store: str) -> set[str]:
    names: set[str] = set()
    try:
        with os.scandir(f"{store}/refs/uwf/trash") as entries:
            names.update(entry.name for entry in entries)
    except OSError:
        pass
    names.update(n.decode() for n in _TRASHED.findall(_read(f"{store}/packed-refs")))
    return names


def _read(path: str) -> bytes:
    try:
        # Not blocking: a link in a work tree may lead to a pipe, or to a device.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - see above
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return b""
            return file.read(_MOST_BYTES)
    except OSError:
        return b""


def _workflows(current: str, kind: str, store: str) -> Iterator[Line]:
    found: dict[str, str] = {}
    for folder in _workflow_folders() if kind == "workflow" else ():
        for name in _file_names(folder):
            found.setdefault(name, "file")
    for name in _refs(store, "workflow"):
        found.setdefault(name, "registered")
    named = sorted(item for item in found.items() if _NAME.fullmatch(item[0]))
    yield from _starting(current, named)
    if kind == "workflow" and ("/" in current or current.startswith((".", "~"))):
        yield FILE, ""


def _parents() -> Iterator[str]:
    folder = os.getcwd()  # noqa: PTH109 - see above
    while True:
        yield folder
        above = os.path.dirname(folder)  # noqa: PTH120 - see above
        if above == folder:
            return
        folder = above


def _workflow_folders() -> Iterator[str]:
    parents = list(_parents())
    root = next((each for each in parents if _exists(f"{each}/.git")), None)
    for parent in parents:
        for name in (".workflows", ".workflow"):
            if root is not None or _is_own(f"{parent}/{name}"):
                yield f"{parent}/{name}"
        if parent == root:
            break
    yield from _configured_folders()


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - see above


def _is_own(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.getuid()  # noqa: PTH116 - see above
    except OSError:
        return False


def _configured_folders() -> Iterator[str]:
    data = _read(f"{_home()}/config.yaml")
    if b"workflowPaths" not in data:
        return
    import yaml

    try:
        config = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError):
        return
    paths = config.get("workflowPaths") if isinstance(config, dict) else None
    for path in paths if isinstance(paths, list) else ():
        if isinstance(path, str):
            yield os.path.expanduser(path)  # noqa: PTH111 - see above


def _workflow_texts() -> Iterator[bytes]:
    for folder in _workflow_folders():
        for name in _file_names(folder):
            for path in (f"{name}.yaml", f"{name}.yml", f"{name}/index.yaml"):
                yield _read(f"{folder}/{path}")


def _file_names(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - see above
    except OSError:
        return
    for name in names:
        stem, dot, suffix = name.rpartition(".")
        if dot and suffix in {"yaml", "yml"}:
            yield stem.removesuffix(".workflow")
        elif any(_exists(f"{folder}/{name}/index.{end}") for end in ("yaml", "yml")):
            yield name


def _home() -> str:
    given = os.environ.get("UWF_HOME")
    return given or os.path.expanduser("~/.uwf")  # noqa: PTH111 - see above


def _find_store(given: str | None) -> str:
    """Choose the store as the commands do."""
    chosen = given or os.environ.get("UWF_STORE")
    if chosen:
        return os.path.expanduser(chosen)  # noqa: PTH111 - see above
    for parent in _parents():
        if _exists(f"{parent}/.git"):
            return _repository_store(parent)
    return f"{_home()}/store"


def _repository_store(root: str) -> str:
    common = _common_dir(root)
    config = _read(f"{common}/config").decode("utf-8", "replace")
    named = _SETTING.search(config)
    if named:
        path = os.path.expanduser(named[1])  # noqa: PTH111 - see above
        return os.path.join(root, path)  # noqa: PTH118 - see above
    return f"{common}/uwf"


def _common_dir(root: str) -> str:
    """Find the folder that all worktrees of a repository share."""
    pointer = f"{root}/.git"
    if os.path.isdir(pointer):  # noqa: PTH112 - see above
        return pointer
    target = _read(pointer).decode("utf-8", "replace").removeprefix("gitdir:").strip()
    folder = os.path.join(root, target)  # noqa: PTH118 - see above
    common = _read(f"{folder}/commondir").decode("utf-8", "replace").strip()
    return os.path.join(folder, common) if common else folder  # noqa: PTH118 - see above
