"""The gate in front of every route: what is let in, and the headers of what goes out.

The only place that decides it. The order counts: the host comes first, so that a
name that leads here by a trick is not so much as answered.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any, Final

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from uwfgit.web.serve.keys import Keys

MAX_BODY: Final = 1_000_000
_BODY_SECONDS: Final = 15.0
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
_OPEN: Final = frozenset({"/enter", "/welcome"})
CONNECT: Final = "/connect/"
"""Where a hub's clients connect, each by its name."""
MAX_FRAME: Final = 2_000_000
"""Bytes of one frame of a client's answer."""
HEARTBEAT_SECONDS: Final = 60.0
"""After which both ends of a client's line see whether the other is there."""
_FORMS: Final = ("application/json", "application/x-www-form-urlencoded")
_PATH: Final = re.compile(rb"(?:/[A-Za-z0-9@._~:+$-]+)*/?")
_LONGEST: Final = 1_000
_DIGITS: Final = 20
_ONCE: Final = frozenset({"host", "origin", "authorization", "content-length"})
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect there."""
    return host in {"127.0.0.1", "localhost", "::1"}


class Hosts(Struct, frozen=True, kw_only=True):
    """The values of ``Host`` by which a server is meant, ports included.

    With ``is_wide`` every address that is written as one counts: what leads here by a
    trick of DNS is a name. ``public`` is the name at which a proxy with TLS stands in
    front of it.
    """

    names: frozenset[str]
    port: int
    is_wide: bool = False
    public: str | None = None

    def __contains__(self, host: object) -> bool:
        if not isinstance(host, str):
            return False
        if host in self.names or host == self.public:
            return True
        name, _, port = host.rpartition(":")
        return self.is_wide and port == str(self.port) and _is_address(name)


def _is_address(name: str) -> bool:
    is_six = name.startswith("[") and name.endswith("]")
    try:
        return (ip_address(name[1:-1] if is_six else name).version == 6) == is_six  # noqa: PLR2004 - IPv6
    except ValueError:
        return False


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request goes no further."""

    status: int
    code: str
    message: str
    hint: str | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """What is answered as JSON."""
        error = {"code": self.code, "message": self.message, "hint": self.hint}
        return {"error": error}


BAD_TOKEN: Final = Refusal(
    status=403, code="token", message="the page's token is missing or wrong"
)
TOO_LARGE: Final = Refusal(
    status=413, code="size", message=f"a body has at most {MAX_BODY:,} bytes"
)
_TOO_SLOW: Final = Refusal(
    status=408,
    code="time",
    message=f"a body has to come within {_BODY_SECONDS:g} seconds",
)
_LOCKED: Final = Refusal(
    status=401,
    code="locked",
    message="open the address that 'uwf web' prints, or send the token of "
    "'uwf web token'",
)


class Rules(Struct, frozen=True, kw_only=True):
    """What a server answers to."""

    keys: Keys
    hosts: Hosts

    def refusal(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        """Say why a request is refused before its body is read."""
        is_open = scope["path"] in _OPEN
        if headers.get("host", "").lower() not in self.hosts:
            return Refusal(status=403, code="host", message="unknown host")
        if scope["method"] not in _METHODS or (is_open and scope["method"] == "POST"):
            return Refusal(status=405, code="method", message="not allowed")
        if not _is_plain(scope):
            return Refusal(status=404, code="not-found", message="no such page")
        return None if is_open else self._visitor_refusal(scope, headers)

    def _visitor_refusal(
        self, scope: Scope, headers: Mapping[str, str]
    ) -> Refusal | None:
        if not self._is_ours(headers):
            return Refusal(status=403, code="origin", message="asked from elsewhere")
        kind, _, value = headers.get("authorization", "").partition(" ")
        has_bearer = kind.lower() == "bearer" and self.keys.is_bearer(value.strip())
        if not has_bearer and not self._has_cookie(headers):
            return _LOCKED
        return self._post_refusal(headers) if scope["method"] == "POST" else None

    def is_client(self, scope: Scope, headers: Mapping[str, str] | None) -> bool:
        """Whether a line may be opened; who may connect is the route's to say.

        A browser names its page's origin always: no page may open one.
        """
        return (
            headers is not None
            and headers.get("host", "").lower() in self.hosts
            and not headers.keys() & {"origin", "cookie", "sec-fetch-site"}
            and scope["path"].startswith(CONNECT)
            and _is_plain(scope)
        )

    def _is_ours(self, headers: Mapping[str, str]) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin == "null":
            # So a browser writes that of a form of ours, for we tell no referrer.
            return site == "same-origin"
        scheme, _, host = (origin or "").lower().partition("://")
        # What is written at the public name without TLS may be anybody's.
        schemes = {"https"} if host == self.hosts.public else {"http", "https"}
        if origin is not None and (scheme not in schemes or host not in self.hosts):
            return False
        return site in {None, "same-origin", "none"}

    def _has_cookie(self, headers: Mapping[str, str]) -> bool:
        # Whoever sends neither header is no browser, and a script has its token.
        if "authorization" in headers or not headers.keys() & {
            "origin",
            "sec-fetch-site",
        }:
            return False
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(headers.get("cookie", ""))
        except CookieError:
            return False
        found = jar.get(self.keys.cookie_name)
        return found is not None and self.keys.is_cookie(found.value)

    def _post_refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _FORMS:
            return Refusal(status=415, code="type", message="send JSON or a form")
        length = headers.get("content-length", "0")
        is_number = length.isascii() and length.isdigit() and len(length) < _DIGITS
        if not is_number or int(length) > MAX_BODY:
            return TOO_LARGE
        # A form has the token in its body, which the route looks at.
        if "authorization" not in headers and kind == _FORMS[0]:
            token = headers.get("x-uwf-token", "")
            return None if self.keys.is_page_token(token) else BAD_TOKEN
        return None


def _is_plain(scope: Scope) -> bool:
    """Whether a path is written as we write ours: no escapes, dots or doubles."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.partition(b"?")[0]
    if len(path) > _LONGEST or not _PATH.fullmatch(path):
        return False
    return not any(part in {b".", b".."} for part in path.split(b"/"))


class Gate:
    """Lets requests through that the rules allow; the others reach no route."""

    def __init__(
        self, app: ASGIApp, rules: Rules, *, on_bug: Callable[[Exception], str]
    ) -> None:
        self.app = app
        self.rules = rules
        self.on_bug = on_bug

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _sealed(send))
        elif self.rules.is_client(scope, _headers(scope)):
            await self.app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        refusal = (
            Refusal(status=400, code="header", message="a header stands twice")
            if headers is None
            else self.rules.refusal(scope, headers)
        )
        if refusal is None and scope["method"] == "POST":
            body = await _read_body(receive)
            if isinstance(body, Refusal):
                refusal = body
            else:
                receive = replay(body, receive)
        if refusal is not None:
            await _refuse(scope, send, refusal)
            return
        scope["uwf.bearer"] = "authorization" in (headers or {})
        watched = _Watched(send=send)
        try:
            await self.app(scope, receive, watched)
        except Exception as exc:  # noqa: BLE001 - one request's bug ends no server
            message = self.on_bug(exc)
            if not watched.is_begun:
                bug = Refusal(status=500, code="bug", message=message)
                await _refuse(scope, send, bug)


class _Watched(Struct, kw_only=True):
    """Sends on, and knows whether an answer has begun."""

    send: Send
    is_begun: bool = False

    async def __call__(self, message: Message) -> None:
        self.is_begun = True
        await self.send(message)


def _headers(scope: Scope) -> dict[str, str] | None:
    """Read the headers; ``None`` when one of those that count stands twice."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in _ONCE:
            return None
        found[key] = value.decode("latin-1")
    return found


def _sealed(send: Send) -> Send:
    """Add the headers of safety to every answer."""

    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            own = {name.lower() for name, _ in given}
            more = [(n.encode(), v.encode()) for n, v in HEADERS.items()]
            given += [each for each in more if each[0] not in own]
            message = {**message, "headers": given}
        await send(message)

    return sealed


async def _read_body(receive: Receive) -> bytes | Refusal:
    """Read a body within bounds of size and time."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return _TOO_SLOW
                body += message.get("body", b"")
                if len(body) > MAX_BODY:
                    return TOO_LARGE
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        return _TOO_SLOW


def replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read already, and then what else comes."""
    given = False

    async def given_first() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given_first


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer with the error: as JSON to a script, as a line to a person."""
    is_api = scope["path"].startswith("/api")
    if is_api:
        body = json.dumps(refusal.payload).encode()
    else:
        body = f"{refusal.message}\n".encode()
    kind = b"application/json" if is_api else b"text/plain; charset=utf-8"
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    start = {"type": "http.response.start", "status": refusal.status}
    await send({**start, "headers": headers})
    body = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": body})
