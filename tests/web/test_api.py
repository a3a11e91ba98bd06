"""The API says what the command line says, and does what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.web.serving import serving

pytestmark = pytest.mark.slow

NOTHING = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def without_words(payload: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in payload.items() if key != "items"}


def test_it_reads_what_the_command_line_prints(
    uwf: Uwf, ended: str, work: Path
) -> None:
    uwf("workflow", "add", "ping.yaml")
    shown = uwf("thread", "show", ended, "--json").json
    steps = uwf("step", "list", ended, "--json").json["items"]
    listed = uwf("thread", "list", "--all", "--json").json["items"]
    workflow = uwf("workflow", "show", "ping", "--json").json
    node = uwf("cas", "get", steps[0]["hash"], "--json").json

    with serving(work) as server:
        thread = server.get(f"/api/threads/{ended}").json
        assert without_words(thread) == shown
        assert thread["items"] == steps
        assert server.get("/api/threads").json["items"] == listed
        found = server.get(f"/api/threads/{ended}/nodes/{steps[0]['hash']}")
        assert found.json == node
        assert server.get("/api/workflows").json["items"][0]["name"] == "ping"
        changes = server.get(f"/workflows/ping/{workflow['hash']}/changes")
        assert "+name: ping" in changes.text
        newest = server.get("/workflows/ping")
        assert (newest.status, newest.headers["location"]) == (
            303,
            f"/workflows/ping/{workflow['hash']}",
        )
        assert server.get("/workflows/nobody").status == 404
        served = server.get("/api/workflows/ping").json
        assert {key: served[key] for key in ("roles", "graph", "hash")} == {
            key: workflow[key] for key in ("roles", "graph", "hash")
        }


def test_searching_finds_tasks_roles_and_states(
    uwf: Uwf, ended: str, work: Path
) -> None:
    other = uwf("thread", "start", "ping.yaml", "-p", "paint it blue", "--json")
    with serving(work) as server:
        for query, expected in (
            ("q=BLUE+paint", [other.json["threadId"]]),
            ("q=the+task", [ended]),
            ("status=end", [ended]),
            ("q=writer", [other.json["threadId"]]),
            ("workflow=nothing", []),
            ("q=unuttered", []),
            ("sort=steps", [ended, other.json["threadId"]]),
            ("limit=1&from=1&sort=started", [ended]),
            ("sort=nonsense&from=-1&limit=x&status=%00", []),
        ):
            items = server.get(f"/api/threads?{query}").json["items"]
            assert [each["threadId"] for each in items] == expected, query


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ASKS = """\
inputs:
  color: { type: string, description: Which one }
  times: { type: integer, default: 1 }
"""


def test_inputs_are_given_and_none_of_them_names_a_file(uwf: Uwf, work: Path) -> None:
    text = (work / "ping.yaml").read_text()
    (work / "ping.yaml").write_text(text.replace("roles:\n", f"{ASKS}roles:\n", 1))
    assert uwf("workflow", "add", "ping.yaml").code == 0
    with serving(work) as server:
        inputs = {"color": "@/etc/passwd", "times": 3}
        body = {"workflow": "ping", "prompt": "x", "inputs": inputs}
        started = server.post("/api/threads", body)
        missing = server.post("/api/threads", {**body, "inputs": {"times": "many"}})
        form = "/workflows/ping/start"
        fields = b"prompt=y&input.color=-&input.times=2"
        sent = server.ask("POST", form, headers={**server.bearer, **FORM}, body=fields)
        page = server.get(sent.headers["location"])
        api = server.get(f"/threads/{started.json['threadId']}")

    assert started.status == 200, started.text
    assert missing.status == 400
    assert "<dt>color</dt><dd><span>@/etc/passwd</span></dd>" in api.text
    assert "<dt>times</dt><dd><code>3</code></dd>" in api.text
    assert "<dt>color</dt><dd><span>-</span></dd>" in page.text
    assert "<dt>times</dt><dd><code>2</code></dd>" in page.text


def test_all_that_is_wrong_with_a_form_is_said_at_once(uwf: Uwf, work: Path) -> None:
    text = (work / "ping.yaml").read_text()
    (work / "ping.yaml").write_text(text.replace("roles:\n", f"{ASKS}roles:\n", 1))
    made = uwf("workflow", "add", "ping.yaml", "--json").json["hash"]
    path, fields = "/workflows/ping/start", b"prompt=y&input.times=many"
    with serving(work) as server:
        sent = server.ask("POST", path, headers={**server.bearer, **FORM}, body=fields)

    assert sent.status == 400
    assert "<p>color: a value is missing (Which one)</p>" in sent.text
    assert "<p>times: must be a whole number, found the text" in sent.text
    assert f'href="/workflows/ping/{made}">Back</a>' in sent.text


def test_a_start_that_cannot_run_says_that_it_only_started(
    uwf: Uwf, work: Path
) -> None:
    assert uwf("workflow", "add", "ping.yaml").code == 0
    path, fields = "/workflows/ping/start", b"prompt=y&run=1"
    with serving(work) as server:
        sent = server.ask("POST", path, headers={**server.bearer, **FORM}, body=fields)

    (made,) = uwf("thread", "list", "--json").json["items"]
    assert sent.status == 409
    assert "<h1>Started, but not run</h1>" in sent.text
    assert f'href="/threads/{made["threadId"]}">Back</a>' in sent.text


def test_only_the_current_version_can_be_started(uwf: Uwf, work: Path) -> None:
    old = uwf("workflow", "add", "ping.yaml", "--json").json["hash"]
    text = (work / "ping.yaml").read_text()
    (work / "ping.yaml").write_text(f"{text}x-note: new\n")
    new = uwf("workflow", "add", "ping.yaml", "--json").json["hash"]

    with serving(work) as server:
        pages = [server.get(f"/workflows/ping/{each}").text for each in (old, new)]

    assert ["Start a thread" in page for page in pages] == [False, True]


def test_acts_do_what_the_commands_of_their_name_do(uwf: Uwf, work: Path) -> None:
    uwf("workflow", "add", "ping.yaml")
    uwf("config", "set", "agents.play.kind", "scripted")
    uwf("config", "set", "agents.play.script", str(work / "replies.yaml"))

    with serving(work) as server:
        started = server.post(
            "/api/threads", {"workflow": "ping", "prompt": "@/etc/passwd"}
        )
        assert started.status == 200, started.text
        thread = started.json["threadId"]
        task = uwf("thread", "read", thread).out
        assert "@/etc/passwd" in task
        assert "root:" not in task

        ran = server.post(f"/api/threads/{thread}/exec", {"agent": "play", "all": True})
        assert (ran.status, ran.json["status"]) == (200, "running"), ran.text
        uwf("thread", "join", thread)
        assert uwf("thread", "show", thread, "--json").json["status"] == "end"

        fork = server.post(f"/api/threads/{thread}/fork", {"at": 1})
        assert fork.json["forkedFrom"]["thread"] == thread
        new = fork.json["threadId"]
        cancelled = server.post(f"/api/threads/{new}/cancel", {"reason": "--store=/"})
        assert cancelled.json["cancelled"] is True
        assert uwf("thread", "show", new, "--json").json["status"] == "cancelled"
        again = server.post(f"/api/threads/{new}/exec", {"agent": "play"})
        assert again.status == 409
        assert again.json["error"]["message"]


REFUSED = [
    ("/exec", {"agent": "stdio:touch pwned"}, 400),
    ("/exec", {"agent": "--trust"}, 400),
    ("/exec", {"all": "yes"}, 400),
    ("/exec", {"all": ["x"]}, 400),
    ("/fork", {"at": "1; rm"}, 400),
    ("/fork", {"at": 7}, 404),
    ("/poke", {"prompt": "  "}, 400),
    ("/poke", {"prompt": ["x"]}, 400),
    ("/approve", {}, 404),
    ("/trust", {}, 404),
    ("/rm", {}, 404),
]
BROKEN = [b"{", b"[]", b"1", b"\xff", b"[" * 100_000]


def test_what_does_not_fit_is_refused_and_nothing_runs(
    uwf: Uwf, thread: str, work: Path
) -> None:
    kind = {"Content-Type": "application/json"}
    with serving(work) as server:
        for path, body, status in REFUSED:
            answer = server.post(f"/api/threads/{thread}{path}", body)
            assert answer.status == status, (path, body, answer.text)
            assert answer.json["error"]["message"]
        for data in BROKEN:
            headers = {**server.bearer, **kind}
            path = f"/api/threads/{thread}/exec"
            answer = server.ask("POST", path, headers=headers, body=data)
            assert (answer.status, answer.json["error"]["code"]) == (400, "invalid")
        missing = server.post(f"/api/threads/{NOTHING}/exec", {})

    assert missing.status == 404
    assert not (work / "pwned").exists()
    assert uwf("thread", "show", thread, "--json").json["steps"] == 0


def test_a_read_only_server_reads_and_no_more(thread: str, work: Path) -> None:
    with serving(work, "--read-only") as server:
        refused = server.post(f"/api/threads/{thread}/exec", {})
        page = server.get(f"/threads/{thread}")

    assert (refused.status, refused.json["error"]["code"]) == (403, "refused")
    assert "<form" not in page.text


def test_all_stores_of_the_user_stand_beside_each_other(
    uwf: Uwf, thread: str, work: Path, tmp_path: Path
) -> None:
    assert thread
    other = tmp_path / "other-store"
    uwf("init", "--store", str(other))
    begun = ["thread", "start", "ping.yaml", "-p", "elsewhere", "--store", str(other)]
    elsewhere = uwf(*begun, "--json").json["threadId"]

    with serving(work, "--all") as server:
        found = server.get("/stores/1/threads")
        api = server.get(f"/api/stores/1/threads/{elsewhere}")
        mine = server.get(f"/api/threads/{elsewhere}")

    assert "elsewhere" in found.text
    assert f"/stores/1/threads/{elsewhere}" in found.text
    assert 'href="/stores/1/threads"' in found.text
    assert api.json["threadId"] == elsewhere
    assert mine.status == 404
