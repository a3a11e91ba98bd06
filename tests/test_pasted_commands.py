"""Commands in messages are pasted: what a stranger may have named is quoted."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import uwfgit
from uwfgit.cli.frame.app import main
from uwfgit.cli.frame.output import shown_page
from uwfgit.cli.frame.screen import shown
from uwfgit.shell import quote_word, quote_words

_ROOT: Final = Path(uwfgit.__file__).parent
_COMMAND = re.compile(
    r"(?:^|[:;`'] ?|, )(?:uwf [a-z]+|git -\S+|git [a-z]+ -|cd|rm|chmod|chown|mv|kill"
    r"|echo) [^`;:]*\0"
)
_SAFE = re.compile(
    r"\bquote_words?\(|\b(?:thread|found|oid|hash|number|commit|copy|command|ids|quoted"
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
    "self.name",
    "edits",
    "agents/registry.py: ', '.join(KINDS)",
    "cli/thread/runs.py: again",
    "cli/thread/runs.py: text",
    "config/providers.py: ', '.join(dict.fromkeys(names))",
    "engine/run/control.py: _GOES_ON[state.status]",
    "model/ledger/keep.py: verb",
    "model/ledger/registering.py: verb",
    "store/safety/trust.py: name",
    "cli/thread/next_command.py: wait",
    "web/render/forms/refused.py: act",
    # Numbers, ids and hashes.
    "fleet/batch.py: batch.workflow",
    "cli/store/cmd_doctor.py: good",
    "cli/thread/reading.py: oldest",
    "code/rewind.py: now.commit[:12]",
    "engine/beside/trash.py: trash",
    "cli/thread/cmd_check.py: each",
    "sync/secrets/kin.py: above[-1]",
    "sync/secrets/kin.py: takers[-1]",
    "store/pack.py: os.getpid()",
    "store/pack.py: socket.gethostname()",
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


def test_words_are_quoted_in_one_place() -> None:
    bare = re.compile(r"shlex\.(?:quote|join)|from shlex|import .*\bas shlex")
    found = {
        str(path.relative_to(_ROOT))
        for path in _ROOT.rglob("*.py")
        if bare.search(path.read_text("utf-8"))
    }

    assert found == {"shell.py"}


@pytest.mark.parametrize(
    "name",
    [
        *(b"plain", b"two words", b"it's", b"", "é ü 漢 👩‍💻".encode(), b"-x"),
        *(b"a\xffb", b"\xffff", b"it's \xc3", b"\\x41 \xe9", b"$(id) `id` \x80"),
        *(b"\x1b[31mred", b"two\nlines\r\n", b"tab\there", b"\x9b31m", b"bell\a"),
        *("\u202egpj".encode(), "a\u200bb".encode(), "\u2028".encode(), b"\x011"),
    ],
)
def test_a_shell_reads_the_name_back_from_what_is_shown(name: bytes) -> None:
    word = quote_word(os.fsdecode(name))

    assert shown(word) == word == shown_page(word)
    script = f"printf '<%s>' {word}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout == b"<" + name + b">"


def test_a_half_of_a_pair_is_quoted_too() -> None:
    assert quote_words(["rm", "\ud800"]) == r"rm $'\xed\xa0\x80'"


def test_a_command_in_a_hint_names_a_folder_that_is_no_utf_8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = os.fsdecode(os.fsencode(tmp_path) + b"/st\xffore's")

    main(["thread", "list", "--store", store])

    command = re.search(r"uwf init --store (.*)", capsys.readouterr().err)
    assert command is not None
    words = ["bash", "-c", f"printf %s {command[1]}"]
    assert subprocess.run(words, capture_output=True, check=True).stdout == (
        os.fsencode(store)
    )
