"""What a scan costs: no more than in proportion to what is scanned."""

from __future__ import annotations

import json
import os
import random
import string
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from tests.builders import edit_tree
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.objects import (
    Person,
    TreeEntry,
    read_commit,
    write_blob,
    write_commit,
)
from uwfgit.sync.secrets.rules import RULES
from uwfgit.sync.secrets.scan import find_secrets
from uwfgit.sync.secrets.text import _flatten, scan_json, scan_text

MANY = 300
LONG = 300_000
CHARS = string.ascii_uppercase + "234567"


def count_calls(do: Callable[[], object]) -> int:
    """Count the functions that are called meanwhile, Python's own too."""
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(None)
    return count


def make_keys(count: int) -> list[str]:
    dice = random.Random(count)  # noqa: S311 - the same in every run
    return ["AK" + "IA" + "".join(dice.choices(CHARS, k=16)) for _ in range(count)]


def find_in(store: Store, text: str, message: str = "m") -> int:
    base = read_commit(store, GENESIS_OID).tree
    tree = edit_tree(
        store, base, {"a/f": TreeEntry(oid=write_blob(store, text.encode()))}
    )
    person = Person(name="Ada", email="ada@example.com", time=1_800_000_000)
    oid = write_commit(
        store,
        tree=tree,
        parents=(GENESIS_OID,),
        author=person,
        committer=person,
        message=message,
    )
    found = find_secrets(store, [oid], [GENESIS_OID], environment=os.environ)
    return len(found)


@pytest.mark.parametrize("where", ["text", "JSON", "push", "message"])
def test_twice_as_many_secrets_cost_about_twice_as_much(
    store: Store, where: str
) -> None:
    def look(count: int) -> int:
        keys = make_keys(count)
        text = "\n".join(keys)
        if where == "text":
            return count_calls(lambda: scan_text(text))
        if where == "JSON":
            value = {"a": text, "b": keys}
            whole = json.dumps(value)
            return count_calls(lambda: scan_json(whole, value))
        message = "\n".join(make_keys(count + 1)) if where == "message" else "m"
        return count_calls(lambda: find_in(store, text, message))

    look(MANY)
    assert look(2 * MANY) < 2.6 * look(MANY)


@pytest.mark.parametrize("item", ["x", "x" * 20])
def test_a_long_key_before_many_values_is_not_said_again(item: str) -> None:
    value = {"k" * 50_000: [[item] * 5_000, [item] * 5_000]}

    assert sum(map(len, _flatten(value))) < 10 * len(json.dumps(value))


def test_the_end_of_a_long_key_still_tells_a_password() -> None:
    password = "Tr0ub4dor&3x"  # noqa: S105 - made up
    value = {"k" * 500 + "_password": [["a", password]]}

    (found,) = scan_json(json.dumps(value), value)

    assert found.secret == password


def test_deep_json_is_flattened_without_a_call_a_level() -> None:
    deep: list[object] = ["a"] * MANY
    for _ in range(500):
        deep = [deep]
    flat = ["a"] * (MANY + 500)

    def cost(value: list[object]) -> int:
        return count_calls(lambda: list(_flatten(value)))

    assert cost(deep) < 2 * cost([*flat])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ey" * LONG + ".ey", id="head of a JWT"),
        pytest.param("ey-" * LONG + ".ey", id="heads of a JWT"),
        pytest.param("AT" + "BB" * LONG + "_", id="token"),
        pytest.param("ATBB" * LONG + "_", id="tokens"),
        pytest.param("\\" * LONG, id="backslashes"),
        pytest.param("\\" * LONG + "u006", id="backslashes and an escape"),
        pytest.param("curl " + "\\" * LONG, id="command"),
        pytest.param(":_auth=" + "[redacted:" * LONG, id="stand-ins"),
        pytest.param("\x1b[" + "1;" * LONG, id="colour"),
    ],
)
def test_a_long_text_of_one_kind_is_looked_through_once(text: str) -> None:
    # What looks from each place to the end would not come back for hours.
    assert scan_text(text) == ()


def test_no_word_in_the_middle_of_another_is_looked_at() -> None:
    rule = next(rule for rule in RULES if "ATBB" in rule.words)
    assert rule.bounded

    assert count_calls(lambda: scan_text("ATBB" * 1000)) < 100 * 1000


def test_a_putty_key_is_not_looked_for_beyond_the_next_one() -> None:
    head = "PuTTY-User-Key-File-2: ssh-rsa\n"
    key = f"{head}Private-Lines: 1\n{'QUJD' * 16}\n"

    (found,) = scan_text(head * 50 + key)

    assert found.secret.startswith(head)
    assert found.secret.count("PuTTY-User-Key-File") == 1


def test_lines_are_right_where_json_is_written_in_another_order() -> None:
    keys = make_keys(40)
    text = json.dumps({"a": keys[::-1]}, indent=1)

    found = scan_json(text, {"a": keys})

    lines = text.splitlines()
    right = [each for each in found if each.secret in lines[each.line - 1]]
    assert len(found) == len(keys)
    assert len(right) >= 32
