"""The agents' sessions around a run: restored before it, recorded after it.

Nothing here fails a step: what cannot be kept or put back is a warning on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.json import encode

from uwfgit.agents.base import Agent, Remembers, SessionFiles, SessionFilesError
from uwfgit.engine.ask.ask import Talk
from uwfgit.engine.run.run import Run
from uwfgit.errors import UwfError
from uwfgit.ids import Hash, Oid, ThreadId, is_thread_id
from uwfgit.model.memory.memory import (
    Session,
    iter_memory,
    read_session,
    write_session,
)
from uwfgit.model.node import DETAIL_TYPE
from uwfgit.model.thread.event import RUN_EVENTS, STEP_EVENTS, iter_events
from uwfgit.model.thread.step import Step
from uwfgit.store.canonical import Json
from uwfgit.store.layout import THREADS, memory_ref
from uwfgit.store.local import AgentSession
from uwfgit.store.objects import Person, find_entry, list_tree
from uwfgit.store.refs import find_ref


class Kept(Struct, frozen=True, kw_only=True):
    """What became of a run's session: its place in the record, or why it has none."""

    named: Mapping[str, Json] | None = None
    """How a step's detail names it."""
    size: int = 0
    digest: str | None = None
    warning: str | None = None


class Found(Struct, frozen=True, kw_only=True):
    """The session to go on with, if there is one, and what to say about it."""

    session: AgentSession | None = None
    warning: str | None = None


class _Recorded(Struct, frozen=True, kw_only=True):
    """Where a session stands in the record, and what it knows of the thread."""

    commit: Oid
    told: Hash | None


def keep_memory(run: Run, talk: Talk) -> Kept:
    """Record the session of a talk, masked, beside the thread."""
    files, session = files_of(run.agent), talk.last.session_id
    if files is None or session is None or not run.engine.settings.keeps_sessions:
        return Kept()
    if run.engine.ledger.local.is_without_memory(run.thread):
        return Kept()
    try:
        found = files.read(session, cwd=run.cwd, environment=run.engine.environment)
        if not found:
            return Kept()
        commit = _write(run, talk, session, found)
    except (SessionFilesError, UwfError) as exc:
        return Kept(warning=f"the agent's session was not kept: {exc}")
    size = sum(map(len, found.values()))
    named = {"id": session, "size": size, "commit": str(commit)}
    return Kept(named=named, size=size, digest=_digest(found))


def _write(run: Run, talk: Talk, session: str, files: Mapping[str, bytes]) -> Oid:
    role, ledger = run.cycle.routed.role, run.engine.ledger
    try:
        masked = {
            name: run.engine.masker.mask(data.decode()).encode()
            for name, data in files.items()
        }
    except UnicodeDecodeError as exc:
        raise SessionFilesError("it is not UTF-8") from exc
    kept = Session(
        number=run.number,
        run=int(run.nodes.rpartition("/")[2]),
        role=role,
        kind=run.agent.kind,
        agent=run.agent.label,
        id=session,
        files=masked,
        total=total_of(talk),
    )
    label = run.agent.label
    author = Person(
        name=label,
        email=f"{label}@localhost",
        time=ledger.now_ms() // 1000,
        offset=ledger.utc_offset,
    )
    return write_session(ledger, run.thread, kept, author=author)


def total_of(talk: Talk) -> str | None:
    """Write what the session of a talk has cost so far, as far as the agent says."""
    total = talk.last.session_total
    return None if total is None else encode(total).decode()


def find_session(run: Run) -> Found:
    """Find the session to go on with; one that is not here is put back first."""
    if not run.agent.has_sessions or run.engine.recall == "none":
        return Found()
    row = run.engine.ledger.local.find_session(
        run.thread, run.cycle.routed.role, run.agent.label
    )
    files = files_of(run.agent)
    if files is None or (row is not None and _is_as_recorded(run, files, row)):
        return Found(session=row)
    try:
        restored = _restore(run, files)
    except (SessionFilesError, UwfError) as exc:
        return Found(warning=f"its session was not put back: {exc}")
    if restored is not None or row is None:
        return restored or Found()
    return Found(warning="its session is not here as it was; it was told all again")


def _is_as_recorded(run: Run, files: SessionFiles, row: AgentSession) -> bool:
    """Whether the session here is the one that this program saw last."""
    if row.digest is None:
        return True
    try:
        here = files.read(row.id, cwd=run.cwd, environment=run.engine.environment)
    except SessionFilesError:
        return False
    return bool(here) and _digest(here) == row.digest


def _restore(run: Run, files: SessionFiles) -> Found | None:
    """Put the newest session of this role and agent back; ``None``: there is none.

    Raises:
        SessionFilesError: It cannot be put there.
        CorruptError: What is recorded is no session.
    """
    if not (owners := _owners(run)):
        return None
    recorded = next(_iter_recorded(run), None)
    if recorded is None:
        return None
    owner = next((o for o, tip in owners.items() if _holds(run, tip, recorded)), None)
    if owner is None:
        return Found(warning="its session is not here: the memory of it is missing")
    if not run.may_remember(recorded.commit):
        return Found(
            warning="what others' agent remembered was not restored (--memory does)"
        )
    session = read_session(run.engine.ledger.store, recorded.commit)
    wanted = (run.agent.kind, run.agent.label, run.cycle.routed.role)
    if (session.kind, session.agent, session.role) != wanted:
        return None
    name = files.write(
        session.id,
        session.files,
        renew=owner != run.thread,
        cwd=run.cwd,
        environment=run.engine.environment,
    )
    here = files.read(name, cwd=run.cwd, environment=run.engine.environment)
    row = AgentSession(
        id=name,
        told=recorded.told,
        total=session.total,
        size=session.size,
        digest=_digest(here),
    )
    run.engine.ledger.local.set_session(run.thread, session.role, session.agent, row)
    return Found(session=row)


def _owners(run: Run) -> dict[ThreadId, Oid]:
    """Find the memories of the thread and of those it was forked from."""
    store = run.engine.ledger.store
    entry = find_entry(store, run.record.tip.tree, THREADS)
    names = list_tree(store, entry.oid) if entry is not None else {}
    threads = [ThreadId(name) for name in names if is_thread_id(name)]
    threads.sort(key=lambda thread: thread != run.thread)
    found = {thread: find_ref(store, memory_ref(thread)) for thread in threads}
    return {thread: tip for thread, tip in found.items() if tip is not None}


def _holds(run: Run, tip: Oid, recorded: _Recorded) -> bool:
    """Whether a session named in a record is in the thread's own memory."""
    commits = iter_memory(run.engine.ledger.store, tip)
    return any(commit.oid == recorded.commit for commit in commits)


def _iter_recorded(run: Run) -> Iterator[_Recorded]:
    """Yield the sessions of this role and agent, newest first."""
    record, role = run.record, run.cycle.routed.role
    for event in iter_events(record.store, record.tip.commit):
        is_step = event.name in STEP_EVENTS
        if event.node is None or event.role != role:
            continue
        if event.name not in RUN_EVENTS:
            continue
        step = record.run(event.node)
        if step.agent != run.agent.label:
            continue
        session = record.node(step.detail_hash, DETAIL_TYPE).payload.get("session")
        if session is not None:
            told = event.node if is_step else event.prev
            yield _Recorded(commit=Oid(session["commit"]), told=told)


def files_of(agent: Agent) -> SessionFiles | None:
    """Return where an agent keeps its sessions, if they are files."""
    return agent.session_files if isinstance(agent, Remembers) else None


def restore_copy(run: Run, files: SessionFiles, step: Step) -> str | None:
    """Put the session a step left back under a new id; ``None``: it is not here.

    Raises:
        SessionFilesError: It cannot be put there.
        CorruptError: What is recorded is no session.
    """
    detail = run.record.node(step.detail_hash, DETAIL_TYPE).payload
    named = detail.get("session")
    if named is None or detail["kind"] != run.agent.kind:
        return None
    recorded = _Recorded(commit=Oid(named["commit"]), told=step.hash)
    if not any(_holds(run, tip, recorded) for tip in _owners(run).values()):
        return None
    if not run.may_remember(recorded.commit):
        return None
    session = read_session(run.engine.ledger.store, recorded.commit)
    if (session.kind, session.role) != (run.agent.kind, step.role):
        return None
    return files.write(
        session.id,
        session.files,
        renew=True,
        cwd=run.cwd,
        environment=run.engine.environment,
    )


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()
