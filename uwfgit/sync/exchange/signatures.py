"""Whether git accepts the signatures of a thread, and whose they are.

git's own check, with the keys and programs that the user's own settings name;
the only place that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import MAX_MESSAGE_BYTES
from uwfgit.errors import CorruptError, StoreError, UwfError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.derive import has_unsafe
from uwfgit.model.thread.event import read_event
from uwfgit.model.thread.tip import read_tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.handle import Store
from uwfgit.store.objects import read_commit, read_tag
from uwfgit.store.refs import has_object, is_ancestor, scan_refs
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX
from uwfgit.sync.verify.rawtree import Objects
from uwfgit.sync.verify.report import ThreadReport, VerifyProblem, plain, shown
from uwfgit.sync.verify.shape import (
    SIGNATURE_START,
    is_signature,
    parse_commit,
    parse_person,
)

_TAG: Final = re.compile(
    rb"object ([0-9a-f]{40})\ntype commit\ntag ([^\n]+)\n(tagger [^\n]+)\n\n"
)


def check_approval(store: Store, ref: str, oid: Oid, tips: Iterable[Oid]) -> str | None:
    """Say what is wrong with an approval; ``None`` when nothing is.

    Its name must tell, by hash or by number, the step that its commit leaves
    the thread at. Who signed it is another question.

    Args:
        store: Where the tag and the thread's commits are.
        ref: The name it came under.
        oid: The tag object.
        tips: Verified tips of its thread.
    """
    try:
        return _check(store, ref, read_tag(store, oid), tips)
    except UwfError as exc:
        return exc.message


def _check(store: Store, ref: str, data: bytes, tips: Iterable[Oid]) -> str | None:
    match = _TAG.match(data)
    if match is None:
        return "it is not a tag of a commit"
    if f"refs/tags/{match[2].decode('utf-8', 'replace')}" != ref:
        return "the tag is made under another name"
    parse_person(match[3], b"tagger")
    problem = check_text(data[match.end() :])
    if problem is not None:
        return problem
    commit = Oid(match[1].decode())
    if not any(is_ancestor(store, commit, tip) for tip in tips):
        return "it approves no commit of its thread that is here"
    if ref.rpartition("/")[2] not in _names_of(store, commit):
        return "it approves another step than its name says"
    return None


def check_text(data: bytes) -> str | None:
    """Say what is wrong with a tag's message, or with the signature after it."""
    start = SIGNATURE_START.search(data)
    text = data if start is None else data[: start.start()]
    if start is not None and not is_signature(data[start.start() :]):
        return "its signature is not one that git writes"
    if len(text) > MAX_MESSAGE_BYTES:
        return f"its message has {len(text)} bytes"
    try:
        message = text.decode()
    except UnicodeDecodeError:
        return "its message is not UTF-8"
    if has_unsafe(message.replace("\n", "").replace("\t", "")):
        return "its message holds control characters"
    return None


def _names_of(store: Store, commit: Oid) -> tuple[str, ...]:
    """Return the names of the step that a verified commit leaves its thread at."""
    try:
        thread = read_event(read_commit(store, commit)).thread
    except CorruptError:
        return ()
    # An inherited step stands in the thread that the approved one was forked from.
    state = read_tip(store, thread, commit).state
    return (state.head, str(state.steps)) if state.steps else ()


_FIELDS: Final = (
    "%H%x00%G?%x00%GS%x00%GK%x00%GF%x00%GP%x00%ce%x00"
    "%(trailers:key=Uwf-Event,valueonly,separator=%x2C)"
)
_PARTS: Final = 8
_GOOD: Final = "G"
_NONE: Final = "N"
_WORDS: Final = {
    "B": "is bad",
    "E": "cannot be checked: its key is not known here",
    "R": "is made with a revoked key",
    "U": "is made with a key that nothing here vouches for",
    "X": "has expired",
    "Y": "is made with an expired key",
}
_UNCHECKED: Final = (
    "git does not check its signature: for one by ssh gpg.ssh.allowedSignersFile "
    "has to name a file of whose key is whose"
)
_NO_TIP: Final = "its thread does not verify"
_NO_COMMIT: Final = "it approves no commit of its thread that is here"
_OBJECT: Final = slice(len("object "), len("object ") + 40)
_SSH: Final = re.compile(
    r'^Good "git" signature for (.+) with [A-Z0-9-]+ key ', re.MULTILINE
)
_GPG: Final = re.compile(r"^\[GNUPG:\] GOODSIG [0-9A-F]+ (.+)$", re.MULTILINE)
_TRUSTED: Final = re.compile(r"^\[GNUPG:\] TRUST_(?:FULLY|ULTIMATE)\b", re.MULTILINE)
"""gpg calls a signature good whoever made the key; git's own grade G asks for this."""
_TAGGER: Final = re.compile(
    rb"^tagger [^\n]* <([^<>\n]*)> [0-9]+ [+-][0-9]{4}$", re.MULTILINE
)
_SIGNATURE: Final = re.compile(rb"^-----BEGIN (?:SSH|PGP|SIGNED)", re.MULTILINE)


class Approval(Struct, frozen=True, kw_only=True):
    """A tag on a thread's commit; ``signer`` only when git accepts it."""

    ref: str
    oid: Oid
    by: str
    signer: str | None
    problem: str | None


class Signed(Struct, frozen=True, kw_only=True):
    """A commit and what git says of its signature.

    ``keys`` are the key's id and fingerprints, as git writes them.
    """

    commit: Oid
    grade: str
    signer: str
    keys: frozenset[str]
    committer: str
    event: str

    @property
    def is_good(self) -> bool:
        """Whether git accepts it as the signer's."""
        return self.grade == _GOOD and bool(self.signer)


def check_signatures(
    store: Store, report: ThreadReport, *, environment: Mapping[str, str]
) -> ThreadReport:
    """Add what is wrong with the signatures of a thread's commits.

    Each one there is must be good and the committer's own; only such are counted as
    signed then. The newest event must be signed, which covers all before it; a
    resolve never is, and counts as the side it keeps.

    Raises:
        StoreError: git cannot check them; says why.
    """
    if report.tip is None or not report.ok:
        return report
    found = list(_ask(store, report.tip, environment))
    problems = [problem for each in found if (problem := _judge(each))]
    newest = next((each for each in found if each.event != "resolve"), None)
    objects = Objects(store=store)
    passed = next(
        (
            each
            for each in found
            # git says nothing of a signature that is there.
            if each.grade == _NONE
            and parse_commit(each.commit, objects.commit(each.commit)).is_signed
        ),
        None,
    )
    if passed is not None:
        problems.append(_problem(passed.commit, _UNCHECKED))
    elif newest is None or newest.grade == _NONE:
        message = "the newest event is not signed"
        problems.append(_problem(report.tip, message))
    good = sum(each.grade != _NONE and _judge(each) is None for each in found)
    return replace(report, problems=(*report.problems, *problems), signed=good)


def read_signature(
    store: Store, commit: Oid, *, environment: Mapping[str, str]
) -> Signed | None:
    """Return what git says of one commit's signature.

    Raises:
        StoreError: git cannot check it; says why.
    """
    return next(_ask(store, commit, environment, "--max-count=1"), None)


def _ask(
    store: Store, tip: Oid, environment: Mapping[str, str], *options: str
) -> Iterator[Signed]:
    done = run_git(
        [
            *("log", "--first-parent", "--no-show-signature", *options),
            *("-z", f"--format={_FIELDS}", tip, "--"),
        ],
        git_dir=store.path,
        environment={**environment, "LC_ALL": "C"},
    )
    if done.code:
        raise StoreError(f"git cannot check signatures: {done.complaint}")
    words = done.stdout.decode("utf-8", "replace").split("\0")
    for start in range(0, len(words) - _PARTS + 1, _PARTS):
        commit, grade, signer, *keys, committer, event = words[start : start + _PARTS]
        if commit != GENESIS_OID:
            yield Signed(
                commit=Oid(commit),
                grade=grade,
                signer=signer,
                keys=frozenset(filter(None, keys)),
                committer=committer,
                event=event.strip(),
            )


def _judge(signed: Signed) -> VerifyProblem | None:
    if signed.grade == _NONE:
        return None
    if signed.grade != _GOOD:
        word = _WORDS.get(signed.grade, f"is of grade {shown(signed.grade)}")
        return _problem(signed.commit, f"the signature {word}")
    if not is_signer(signed.signer, signed.committer):
        message = (
            f"signed by {shown(signed.signer)}, committed by {shown(signed.committer)}"
        )
        return _problem(signed.commit, message)
    return None


def is_signer(signer: str, email: str) -> bool:
    """Whether a signature's principal is the person with an address."""
    signer, email = signer.casefold(), email.casefold()
    return bool(email) and (signer == email or signer.endswith(f"<{email}>"))


def _problem(commit: Oid, message: str) -> VerifyProblem:
    return VerifyProblem(commit=commit, path=None, code="signature", message=message)


def find_approvals(store: Store, thread: ThreadId) -> dict[str, Oid]:
    """Return the tags that want to be approvals of a thread, by their refs."""
    return dict(sorted(scan_refs(store, f"{APPROVED_PREFIX}{thread}/").items()))


def check_approvals(
    store: Store,
    refs: Mapping[str, Oid],
    tips: Sequence[Oid],
    *,
    place: Store | None = None,
    environment: Mapping[str, str],
) -> tuple[Approval, ...]:
    """Return the approvals of a thread, each with what is wrong with it.

    An approval counts under its own name and for its own commit only; one that
    is not signed has no signer.

    Args:
        store: Where the tags and the thread are.
        refs: What ``find_approvals`` gave.
        tips: Verified tips of the thread; without one no approval counts.
        place: Where git may look, if not in ``store``: what ``copy_history`` made
            of tips and tags.
        environment: What git's starts from.

    Raises:
        StoreError: There is no git binary.
    """
    if not tips:
        return tuple(
            Approval(ref=ref, oid=oid, by="", signer=None, problem=_NO_TIP)
            for ref, oid in refs.items()
        )
    found = []
    for ref, oid in refs.items():
        problem = check_approval(store, ref, oid, tips)
        if problem is None:
            approval = _look(place or store, ref, oid, environment)
        else:
            approval = Approval(ref=ref, oid=oid, by="", signer=None, problem=problem)
        found.append(approval)
    return tuple(found)


def _look(place: Store, ref: str, oid: Oid, environment: Mapping[str, str]) -> Approval:
    """See by whom an approval is that is a whole tag of a commit of its thread."""
    data = read_tag(place, oid)
    match = _TAGGER.search(data.partition(b"\n\n")[0])
    by = match[1].decode("utf-8", "replace") if match else ""
    signer = problem = None
    # A copy has the commits before its tips only, whatever a commit graph says.
    if not has_object(place, Oid(data[_OBJECT].decode())):
        problem = _NO_COMMIT
    elif _SIGNATURE.search(data):
        signer, problem = _check_tag(place, oid, by, environment)
    return Approval(ref=ref, oid=oid, by=plain(by), signer=signer, problem=problem)


def _check_tag(
    store: Store, oid: Oid, by: str, environment: Mapping[str, str]
) -> tuple[str | None, str | None]:
    done = run_git(
        ["verify-tag", "--raw", oid],
        git_dir=store.path,
        environment={**environment, "LC_ALL": "C"},
    )
    said = (done.stderr + done.stdout).decode("utf-8", "replace")
    match = _SSH.search(said) or (_TRUSTED.search(said) and _GPG.search(said))
    if done.code or match is None:
        return None, "git does not accept its signature"
    signer = match[1]
    if not is_signer(signer, by):
        return None, f"signed by {shown(signer)}, made by {shown(by)}"
    return signer, None
