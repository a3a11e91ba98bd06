"""The group ``uwf thread``: its own commands, and those that other groups give it."""

from __future__ import annotations

from uwfgit.cli.check.cmd_check import check_command
from uwfgit.cli.fleet.cmd_fleet import queue_threads
from uwfgit.cli.frame.commands import add_command
from uwfgit.cli.live.cmd_live import live_command
from uwfgit.cli.thread.cmd_thread import app

__all__ = ["app"]

add_command(app, "check")(check_command)
add_command(app, "live")(live_command)
add_command(app, "queue")(queue_threads)
