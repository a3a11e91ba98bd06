"""What ``git blame --porcelain`` says, line by line (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from uwfgit.ids import Oid

ZERO: Final = "0"
"""All that the oid of something not committed consists of."""


class Commit(Struct, frozen=True, kw_only=True):
    """A commit as blame tells it; ``is_edge`` when the search ended there."""

    oid: Oid
    author: str
    mail: str
    authored_at: int
    committed_at: int
    summary: str
    is_edge: bool = False

    @property
    def is_uncommitted(self) -> bool:
        """Whether it stands for what is not committed."""
        return set(self.oid) == {ZERO}


class Blame(Struct, kw_only=True):
    """Each line's commit, by number from 1, and the lines themselves."""

    lines: dict[int, Commit] = field(default_factory=dict)
    texts: dict[int, bytes] = field(default_factory=dict)


def parse_blame(output: bytes) -> Blame:
    """Read what ``git blame --porcelain`` wrote."""
    blame = Blame()
    known: dict[bytes, Commit] = {}
    for oid, number, facts, text in _iter_lines(output):
        # git tells a commit once, at the first of its lines.
        if oid not in known:
            known[oid] = _commit(oid, facts)
        blame.lines[number] = known[oid]
        blame.texts[number] = text
    return blame


def _iter_lines(
    output: bytes,
) -> Iterator[tuple[bytes, int, dict[bytes, bytes], bytes]]:
    oid, number, facts = b"", 0, dict[bytes, bytes]()
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            yield oid, number, facts, line[1:]
            oid = b""
        elif not oid:
            if not line:
                continue
            oid, _, place = line.split(b" ")[:3]
            number, facts = int(place), {}
        else:
            key, _, value = line.partition(b" ")
            facts[key] = value


def _commit(oid: bytes, facts: Mapping[bytes, bytes]) -> Commit:
    return Commit(
        oid=Oid(oid.decode()),
        author=facts.get(b"author", b"").decode("utf-8", "replace"),
        mail=facts.get(b"author-mail", b"").decode("utf-8", "replace").strip("<>"),
        authored_at=int(facts.get(b"author-time", b"0")),
        committed_at=int(facts.get(b"committer-time", b"0")),
        summary=facts.get(b"summary", b"").decode("utf-8", "replace"),
        is_edge=b"boundary" in facts,
    )
