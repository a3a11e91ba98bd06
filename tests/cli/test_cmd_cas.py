from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.collision import COLLIDING, COLLIDING_HASH
from uwfgit.model.node import make_text
from uwfgit.store.canonical import META_TYPE, TEXT_TYPE


def put(uwf: Uwf, *words: str) -> str:
    stored = uwf("cas", *words, "--json")
    assert stored.code == 0, stored.err
    name: str = stored.json["hash"]
    return name


def test_texts_come_back_as_they_were(uwf: Uwf) -> None:
    text = put(uwf, "put-text", "a plan\n\nwith Æ")

    assert uwf("cas", "get", text).out == "a plan\n\nwith Æ\n"
    assert uwf("cas", "get", text.lower(), "--json").json == {
        "type": TEXT_TYPE,
        "payload": "a plan\n\nwith Æ",
    }


@pytest.mark.parametrize(
    ("argument", "stdin"),
    [
        pytest.param('{"a": [1, 2.5, null]}', None, id="inline"),
        pytest.param("-", b'{"a": [1, 2.5, null]}', id="stdin"),
        pytest.param("@value.json", None, id="file"),
    ],
)
def test_values_are_put_from_anywhere(
    uwf: Uwf, work: Path, argument: str, stdin: bytes | None
) -> None:
    (work / "value.json").write_text('{"a": [1, 2.5, null]}')

    stored = uwf("cas", "put", "object", argument, "--json", stdin=stdin)

    payload = uwf("cas", "get", stored.json["hash"], "--json").json["payload"]
    assert payload == {"a": [1, 2.5, None]}
    assert stored.json["hash"] == put(uwf, "hash", "object", '{"a": [1.0, 2.5, null]}')


def test_hash_stores_nothing_and_needs_no_store(uwf: Uwf, home: Path) -> None:
    assert put(uwf, "hash", "text", '"x"') == put(uwf, "hash", TEXT_TYPE, '"x"')
    assert not (home / "store").exists()


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        pytest.param("object", "{", "JSON does not parse: ", id="no-json"),
        pytest.param("object", "NaN", "NaN is not a JSON value", id="nan"),
        pytest.param("object", '{"a":1,"a":2}', "key 'a' is given twice", id="twice"),
        pytest.param("integer", "9007199254740992", "", id="too-large"),
        pytest.param("object", "[" * 100_000, "JSON", id="too-deep"),
        pytest.param("text", "3", "", id="wrong-type"),
        pytest.param("nothing", "3", "'nothing' is not a type", id="no-type"),
        pytest.param("object", "@gone", "file 'gone' not found", id="no-file"),
        pytest.param("object", "@", "JSON is '@', but names no file", id="no-name"),
        pytest.param("0000000000000", "{}", "", id="unknown-type"),
        pytest.param("schema", '{"$ref": "#"}', "", id="refused-schema"),
        pytest.param("schema", '{"type": "strnig"}', "", id="bad-schema"),
    ],
)
def test_bad_values_are_refused_in_one_line(
    uwf: Uwf, type_: str, value: str, message: str
) -> None:
    refused = uwf("cas", "put", type_, value, "--json")

    assert refused.code in {1, 2}
    assert refused.error["message"].startswith(message)


def test_a_schema_is_kept_with_its_warnings(uwf: Uwf) -> None:
    schema = '{"properties": {"a": {"format": "zip"}}}'

    kept = uwf("cas", "schema", "put", schema)

    assert kept.code == 0
    assert "properties.a.format: unknown format 'zip'" in kept.err


def test_what_is_not_a_hash_is_told_how_one_looks(uwf: Uwf) -> None:
    put(uwf, "put-text", "x")

    refused = uwf("cas", "has", "ZZZZZZZZZZZZZ", "--json")

    assert refused.code == 2
    assert "the first is 0-F" in refused.error["hint"]


def test_has_answers_by_exit_code(uwf: Uwf) -> None:
    text = put(uwf, "put-text", "x")

    assert (uwf("cas", "has", text).code, uwf("cas", "has", text).out) == (0, "yes\n")
    missing = uwf("cas", "has", "0000000000000", "--json")
    assert (missing.code, missing.json) == (1, {"exists": False})
    assert uwf("cas", "has", "not a hash").code == 2


def test_refs_and_walk_follow_links(uwf: Uwf, ended: str) -> None:
    head = uwf("thread", "show", ended, "--json").json["head"]
    step = uwf("cas", "get", head, "--json").json["payload"]

    refs = uwf("cas", "refs", head, "--json").json["refs"]
    hashes = uwf("cas", "walk", head, "--json").json["hashes"]

    assert set(refs) == {step["start"], step["prev"], step["output"], step["detail"]}
    assert hashes[0] == head
    assert set(refs) < set(hashes)
    assert len(hashes) == len(set(hashes))
    assert uwf("cas", "walk", head).out.split() == hashes
    assert all(uwf("cas", "get", node).code == 0 for node in hashes)


def test_oid_names_the_blob(uwf: Uwf) -> None:
    text = put(uwf, "put-text", "x")
    expected = subprocess.run(
        ["git", "hash-object", "--stdin"],
        input="x",
        capture_output=True,
        text=True,
        check=True,
    )

    assert uwf("cas", "oid", text, "--json").json == {"oid": expected.stdout.strip()}


def test_verify_checks_a_node(uwf: Uwf, ended: str) -> None:
    head = uwf("thread", "show", ended, "--json").json["head"]

    assert uwf("cas", "verify", head, "--json").json == {"ok": True}
    assert uwf("cas", "verify", head).out == "ok\n"
    assert uwf("cas", "verify", "0000000000000").code == 1


def test_schemas_are_types(uwf: Uwf) -> None:
    schema = {"type": "object", "title": "a point", "required": ["x"]}
    type_ = put(uwf, "schema", "put", json.dumps(schema))

    assert uwf("cas", "schema", "get", type_, "--json").json == schema
    assert uwf("cas", "put", type_, "{}").code == 1
    point = put(uwf, "put", type_, '{"x": 1}')
    assert uwf("cas", "list", "--type", type_, "--json").json == {
        "items": [{"hash": point, "type": type_}]
    }
    listed = uwf("cas", "schema", "list", "--json").json["items"]
    assert {"hash": type_, "name": None, "title": "a point"} in listed
    assert listed[0]["hash"] == TEXT_TYPE
    assert META_TYPE in [item["hash"] for item in listed]
    assert uwf("cas", "schema", "get", point).code == 1


def test_dropped_nodes_are_gone(uwf: Uwf) -> None:
    text = put(uwf, "put-text", "x")

    assert uwf("cas", "drop", text, "--json").json == {"hash": text}
    assert uwf("cas", "has", text).code == 1
    assert uwf("cas", "rm", text).code == 1


def test_lists_name_the_built_in_types(uwf: Uwf) -> None:
    text = put(uwf, "put-text", "x")

    line = next(line for line in uwf("cas", "list").out.splitlines() if text in line)
    assert line.split() == [text, TEXT_TYPE, "text"]
    assert uwf("cas", "list", "--type", "detail").err == "no nodes\n"


def test_what_an_agent_puts_is_noted_under_its_step(
    uwf: Uwf, work: Path, thread: str
) -> None:
    script = work / "agent.sh"
    script.write_text(
        """plan=$(uwf cas put-text 'the plan')
printf -- '---\\n$status: done\\ntext: %s\\n---\\n' "$plan"
"""
    )
    binary = work / "bin"
    binary.mkdir()
    launcher = binary / "uwf"
    launcher.write_text('#!/bin/sh\nexec "$UWF_TEST_PYTHON" -m uwfgit "$@"\n')
    launcher.chmod(0o755)

    done = _exec_with(uwf, thread, script, binary)

    assert done == 0
    links = uwf("git", "ls-tree", "-r", "--name-only", f"thread/{thread}")
    assert links.code == 0
    text = uwf("step", "show", f"{thread}:1", "--json").json["output"]["text"]
    uwf("cas", "drop", text)
    assert uwf("cas", "get", text, "--thread", thread).out == "the plan\n"


def _exec_with(uwf: Uwf, thread: str, script: Path, binary: Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UWF_TEST_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        patch.setenv("PATH", f"{binary}{os.pathsep}{os.environ['PATH']}")
        return uwf("thread", "exec", thread, "--agent", f"stdio:sh {script}").code


def test_the_thread_whose_agent_asks_comes_first(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = uwf("thread", "show", thread, "--json").json["start"]
    monkeypatch.setenv("UWF_THREAD", thread)

    assert uwf("cas", "get", node).code == 0
    monkeypatch.setenv("UWF_THREAD", "01M8FV0G61K8RNY396JMTGNRK5")
    assert uwf("cas", "get", node).code == 0


def test_of_two_contents_of_one_hash_an_agent_gets_its_own_thread_s(
    uwf: Uwf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"---\\n$status: done\\ntext: {COLLIDING_HASH}\\n---\\n"
    (work / "linking.yaml").write_text(f'replies:\n  writer:\n    - "{text}"\n')
    agent = ("--agent", "scripted:linking.yaml")
    task = ("-p", f"read {COLLIDING_HASH}", "--json")
    threads = []
    for content in COLLIDING:
        assert put(uwf, "put-text", content) == COLLIDING_HASH
        threads.append(uwf("thread", "start", "ping.yaml", *task).json["threadId"])
        assert uwf("thread", "exec", threads[-1], *agent).code == 0
        uwf("cas", "drop", COLLIDING_HASH)

    assert uwf("cas", "get", COLLIDING_HASH, "--json").error["code"] == "ambiguous"
    for thread, content in zip(threads, COLLIDING, strict=True):
        monkeypatch.setenv("UWF_THREAD", thread)
        assert uwf("cas", "get", COLLIDING_HASH).out == f"{content}\n"
        for command in ("refs", "walk", "oid", "verify"):
            assert uwf("cas", command, COLLIDING_HASH).code == 0


def test_a_unique_start_of_a_hash_names_its_node(uwf: Uwf, ended: str) -> None:
    first = uwf("step", "list", ended, "--json").json["items"][0]["hash"]
    whole = uwf("cas", "get", first, "--json").json

    assert uwf("cas", "get", first[:6].lower(), "--json").json == whole
    assert uwf("cas", "get", first[:6], "--thread", ended, "--json").json == whole
    for command in ("refs", "walk", "oid", "verify"):
        short = uwf("cas", command, first[:6])
        assert (short.code, short.out) == (0, uwf("cas", command, first).out)
    assert uwf("cas", "has", first[:6]).out == "yes\n"
    assert uwf("cas", "has", "ZZZZZZ").code == 1
    assert uwf("cas", "get", "ZZZZZZ", "--json").error["code"] == "not-found"
    assert uwf("cas", "get", first[:3], "--json").error["code"] == "usage"


def test_a_start_of_several_hashes_names_some_of_them(uwf: Uwf) -> None:
    starts: dict[str, str] = {}
    texts = (str(number) for number in itertools.count())
    text = next(t for t in texts if starts.setdefault(make_text(t).hash[:4], t) != t)
    node = make_text(text).hash
    uwf("cas", "put-text", starts[node[:4]])
    uwf("cas", "put-text", text)

    refused = uwf("cas", "drop", node[:4], "--json")

    assert refused.error["code"] == "ambiguous"
    assert node in refused.error["message"]
    assert uwf("cas", "drop", node[:12], "--json").json == {"hash": node}
