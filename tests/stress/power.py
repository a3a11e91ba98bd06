"""Cut the power at random instants, and look at what the disk then holds.

``python tests/stress/power.py 100 [SEED]`` runs it at length. A command runs under
strace, which tells every change it makes to the store and every wait for the disk.
The store is then made as a loss of power would have left it: what was waited for is
there; of the rest, each file has its old content, its new one or a part of that, each
block that was written over is as before or as after, and so is each name of a folder.
Everything that had been reported is
there, ``git fsck --strict`` is clean, and the next command works.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.builders import git
from tests.planted import GITHUB
from tests.stress.forked import call, list_threads, open_ledger, prepare_user
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.ledger import find_node
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.layout import TRASH_PREFIX

_CALLS: Final = (
    "openat,close,write,pwrite64,lseek,ftruncate,rename,renameat,renameat2,"
    "unlink,unlinkat,link,linkat,mkdir,mkdirat,rmdir,fsync,fdatasync"
)
_LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+)")
_SPLIT = re.compile(r"(\d+) +(?:(.*) <unfinished \.\.\.>|<\.\.\. \w+ resumed>(.*))")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?|<((?:\\x[0-9a-f]{2})*)>')
_STEP = re.compile(r"^step (\d+) ", re.MULTILINE)
_NEW = re.compile(r'"threadId": "([0-9A-Z]{26})"')
_HASH = re.compile(r"^[0-9A-F][0-9A-HJKMNP-TV-Z]{12}$", re.MULTILINE)
_BLOCK: Final = 4096
_PASSING: Final = ("-shm",)
"""Ends of the names of files whose content nobody reads after a start."""


@dataclass(slots=True, eq=False)
class File:
    """What a file holds, and what of it is on disk."""

    now: bytearray = field(default_factory=bytearray)
    safe: bytes = b""
    least: int = 0
    """How short it has been since it was waited for."""

    def cut(self, size: int) -> None:
        del self.now[size:]
        self.least = min(self.least, size)

    def sync(self) -> None:
        self.safe, self.least = bytes(self.now), len(self.now)


@dataclass(slots=True, eq=False)
class Folder:
    """The names in a folder, and those that are on disk."""

    now: dict[str, File | Folder] = field(default_factory=dict)
    safe: dict[str, File | Folder] = field(default_factory=dict)


@dataclass(slots=True)
class Disk:
    """A store as the program sees it and as the disk has it."""

    path: Path
    root: Folder = field(default_factory=Folder)
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    out: bytes = b""

    def find(self, path: str) -> File | Folder | None:
        found: File | Folder | None = self.root
        for name in Path(path).relative_to(self.path).parts:
            found = found.now.get(name) if isinstance(found, Folder) else None
        return found

    def folder(self, path: str) -> Folder:
        found = self.find(str(Path(path).parent))
        assert isinstance(found, Folder), path
        return found

    def covers(self, path: str) -> bool:
        return path == str(self.path) or path.startswith(f"{self.path}/")

    def sync(self, path: str) -> None:
        found = self.find(path)
        if isinstance(found, File):
            found.sync()
        elif found is not None:
            found.safe = dict(found.now)
        # A file system's journal keeps order: folders it needs, and one that was
        # made and then waited for, are there by then.
        above = self.root
        for name in Path(path).relative_to(self.path).parts:
            below = above.now[name]
            if isinstance(below, Folder):
                above.safe[name] = below
                above = below


def scan(path: Path) -> Folder:
    """Take a folder as it is: all of it is on disk."""
    folder = Folder()
    for each in path.iterdir():
        if each.is_dir():
            folder.now[each.name] = scan(each)
        else:
            file = folder.now[each.name] = File(now=bytearray(each.read_bytes()))
            file.sync()
    folder.safe = dict(folder.now)
    return folder


def _lines(log: Path) -> Iterator[tuple[str, str, int]]:
    """Give each call that succeeded, whole: name, arguments and result."""
    begun: dict[str, str] = {}
    for line in log.read_text(errors="replace").splitlines():
        half = _SPLIT.fullmatch(line)
        if half and half[2] is not None:
            begun[half[1]] = half[2]
            continue
        whole = f"{half[1]} {begun.pop(half[1], '')}{half[3]}" if half else line
        match = _LINE.match(whole)
        if match and int(match[4]) >= 0:
            yield match[2], match[3], int(match[4])


def _texts(arguments: str) -> tuple[list[bytes], list[str]]:
    """Give what stands in quotes, and the paths of descriptors."""
    quoted, paths = [], []
    for text, cut, path in _TEXT.findall(arguments):
        assert not cut, "strace cut what was written"
        data = bytes.fromhex((text or path).replace("\\x", ""))
        if path:
            paths.append(os.fsdecode(data).removesuffix(" (deleted)"))
        else:
            quoted.append(data)
    return quoted, paths


def apply(disk: Disk, name: str, arguments: str, result: int) -> None:
    """Do to the disk what one call of the program did."""
    quoted, paths = _texts(arguments)
    number = arguments.partition("<")[0]
    if name == "write" and number == "1":
        disk.out += quoted[0][:result]
        return
    if name == "openat":
        base = paths[0] if paths else "/"
        path = os.path.join(base, os.fsdecode(quoted[0]))  # noqa: PTH118 - text, as the kernel has it
        if disk.covers(path):
            _open(disk, path, arguments, result)
    elif name in {"write", "pwrite64", "lseek", "ftruncate", "fsync", "fdatasync"}:
        if paths and disk.covers(paths[0]):
            _change(disk, name, (number, paths[0]), arguments, quoted, result)
    elif name != "close":
        bases = iter(paths)
        named = [os.fsdecode(each) for each in quoted]
        at = name.endswith(("at", "at2"))
        whole = [os.path.join(next(bases, "/") if at else "/", n) for n in named]  # noqa: PTH118 - as above
        if all(map(disk.covers, whole)):
            _rename(disk, name, whole)


def _open(disk: Disk, path: str, arguments: str, result: int) -> None:
    if "O_DIRECTORY" in arguments or not Path(path).name:
        return
    found = disk.find(path)
    if found is None and "O_CREAT" in arguments:
        found = disk.folder(path).now[Path(path).name] = File()
    if isinstance(found, File):
        if "O_TRUNC" in arguments:
            found.cut(0)
        start = -1 if "O_APPEND" in arguments else 0
        disk.places[str(result), path] = start


def _change(
    disk: Disk,
    name: str,
    key: tuple[str, str],
    arguments: str,
    quoted: list[bytes],
    result: int,
) -> None:
    file = disk.find(key[1])
    if name in {"fsync", "fdatasync"}:
        disk.sync(key[1])
    elif not isinstance(file, File):
        return
    elif name == "lseek":
        disk.places[key] = result
    elif name == "ftruncate":
        size = int(arguments.rpartition(",")[2])
        file.cut(size)
        file.now.extend(bytes(size - len(file.now)))
    else:
        place = disk.places.get(key, 0)
        if name == "pwrite64":
            start = int(arguments.rpartition(",")[2])
        else:
            start = len(file.now) if place < 0 else place
        file.now.extend(bytes(max(0, start - len(file.now))))
        file.now[start : start + result] = quoted[0][:result]
        if name == "write" and place >= 0:
            disk.places[key] = start + result


def _rename(disk: Disk, name: str, paths: list[str]) -> None:
    folder, last = disk.folder(paths[0]), Path(paths[0]).name
    if name.startswith("mkdir"):
        folder.now[last] = Folder()
    elif name.startswith(("unlink", "rmdir")):
        folder.now.pop(last, None)
    else:
        found = folder.now[last]
        if name.startswith("rename"):
            del folder.now[last]
        disk.folder(paths[1]).now[Path(paths[1]).name] = found


def lose_power(folder: Folder, place: Path, chance: random.Random) -> None:
    """Write what is left of a folder when the power goes."""
    place.mkdir(mode=0o700)
    # In an order that chance alone decides, or a seed would not do it again.
    for name in sorted(folder.now.keys() | folder.safe.keys()):
        found = chance.choice((folder.now, folder.safe)).get(name)
        if isinstance(found, Folder):
            lose_power(found, place / name, chance)
        elif found is not None and not name.endswith(_PASSING):
            data = _left(found, chance)
            (place / name).write_bytes(data)
            (place / name).chmod(0o600)


def _left(file: File, chance: random.Random) -> bytes:
    now, safe = bytes(file.now), file.safe
    if file.least < len(safe):
        return chance.choice((safe, now, now[: chance.randint(0, len(now))]))
    # It was never shorter: what was appended may be there in part, and what was
    # written over in some of its blocks.
    data = bytearray(now[: chance.randint(len(safe), len(now))])
    for start in range(0, len(safe), _BLOCK):
        end = min(start + _BLOCK, len(safe))
        if now[start:end] != safe[start:end] and chance.random() < 0.5:
            data[start:end] = safe[start:end]
    return bytes(data)


@dataclass(slots=True)
class Tally:
    """How often the power went, and what had been reported by then."""

    losses: int = 0
    reported: int = 0


def run_losses(
    folder: Path,
    count: int,
    *,
    seed: int,
    tell: Callable[[str], None] = lambda _: None,
) -> Tally:
    """Lose power so many times, during commands in a new store.

    Raises:
        AssertionError: Something was lost, or stands in the way.
    """
    chance = random.Random(seed)  # noqa: S311 - the seed is printed, to do it again
    prepare_user(folder)
    assert call("thread", "start", "work.yaml", "-p", "first")[0] == 0
    agent = f"stdio:{folder / 'agent'}"
    (thread,) = list_threads(folder)
    assert call("thread", "start", "work.yaml", "-p", "second")[0] == 0
    (second,) = {*list_threads(folder)} - {thread}
    assert call("thread", "start", "work.yaml", "-p", f"not {GITHUB}")[0] == 0
    (third,) = {*list_threads(folder)} - {thread, second}
    commands = (
        ["thread", "exec", thread, "-c", "3", "--agent", agent],
        ["thread", "start", "work.yaml", "-p", "another", "--json"],
        ["thread", "poke", thread, "-p", "again", "--agent", agent],
        ["cas", "put-text", f"text {seed}"],
        ["workflow", "add", "work.yaml"],
        ["thread", "rm", second],
        ["thread", "redact", third],
    )
    tally, store = Tally(), folder / "store"
    each = max(1, count // len(commands))
    for words in commands:
        before = scan(store)
        log = _trace(folder, words)
        after = folder / "after"
        store.rename(after)
        for _ in range(each):
            _lose_once(folder, words, before, log, chance, tally)
            shutil.rmtree(store)
        after.rename(store)
        tell(f"{words[0]} {words[1]}: {each} losses")
    return tally


def _trace(folder: Path, words: list[str]) -> Path:
    log = folder / "trace"
    trace = ["strace", "-f", "-y", "-xx", "-s", "100000000", "-o", str(log)]
    trace += ["-e", f"trace={_CALLS}", sys.executable, "-m", "uwfgit", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(trace, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    return log


def _copied(folder: Folder) -> Folder:
    """Copy a state, all of which is on disk, to go on from."""
    copy = Folder()
    for name, found in folder.now.items():
        if isinstance(found, Folder):
            copy.now[name] = _copied(found)
        else:
            file = copy.now[name] = File(now=bytearray(found.now))
            file.sync()
    copy.safe = dict(copy.now)
    return copy


def _lose_once(
    folder: Path,
    words: list[str],
    before: Folder,
    log: Path,
    chance: random.Random,
    tally: Tally,
) -> None:
    store = folder / "store"
    calls = [
        each
        for each in _lines(log)
        if store.name.encode().hex() in each[1].replace("\\x", "") or each[0] == "write"
    ]
    disk = Disk(path=store, root=_copied(before))
    # Often at the end: what is reported last has had the least time.
    last = chance.choice((len(calls), chance.randint(0, len(calls))))
    for name, arguments, result in calls[:last]:
        apply(disk, name, arguments, result)
    lose_power(disk.root, store, chance)
    for path in store.rglob("*.lock"):
        # The machine starts again after it.
        os.utime(path, (1, 1))
    tally.losses += 1
    _check(folder, words, disk.out.decode(), tally)


def _check(folder: Path, words: list[str], out: str, tally: Tally) -> None:
    store = folder / "store"
    git(store, "fsck", "--strict", "--no-dangling", "--no-progress")
    ledger = open_ledger(folder)
    threads = list_threads(folder)
    for thread in threads:
        record = open_record(ledger.store, thread)
        assert sum(1 for _ in record.iter_steps()) == record.tip.state.steps
        assert ledger.local.is_made_here(record.tip.commit), "a stranger's, it seems"
    for number in _STEP.findall(out):
        tip = load_tip(ledger.store, ThreadId(words[2]))
        assert int(number) <= tip.state.steps, out
        tally.reported += 1
    for found in _NEW.findall(out):
        assert found in threads, out
        tally.reported += 1
    if words[1] in {"rm", "redact"}:
        is_removed = bool(git(store, "for-each-ref", f"{TRASH_PREFIX}{words[2]}"))
        assert is_removed != (words[2] in threads)
        if out.startswith(("removed", "thread ")):
            assert is_removed
            tally.reported += 1
    for found in _HASH.findall(out) if words[0] == "cas" else ():
        assert find_node(ledger, Hash(found)) is not None, out
        tally.reported += 1
    ledger.local.close()
    agent = f"stdio:{folder / 'agent'}"
    code, said = call("thread", "exec", threads[0], "--agent", agent)
    assert code in {0, 3}, said


def _main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000
    _tell(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="power-") as scratch:
        tally = run_losses(Path(scratch) / "it", count, seed=seed, tell=_tell)
    _tell(f"{tally.losses} losses of power, {tally.reported} reports, all of them true")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main()
