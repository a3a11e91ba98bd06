"""JSON-RPC over lines: what is asked, answered and told, in both directions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

Params = Mapping[str, Any]
Answered = Callable[[Params | None, str | None], None]
"""Told the result of a request, or else what went wrong."""

METHOD_NOT_FOUND: Final = -32601
_MESSAGE_CHARS: Final = 500


class Peer(Struct, kw_only=True):
    """The other side; ids of its requests and of ours are counted apart.

    Attributes:
        send: Takes a line to send.
        on_notice: Told each notification.
        on_request: Gives the result of a request, ``None`` for a method that is not
            offered.
    """

    send: Callable[[bytes], None]
    on_notice: Callable[[str, Params], None]
    on_request: Callable[[str, Params], Params | None]
    noise: int = 0
    _next: int = 0
    _waiting: dict[int, Answered] = field(default_factory=dict)

    def ask(self, method: str, params: Params, answered: Answered) -> None:
        """Send a request."""
        self._waiting[self._next] = answered
        self._send({"id": self._next, "method": method, "params": params})
        self._next += 1

    def tell(self, method: str, params: Params) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def take(self, line: str) -> None:
        """Take a line; one that is no message is noise."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self.noise += bool(line.strip())
            return
        method = message.get("method")
        if not isinstance(method, str):
            self._take_answer(message)
        elif "id" not in message:
            self.on_notice(method, _params(message))
        elif (result := self.on_request(method, _params(message))) is not None:
            self._send({"id": message["id"], "result": result})
        else:
            error = {"code": METHOD_NOT_FOUND, "message": f"{method} is not offered"}
            self._send({"id": message["id"], "error": error})

    def _take_answer(self, message: Params) -> None:
        number = message.get("id")
        answered = self._waiting.pop(number, None) if isinstance(number, int) else None
        if answered is None:
            self.noise += 1
            return
        error = message.get("error")
        if isinstance(error, dict):
            data = error.get("data")
            more = f" ({json.dumps(data)})" if data else ""
            error = f"{error.get('message', 'error')}{more}"
        if error is not None:
            answered(None, str(error)[:_MESSAGE_CHARS])
            return
        result = message.get("result")
        answered(result if isinstance(result, dict) else {}, None)

    def _send(self, message: Params) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message})
        self.send(line.encode() + b"\n")


def _params(message: Params) -> Params:
    params = message.get("params")
    return params if isinstance(params, dict) else {}
