"""A thread that is damaged is shown as far as it can be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.builders import object_file
from tests.cli.calls import Uwf
from tests.web.serving import serving
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.repository import open_store

AGENT = """\
#!/bin/sh
cat > /dev/null
printf -- '---\\n$status: done\\ntext: x\\n---\\nDone.\\n'
"""


def test_a_step_whose_record_is_lost_is_shown_with_why(
    uwf: Uwf, thread: str, work: Path
) -> None:
    # One that does not tell what it used: its kind says then what it cost.
    (work / "agent.sh").write_text(AGENT)
    (work / "agent.sh").chmod(0o700)
    uwf("config", "set", "agents.mute.kind", "stdio")
    uwf("config", "set", "agents.mute.command", str(work / "agent.sh"))
    assert uwf("thread", "exec", thread, "--agent", "mute").code == 0
    path = Path(uwf("store", "path", "--json").json["store"])
    store = open_store(path, home=path.parent)
    record = open_record(store, ThreadId(thread))
    detail = record.places[Hash(record.step_at(1).detail_hash)][1]

    object_file(store, detail).unlink()
    with serving(work) as server:
        page = server.get(f"/threads/{thread}")

    assert page.status == 200
    assert page.text.count("What its agent did cannot be read") == 1
    assert f"object {detail} is missing or damaged" in page.text
    assert "Done." in page.text


def test_a_thread_that_cannot_be_read_is_damaged_and_says_where(
    uwf: Uwf, thread: str, work: Path
) -> None:
    path = Path(uwf("store", "path", "--json").json["store"])
    store = open_store(path, home=path.parent)
    tip = load_tip(store, ThreadId(thread))
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git = ["git", f"--git-dir={path}", *who]
    state = f"threads/{thread}/thread.json"
    env = {**os.environ, "GIT_INDEX_FILE": str(work / "index")}

    def call(*words: str, stdin: bytes = b"") -> str:
        told = subprocess.run(
            [*git, *words], input=stdin, env=env, capture_output=True, check=True
        )
        return told.stdout.decode().strip()

    call("read-tree", tip.commit)
    blob = call("hash-object", "-w", "--stdin", stdin=b"{")
    call("update-index", "--cacheinfo", f"100644,{blob},{state}")
    made = call("commit-tree", call("write-tree"), "-p", tip.commit, stdin=b"x")
    call("update-ref", f"refs/heads/thread/{thread}", made)
    with serving(work) as server:
        page = server.get(f"/threads/{thread}")

    assert page.status == 409
    assert "<h1>Damaged</h1>" in page.text
    assert "thread.json: not a payload" in page.text
