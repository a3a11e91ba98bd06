"""What a forgery changes of one commit: small changes, to be named in tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pygit2.enums import ObjectType

from tests.collision import COLLIDING, COLLIDING_HASH
from tests.sync.forge import Change, Draft, amend_step, draft_of, raw_entry, write
from tests.sync.tour import PLAN
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    META_TYPE,
    STEP_TYPE,
    TEXT_TYPE,
    make_node,
    make_text,
)
from uwfgit.model.thread.derive import format_message
from uwfgit.store.canonical import encode_json

OTHER = ThreadId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
ZEROS = Oid("0" * 40)
ONES = Oid("1" * 40)
OUTPUT = rf"nodes/000/00002/1/\w+\.(?!{STEP_TYPE}|{DETAIL_TYPE})\w+\.json"
DETAIL = rf"nodes/000/00002/1/\w+\.{DETAIL_TYPE}\.json"


def put(name: str, text: str = "x\n") -> Change:
    return lambda draft: draft.put(draft.path(name), text.encode())


def edit(ending: str, data: bytes) -> Change:
    """Give a file other bytes, under the name it has."""
    return lambda draft: draft.put(draft.find(ending), data)


def drop(ending: str) -> Change:
    def change(draft: Draft) -> None:
        del draft.files[draft.find(ending)]

    return change


def state(**changes: object) -> Change:
    return lambda draft: draft.state(**changes)


def trailer(key: str, value: str | None) -> Change:
    return lambda draft: draft.trailer(key, value)


def message(old: str, new: str) -> Change:
    return lambda draft: draft.replace(old, new)


def subject(text: str) -> Change:
    """Give an event another first line, and leave the rest of its message."""

    def change(draft: Draft) -> None:
        rest = draft.message.decode().partition("\n")[2]
        draft.message = f"{text}\n{rest}".encode()

    return change


def author(value: str) -> Change:
    def change(draft: Draft) -> None:
        draft.author = value.encode()

    return change


def committer(value: str) -> Change:
    def change(draft: Draft) -> None:
        draft.committer = value.encode()

    return change


def by(value: str) -> Change:
    """Let somebody else commit, at the same time, in all places that name them."""

    def change(draft: Draft) -> None:
        *_, time, zone = draft.committer.decode().split(" ")
        draft.committer = f"{value} {time} {zone}".encode()
        draft.state(updatedBy=value)

    return change


def zone(value: str) -> Change:
    """Let the committer be in another time zone."""

    def change(draft: Draft) -> None:
        draft.committer = draft.committer[: -len("+0000")] + value.encode()

    return change


def agent_zone(value: str) -> Change:
    """Let the author be in another time zone."""

    def change(draft: Draft) -> None:
        draft.author = draft.author[: -len("+0000")] + value.encode()

    return change


def signed(
    *lines: bytes, name: bytes = b"SSH SIGNATURE", header: bytes = b"gpgsig"
) -> Change:
    """Sign with whatever stands between the first and the last line."""

    def change(draft: Draft) -> None:
        first = header + b" -----BEGIN " + name + b"-----"
        last = b" -----END " + name + b"-----"
        draft.headers = [first, *(b" " + line for line in lines), last]

    return change


def ended(at_ms: int) -> Change:
    """Let a step end at another time, in all places that tell it."""

    def change(draft: Draft) -> None:
        amend_step(step={"completedAtMs": at_ms})(draft)
        who, _, when = draft.author.decode().rpartition("> ")
        draft.author = f"{who}> {at_ms // 1000} {when.split()[1]}".encode()
        parent = draft_of(draft.store, Oid(draft.parents[0]))
        before = json.loads(parent.read(draft.path("thread.json")))["updatedAtMs"]
        draft.state(updatedAtMs=max(before, at_ms))

    return change


def many_links(count: int) -> Change:
    """Let an answer's body name as many new texts."""

    def change(draft: Draft) -> None:
        nodes = [make_text(f"filler {number}") for number in range(count)]
        body = " ".join(node.hash for node in nodes)
        amend_step(step={"body": body})(draft)
        for node in nodes:
            draft.put_node(draft.path("nodes/000/00002/1"), node)
        first = draft.message.decode().partition("\n")[0]
        trailers = draft.trailers().items()
        draft.message = format_message(first, body, trailers).encode()

    return change


def header(*lines: bytes) -> Change:
    def change(draft: Draft) -> None:
        draft.headers = list(lines)

    return change


def parents(*oids: str) -> Change:
    def change(draft: Draft) -> None:
        draft.parents += oids

    return change


def mode(value: bytes, oid: str | None = None) -> Change:
    """Give ``prompt.md`` of the newest step another mode, or another object."""

    def change(draft: Draft) -> None:
        path = next(p for p in draft.files if p.endswith("00002-critic/prompt.md"))
        draft.files[path] = (value, Oid(oid or draft.files[path][1]))

    return change


def entry(raw: bytes) -> Change:
    """Append a raw entry to the thread's folder."""

    def change(draft: Draft) -> None:
        draft.raw[f"threads/{draft.thread}"] = raw

    return change


def folder_mode(draft: Draft) -> None:
    draft.folder_mode = b"040000"


def unordered(draft: Draft) -> None:
    draft.ordered = False


def deep(draft: Draft) -> None:
    """Hang a tree 5,000 deep into the thread's folder."""
    oid = write(draft.store, ObjectType.BLOB, b"")
    tree = write(draft.store, ObjectType.TREE, raw_entry(b"100644", b"a", oid))
    for _ in range(5000):
        tree = write(draft.store, ObjectType.TREE, raw_entry(b"40000", b"a", tree))
    draft.raw[f"threads/{draft.thread}"] = raw_entry(b"40000", b"zz", tree)


def bomb(draft: Draft) -> None:
    """Hang eleven trees that name each other ten times into the thread's folder."""
    oid: str = write(draft.store, ObjectType.BLOB, b"")
    kind = b"100644"
    for _ in range(11):
        entries = [raw_entry(kind, b"%d" % number, oid) for number in range(10)]
        oid, kind = write(draft.store, ObjectType.TREE, b"".join(entries)), b"40000"
    draft.raw[f"threads/{draft.thread}"] = raw_entry(b"40000", b"zz", oid)


def wide(draft: Draft) -> None:
    oid = write(draft.store, ObjectType.BLOB, b"")
    entries = [raw_entry(b"100644", b"%05d" % number, oid) for number in range(2001)]
    tree = write(draft.store, ObjectType.TREE, b"".join(entries))
    draft.raw[f"threads/{draft.thread}"] = raw_entry(b"40000", b"zz", tree)


def empty_folder(draft: Draft) -> None:
    tree = write(draft.store, ObjectType.TREE, b"")
    draft.raw[f"threads/{draft.thread}"] = raw_entry(b"40000", b"zz", tree)


def retype(draft: Draft) -> None:
    """Give an output's file the name of another type."""
    path = draft.find(OUTPUT)
    draft.move(path, f"{path.rpartition('.')[0].rpartition('.')[0]}.{ERROR_TYPE}.json")


def collide(draft: Draft) -> None:
    """Put both contents of one hash among a step's nodes, under two types."""
    folder = draft.path("nodes/000/00002/1")
    draft.put(f"{folder}/{COLLIDING_HASH}.{TEXT_TYPE}.md", COLLIDING[0].encode())
    name = f"{COLLIDING_HASH}.{META_TYPE}.json"
    draft.put(f"{folder}/{name}", encode_json(COLLIDING[1]))


def collide_later(draft: Draft) -> None:
    """Put another text under the hash of the plan that an earlier step linked."""
    plan = make_text(PLAN)
    draft.put(draft.path(f"nodes/000/00002/1/{plan.name}"), b"Another plan\n")


def repeat(draft: Draft) -> None:
    draft.put_node(draft.path("nodes/000/00002/1"), make_text(PLAN))


def unreached(draft: Draft) -> None:
    draft.put_node(draft.path("nodes/000/00002/1"), make_text("Nobody names this"))


def large_node(draft: Draft) -> None:
    draft.put(draft.find(DETAIL), bytes(17 * 2**20))


def large_state(draft: Draft) -> None:
    draft.state(suspendMessage="x" * 70_000)


def unknown_rules(draft: Draft) -> None:
    restart(draft, lambda payload: {**payload, "rules": 2})


def restart(draft: Draft, amend: Callable[[Any], Any]) -> None:
    path = draft.find(rf"{draft.trailers()['Uwf-Node']}\.\w+\.json")
    node = make_node(Hash(path.split(".")[-2]), amend(json.loads(draft.read(path))))
    del draft.files[path]
    draft.put_node(draft.path("nodes/start"), node)
    draft.trailer("Uwf-Node", node.hash)
    draft.state(start=node.hash, head=node.hash)


def retask(draft: Draft) -> None:
    restart(draft, lambda payload: {**payload, "prompt": "Another task"})


def stranger(draft: Draft) -> None:
    """Change the folder of a thread that this one does not come from."""
    draft.put(f"threads/{OTHER}/thread.json", b"{}\n")


def hidden(draft: Draft) -> None:
    draft.put(draft.path("nodes/000/00001/secret.md"), b"hidden\n")


def shown(draft: Draft) -> None:
    del draft.files[draft.path("nodes/000/00001/secret.md")]


def not_moved(draft: Draft) -> None:
    for path in [each for each in draft.files if "/replaced/" in each]:
        del draft.files[path]


def moved_wrong(draft: Draft) -> None:
    for path in [each for each in draft.files if "/replaced/1/" in each]:
        draft.move(path, path.replace("/replaced/1/", "/replaced/2/"))


def attempt_two(draft: Draft) -> None:
    for path in [each for each in draft.files if "/attempts/1/" in each]:
        draft.move(path, path.replace("/attempts/1/", "/attempts/2/"))


def no_quote(draft: Draft) -> None:
    subject, _, trailers = draft.message.decode().split("\n\n")
    draft.message = f"{subject}\n\n{trailers}".encode()


def injected(draft: Draft) -> None:
    """Write an agent's text unquoted, so that its last lines are trailers."""
    subject, *_ = draft.message.decode().split("\n\n")
    draft.message = f"{subject}\n\nUwf-Event: step\nUwf-Format: 1\n".encode()
