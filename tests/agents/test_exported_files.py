"""Sessions that a CLI exports and imports: what is put back changes nothing there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from uwfgit.agents.base import SessionFilesError
from uwfgit.agents.clis.exported_files import ExportedFiles

SESSION: Final = "ses_ddc5b7ab6ffekzxPeyhUMAJzhu"
MESSAGE: Final = "msg_223a485f8001FnleeR9fkoMe0U"
PART: Final = "prt_223a4866500110rZWioZb8AM1G"
PROGRAM: Final = f"""#!{sys.executable}
import json, os, pathlib, sys
base = pathlib.Path(os.environ["HOME"]); base.mkdir(exist_ok=True)
do, what = sys.argv[1:]
if do == "import":
    text = pathlib.Path(what).read_text()
    (base / json.loads(text)["info"]["id"]).write_text(text)
elif (base / what).exists():
    sys.stdout.write((base / what).read_text())
else:
    sys.exit(f"Error: Session not found: {{what}}")
"""


def export(**info: object) -> dict[str, Any]:
    part = {"type": "text", "text": "walrus", "id": PART, "messageID": MESSAGE}
    message = {"info": {"id": MESSAGE, "sessionID": SESSION}}
    return {
        "info": {"id": SESSION, **info},
        "messages": [{**message, "parts": [{**part, "sessionID": SESSION}]}],
    }


class Kept:
    """The sessions of one home."""

    def __init__(self, folder: Path) -> None:
        program = folder / "opencode"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.files = ExportedFiles(command=str(program))
        self.where: dict[str, Any] = {
            "cwd": folder,
            "environment": {"HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"},
        }

    def read(self, session: str = SESSION) -> dict[str, bytes]:
        return dict(self.files.read(session, **self.where))

    def write(self, what: object, *, renew: bool = False) -> str:
        files = {"session": json.dumps(what).encode()}
        return self.files.write(SESSION, files, renew=renew, **self.where)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_a_session_is_put_back_under_its_id(kept: Kept) -> None:
    assert kept.read() == {}

    name = kept.write(export())

    assert name == SESSION
    assert b"walrus" in kept.read()["session"]
    assert kept.files.write(SESSION, kept.read(), renew=False, **kept.where) == name


def test_what_is_put_back_takes_the_place_of_nothing(kept: Kept) -> None:
    kept.write(export())

    text = kept.read()["session"].decode()

    assert MESSAGE not in text
    assert PART not in text
    part = json.loads(text)["messages"][0]["parts"][0]
    assert part["messageID"] == json.loads(text)["messages"][0]["info"]["id"]
    assert part["messageID"][:16] == MESSAGE[:16]


@pytest.mark.parametrize("renew", [True, False])
def test_a_copy_has_an_id_of_its_own(kept: Kept, *, renew: bool) -> None:
    kept.write(export())
    before = kept.read()

    name = kept.write(export(title="other"), renew=renew)

    assert name != SESSION
    assert name[:16] == SESSION[:16]
    assert kept.read() == before
    assert SESSION.encode() not in kept.read(name)["session"]


def test_what_a_session_allowed_is_not_put_back(kept: Kept) -> None:
    deny = {"permission": "question", "pattern": "*", "action": "deny"}
    allow = {"permission": "bash", "pattern": "*", "action": "allow"}

    kept.write(export(permission=[deny, allow, 3]))

    assert json.loads(kept.read()["session"])["info"]["permission"] == [deny]


def _another(value: dict[str, Any]) -> None:
    value["info"]["id"] = f"{SESSION[:-1]}X"


def _another_part(value: dict[str, Any]) -> None:
    value["messages"][0]["parts"][0]["sessionID"] = f"{SESSION[:-1]}X"


def _odd_id(value: dict[str, Any]) -> None:
    value["messages"][0]["info"]["id"] = "msg_1"


def _no_parts(value: dict[str, Any]) -> None:
    del value["messages"][0]["parts"]


@pytest.mark.parametrize("spoil", [_another, _another_part, _odd_id, _no_parts])
def test_what_is_not_of_this_session_is_refused(
    kept: Kept, spoil: Callable[[dict[str, Any]], None]
) -> None:
    value = export()
    spoil(value)

    with pytest.raises(SessionFilesError, match="what is kept of it"):
        kept.write(value)

    assert kept.read() == {}


def test_an_export_that_fails_says_why(kept: Kept, tmp_path: Path) -> None:
    (tmp_path / "opencode").write_text(
        "#!/bin/sh\necho 'database is locked' >&2; exit 1"
    )

    with pytest.raises(SessionFilesError, match="database is locked"):
        kept.read()
