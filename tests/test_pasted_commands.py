"""Commands in messages are pasted: what a stranger may have named is quoted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import uwfgit

_ROOT: Final = Path(uwfgit.__file__).parent
_COMMAND = re.compile(r"(?:^|[:;`'] ?|, )(?:uwf [a-z]+|rm|chmod|chown|mv) [^`;:]*\0")
_SAFE = re.compile(
    r"(?:shlex\.)?\bquote\(|\b(?:thread|found|oid|hash|number|commit|copy|command|ids|quoted"
    r"|tail\(.*)\b\W*$|^[A-Z_]+$|steps - 1"
)
"""Quoted, or of a form that uwf itself checks: ids, hashes and numbers."""
_OWN: Final = {
    # Out of the user's own configuration, or of a closed table.
    "agent.name",
    "choice.spec",
    "each.key",
    "each.wanted",
    "key",
    "payload['threadId']",
    "provider",
    "remote.name",
    "work.remote.name",
    "base",
    "self.name",
    "edits",
    "agents/registry.py: ', '.join(KINDS)",
    "cli/thread/runs.py: again",
    "cli/thread/runs.py: text",
    "config/providers.py: ', '.join(dict.fromkeys(names))",
    "engine/run/control.py: _GOES_ON[state.status]",
    "model/ledger/keep.py: verb",
    "model/ledger/registering.py: verb",
    "store/safety/hooks.py: name",
    "web/render/forms.py: act",
    # Numbers, ids and hashes.
    "cli/fleet/cmd_fleet.py: queue.remote.name",
    "fleet/batch.py: batch.workflow",
    "cli/store/cmd_doctor.py: good",
    "cli/thread/reading.py: oldest",
    "code/rewind.py: now.commit[:12]",
    "engine/beside/trash.py: trash",
    "cli/check/cmd_check.py: each",
    "sync/secrets/kin.py: takers[-1]",
    "store/pack/pack.py: os.getpid()",
    "store/pack/pack.py: socket.gethostname()",
    "sync/exchange/incoming.py: steps[0]",
    "sync/review/review.py: last",
    "sync/secrets/secret_refs.py: clean",
    "sync/verify/registry.py: mine[0]",
    "web/render/steps.py: event.commit.oid[:12]",
    "cli/thread/trusting.py: options",
    # Checked to be a workflow's name, or quoted a line above.
    "cli/workflow/cmd_travel.py: address",
    "cli/workflow/cmd_new.py: name",
    "model/ledger/registry.py: name",
    "store/care/integrity.py: index",
    "sync/secrets/scan.py: name",
    "sync/verify/registry.py: name",
    "sync/verify/registry.py: again if mine else ''",
    # A sentence, and no command.
    "store/care/integrity.py: path",
    "store/care/integrity.py: other / _PRE_PUSH",
}


def _hints(tree: ast.AST) -> Iterator[ast.JoinedStr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node


def _unquoted(text: ast.JoinedStr) -> Iterator[str]:
    said, values = "", []
    for part in text.values:
        if isinstance(part, ast.Constant):
            said += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            said += "\0"
            values.append(ast.unparse(part.value))
            if _COMMAND.search(said.rpartition("\0")[0] + "\0"):
                yield values[-1]


def test_no_name_of_a_stranger_stands_bare_in_a_command() -> None:
    found = {
        where
        for path in _ROOT.rglob("*.py")
        for text in _hints(ast.parse(path.read_text("utf-8")))
        for value in _unquoted(text)
        for where in (f"{path.relative_to(_ROOT)}: {value}",)
        if not _SAFE.search(value) and _OWN.isdisjoint({value, where})
    }

    assert found == set()
