"""The group ``uwf thread``: its own commands, and those that other groups give it."""

from __future__ import annotations

from uwfgit.cli.frame.commands import add_later
from uwfgit.cli.thread.cmd_thread import app

__all__ = ["app"]

add_later(app, "check", where="thread.cmd_check:check_command")
add_later(app, "live", where="live.cmd_live:live_command")
add_later(app, "note", where="live.cmd_note:note_command")
add_later(app, "queue", where="fleet.cmd_fleet:queue_threads")
