"""Requests over HTTP; the only place that knows httpx.

A request goes to the endpoint's own address and nowhere else: no redirect is
followed, so a key reaches its own base URL only. What comes back is bounded in bytes
and time. Outcomes are values; nothing of httpx leaves this module.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from uwfgit.agents.children.complaints import one_line
from uwfgit.constants import MAX_TIME

Hear = Callable[[bytes], bool]
"""Told each piece of the answer; false when it has heard enough."""

CONNECT_SECONDS: Final = 20.0
REQUEST_SECONDS: Final = 3600.0
"""Longest a single request may take when nothing shorter is configured."""
_ERROR_BYTES: Final = 65_536
_SHOWN_CHARS: Final = 300
_ERRNO: Final = re.compile(r"^\[Errno -?\d+\] ")
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_UNAUTHORIZED: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an API is, and what identifies us there.

    ``key_name`` is how messages call the key: the variable that holds it.
    """

    base_url: str
    key: str | None = field(default=None, repr=False)
    key_name: str | None = None

    @property
    def host(self) -> str:
        """The host, for messages: an address may hold a password."""
        parts = urlsplit(self.base_url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.hostname or self.base_url}{port}"

    @property
    def is_local(self) -> bool:
        """Whether it is this machine itself."""
        return is_loopback(self.base_url)


class HttpBounds(Struct, frozen=True, kw_only=True):
    """How long and how much: silence, the whole request, decoded bytes."""

    idle_seconds: float
    total_seconds: float = REQUEST_SECONDS
    max_bytes: int = 16 * 1024 * 1024


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """A good answer; ``is_cut`` when it was longer than its bound."""

    status: int
    headers: Mapping[str, str]
    is_cut: bool = False


class Refusal(Struct, frozen=True, kw_only=True):
    """Why there is no good answer, in one line.

    ``status`` is ``None`` when the server gave none. ``again`` means that the same
    request may do better later; ``late`` says which of the times ran out.
    """

    message: str
    status: int | None = None
    body: str = ""
    again: bool = False
    late: Literal["idle", "total"] | None = None
    retry_seconds: float | None = None


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def send(
    endpoint: Endpoint,
    path: str,
    *,
    body: Any,  # noqa: ANN401 - what JSON can say
    headers: Mapping[str, str] | None = None,
    bounds: HttpBounds,
    hear: Hear,
) -> HttpAnswer | Refusal:
    """Send one request and hand its answer on as it comes.

    Nothing is tried twice here. ``hear`` is told of a good answer only; when it
    returns false the rest is left unread.
    """
    watch = _Watch(deadline=time.monotonic() + bounds.total_seconds)
    try:
        return _send(endpoint, path, body, headers or {}, bounds, hear, watch)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as exc:
        return _explain(exc, endpoint, bounds, is_late=watch.is_late)
    except (ValueError, OSError) as exc:
        return Refusal(message=f"{endpoint.host}: {_text(exc)}")
    finally:
        watch.stop()


def _send(
    endpoint: Endpoint,
    path: str,
    body: Any,  # noqa: ANN401 - what JSON can say
    headers: Mapping[str, str],
    bounds: HttpBounds,
    hear: Hear,
    watch: _Watch,
) -> HttpAnswer | Refusal:
    wait = min(bounds.idle_seconds, bounds.total_seconds)
    timeout = httpx.Timeout(wait, connect=min(CONNECT_SECONDS, wait))
    url = endpoint.base_url.rstrip("/") + path
    headers = {"Accept-Encoding": "identity", "User-Agent": "uwfgit", **headers}
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    with (
        # A proxy of the environment would be asked for this machine's own services.
        httpx.Client(timeout=timeout, trust_env=not endpoint.is_local) as client,
        client.stream("POST", url, json=body, headers=headers) as response,
    ):
        watch.start(response)
        if not response.is_success:
            return _refuse(endpoint, response)
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            # A few bytes of it can become any number.
            return Refusal(message=f"{endpoint.host} answered in encoding {encoding}")
        is_cut = _read(response, bounds.max_bytes, hear)
        return HttpAnswer(
            status=response.status_code, headers=dict(response.headers), is_cut=is_cut
        )


def _read(response: httpx.Response, most: int, hear: Hear) -> bool:
    """Hand on an answer; tell whether it was cut at its bound."""
    room = most
    for chunk in response.iter_raw():
        if len(chunk) > room:
            hear(chunk[:room])
            return True
        room -= len(chunk)
        if not hear(chunk):
            return False
    return False


class _Watch(Struct, kw_only=True):
    """Ends a request that takes too long, however lively it is."""

    deadline: float
    is_late: bool = False
    _timer: threading.Timer | None = None

    def start(self, response: httpx.Response) -> None:
        """Watch the answer that has begun; until then the read timeout does."""
        stream = response.extensions.get("network_stream")
        socket = stream.get_extra_info("socket") if stream is not None else None
        if socket is None:
            return

        def end() -> None:
            self.is_late = True
            try:
                socket.shutdown(2)
            except OSError:
                return

        self._timer = threading.Timer(max(0, self.deadline - time.monotonic()), end)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()


def _refuse(endpoint: Endpoint, response: httpx.Response) -> Refusal:
    status = response.status_code
    said = bytearray()
    for chunk in response.iter_raw():
        said += chunk[: _ERROR_BYTES - len(said)]
        if len(said) >= _ERROR_BYTES:
            break
    text = said.decode(errors="replace")
    if response.is_redirect:
        where = urlsplit(response.headers.get("Location", "")).netloc or "another path"
        return Refusal(
            status=status,
            message=f"{endpoint.host} redirects to {where}, which is not followed; "
            "put the final address into the base URL",
        )
    reason = one_line(_error_text(text), _SHOWN_CHARS)
    tail = f": {reason}" if reason else ""
    hint = ""
    if status in _UNAUTHORIZED:
        hint = f"; check the key in {endpoint.key_name or 'the configuration'}"
    elif status == httpx.codes.NOT_FOUND:
        hint = "; check the address, and the name asked for"
    forbidden = response.headers.get("x-should-retry") == "false"
    return Refusal(
        status=status,
        body=text,
        message=f"{endpoint.host} answered {status}{tail}{hint}",
        again=status in _AGAIN and not forbidden,
        retry_seconds=read_retry_after(response.headers),
    )


def _error_text(body: str) -> str:
    """Return what an error body says: its message, in whichever of the usual places."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body
    for _ in range(3):
        if isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, dict):
            break
        keys = ("error", "message", "detail", "value")
        value = next((value[key] for key in keys if value.get(key)), "")
    return value if isinstance(value, str) else body


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Read for how many seconds a server wants to be left alone; at most a century."""
    milliseconds = headers.get("retry-after-ms")
    text = headers.get("retry-after", "").strip()
    try:
        told = float(text) if milliseconds is None else float(milliseconds) / 1000
        return min(max(0.0, told), float(MAX_TIME))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _explain(
    exc: Exception, endpoint: Endpoint, bounds: HttpBounds, *, is_late: bool
) -> Refusal:
    host = endpoint.host
    if is_late:
        seconds = f"{bounds.total_seconds:g} s"
        return Refusal(message=f"{host} took longer than {seconds}", late="total")
    if isinstance(exc, httpx.ConnectTimeout | httpx.ConnectError):
        hint = "; is it running?" if endpoint.is_local else ""
        return Refusal(
            message=f"cannot reach {host}: {_text(exc)}{hint}",
            again=not endpoint.is_local,
        )
    if isinstance(exc, httpx.TimeoutException):
        is_idle = bounds.idle_seconds <= bounds.total_seconds
        limit = bounds.idle_seconds if is_idle else bounds.total_seconds
        return Refusal(
            message=f"{host} said nothing for {limit:g} s",
            late="idle" if is_idle else "total",
        )
    if isinstance(exc, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
        return Refusal(message=f"{host} ended the connection early", again=True)
    return Refusal(message=f"{host}: {_text(exc)}")


def _text(exc: Exception) -> str:
    told = _ERRNO.sub("", one_line(str(exc), _SHOWN_CHARS))
    return told or type(exc).__name__
