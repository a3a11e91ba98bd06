"""A server of the Agent Client Protocol, made with the protocol's own SDK.

Its first argument is what it does; see ``test_acp``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import acp
from acp.schema import (
    AgentCapabilities,
    Cost,
    Implementation,
    PermissionOption,
    SessionCapabilities,
    SessionResumeCapabilities,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

GOOD = "---\n$status: done\n---\n\nDone.\n"
MODE = (*sys.argv[1:], "")[0]
KEPT = Path("sessions.json")


def note(name: str, text: str = "") -> None:
    """Leave a file for the test to look at."""
    Path(name).write_text(text, encoding="utf-8")


class Server:
    """One connection."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: acp.Client) -> None:
        """Keep who to talk to."""
        self.client = conn

    async def initialize(self, protocol_version: int, **given: Any) -> Any:  # noqa: ANN401 - as the SDK calls it
        """Say what it can."""
        note(
            "initialize.json",
            json.dumps(
                {
                    "version": protocol_version,
                    "client": given["client_capabilities"].model_dump(by_alias=True),
                }
            ),
        )
        if MODE == "crash":
            sys.stderr.write("no licence\n")
            sys.stderr.flush()
            os._exit(3)
        resume = SessionResumeCapabilities() if MODE == "resume" else None
        return acp.InitializeResponse(
            protocol_version=2 if MODE == "newer" else protocol_version,
            agent_info=Implementation(name="sdk-agent", version="0.9"),
            agent_capabilities=AgentCapabilities(
                load_session=MODE == "load",
                session_capabilities=SessionCapabilities(resume=resume),
            ),
        )

    async def new_session(self, cwd: str, **_: Any) -> Any:  # noqa: ANN401 - as the SDK calls it
        """Make a session."""
        if MODE == "logged-out":
            raise acp.RequestError.auth_required({"login": "sdk-agent login"})
        note(KEPT.name, json.dumps(["s-1", cwd]))
        return acp.NewSessionResponse(session_id="s-1")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> Any:  # noqa: ANN401 - as the SDK calls it
        """Replay an earlier session."""
        self.check(cwd, session_id)
        await self.tell(session_id, acp.update_agent_message_text("Said long ago."))
        return acp.LoadSessionResponse()

    async def resume_session(self, cwd: str, session_id: str, **_: Any) -> Any:  # noqa: ANN401 - as the SDK calls it
        """Go on in an earlier session."""
        self.check(cwd, session_id)
        return acp.schema.ResumeSessionResponse()

    def check(self, cwd: str, session_id: str) -> None:
        """Refuse a session that is not known here."""
        if not KEPT.exists() or json.loads(KEPT.read_text()) != [session_id, cwd]:
            raise acp.RequestError.resource_not_found(session_id)

    async def tell(self, session: str, update: Any) -> None:  # noqa: ANN401 - one of many
        """Send an update."""
        await self.client.session_update(session_id=session, update=update)

    async def prompt(self, session_id: str, prompt: Any, **_: Any) -> Any:  # noqa: ANN401 - as the SDK calls it
        """Work on a prompt."""
        note("prompt.txt", prompt[0].text)
        if MODE == "hang":
            return await self.hang(session_id)
        if MODE == "refuse":
            return acp.PromptResponse(stop_reason="refusal")
        await self.tell(session_id, acp.update_agent_thought_text("Hm."))
        for piece in ("Let me", " see.\n"):
            await self.tell(session_id, acp.update_agent_message_text(piece))
        await self.work(session_id)
        await self.tell(session_id, acp.update_agent_message_text(GOOD))
        cost = Cost(amount=0.75, currency="USD")
        await self.tell(
            session_id,
            UsageUpdate(session_update="usage_update", used=5, size=9, cost=cost),
        )
        return acp.PromptResponse(
            stop_reason="end_turn",
            usage=Usage(input_tokens=30, output_tokens=4, total_tokens=34),
        )

    async def work(self, session: str) -> None:
        """Use a tool that has to be allowed, and ask for what is not offered."""
        await self.tell(
            session,
            acp.start_edit_tool_call("t-1", "Write a.txt", "a.txt", "new text"),
        )
        answer = await self.client.request_permission(
            session_id=session,
            tool_call=ToolCallUpdate(
                tool_call_id="t-1", title="Write a.txt", kind="edit"
            ),
            options=[
                PermissionOption(option_id="z", name="Always", kind="allow_always"),
                PermissionOption(option_id="y", name="Yes", kind="allow_once"),
                PermissionOption(option_id="n", name="No", kind="reject_once"),
            ],
        )
        chosen = answer.outcome.option_id
        if chosen == "y":
            note("a.txt", "new text")
        try:
            await self.client.read_text_file(session_id=session, path="/etc/hostname")
            offered = "offered"
        except acp.RequestError as exc:
            offered = f"not offered ({exc.code})"
        text = f"option {chosen}, files {offered}"
        done = acp.update_tool_call(
            "t-1",
            status="completed",
            content=[acp.tool_content(acp.text_block(text))],
        )
        await self.tell(session, done)

    async def hang(self, session: str) -> Any:  # noqa: ANN401 - as prompt
        """Work until it is called off, and leave a note of that."""
        await self.tell(session, acp.update_agent_message_text("Working.\n"))
        await self.cancelled.wait()
        note("cancelled")
        return acp.PromptResponse(stop_reason="cancelled")

    async def cancel(self, **_: Any) -> None:  # noqa: ANN401 - as the SDK calls it
        """Call the work off."""
        self.cancelled.set()


if __name__ == "__main__":
    if MODE == "noise":
        sys.stdout.write("Welcome!\n\n")
        sys.stdout.flush()
    asyncio.run(acp.run_agent(cast("acp.Agent", Server()), use_unstable_protocol=True))
