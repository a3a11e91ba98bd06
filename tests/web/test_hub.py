"""A hub and its clients: real processes, real sockets, three stores."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.builders import Clock, make_ledger
from tests.cli.calls import Uwf
from tests.program import PATIENCE, wait_until
from tests.web.browsing import browsing, enter, list_faults, tab
from tests.web.hostile import HOSTILE
from tests.web.serving import Server, serving
from tests.web.test_live import SLOW, Stream
from uwfgit.store.repository import open_store
from uwfgit.web.view.wire import pack_view
from uwfgit.web.view.workflow import view_registered

pytestmark = pytest.mark.slow
UWF = [sys.executable, "-P", "-m", "uwfgit"]
NAMES = ("alpha", "beta", "gamma")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A store of its own, as another machine would have it."""

    name: str
    folder: Path
    secret: str
    uwf: Uwf

    def run(self, *words: str) -> Any:  # noqa: ANN401 - a JSON value
        done = self.uwf(*words, "--json", "--store", str(self.folder / "store"))
        assert done.code in {0, 3}, done.out + done.err
        return done.json


@contextmanager
def connected(
    machine: Machine, port: int, *flags: str, secret: str | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run ``uwf connect`` and wait until it is there."""
    process = begin(machine, port, *flags, secret=secret)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "connected to" in line:
                break
        else:
            pytest.fail(f"ended with {process.wait()}")
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def begin(
    machine: Machine, port: int, *flags: str, secret: str | None = None
) -> subprocess.Popen[str]:
    words = ["connect", f"ws://127.0.0.1:{port}", "--name", machine.name, *flags]
    return subprocess.Popen(
        [*UWF, *words, "--store", str(machine.folder / "store")],
        cwd=machine.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "UWF_HUB_SECRET": secret or machine.secret},
    )


@pytest.fixture
def machines(uwf: Uwf, work: Path, tmp_path: Path) -> tuple[Machine, ...]:
    """Three stores with a workflow each, and a secret for each on the hub."""
    uwf("config", "set", "agents.play.kind", "scripted")
    uwf("config", "set", "agents.play.script", str(work / "replies.yaml"))
    slow = tmp_path / "slow.sh"
    slow.write_text(SLOW.replace("$1", "done"))
    slow.chmod(0o700)
    uwf("config", "set", "agents.slow.kind", "stdio")
    uwf("config", "set", "agents.slow.command", str(slow))
    uwf("config", "set", "defaultAgent", "play")
    found = []
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        secret = uwf("web", "hub", "add", name, "--json").json["secret"]
        machine = Machine(name=name, folder=folder, secret=secret, uwf=uwf)
        machine.run("init")
        machine.run("workflow", "add", str(work / "ping.yaml"))
        found.append(machine)
    return tuple(found)


@contextmanager
def hub(work: Path, *words: str, port: int | None = None) -> Iterator[Server]:
    with serving(work, "--hub", *words, port=port) as server:
        yield server


def test_three_stores_are_listed_browsed_and_acted_on(
    uwf: Uwf, machines: tuple[Machine, ...], work: Path
) -> None:
    uwf("init")
    alpha, beta, gamma = machines
    threads = {
        each.name: each.run("thread", "start", "ping", "-p", f"for {each.name}")[
            "threadId"
        ]
        for each in machines
    }
    with hub(work) as server, ExitStack() as lines:
        lines.enter_context(
            connected(alpha, server.port, "--allow-acts", "--allow-exec")
        )
        dropping = connected(beta, server.port, "--allow-acts")
        process = dropping.__enter__()
        lines.enter_context(connected(gamma, server.port))

        listing = server.get("/threads").text
        for name in NAMES:
            assert f'href="/clients/{name}/threads"' in listing
            assert f"for {name}" in server.get(f"/clients/{name}/threads").text
            thread = server.get(f"/clients/{name}/threads/{threads[name]}")
            assert (thread.status, f"for {name}" in thread.text) == (200, True)
            api = server.get(f"/api/clients/{name}/threads/{threads[name]}")
            assert api.json["threadId"] == threads[name]
        assert "gone" not in listing
        pages(server, alpha, threads["alpha"])

        # One may all, one may act but not run, one only reads.
        run = f"/api/clients/alpha/threads/{threads['alpha']}/exec"
        assert server.post(run, {"all": True}).json["status"] == "running"
        alpha.run("thread", "join", threads["alpha"])
        assert alpha.run("thread", "show", threads["alpha"])["status"] == "end"
        body = {"workflow": "ping", "prompt": "from afar"}
        started = server.post("/api/clients/alpha/threads", body)
        assert alpha.run("thread", "show", started.json["threadId"])["task"]
        for name, act, status in (
            ("beta", "cancel", 200),
            ("beta", "exec", 403),
            ("gamma", "cancel", 403),
            ("gamma", "exec", 403),
            ("alpha", "fork", 404),
            ("alpha", "poke", 404),
            ("alpha", "trust", 404),
        ):
            path = f"/api/clients/{name}/threads/{threads[name]}/{act}"
            answer = server.post(path, {})
            assert answer.status == status, (name, act, answer.text)
        assert beta.run("thread", "show", threads["beta"])["status"] == "cancelled"
        assert gamma.run("thread", "show", threads["gamma"])["status"] == "idle"
        assert "<form method" not in server.get(
            f"/clients/gamma/threads/{threads['gamma']}"
        ).text.replace("filters", "")

        process.kill()
        wait_until(lambda: "gone" in server.get("/threads").text)
        gone = server.get("/clients/beta/threads")
        assert (gone.status, "not connected" in gone.text) == (503, True)
        lines.enter_context(connected(beta, server.port))
        assert "for beta" in server.get("/clients/beta/threads").text
        dropping.__exit__(None, None, None)


def pages(server: Server, machine: Machine, thread: str) -> None:
    """Each page of a client is there, and shows what it is asked for."""
    root, api = f"/clients/{machine.name}", f"/api/clients/{machine.name}"
    state = machine.run("thread", "show", thread)
    other = machine.run("thread", "fork", thread, "--at", "0")["threadId"]
    older, newer = sorted((thread, other))
    for path, words in (
        (f"/threads/{thread}/nodes/{state['start']}", "Payload"),
        (f"/threads/{thread}/verify", "It verifies"),
        (f"/compare/{older}/{newer}", "comparison"),
        ("/workflows", "ping"),
        (f"/workflows/ping/{state['workflowHash']}", "Start a thread"),
        (f"/workflows/ping/{state['workflowHash']}/changes", "name: ping"),
        ("/threads?q=unuttered", "Nothing fits"),
    ):
        answer = server.get(root + path)
        assert (answer.status, words in answer.text) == (200, True), answer.text
    assert server.get(f"{root}/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV").status == 404
    assert server.get(f"{root}/workflows/none/{'0' * 13}").status == 404
    for path in ("/threads", "/workflows", "/workflows/ping"):
        assert server.get(api + path).status == 200
    for path in ("/edit/ping.yaml", "/static/web.js", "/nothing"):
        assert server.get(api + path).status == 404


def test_live_turns_pass_through_and_the_end_ends_it(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path
) -> None:
    uwf("init")
    alpha = machines[0]
    thread = alpha.run("thread", "start", "ping", "-p", "slowly")["threadId"]
    with (
        hub(work) as server,
        connected(alpha, server.port, "--allow-exec"),
        browsing() as browser,
        tab(browser, "hub") as found,
    ):
        page = found.page
        enter(page, server.url)
        page.locator(".stores > summary").click()
        found.shot("sidebar")
        assert list_faults(found) == []
        page.get_by_role("link", name="alpha").click()
        page.get_by_role("link", name="slowly").click()
        expect(page.get_by_role("button", name="Run the next step")).to_be_visible()
        found.shot("thread")
        assert list_faults(found) == []
        page.evaluate("window.kept = 1")
        page.get_by_label("Agent").select_option("slow")
        with ThreadPoolExecutor(1) as pool:
            api = pool.submit(follow, server, f"/api/clients/alpha/threads/{thread}")
            page.get_by_role("button", name="Run the next step").click()
            expect(page.locator("#now")).to_contain_text("I look at it.")
            found.shot("turns")
            expect(page.locator("#step-1")).to_be_visible()
            alpha.run("thread", "exec", thread, "--all", "--agent", "play")
            expect(page.locator(".chip.end").first).to_be_visible()
            kinds = api.result(timeout=60)
        assert {"running", "turns", "event", "end"} <= set(kinds)
        hostile = alpha.run("thread", "start", "ping", "-p", HOSTILE)["threadId"]
        for path in ("/threads", f"/threads/{hostile}", f"/threads/{hostile}/verify"):
            page.goto(f"{server.origin}/clients/alpha{path}")
            assert page.title() != "pwned"
            assert page.evaluate("document.scripts.length") == 1
            assert "\u202e" not in page.content()
            assert found.problems() == [], path
        assert kinds[-1] == "end"
        assert found.problems() == []


def follow(server: Server, path: str) -> list[str]:
    head = (
        f"GET {path}/live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    )
    with server.line() as line:
        line.sendall(head.encode())
        stream = Stream(line)
        stream.until("end", wait=60)
        assert stream.line.recv(100) in {b"0\r\n\r\n", b""}
    return [each[0] for each in stream.seen]


def test_a_wrong_secret_a_name_in_use_and_a_forgotten_name_are_refused(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path
) -> None:
    uwf("init")
    alpha, beta, _ = machines
    with hub(work) as server:
        for machine, secret in ((alpha, "not-the-one"), (alpha, beta.secret)):
            process = begin(machine, server.port, secret=secret)
            _, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 1
            assert "wrong secret" in err
            assert secret not in err
        with connected(alpha, server.port):
            process = begin(alpha, server.port)
            _, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 1
            assert "name in use" in err
            assert server.get("/clients/alpha/threads").status == 200
            uwf("web", "hub", "remove", "alpha")
            assert server.get("/clients/alpha/threads").status == 404
        for name in ("nobody", "..", "a" * 200):
            assert server.get(f"/clients/{name}/threads").status == 404


def test_a_client_comes_back_when_its_hub_does(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path, port: int
) -> None:
    uwf("init")
    alpha = machines[0]
    with hub(work, port=port) as server, ExitStack() as kept:
        kept.enter_context(connected(alpha, port))
        server.process.terminate()
        server.process.wait(timeout=PATIENCE)
        with hub(work, port=port) as again:
            wait_until(lambda: again.get("/clients/alpha/threads").status == 200)


@contextmanager
def strange(machine: Machine, port: int) -> Iterator[ClientConnection]:
    """Connect as something that is no uwf."""
    with connect(
        f"ws://127.0.0.1:{port}/connect/{machine.name}",
        additional_headers={"Authorization": f"Bearer {machine.secret}"},
        proxy=None,
        max_size=None,
    ) as line:
        line.send(json.dumps({"acts": ["exec"], "agents": ["play"]}))
        yield line


def answer_with(line: ClientConnection, *frames: str) -> None:
    """Answer the next question with frames; ``ID`` stands for its id."""
    number = json.loads(line.recv(timeout=30))["id"]
    for frame in frames:
        line.send(frame.replace('"ID"', str(number)))


def test_a_client_that_hangs_keeps_nobody_waiting(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path
) -> None:
    uwf("init")
    uwf("config", "set", "hub.timeoutSeconds", "1.5")
    with hub(work) as server, strange(machines[0], server.port):
        begun = time.monotonic()
        with ThreadPoolExecutor(3) as pool:
            page = pool.submit(server.get, "/clients/alpha/threads")
            api = pool.submit(server.get, "/api/clients/alpha/threads")
            other = server.get("/threads")
        assert other.status == 200
        assert (page.result().status, api.result().status) == (504, 504)
        assert api.result().json["error"]["code"] == "client-timeout"
        # Without the setting it would be thirty.
        assert 1.4 < time.monotonic() - begun < 25


ODD = [
    "{}",
    "[]",
    "nonsense",
    '{"id": "ID"}',
    '{"id": "ID", "status": 99, "body": ""}',
    '{"id": "ID", "status": 200, "body": "not json"}',
    '{"id": "ID", "status": 200, "body": "[]"}',
    '{"id": "ID", "status": 200, "body": "{\\"lines\\": [1]}"}',
    '{"id": "ID", "status": 200, "body": 7}',
    '{"id": "ID", "status": 200, "headers": [], "body": ""}',
    '{"id": "ID", "status": 200, "body": "\\ud800"}',
    '{"id": "ID", "status": 302, "headers": {"location": "//evil.example"}}',
]


@pytest.mark.parametrize("frame", ODD)
def test_whatever_a_client_answers_is_a_page_of_ours(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path, frame: str
) -> None:
    uwf("init")
    uwf("config", "set", "hub.timeoutSeconds", "3")
    with hub(work) as server, ThreadPoolExecutor(1) as pool:
        with strange(machines[0], server.port) as line:
            asked = pool.submit(server.get, "/clients/alpha/threads")
            answer_with(line, frame)
            answer = asked.result(timeout=PATIENCE)
        assert answer.status in {502, 503, 504}, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        assert "location" not in answer.headers
        assert server.get("/threads").status == 200


def test_what_a_client_sends_is_never_a_page_of_the_hubs(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path
) -> None:
    uwf("init")
    head = {"content-type": "text/html", "set-cookie": "a=b", "location": "//evil"}
    reply = {"id": "ID", "status": 200, "headers": head, "body": "<script>1</script>"}
    with (
        hub(work) as server,
        ThreadPoolExecutor(1) as pool,
        strange(machines[0], server.port) as line,
    ):
        asked = pool.submit(server.get, "/api/clients/alpha/threads")
        answer_with(line, json.dumps(reply))
        answer = asked.result(timeout=PATIENCE)
    assert answer.headers["content-type"] == "application/json"
    assert not {"set-cookie", "location"} & answer.headers.keys()


def test_no_client_is_asked_for_more_or_leads_elsewhere(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path
) -> None:
    uwf("init")
    machine = machines[0]
    name = machine.run("thread", "start", "ping", "-p", "one")["threadId"]
    view = machine.run("thread", "show", name)
    store = open_store(machine.folder / "store", home=Path(os.environ["UWF_HOME"]))
    ledger = make_ledger(store, Clock(iter([])))
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    with hub(work) as server:
        with connected(machine, server.port, "--allow-acts", "--allow-exec"):
            honest = server.get(f"/clients/alpha/threads/{name}").text
            there = f"/clients/alpha/workflows/ping/{view['workflowHash']}"
            assert "Start a thread" in server.get(there).text
        wait_until(lambda: server.get(f"/clients/alpha/threads/{name}").status == 503)
        assert "/exec" in honest
        assert not re.search(r'action="[^"]*/(fork|poke|approve|trust)"', honest)
        with ThreadPoolExecutor(1) as pool, strange(machine, server.port) as line:
            asked = pool.submit(
                server.ask,
                "POST",
                "/clients/alpha/workflows/ping/start",
                headers={**server.bearer, **kind},
                body=b"prompt=x",
            )
            seen = pack_view(view_registered(ledger, "ping", None, ()))
            made = {"threadId": "../../../enter?code=x"}
            for body in (seen, made):
                reply = {"id": "ID", "status": 200, "body": json.dumps(body)}
                answer_with(line, json.dumps(reply))
            answer = asked.result(timeout=30)
    assert "location" not in answer.headers
    assert answer.status != 303


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        pytest.param({}, "/connect/alpha", id="no secret"),
        pytest.param({"Authorization": "Bearer x"}, "/connect/alpha", id="wrong"),
        pytest.param({"Authorization": "RIGHT"}, "/connect/nobody", id="unknown"),
        pytest.param({"Authorization": "RIGHT"}, "/threads", id="another route"),
        pytest.param({"Authorization": "RIGHT"}, "/api/threads", id="the API"),
        pytest.param({"Authorization": "RIGHT"}, "/connect/al%70ha", id="a trick"),
        pytest.param(
            {"Authorization": "RIGHT", "Origin": "http://evil.example"},
            "/connect/alpha",
            id="a page of others",
        ),
        pytest.param(
            {"Authorization": "RIGHT", "Host": "evil.example"},
            "/connect/alpha",
            id="another host",
        ),
    ],
)
def test_no_line_is_opened_to_whom_it_may_not(
    machines: tuple[Machine, ...],
    uwf: Uwf,
    work: Path,
    headers: dict[str, str],
    path: str,
) -> None:
    uwf("init")
    secret = f"Bearer {machines[0].secret}"
    given = {k: secret if v == "RIGHT" else v for k, v in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    with hub(work) as server:
        host = "" if "Host" in given else f"Host: 127.0.0.1:{server.port}\r\n"
        answer = server.raw(
            (
                f"GET {path} HTTP/1.1\r\n{host}{lines}Connection: Upgrade\r\n"
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            ).encode()
        )
        status = int(answer.split(b" ")[1])
        assert status in {401, 403, 404}, answer
        # The bearer token of the API opens no line, and a secret no page.
        opened = server.ask("GET", "/threads", headers={"Authorization": secret})
        assert opened.status == 401


def test_a_server_that_is_no_hub_takes_no_line(
    machines: tuple[Machine, ...], uwf: Uwf, work: Path
) -> None:
    uwf("init")
    with serving(work) as server:
        with pytest.raises(InvalidStatus), strange(machines[0], server.port):
            pass
        assert server.get("/clients/alpha/threads").status == 404


def test_addresses_and_secrets_that_do_not_serve_are_a_line(uwf: Uwf) -> None:
    uwf("init")
    for url in ("ftp://x", "ws://hub.example.org", "wss://", "wss://u:p@h", "hub"):
        refused = uwf("connect", url, "--name", "alpha", "--json")
        assert (refused.code, refused.error["code"]) == (2, "usage"), url
    refused = uwf("connect", "ws://127.0.0.1:1", "--name", "alpha", "--json")
    assert (refused.code, refused.error["code"]) == (2, "usage")
    for name in ("../x", "", "a b", "a" * 41):
        assert uwf("web", "hub", "add", name, "--json").code == 2


def test_names_are_added_listed_renewed_and_removed(uwf: Uwf) -> None:
    first = uwf("web", "hub", "add", "alpha", "--json").json["secret"]
    assert uwf("web", "hub", "add", "alpha", "--json").code == 1
    second = uwf("web", "hub", "add", "alpha", "--renew", "--json").json["secret"]
    assert first != second
    assert uwf("web", "hub", "list", "--json").json["items"] == [{"name": "alpha"}]
    path = Path(os.environ["UWF_HOME"]) / "web" / "hub.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert second not in path.read_text()
    assert uwf("web", "hub", "remove", "alpha", "--json").code == 0
    assert uwf("web", "hub", "remove", "alpha", "--json").code == 1


def test_a_client_imports_neither_the_server_nor_its_pages() -> None:
    look = """
import sys
import uwfgit.cli.web.stores, uwfgit.web.hub.connect, uwfgit.web.hub.answering
print([n for n in sys.modules if n.startswith(("uvicorn", "pygments", "markdown_it"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
