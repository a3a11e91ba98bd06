"""What a server lets in, asked over a raw socket: every rule, and tricks around it."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.web.serving import Answer, Server, serving
from uwfgit.cli.frame.app import main
from uwfgit.web.serve.server import PORT

pytestmark = pytest.mark.slow

PAGES = ["/", "/threads", "/threads/live", "/workflows", "/static/style.css"]
PAGES += ["/api/threads", "/api/workflows", "/static/web.js", "/nothing"]
_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
_NODE = "0123456789ABC"
_BELOW = ["", "/live", f"/nodes/{_NODE}", "/exec", "/resume", "/poke", "/fork"]
_BELOW += ["/stop", "/pause", "/cancel", "/approve", "/verify", "/code/1", "/trust"]
MORE = [f"{root}/threads/{_ID}{end}" for root in ("", "/api") for end in _BELOW]
MORE += [f"/workflows/ping/{_NODE}", "/workflows/ping/start", "/edit/ping"]
MORE += [f"/compare/{_ID}/{_ID}", f"/workflows/ping/{_NODE}/changes"]
MORE += ["/api/workflows/ping", "/clients/laptop/threads", "/clients/nobody/threads"]
MORE += ["/api/clients/laptop/threads", "/connect/laptop", "/connect/nobody"]
MORE += [f"/clients/laptop/threads/{_ID}/cancel", "/api/clients/laptop/workflows"]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def entered(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Server, Answer]]:
    """A server, and what its printed address gave; it is good for a minute only."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("gate")
        (root / "home").mkdir()
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("UWF_HOME", str(root / "home" / ".uwf"))
        patch.setenv("UWF_STORE", str(root / "store"))
        assert main(["init", "--store", str(root / "store")]) == 0
        assert main(["web", "hub", "add", "laptop"]) == 0
        with serving(root, "--hub") as found:
            yield found, found.ask("GET", found.url.removeprefix(found.origin))


@pytest.fixture(scope="module")
def server(entered: tuple[Server, Answer]) -> Server:
    """One server for all of them: none of them changes anything."""
    return entered[0]


@pytest.fixture(scope="module")
def cookie(entered: tuple[Server, Answer]) -> str:
    """The cookie that the printed address gives."""
    answer = entered[1]
    assert answer.status == 303
    assert answer.headers["location"] == "/welcome"
    return answer.headers["set-cookie"]


def browser(server: Server, cookie: str, **more: str) -> dict[str, str]:
    pair = cookie.partition(";")[0]
    assert pair.startswith(f"uwf_{server.port}=")
    return {"Cookie": pair, "Sec-Fetch-Site": "same-origin", **more}


def test_the_cookie_is_strict_and_hidden_and_named_by_the_port(
    server: Server, cookie: str
) -> None:
    assert cookie.startswith(f"uwf_{server.port}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_is_given_without_a_cookie_or_token(
    server: Server, method: str
) -> None:
    for path in [*PAGES, *MORE]:
        answer = server.ask(method, path, headers=FORM if method == "POST" else {})

        assert answer.status in {401, 405}, path
        assert b"uwf" not in answer.body.replace(b"'uwf web'", b"").replace(
            b"'uwf web token'", b""
        )


@pytest.mark.parametrize("where", ["evil.example", "127.0.0.1:1"])
def test_no_route_answers_to_another_host_or_to_a_page_of_others(
    server: Server, cookie: str, where: str
) -> None:
    for path in MORE:
        for method in ("GET", "POST"):
            headers = browser(server, cookie, **FORM, Origin=f"http://{where}")
            assert server.ask(method, path, headers=headers).status == 403, path
            named = server.ask(method, path, headers=server.bearer, host=where)
            assert named.status == 403, path


@pytest.mark.parametrize("path", [*PAGES, "/enter", "/welcome"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "",
        "[::1]:{port}",
    ],
)
def test_another_host_is_refused_before_anything_else(
    server: Server, path: str, host: str
) -> None:
    for method in ("GET", "POST", "BREW"):
        answer = server.ask(
            method, path, headers=server.bearer, host=host.format(port=server.port)
        )
        assert answer.status in {400, 403}, (method, path, host)


def test_both_names_of_this_machine_are_answered(server: Server) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        answer = server.ask(
            "GET", "/threads", headers=server.bearer, host=f"{name}:{server.port}"
        )
        assert answer.status == 200


@pytest.mark.parametrize(
    ("more", "status"),
    [
        pytest.param({}, 200, id="a browser's own"),
        pytest.param({"Sec-Fetch-Site": "none"}, 200, id="typed in"),
        pytest.param({"Sec-Fetch-Site": ""}, 401, id="a script with a stolen cookie"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="another port"),
        pytest.param({"Origin": "http://evil.example"}, 403, id="another origin"),
        pytest.param({"Origin": "http://127.0.0.1:1"}, 403, id="another port's origin"),
        pytest.param(
            {"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403, id="null"
        ),
        pytest.param({"Origin": "null", "Sec-Fetch-Site": ""}, 403, id="null alone"),
        pytest.param({"Cookie": "uwf_1=x"}, 401, id="another cookie"),
        pytest.param({"Cookie": "\x01;;==,"}, 401, id="no cookie at all"),
        pytest.param({"Authorization": "Bearer wrong"}, 401, id="a wrong token beside"),
    ],
)
def test_the_cookie_counts_only_where_it_was_given(
    server: Server, cookie: str, more: dict[str, str], status: int
) -> None:
    answer = server.ask("GET", "/threads", headers=browser(server, cookie, **more))

    assert answer.status == status


def test_the_token_is_refused_from_a_page_of_others(server: Server) -> None:
    for more in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = server.ask("GET", "/api/threads", headers={**server.bearer, **more})
        assert answer.status == 403


@pytest.mark.parametrize(
    "body", [b"", b"token=", b"token=wrong", b"token=%00", b"\xff\xfe", b"a&" * 500]
)
def test_a_form_without_the_pages_token_changes_nothing(
    server: Server, cookie: str, body: bytes
) -> None:
    path = "/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV/exec"
    answer = server.ask(
        "POST", path, headers=browser(server, cookie, **FORM), body=body
    )

    assert answer.status in {400, 403}


def test_json_needs_the_token_in_a_header(server: Server, cookie: str) -> None:
    headers = browser(server, cookie, **{"Content-Type": "application/json"})
    answer = server.ask("POST", "/api/threads", headers=headers, body=b"{}")

    assert answer.status == 403


def test_another_kind_of_body_is_refused(server: Server) -> None:
    for kind in ("text/plain", "multipart/form-data; boundary=x", ""):
        headers = {**server.bearer, "Content-Type": kind}
        answer = server.ask("POST", "/api/threads", headers=headers, body=b"{}")
        assert answer.status == 415


@pytest.mark.parametrize(
    "path",
    [
        *("/../etc/passwd", "/static/../../etc/passwd", "/%2e%2e/etc/passwd"),
        *("/static/%2e%2e%2fstyle.css", "//evil.example/", "/threads//x", "/./threads"),
        *("/threads/%00", "/threads\\x", "/static/style.css%00", "/api/../threads"),
        *("/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV/nodes/..%2f..", "/" + "a" * 5000),
    ],
)
def test_tricks_with_paths_lead_nowhere(server: Server, path: str) -> None:
    assert server.get(path).status == 404


def test_a_code_opens_once(server: Server, cookie: str) -> None:
    assert cookie
    again = server.ask("GET", server.url.removeprefix(server.origin))
    forged = server.ask("GET", "/enter?code=9999999999.x.y")

    assert (again.status, forged.status) == (403, 403)
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("length", [1_000_001, 10**12])
def test_a_body_that_says_it_is_too_large_is_not_read(
    server: Server, length: int
) -> None:
    headers = {
        **server.bearer,
        "Content-Type": "application/json",
        "Content-Length": str(length),
    }
    assert server.ask("POST", "/api/threads", headers=headers, body=b"{").status == 413


def test_a_body_that_turns_out_too_large_is_refused(server: Server) -> None:
    head = (
        f"POST /api/threads HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    ).encode()
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    answer = server.raw(head + chunk * 20 + b"0\r\n\r\n")

    assert answer == b"" or b" 413 " in answer.partition(b"\r\n")[0]


def test_a_body_that_does_not_come_is_not_waited_for(server: Server) -> None:
    head = (
        f"POST /api/threads HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
        "Content-Length: 100\r\nConnection: close\r\n\r\n{"
    ).encode()
    begun = time.monotonic()

    answer = server.raw(head, wait=40)

    assert b" 408 " in answer.partition(b"\r\n")[0]
    assert time.monotonic() - begun < 30


def test_a_body_of_the_largest_size_is_read_and_one_more_byte_is_not(
    server: Server,
) -> None:
    headers = {**server.bearer, "Content-Type": "application/json"}
    for size, status in ((1_000_000, 404), (1_000_001, 413)):
        body = b'{"prompt": "' + b"x" * (size - 14) + b'"}'
        assert len(body) == size
        answer = server.ask("POST", "/api/threads", headers=headers, body=body)
        assert answer.status in {status, 400 if status == 404 else status}


def test_whatever_is_asked_nothing_is_written_beside_the_store(
    server: Server, cookie: str
) -> None:
    root = server.folder
    before = files_of(root)

    for path in [each for each in [*PAGES, *MORE] if not each.endswith("/live")]:
        for method in ("GET", "POST"):
            more = {"Content-Type": "application/json"} if method == "POST" else {}
            server.ask(method, path, headers={**server.bearer, **more}, body=b"{}")

    assert cookie
    assert files_of(root) == before


def files_of(root: Path) -> dict[str, int]:
    """Return the files below a folder by size, but for the store and the home."""
    return {
        str(path): path.stat().st_size
        for path in root.rglob("*")
        if path.is_file() and not {"store", "home"} & set(path.parts)
    }


def test_a_header_that_counts_stands_once(server: Server) -> None:
    head = (
        f"GET /threads HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer wrong\r\nAuthorization: Bearer {server.token}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()

    assert b" 400 " in server.raw(head).partition(b"\r\n")[0]


def test_each_answer_carries_the_headers_of_safety(server: Server, cookie: str) -> None:
    for answer in (
        server.get("/threads"),
        server.get("/nothing"),
        server.get("/api/threads"),
        server.ask("GET", "/threads"),
        server.ask("GET", "/welcome"),
        server.ask("GET", "/", headers=browser(server, cookie)),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


def test_two_hundred_slow_callers_keep_nobody_waiting(server: Server) -> None:
    address = ("127.0.0.1", server.port)
    lines = [socket.create_connection(address, timeout=30) for _ in range(200)]
    try:
        for line in lines:
            line.sendall(b"GET /threads HTTP/1.1\r\nHost: ")
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: server.get("/threads").status, range(16)))
    finally:
        for line in lines:
            line.close()

    assert found == [200] * 16


def test_no_page_holds_a_style_or_a_script_of_its_own(server: Server) -> None:
    text = server.get("/threads").text

    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src)", text)


def test_the_browser_is_handed_the_address_through_a_file_of_the_users(
    uwf: Uwf, work: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    uwf("init")
    seen = work / "seen.html"
    browser = work / "browser.sh"
    browser.write_text(
        f'#!/bin/sh\ncp -p "${{1#file://}}" {seen}.new\nmv {seen}.new {seen}\n'
    )
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    command = [sys.executable, "-P", "-m", "uwfgit", "web", "--open"]
    with subprocess.Popen(
        [*command, "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            end = time.monotonic() + 60
            while not seen.exists():
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.05)
            address = re.search(
                r"url=http://127.0.0.1:\d+(/enter\S+?)\"", seen.read_text()
            )
            assert address is not None
            server = Server(port=port, url="", token="", process=process, folder=work)
            assert server.ask("GET", address[1]).status == 303
        finally:
            process.terminate()
        assert process.communicate()[0] == b""
    assert seen.stat().st_mode & 0o777 == 0o600


def test_another_host_needs_a_token_file(uwf: Uwf) -> None:
    refused = uwf("web", "--host", "0.0.0.0", "--json")  # noqa: S104 - it is refused

    assert (refused.code, refused.error["code"]) == (2, "usage")


@pytest.mark.parametrize("acts", [False, True], ids=["reading", "acts"])
def test_with_a_token_file_others_may_look_and_act_if_that_is_said(
    uwf: Uwf,
    work: Path,
    thread: str,
    acts: bool,  # noqa: FBT001 - a parameter
) -> None:
    token = work / "token"
    token.write_text("x" * 20)
    words = ["--host", "0.0.0.0", "--token-file", str(token)]  # noqa: S104 - to be tested
    assert uwf("web", *words, "--json").code == 1
    token.write_text("t" * 40 + "\n")
    name, told = socket.gethostname(), ["--allow-acts"] if acts else []
    with serving(work, *words, *told) as server:
        bearer = {"Authorization": f"Bearer {'t' * 40}"}
        for host in ("127.0.0.1", "10.1.2.3", "[fd00::1]", name, "localhost"):
            host = f"{host}:{server.port}"  # noqa: PLW2901 - with its port
            assert (
                server.ask("GET", "/threads", headers=bearer, host=host).status == 200
            )
        for host in ("evil.example", "10.1.2.3.evil.example", "fd00::1", "10.1.2"):
            host = f"{host}:{server.port}"  # noqa: PLW2901 - with its port
            assert (
                server.ask("GET", "/threads", headers=bearer, host=host).status == 403
            )
        # The user's own token is another one, and the file's may change.
        assert server.get("/threads").status == 401
        token.write_text("n" * 40)
        assert server.ask("GET", "/threads", headers=bearer).status == 401
        bearer = {"Authorization": f"Bearer {'n' * 40}"}
        kind = {"Content-Type": "application/json"}
        path = f"/api/threads/{thread}/cancel"
        done = server.ask("POST", path, headers={**bearer, **kind}, body=b"{}")
        assert done.status == (200 if acts else 403)
        assert server.ask("GET", "/edit/ping.yaml", headers=bearer).status == 404


PUBLIC = "hub.example.org"
TLS = ("--hub", "--public", f"https://{PUBLIC}/")


def visitor(cookie: str, **more: str) -> dict[str, str]:
    """Return what a browser sends from a page at the public name."""
    pair = cookie.partition(";")[0]
    return {"Cookie": pair, "Sec-Fetch-Site": "same-origin", **more}


@pytest.mark.parametrize("acts", [False, True], ids=["reading", "acts"])
def test_behind_tls_the_public_name_is_answered_and_no_other_is(
    uwf: Uwf,
    work: Path,
    thread: str,
    acts: bool,  # noqa: FBT001 - a parameter
) -> None:
    uwf("web", "hub", "add", "laptop")
    with serving(work, *TLS, *(["--allow-acts"] if acts else [])) as server:
        assert server.url.startswith(f"https://{PUBLIC}/enter?code=")
        path = server.url.removeprefix(f"https://{PUBLIC}")
        entered = server.ask("GET", path, host=PUBLIC)
        cookie = entered.headers["set-cookie"]
        assert {"Secure", "HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))

        mine = visitor(cookie)
        for host, status in (
            (PUBLIC, 200),
            (PUBLIC.upper(), 200),
            (f"127.0.0.1:{server.port}", 200),
            (f"{PUBLIC}:{server.port}", 403),
            (f"{PUBLIC}:443", 403),
            (f"www.{PUBLIC}", 403),
            (f"{PUBLIC}.evil.example", 403),
            ("", 403),
        ):
            got = server.ask("GET", "/threads", headers=mine, host=host or "x")
            assert got.status == status, host
        assert server.ask("GET", "/edit/ping", headers=mine, host=PUBLIC).status == 404

        page = server.ask("GET", f"/threads/{thread}", headers=mine, host=PUBLIC)
        token = re.search(r'name="token" value="([^"]+)"', page.text)
        assert (token is not None) is acts
        body = f"token={token[1] if token else 'x'}&reason=enough".encode()
        place = f"/threads/{thread}/cancel"
        for origin in (
            f"http://{PUBLIC}",
            f"https://www.{PUBLIC}",
            "https://x.example",
        ):
            theirs = visitor(cookie, Origin=origin, **FORM)
            asked = server.ask("POST", place, headers=theirs, body=body, host=PUBLIC)
            assert asked.status == 403, origin
        ours = visitor(cookie, Origin=f"https://{PUBLIC}", **FORM)
        done = server.ask("POST", place, headers=ours, body=body, host=PUBLIC)
        assert done.status == (303 if acts else 403)

        # A client's line comes in by that name, and by no other.
        words = {"Upgrade": "websocket", "Connection": "Upgrade"}
        words |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x" * 22 + "=="}
        words |= {"Authorization": "Bearer wrong"}
        for host, status in ((PUBLIC, 401), (f"www.{PUBLIC}", 403)):
            line = server.ask("GET", "/connect/laptop", headers=words, host=host)
            assert line.status == status


def test_without_tls_the_cookie_is_sent_on_this_machine(
    server: Server, cookie: str
) -> None:
    # A browser sends no secure cookie to http://127.0.0.1.
    assert server.port
    assert "Secure" not in cookie


@pytest.mark.parametrize(
    "url",
    [
        *("http://hub.example.org", "hub.example.org", "https://", "https://h/x"),
        *("https://u@h", "https://h?x", "https://h#x", "https://[::1]", "https://h:x"),
        *("https://h\n", "https://h h", "wss://h", "https://.h", "https://é.example"),
    ],
)
@pytest.mark.parametrize("words", [("web",), ("web", "link")])
def test_what_is_no_public_address_is_a_line(
    uwf: Uwf, words: tuple[str, ...], url: str
) -> None:
    refused = uwf(*words, "--public", url, "--json")

    assert (refused.code, refused.error["code"]) == (2, "usage")


def test_a_link_leads_to_where_the_server_runs(uwf: Uwf, work: Path) -> None:
    uwf("init")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Or another test's server has the usual port: the same for this one.
        with suppress(OSError):
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
        command = [sys.executable, "-P", "-m", "uwfgit", "web"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            origin = process.stdout.readline().split()[-1].partition("/enter")[0]
            try:
                made = uwf("web", "link", "--json").json["url"]
                port = int(origin.rpartition(":")[2])
                server = Server(
                    port=port, url=made, token="", process=process, folder=work
                )
                again = [server.ask("GET", made.removeprefix(origin)) for _ in "ab"]
                elsewhere = uwf("web", "link", "--port", str(PORT), "--json")
            finally:
                process.terminate()

    assert port != PORT
    assert [each.status for each in again] == [303, 403]
    assert f"uwf web link --port {port}\n" in again[1].text
    assert (elsewhere.code, elsewhere.error["code"]) == (1, "state")
    ended = uwf("web", "link", "--json")
    assert (ended.code, ended.error["hint"]) == (1, "`uwf web` starts one")


def test_a_link_leads_to_the_server_of_the_store_here(
    uwf: Uwf, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [work, tmp_path / "other"]
    with ExitStack() as running:
        servers = []
        for folder in folders:
            folder.mkdir(exist_ok=True)
            monkeypatch.setenv("UWF_STORE", str(folder / "store"))
            uwf("init")
            servers.append(running.enter_context(serving(folder)))
        here = uwf("web", "link", "--json").json["url"]
        monkeypatch.setenv("UWF_STORE", str(tmp_path / "nowhere"))
        refused = uwf("web", "link", "--json")
        named = uwf("web", "link", "--port", str(servers[0].port), "--json").json["url"]

    assert here.startswith(servers[1].origin)
    assert named.startswith(servers[0].origin)
    assert (refused.code, refused.error["hint"]) == (2, "choose one by --port")
    assert all(each.origin in refused.error["message"] for each in servers)


def test_a_link_leads_to_the_public_name(uwf: Uwf, work: Path) -> None:
    uwf("init")
    url = f"https://{PUBLIC.capitalize()}:443"
    with serving(work) as server:
        given = uwf("web", "link", "--public", url, "--json").json["url"]
    assert server.origin not in given
    with serving(work, "--public", url):
        kept = uwf("web", "link", "--json").json["url"]

    for made in (given, kept):
        assert made.startswith(f"https://{PUBLIC}/enter?code=")


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999999999"])
def test_a_number_that_is_no_port_is_a_line(uwf: Uwf, port: str) -> None:
    refused = uwf("web", "--port", port, "--json")

    assert (refused.code, refused.error["code"]) == (2, "usage")


def test_a_port_in_use_is_a_line_that_names_it(uwf: Uwf, server: Server) -> None:
    uwf("init")
    refused = uwf("web", "--port", str(server.port), "--json")

    assert refused.code == 1
    assert str(server.port) in refused.error["message"]
