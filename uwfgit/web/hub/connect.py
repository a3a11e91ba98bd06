"""A client's line to its hub, kept up: it comes back whenever it was cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from uwfgit.errors import InvalidError, RemoteError, UsageError
from uwfgit.web.hub.answering import Answering
from uwfgit.web.hub.frames import MAX_ASK, Hello, write_hello
from uwfgit.web.serve.gate import CONNECT, HEARTBEAT_SECONDS, is_loopback

_ANSWER_SECONDS: Final = 20.0
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 30.0
_SCHEMES: Final = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
_TAKEN: Final = 409
_TEMPORARY: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What connects: a name, its secret, what it answers with, and what it allows."""

    url: str
    name: str
    secret: str = field(repr=False)
    app: ASGIApp
    hello: Hello
    tell: Callable[[str], None]
    """Says to people how the line stands."""
    on_bug: Callable[[Exception], str]


class _Straight(connect):
    """Connects where it was told to, and nowhere else: a secret goes along."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Follow no redirect."""
        return exc


def hub_address(url: str) -> str:
    """Return a hub's address as one connects to it.

    Raises:
        UsageError: It is none, or the secret would go there in plain text.
    """
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname or parts.username or parts.query:
        raise UsageError(
            f"'{url}' is not the address of a hub", hint="such as wss://hub.example.org"
        )
    if scheme == "ws" and not is_loopback(parts.hostname):
        raise UsageError(
            f"'{url}' is not encrypted", hint="use wss://, or a hub on this machine"
        )
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"


async def stay_connected(client: Client) -> None:
    """Connect, answer, and connect again, until the hub refuses for good.

    Raises:
        RemoteError: The hub refuses: the secret is wrong, or the name in use.
    """
    waits, was_there = _waits(), False
    while True:
        try:
            await _connect_once(client)
            waits, was_there = _waits(), True
            client.tell("the line was cut")
        except InvalidStatus as exc:
            status = exc.response.status_code
            # After a cut, the hub may hold the name for the line that is gone.
            if status < _TEMPORARY and not (status == _TAKEN and was_there):
                raise _refusal(client, exc) from exc
            client.tell(f"the hub answered with {status}")
        except ConnectionClosed:
            waits, was_there = _waits(), True
            client.tell("the line was cut")
        except (OSError, TimeoutError, WebSocketException) as exc:
            client.tell(f"cannot reach the hub: {str(exc) or type(exc).__name__}")
        seconds = next(waits)
        client.tell(f"trying again in {seconds:g} s")
        await asyncio.sleep(seconds)


def _waits() -> Iterator[float]:
    seconds = _FIRST_WAIT
    while True:
        yield seconds
        seconds = min(seconds * 2, _LONGEST_WAIT)


async def _connect_once(client: Client) -> None:
    is_far = client.url.startswith("wss:")
    async with _Straight(
        f"{client.url}{CONNECT}{client.name}",
        additional_headers={"Authorization": f"Bearer {client.secret}"},
        user_agent_header=None,
        proxy=True if is_far else None,
        max_size=MAX_ASK,
        ping_interval=HEARTBEAT_SECONDS,
        ping_timeout=_ANSWER_SECONDS,
    ) as socket:
        await socket.send(write_hello(client.hello))
        client.tell(f"connected to {client.url} as '{client.name}'")
        answering = Answering(
            app=client.app,
            acts=client.hello.acts,
            send=socket.send,
            on_bug=client.on_bug,
        )
        try:
            async for text in socket:
                await answering.take(text)
        except InvalidError as exc:
            client.tell(f"the hub sent what is not a question: {exc.message}")
        finally:
            await answering.close()


def _refusal(client: Client, exc: InvalidStatus) -> RemoteError:
    status = exc.response.status_code
    try:
        error = json.loads(exc.response.body or b"")
        why = str(error["error"]["message"])[:200]
    except (ValueError, KeyError, TypeError):
        why = f"status {status}"
    hint = (
        "another client has this name; choose another --name"
        if status == _TAKEN
        else "`uwf web hub add NAME` on the hub's machine makes a secret"
    )
    return RemoteError(f"refused '{client.name}': {why}", remote=client.url, hint=hint)
