"""Chains sent to the code's own remote and brought from it; nothing is forced.

What is sent holds the snapshots alone: a commit that the remote does not have is
left out of their parents, unless the user wants it to go along.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from uwfgit.code.chain import (
    Snapshot,
    chain_ref,
    is_ancestor,
    list_snapshots,
    read_tips,
    write_snapshot,
)
from uwfgit.code.worktree import WorkTree, name_text
from uwfgit.errors import NotFoundError, RejectedError, RemoteError
from uwfgit.ids import Oid, ThreadId, find_thread_id
from uwfgit.store.git.gitcmd import check_operand

_KEPT: Final = "refs/uwf/remotes/"
_CHECKED: Final = ("-c", "fetch.fsckObjects=true", "-c", "transfer.fsckObjects=true")


class Parcel(Struct, frozen=True, kw_only=True):
    """A chain as it would be sent: its tip, and what goes with it.

    ``old`` is what the remote has of it, ``commits`` are commits of the user's
    that would travel.
    """

    thread: ThreadId
    tip: Oid
    old: Oid | None
    commits: tuple[Oid, ...]
    without: tuple[Oid, ...]

    @property
    def is_new(self) -> bool:
        """Whether there is anything to send."""
        return self.tip != self.old


def remote_ref(remote: str, thread: ThreadId) -> str:
    """Return the ref of what a remote had of a thread's chain."""
    return f"{_KEPT}{remote}/code/{thread}"


def list_chained(tree: WorkTree, thread: ThreadId) -> frozenset[Oid]:
    """List the trees of a thread's snapshots that its chains here hold, remotes' too.

    An object alone is not enough: a clone by hard links has those of the code's
    remote without a ref to them, which blame does not find and gc drops.
    """
    names = (chain_ref(thread), f"{_KEPT}**/code/{thread}")
    refs = tree.ask("for-each-ref", "--format=%(refname)", *names).decode().split()
    return frozenset(each.tree for ref in refs for each in list_snapshots(tree, ref))


def choose_remote(tree: WorkTree, name: str | None) -> str:
    """Choose the remote of the code: by name, the branch's own, origin, the only one.

    Raises:
        NotFoundError: There is none.
    """
    known = tree.ask("remote").decode("utf-8", "replace").split()
    if name is None:
        branch = tree.run(["symbolic-ref", "--quiet", "--short", "HEAD"]).text
        own = tree.run(["config", "--get", f"branch.{branch}.remote"]).text
        wanted = [own, "origin", known[0] if len(known) == 1 else ""]
        name = next((each for each in wanted if each in known), None)
    if name is None or name not in known:
        raise NotFoundError(
            "code remote",
            name or "origin",
            hint="'git remote' lists the code's; name one with --code-remote",
        )
    return name


def list_remote(tree: WorkTree, remote: str) -> dict[str, Oid]:
    """List the refs of a remote.

    Raises:
        RemoteError: It cannot be reached.
    """
    done = tree.run(["ls-remote", "--", check_operand(remote)], literal=False)
    if done.code:
        raise RemoteError(done.complaint, remote=remote)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    pairs = (line.split("\t", 1) for line in lines if "\t" in line)
    return {ref: Oid(oid) for oid, ref in pairs}


def fetch_chains(
    tree: WorkTree, remote: str, threads: Collection[ThreadId]
) -> tuple[ThreadId, ...]:
    """Bring the chains a remote has of some threads; their objects are checked.

    Returns:
        The threads it has a chain of.

    Raises:
        RemoteError: It cannot be reached, or sends what does not hold.
    """
    there = list_remote(tree, remote)
    found = tuple(thread for thread in threads if chain_ref(thread) in there)
    if found:
        specs = [f"{chain_ref(each)}:{remote_ref(remote, each)}" for each in found]
        _fetch(tree, remote, specs)
    return found


def _fetch(tree: WorkTree, remote: str, specs: Sequence[str]) -> None:
    words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
    words += ["--no-recurse-submodules", "--refmap=", "--", check_operand(remote)]
    done = tree.run([*_CHECKED, *words, *specs], literal=False)
    if done.code:
        raise RemoteError(done.complaint, remote=remote)


def pack_chain(
    tree: WorkTree,
    remote: str,
    thread: ThreadId,
    there: Mapping[str, Oid],
    *,
    with_commits: bool,
) -> Parcel:
    """Make of a thread's chain what can be sent; the local one stays as it is.

    Args:
        there: The remote's refs.
        with_commits: Whether commits that the remote lacks go along.

    Raises:
        NotFoundError: There is no chain here.
        RemoteError: What the remote has of it cannot be fetched.
    """
    ref = chain_ref(thread)
    if read_tips(tree, ref).snapshot is None:
        raise NotFoundError(
            "code chain", thread, hint="no step of it was run in this repository"
        )
    old = there.get(ref)
    sent: tuple[Snapshot, ...] = ()
    if old is not None:
        own = remote_ref(remote, thread)
        _fetch(tree, remote, [f"{ref}:{own}"])
        sent = list_snapshots(tree, own)
    made = _Packing(
        tree=tree,
        sent={_key(each): each for each in sent},
        reachable=_list_here(tree, there.values()),
        with_commits=with_commits,
        kept={},
        commits=[],
        without=[],
    )
    tip = made.pack(list_snapshots(tree, ref)[::-1])
    return Parcel(
        thread=thread,
        tip=tip.commit if old is None else _join(tree, tip, old),
        old=old,
        commits=tuple(dict.fromkeys(made.commits)),
        without=tuple(dict.fromkeys(made.without)),
    )


def _join(tree: WorkTree, tip: Snapshot, old: Oid) -> Oid:
    """Return the commit of a chain that goes on from what a remote has of it."""
    if is_ancestor(tree, tip.commit, old):
        return old
    if is_ancestor(tree, old, tip.commit):
        return tip.commit
    # Someone else sent theirs: one commit joins the two.
    joined = write_snapshot(
        tree,
        tip.tree,
        tip.label,
        previous=tip,
        head=tip.head,
        with_head=False,
        further=[old],
        time=tip.time,
    )
    return joined.commit


def _key(snapshot: Snapshot) -> tuple[str, Oid, int, Oid | None]:
    """Return what a snapshot is by, whatever its parents."""
    return str(snapshot.label), snapshot.tree, snapshot.time, snapshot.head


class _Packing(Struct, kw_only=True):
    """Snapshots written anew where a parent of theirs does not go along."""

    tree: WorkTree
    sent: Mapping[tuple[str, Oid, int, Oid | None], Snapshot]
    reachable: Sequence[Oid]
    with_commits: bool
    kept: dict[Oid, Snapshot]
    commits: list[Oid]
    without: list[Oid]

    def pack(self, snapshots: Sequence[Snapshot]) -> Snapshot:
        """Write the snapshots, oldest first, as they can be sent."""
        for snapshot in snapshots:
            known = self.sent.get(_key(snapshot))
            self.kept[snapshot.commit] = known or self._write(snapshot)
        return self.kept[snapshots[-1].commit]

    def _write(self, snapshot: Snapshot) -> Snapshot:
        previous = self.kept.get(snapshot.previous or Oid(""))
        rest = [each for each in snapshot.parents if each != snapshot.previous]
        further = [each for parent in rest for each in self._map(parent)]
        chain = [] if previous is None else [previous.commit]
        if (*chain, *further) == snapshot.parents:
            return snapshot
        return write_snapshot(
            self.tree,
            snapshot.tree,
            snapshot.label,
            previous=previous,
            head=snapshot.head,
            with_head=False,
            further=further,
            time=snapshot.time,
        )

    def _map(self, parent: Oid) -> Iterator[Oid]:
        if parent in self.kept:
            yield self.kept[parent].commit
        elif self._is_there(parent):
            yield parent
        elif self.with_commits:
            self.commits.append(parent)
            yield parent
        else:
            self.without.append(parent)

    def _is_there(self, commit: Oid) -> bool:
        """Whether the remote has a commit of the user's."""
        names = "".join(f"^{oid}\n" for oid in self.reachable)
        words = ["rev-list", "--max-count=1", "--stdin"]
        done = self.tree.run(words, input=f"{commit}\n{names}".encode())
        return done.code == 0 and not done.text


def _list_here(tree: WorkTree, oids: Iterable[Oid]) -> list[Oid]:
    """List those of some objects that are in the repository."""
    names = "".join(f"{oid}\n" for oid in oids).encode()
    lines = tree.ask("cat-file", "--batch-check", input=names).decode().splitlines()
    return [Oid(line.split(" ")[0]) for line in lines if not line.endswith(" missing")]


def list_commits(
    tree: WorkTree, parcels: Sequence[Parcel], there: Mapping[str, Oid]
) -> tuple[tuple[Oid, str], ...]:
    """List the user's commits that would travel, with their subjects."""
    wanted = [oid for parcel in parcels for oid in parcel.commits]
    if not wanted:
        return ()
    known = _list_here(tree, there.values())
    names = "".join(f"{line}\n" for line in [*wanted, *(f"^{oid}" for oid in known)])
    listed = tree.ask("log", "--format=%H %s", "--stdin", input=names.encode())
    lines = listed.decode("utf-8", "replace").split("\n")[:-1]
    return tuple((Oid(oid), text) for oid, _, text in (x.partition(" ") for x in lines))


def list_new_objects(
    tree: WorkTree, tips: Collection[Oid], there: Mapping[str, Oid]
) -> dict[Oid, str]:
    """List the objects that a push would send, each with a path it stands at.

    Raises:
        StoreError: git cannot list them.
    """
    known = _list_here(tree, there.values())
    names = "".join(f"{line}\n" for line in [*tips, *(f"^{oid}" for oid in known)])
    listed = tree.ask("rev-list", "--objects", "--stdin", input=names.encode())
    found = {}
    for line in listed.split(b"\n"):
        oid, _, path = line.partition(b" ")
        if oid:
            found[Oid(oid.decode())] = name_text(path)
    return found


def read_objects(
    tree: WorkTree, oids: Sequence[Oid], *, most_bytes: int
) -> Iterator[tuple[Oid, str, bytes]]:
    """Read objects with their kinds; one that is larger is given empty."""
    names = "".join(f"{oid}\n" for oid in oids).encode()
    sizes = tree.ask("cat-file", "--batch-check", input=names).split(b"\n")
    small = []
    for line in sizes:
        words = line.split(b" ")
        if len(words) == 3 and int(words[2]) <= most_bytes:  # noqa: PLR2004 - oid, type, size
            small.append(Oid(words[0].decode()))
    yield from _read_all(tree, small)


def _read_all(tree: WorkTree, oids: Sequence[Oid]) -> Iterator[tuple[Oid, str, bytes]]:
    for start in range(0, len(oids), 500):
        names = "".join(f"{oid}\n" for oid in oids[start : start + 500]).encode()
        output, place = tree.ask("cat-file", "--batch", input=names), 0
        while place < len(output):
            end = output.index(b"\n", place)
            oid, kind, size = output[place:end].decode().split(" ")
            yield Oid(oid), kind, output[end + 1 : end + 1 + int(size)]
            place = end + 1 + int(size) + 1


def push_chains(tree: WorkTree, remote: str, parcels: Sequence[Parcel]) -> None:
    """Send chains; each by fast-forward, all or none.

    Raises:
        RejectedError: Someone else sent theirs meanwhile.
        RemoteError: The remote cannot be reached, or does not take them.
    """
    new = [parcel for parcel in parcels if parcel.is_new]
    if not new:
        return
    words = ["push", "--quiet", "--no-verify", "--porcelain", "--no-follow-tags"]
    words += ["--recurse-submodules=no", "--no-signed", "--", check_operand(remote)]
    specs = [f"{parcel.tip}:{chain_ref(parcel.thread)}" for parcel in new]
    done = tree.run([*words, *specs], literal=False)
    if done.code:
        said = done.stdout.decode("utf-8", "replace")
        if "[rejected]" in said:
            refs = {chain_ref(each.thread): "others sent theirs too" for each in new}
            raise RejectedError(refs, remote=remote, hint="push again")
        raise RemoteError(done.complaint, remote=remote)
    for parcel in new:
        name = remote_ref(remote, parcel.thread)
        tree.run(["update-ref", name, parcel.tip])


def list_remote_chains(tree: WorkTree) -> list[tuple[ThreadId, str, Oid]]:
    """List what remotes had of chains: the thread, the ref, and where it stands."""
    words = ["for-each-ref", "--format=%(objectname) %(refname)", _KEPT]
    found = []
    for line in tree.ask(*words).decode("utf-8", "replace").splitlines():
        oid, _, ref = line.partition(" ")
        folder, _, name = ref.rpartition("/")
        thread = find_thread_id(name)
        if thread is not None and folder.endswith("/code"):
            found.append((thread, ref, Oid(oid)))
    return found
