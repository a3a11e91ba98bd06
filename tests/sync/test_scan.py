"""The last look before anything leaves: what is read, and what is told."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path

import pytest

from tests.acting import acting, failure, go, saying
from tests.builders import begin, edit_tree, git, reply
from tests.planted import ANTHROPIC, AWS, GITHUB, PASSWORD, PEM, URL
from uwfgit.agents.base import AgentReply, ToolCall, Turn
from uwfgit.engine.run.executor import exec_thread, resume_thread
from uwfgit.engine.run.thread import cancel_thread
from uwfgit.errors import InvalidError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.objects import (
    Person,
    TreeEntry,
    read_commit,
    write_blob,
    write_commit,
)
from uwfgit.store.refs import find_ref
from uwfgit.sync.secrets.allowed import allow_findings, read_allowed
from uwfgit.sync.secrets.scan import (
    SecretFinding,
    find_blocked,
    find_secrets,
    list_findings,
    way_out,
)
from uwfgit.sync.secrets.text import scan_text

ADA = Person(name="Ada", email="ada@example.com", time=1_800_000_000)


def tip(store: Store, thread: ThreadId) -> Oid:
    found = find_ref(store, thread_ref(thread))
    assert found is not None
    return found


def look(
    store: Store, *oids: Oid, known: tuple[Oid, ...] = ()
) -> tuple[SecretFinding, ...]:
    return find_secrets(store, oids, (GENESIS_OID, *known), environment=os.environ)


def commit(
    store: Store, path: str, data: bytes, *, message: str = "m", by: Person = ADA
) -> Oid:
    base = read_commit(store, GENESIS_OID).tree
    tree = edit_tree(store, base, {path: TreeEntry(oid=write_blob(store, data))})
    return write_commit(
        store,
        tree=tree,
        parents=(GENESIS_OID,),
        author=by,
        committer=by,
        message=message,
    )


def test_a_thread_without_secrets_has_no_finding(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), reply("good"))

    assert look(ledger.store, tip(ledger.store, thread)) == ()


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        pytest.param(GITHUB, GITHUB, id="token"),
        pytest.param(PEM, PEM, id="key"),
        pytest.param(PEM, json.dumps({"key": PEM}), id="key in JSON"),
        pytest.param(ANTHROPIC, b64encode(ANTHROPIC.encode()).decode(), id="base64"),
        pytest.param(URL.split(":")[2].split("@")[0], URL, id="remote's URL"),
    ],
)
@pytest.mark.parametrize("where", ["task", "output", "body", "turn", "tool", "error"])
def test_a_secret_is_found_wherever_a_thread_holds_it(
    ledger: Ledger, tmp_path: Path, where: str, secret: str, text: str
) -> None:
    prompt = f"Use {text}" if where == "task" else "Work"
    thread = begin(ledger, tmp_path, prompt=prompt).thread
    said = AgentReply(
        text=reply(
            plan=text if where == "output" else "x",
            body=text if where == "body" else "Did it.",
        ),
        turns=(
            Turn(
                index=0,
                role="assistant",
                content=text if where == "turn" else "c",
                tool_calls=(
                    ToolCall(
                        name="t",
                        arguments={},
                        result=text if where == "tool" else None,
                    ),
                ),
                at_ms=1,
            ),
        ),
    )
    if where == "error":
        said = failure(f"'x' exited with code 1: {text}")
    exec_thread(acting(ledger, saying(said)), thread, count=1)

    found = look(ledger.store, tip(ledger.store, thread))

    # A message quotes its first lines only, so a part of it may stand there.
    whole = {each.id for each in found if not each.path.startswith("commit ")}
    assert whole == {match.id for match in scan_text(text)}
    assert all(secret not in str(finding) for finding in found)
    assert all(secret not in repr(finding) for finding in found)


def test_a_token_in_a_tools_json_is_found_and_told_as_any_other(
    ledger: Ledger, tmp_path: Path
) -> None:
    said = f"It said `{json.dumps({'stdout': f'token:{chr(10)}{GITHUB}{chr(10)}'})}`."
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x", body=said))

    found = look(ledger.store, tip(ledger.store, thread))

    assert {each.id for each in found} == {match.id for match in scan_text(GITHUB)}


@pytest.mark.parametrize("count", [1, 40])
def test_no_path_shows_a_secret_that_is_a_name_in_it(store: Store, count: int) -> None:
    secrets = [f"{PASSWORD}{number}{'q' * number}" for number in range(count)]
    path = f"a/{secrets[-1]}/{secrets[0]}.txt"
    text = "\n".join(f"password={secret}" for secret in secrets)

    found = look(store, commit(store, path, text.encode()))

    assert found
    assert {each.path for each in found} <= {"a/Zk4-…/Zk4-….txt", "a/", "a/Zk4-…/"}


def test_places_are_named_by_path_and_line(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x", body=f"one\ntwo {GITHUB}"))

    found = look(ledger.store, tip(ledger.store, thread))

    output = f"threads/{thread}/history/000/00001-worker/output.md"
    (place,) = [each for each in found if each.path == output]
    assert (place.line, place.rule, place.shown) == (7, "github-token", "ghp_…")
    assert str(place) == f"{output}:7: github-token ghp_… ({place.id})"
    assert f"uwf thread redact {thread}" in way_out(found)


@pytest.mark.parametrize("where", ["message", "author", "path", "folder", "tag", "ref"])
def test_messages_people_tags_and_names_are_read(store: Store, where: str) -> None:
    name = f"x-{AWS}" if where == "path" else "f"
    folder = f"d-{AWS}" if where == "folder" else "d"
    oid = commit(
        store,
        f"{folder}/{name}",
        b"data",
        message=f"see {AWS}" if where == "message" else "m",
        by=Person(name=AWS, email="a@b", time=1) if where == "author" else ADA,
    )
    names = [f"refs/heads/x-{AWS}"] if where == "ref" else []
    if where == "tag":
        git(
            store,
            *("-c", "user.name=A", "-c", "user.email=a@b"),
            *("tag", "-a", "-m", f"it is {AWS}", "t", oid),
        )
        oid = Oid(git(store, "rev-parse", "refs/tags/t").strip())

    found = find_secrets(
        store, [oid], [GENESIS_OID], environment=os.environ, names=names
    )

    assert {finding.rule for finding in found} == {"aws-access-key"}
    assert all(AWS not in str(finding) for finding in found)


def test_what_the_other_side_has_is_not_read_again(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    before = tip(ledger.store, thread)
    go(ledger, thread, reply(plan="y"))
    after = tip(ledger.store, thread)

    assert look(ledger.store, before)
    paths = {each.path for each in look(ledger.store, after, known=(before,))}
    # The prompts have the task in them, and are the new step's.
    assert all("/00001" in path for path in paths)
    assert not any(path.endswith("TASK.md") for path in paths)
    assert look(ledger.store, after, known=(after,)) == ()
    assert look(ledger.store, after, known=(Oid("0" * 39 + "1"), after)) == ()


def test_only_the_refs_that_carry_a_secret_are_blocked(
    ledger: Ledger, tmp_path: Path
) -> None:
    store = ledger.store
    threads = [begin(ledger, tmp_path, prompt=f"Task {n}").thread for n in range(5)]
    threads.insert(3, begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread)
    leaving = [(thread_ref(each), tip(store, each), None) for each in threads]

    blocked = find_blocked(store, leaving, environment=os.environ)

    assert [*blocked] == [thread_ref(threads[3])]
    assert "github-token ghp_…" in blocked[thread_ref(threads[3])]
    assert GITHUB not in blocked[thread_ref(threads[3])]


def test_a_cancels_reason_is_read_in_its_message(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    cancel_thread(ledger, thread, reason=f"leaked {GITHUB}", command="test")
    oid = tip(ledger.store, thread)

    assert {each.path for each in look(ledger.store, oid)} == {f"commit {oid}"}


def test_a_note_is_read(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply("$SUSPEND", reason="?"))
    resume_thread(
        acting(ledger, saying(reply(plan="x"))), thread, note=f"take {GITHUB}"
    )

    paths = [each.path for each in look(ledger.store, tip(ledger.store, thread))]

    assert f"threads/{thread}/history/000/00002-worker/prompt.md" in paths


def test_each_secret_is_described_once_by_the_file_it_stands_in(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"{AWS}\n{GITHUB}").thread
    leaving = [(thread_ref(thread), tip(ledger.store, thread), None)]

    blocked = find_blocked(ledger.store, leaving, environment=os.environ)

    text = blocked[thread_ref(thread)]
    ids = {each.id for each in look(ledger.store, leaving[0][1])}
    assert text.startswith(f"secrets stand in threads/{thread}/")
    assert "commit " not in text
    assert all(text.count(f"({each})") == 1 for each in ids)
    assert set(text.rpartition("uwf hooks allow ")[2].split()) == ids


def test_a_list_of_allowed_findings_that_holds_rubbish_is_read_all_the_same(
    store: Store,
) -> None:
    allow_findings(store, ["aws-access-key-0123456789ab"], by="Ada <a@b>", now_ms=5)
    path = store.state_dir / "allowed-secrets.jsonl"
    path.write_bytes(b"\xff\n[1]\n" + path.read_bytes())

    assert read_allowed(store) == {"aws-access-key-0123456789ab"}


def test_an_allowed_finding_is_recorded_and_no_more_told(
    ledger: Ledger, tmp_path: Path
) -> None:
    store = ledger.store
    thread = begin(ledger, tmp_path, prompt=f"{GITHUB} {AWS}").thread
    ids = {each.rule: each.id for each in look(store, tip(store, thread))}

    allow_findings(store, [ids["github-token"]], by="Ada <a@b>", now_ms=5)
    allow_findings(store, [ids["github-token"]], by="Bob <b@c>", now_ms=6)

    rules = {each.rule for each in look(store, tip(store, thread))}
    (line,) = (store.state_dir / "allowed-secrets.jsonl").read_text().splitlines()
    assert rules == {"aws-access-key"}
    assert read_allowed(store) == {ids["github-token"]}
    assert json.loads(line) == {"id": ids["github-token"], "by": "Ada <a@b>", "atMs": 5}


@pytest.mark.parametrize("text", ["", "x", "../x-0123456789ab", f"x-{'0' * 12}\n"])
def test_only_ids_of_findings_can_be_allowed(store: Store, text: str) -> None:
    with pytest.raises(InvalidError):
        allow_findings(store, [text], by="Ada", now_ms=1)

    assert read_allowed(store) == frozenset()


def test_damaged_lines_of_what_is_allowed_allow_nothing(store: Store) -> None:
    path = store.state_dir / "allowed-secrets.jsonl"
    path.write_text('nonsense\n[1]\n{"id": 3}\n{"id": "x-0123456789ab"}\n')

    assert read_allowed(store) == {"x-0123456789ab"}


def test_odd_bytes_and_deep_json_are_read_as_text(store: Store) -> None:
    deep = b"[" * 100_000 + GITHUB.encode()
    odd = b"\xff\xfe\0" + GITHUB.encode()

    for data in (deep, odd):
        assert {f.rule for f in look(store, commit(store, "a/x.json", data))} == {
            "github-token"
        }


def test_very_many_places_are_counted(store: Store) -> None:
    data = "\n".join([GITHUB] * 50).encode()

    lines = list_findings(look(store, commit(store, "f", data)))

    assert len(lines) == 21
    assert lines[-1] == "and 30 more places"
