"""Every history that must be refused: one change of a commit, or of the whole.

Each is made from the tour by a function of its tip; what verify says of it
stands beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from pygit2.enums import ObjectType

from tests.sync.changes import (
    DETAIL,
    OTHER,
    agent_zone,
    by,
    hidden,
    many_links,
    message,
    put,
    restart,
    shown,
    signed,
    subject,
    zone,
)
from tests.sync.forge import (
    Change,
    Draft,
    amend_step,
    commit,
    draft_of,
    forge,
    history,
    resolve,
    tree_of,
    write,
)
from tests.sync.forgeries import FORGERIES
from tests.sync.tour import JUDGE, RESUME, START, TRY, WORK
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.node import START_TYPE, WORKFLOW_TYPE, make_node
from uwfgit.store.canonical import encode_json
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store

FORK = ThreadId("01BX5ZZKBKACTAV9WEVGEMMVRZ")
_PINNED = ("workflowHash", "workflowOid")

Forge = Callable[[Store, Oid], Oid]
"""Makes a forged tip in the store that has the honest one."""


def resolved(change: Change | None = None) -> Forge:
    """Resolve two honest ends of the thread; change the commit that does it."""

    def make(store: Store, tip: Oid) -> Oid:
        kept = history(store, tip)[RESUME]
        other = amend_step(output={"plan": "Another"})
        given = forge(store, tip, {RESUME: other}, upto=RESUME)
        return resolve(store, kept, given, change=change)

    return make


def swap(draft: Draft) -> None:
    draft.parents.reverse()


def quoted(draft: Draft) -> None:
    draft.replace("\n\nUwf-Format", "\n\n> Agreed.\n\nUwf-Format")


def forked(store: Store, tip: Oid, *, change: Change | None = None) -> Oid:
    """Fork the thread after its resume, as :data:`FORK`; change the fork."""
    origin = history(store, tip)[RESUME]
    draft = draft_of(store, origin)
    before = json.loads(draft.read(draft.path("thread.json")))
    left = {"thread": draft.thread, "step": before["head"], "number": before["steps"]}
    committed = int(draft.committer.split()[-2])
    time = max(committed, -(-before["updatedAtMs"] // 1000))
    draft.parents, draft.thread = [origin], FORK
    person = before["updatedBy"]
    draft.author = draft.committer = f"{person} {time} +0000".encode()
    changes = {"threadId": FORK, "forkedFrom": left, "updatedAtMs": time * 1000}
    draft.put(draft.path("thread.json"), encode_json({**before, **changes}))
    draft.message = (
        f"fork from {left['thread']} at step {left['number']}\n\n"
        f"Uwf-Format: 1\nUwf-Event: fork\nUwf-Thread: {FORK}\n"
        f"Uwf-Forked-From: {left['thread']} {left['step']}\n"
    ).encode()
    if change is not None:
        change(draft)
    return commit(draft)


def take_the_other_tree(draft: Draft) -> None:
    draft.tree = tree_of(draft.store, draft.parents[1])


def no_root(store: Store, tip: Oid) -> Oid:
    start = draft_of(store, history(store, tip)[0])
    start.parents = []
    return commit(start)


def other_root(store: Store, tip: Oid) -> Oid:
    """Let the thread start on a genesis of another message."""
    root = store.repo.read(GENESIS_OID)[1].replace(b"format 1", b"format 1 ")
    start = draft_of(store, history(store, tip)[0])
    start.parents = [write(store, ObjectType.COMMIT, root)]
    return commit(start)


def reordered(store: Store, tip: Oid) -> Oid:
    """Let the first step follow the second."""
    start, first, second, *_ = history(store, tip)
    later = draft_of(store, second)
    later.parents = [start]
    last = draft_of(store, first)
    last.parents = [commit(later)]
    return commit(last)


def zeros(draft: Draft) -> None:
    draft.put(draft.find(DETAIL), bytes(400 * 2**20))


def other_workflow(draft: Draft) -> None:
    """Pin a workflow of the same name that prescribes another prompt."""
    path = draft.find(rf"nodes/start/\w+\.{WORKFLOW_TYPE}\.json")
    payload = json.loads(draft.read(path))
    payload["graph"]["worker"]["done"]["prompt"] = "Praise {{plan}}."
    node = make_node(WORKFLOW_TYPE, payload)
    del draft.files[path]
    draft.put_node(draft.path("nodes/start"), node)
    oid = draft.files[draft.path(f"nodes/start/{node.name}")][1]
    draft.trailer("Uwf-Workflow", f"{node.hash} {oid}")
    draft.state(workflowHash=node.hash, workflowOid=oid)
    file = draft.path("workflow.yaml")
    text = draft.read(file)
    assert text.count(b"Judge {{plan}}.") == 1
    draft.put(file, text.replace(b"Judge {{plan}}.", b"Praise {{plan}}."))
    restart(draft, lambda start: {**start, "workflow": node.hash})


def follow(draft: Draft) -> None:
    """Let a step belong to what the forged start says."""
    path = draft.find(rf"nodes/start/\w+\.{START_TYPE}\.json")
    start = path.rpartition("/")[2].partition(".")[0]
    parent = draft_of(draft.store, Oid(draft.parents[0]))
    before = json.loads(parent.read(draft.path("thread.json")))
    prev = None if before["head"] == start else before["head"]
    draft.state(start=start, **{key: before[key] for key in _PINNED})
    draft.trailer("Uwf-Prev", prev or "-")
    amend_step(step={"start": start, "prev": prev})(draft)


_WORKFLOW = {START: other_workflow, WORK: follow}

HISTORIES: list[tuple[str, Forge, str]] = [
    *(
        (name, partial(forge, changes={at: change}, upto=at), code)
        for name, at, change, code in FORGERIES
    ),
    ("a step left out", partial(forge, changes={}, drop=JUDGE), "event"),
    ("two steps in another order", reordered, "event"),
    (
        "hidden content in a middle commit",
        partial(forge, changes={JUDGE: hidden, TRY: shown}),
        "path",
    ),
    ("no genesis", no_root, "parents"),
    ("another genesis", other_root, "parents"),
    ("a tree for a commit", tree_of, "kind"),
    ("parents of a resolve swapped", resolved(swap), "path"),
    ("a resolve that takes neither tip", resolved(put("notes.md")), "path"),
    ("a resolve that takes the other tip", resolved(take_the_other_tree), "path"),
    (
        "a workflow swapped under the same name",
        partial(forge, changes={**_WORKFLOW, JUDGE: follow}, upto=JUDGE),
        "prompt",
    ),
    (
        "a resolve with more in its subject",
        resolved(message(" keep ", " keep both, and ")),
        "message",
    ),
    ("a resolve with a quote", resolved(quoted), "message"),
    *(
        (f"a fork called {text!a}", partial(forked, change=subject(text)), "message")
        for text in (
            "critic: good",
            f"fork from {OTHER} at step 3",
            "fork",
        )
    ),
    (
        "a fork of another step",
        partial(forked, change=message("at step 3", "at step 99")),
        "message",
    ),
    (
        "400 MB of zeros",
        partial(forge, changes={JUDGE: zeros}, upto=JUDGE),
        "size",
    ),
]

_PGP = (
    b"Comment: by hand",
    b"",
    b"iQIzBAABCAAdFiEE",
    b"=0aB+",
)

UNSENDABLE = frozenset(
    (
        "entry twice",
        "tree cut short",
        "path traversal",
        "name that is not UTF-8",
        "missing blob",
        "missing tree",
        "folder for a file",
        "file of a commit",
        "a tree for a commit",
    )
)
"""Those that plain git does not push: what they name is not there, or no commit."""

HONEST: list[tuple[str, Forge]] = [
    ("nothing changed", partial(forge, changes={})),
    ("resolved", resolved()),
    *(
        (name, partial(forge, changes={JUDGE: change}, upto=JUDGE))
        for name, change in (
            ("a signature by ssh", signed(b"U1NIU0lH", b"AAAA")),
            ("a signature by gpg", signed(*_PGP, name=b"PGP SIGNATURE")),
            ("a signature by gpgsm", signed(b"MIAG", name=b"SIGNED MESSAGE")),
            ("a committer with a long name", by(f"{'é' * 500} <a@b>")),
            ("a committer of one letter", by("Å <å>")),
            ("a committer in Kathmandu", zone("+0545")),
            ("a committer on Kiritimati", zone("+1400")),
            ("an author in Newfoundland", agent_zone("-0330")),
            ("1,000 linked nodes", many_links(1_000)),
        )
    ),
    ("a workflow of its own", partial(forge, changes=_WORKFLOW, upto=WORK)),
    (
        "rewritten consistently",
        partial(
            forge,
            changes={RESUME: amend_step(output={"plan": "Another"})},
            upto=RESUME,
        ),
    ),
]
"""Made by the same means, and good: what is found is the forgery itself."""
