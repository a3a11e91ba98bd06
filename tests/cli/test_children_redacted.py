"""A secret in a thread that did a step of another: all of them are written anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.family import Family, make_family
from tests.cli.seats import Seat, make_seat
from tests.planted import GITHUB
from tests.sync.people import make_bare


def ask(seat: Seat, **said: str) -> None:
    """Put a script there in which roles say something."""
    told = {
        "preparer": "$status: ready\\n---\\nIt is prepared.",
        "coder": "$status: coded\\n---\\nCoded.",
        "prober": "$status: built\\nwhat: a tool\\n---\\nAll green.",
        "sender": "$status: sent\\n---\\nOff it goes.",
        **said,
    }
    lines = [f'  {role}: ["---\\n{text}"]' for role, text in told.items()]
    (seat.folder / "said.yaml").write_text("\n".join(["replies:", *lines, ""]))


@pytest.fixture
def seat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Seat:
    return make_seat(tmp_path, "Ada", monkeypatch, capsys)


def run(seat: Seat, **said: str) -> Family:
    ask(seat, **said)
    return make_family(seat, replies="said.yaml")


def test_a_secret_that_went_up_is_taken_out_of_all(seat: Seat) -> None:
    family = run(
        seat, prober=f"$status: built\\nwhat: a tool\\n---\\nUse {GITHUB} for it."
    )

    done = seat.do("thread", "redact", family.grandchild, "--json").json

    new = {pair["from"]: pair["to"] for pair in done["threads"]}
    assert done["threadId"] == new[family.grandchild]
    assert new.keys() == {family.parent, family.child, family.grandchild}
    seat.do("verify", "--children")
    listed = seat.do("thread", "list", "--all", "--json").json["items"]
    assert [(item["threadId"], item["children"]) for item in listed] == [
        (new[family.parent], [new[family.child]])
    ]
    read = seat.do("thread", "read", new[family.parent]).out
    assert "[redacted:github-token]" in read
    seat.do("remote", "add", "origin", str(make_bare(seat.folder.parent / "bare.git")))
    seat.do("push", "origin", new[family.parent])


@pytest.mark.slow
def test_a_secret_that_stayed_below_changes_what_those_above_name(seat: Seat) -> None:
    family = run(seat, coder=f"$status: coded\\n---\\nI used {GITHUB}.")

    done = seat.do("thread", "redact", family.child, "--json").json

    new = {pair["from"]: pair["to"] for pair in done["threads"]}
    assert new.keys() == {family.parent, family.child, family.grandchild}
    seat.do("verify", "--children")
    step = seat.do("step", "show", f"{new[family.parent]}:2", "--json").json
    tip = seat.do("thread", "show", new[family.child], "--json").json
    assert step["child"] == {"thread": new[family.child], "oid": tip["oid"]}
    assert tip["parent"]["thread"] == new[family.parent]


@pytest.mark.slow
def test_a_family_that_waits_names_its_new_threads(seat: Seat) -> None:
    family = run(
        seat,
        preparer=f"$status: ready\\n---\\nWith {GITHUB}.",
        prober="$status: $SUSPEND\\nreason: Which?\\n---\\nI ask.",
    )

    done = seat.do("thread", "redact", family.parent, "--json").json

    new = {pair["from"]: pair["to"] for pair in done["threads"]}
    shown = seat.do("thread", "show", new[family.parent], "--json").json
    assert shown["suspendMessage"] == (
        f"child {new[family.child]}: child {new[family.grandchild]}: Which?"
    )
    seat.do("verify", "--children")
    ask(seat)
    answering = seat.folder / "said.yaml"
    again = answering.read_text().replace("prober: [", 'prober: ["x", ')
    answering.write_text(again)
    seat.do(
        *("thread", "resume", new[family.parent], "-p", "This"),
        *("--agent", "scripted:said.yaml"),
    )
    seat.do("verify", "--children")


@pytest.mark.slow
def test_a_fork_that_shares_a_child_gets_a_copy_of_its_own(seat: Seat) -> None:
    family = run(seat, coder=f"$status: coded\\n---\\nI used {GITHUB}.")
    fork = seat.do("thread", "fork", family.parent, "--json").json["threadId"]

    refused = seat.do("thread", "redact", family.child, code=1)
    done = seat.do("thread", "redact", family.child, "--forks", "--json").json

    assert f"other threads share what is to change: {fork}" in refused.err
    assert "--forks" in refused.err
    pairs = [(each["from"], each["to"]) for each in done["threads"]]
    shared = (family.child, family.grandchild)
    assert sorted(old for old, _ in pairs) == sorted(
        (family.parent, fork, *shared, *shared)
    )
    assert pairs[0] == (family.child, done["threadId"])
    new = {old: made for old, made in pairs if old not in shared}
    children = [
        seat.do("step", "show", f"{new[each]}:2", "--json").json["child"]["thread"]
        for each in (family.parent, fork)
    ]
    assert children[0] == done["threadId"]
    assert {*children} == {made for old, made in pairs if old == family.child}
    seat.do("verify", "--children")
    for each in {made for _, made in pairs}:
        assert GITHUB not in seat.do("thread", "read", each, "--quota", "90000").out
    listed = seat.do("thread", "list", "--all", "--json").json["items"]
    assert {item["threadId"] for item in listed} == {*new.values()}


@pytest.mark.slow
def test_what_a_remote_has_of_the_family_stays(seat: Seat) -> None:
    family = run(seat)
    bare = make_bare(seat.folder.parent / "bare.git")
    seat.do("remote", "add", "origin", str(bare))
    seat.do("push", "origin", family.parent)
    ask(seat, prober=f"$status: built\\nwhat: a tool\\n---\\nUse {GITHUB} for it.")
    said = (seat.folder / "said.yaml").read_text()
    (seat.folder / "said.yaml").write_text(said.replace("prober: [", 'prober: ["x", '))
    seat.do(
        *("thread", "poke", family.grandchild, "-p", "More"),
        *("--agent", "scripted:said.yaml"),
    )

    refused = seat.do("thread", "redact", family.grandchild, code=1)

    assert "remote 'origin' has" in refused.err
    seat.do("verify", "--children")
