"""What this machine made is known to it before anybody can see it."""

from __future__ import annotations

from pathlib import Path

from msgspec import field
from msgspec.structs import replace

from tests.builders import begin, make_workflow, workflow_data
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.ids import Oid
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.registering import add_workflow
from uwfgit.store.handle import Store
from uwfgit.store.local import Local
from uwfgit.store.refs import list_refs


class _Watching(Local):
    """Notes whether a commit stood on a ref already when it was recorded."""

    was_visible: list[bool] = field(default_factory=list)

    def record_commit(self, commit: Oid) -> bool:
        refs = list_refs(self.store, "refs/heads/")
        self.was_visible.append(commit in refs.values())
        return super().record_commit(commit)


def test_a_commit_is_recorded_as_ours_before_its_ref_moves(
    ledger: Ledger, store: Store, tmp_path: Path
) -> None:
    # Killed between the two, the next command would take it for a stranger's.
    with _Watching(store) as local:
        watched = replace(ledger, local=local)

        tip = begin(watched, tmp_path)
        fork_thread(watched, tip.thread)
        cancel_thread(watched, tip.thread, reason=None, command="test")
        work = make_workflow()
        add_workflow(watched, work, workflow_data(work))

        assert local.was_visible == [False] * 4
        assert local.is_made_here(tip.commit)
