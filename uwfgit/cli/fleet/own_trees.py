"""A work tree for each thread a worker runs, with the code of its newest step."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct, field

from uwfgit.cli.code.cmd_exchange import pull_code, push_code
from uwfgit.cli.code.place import list_known
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.engine import make_camera, now
from uwfgit.code.blame.steps import KnownStep
from uwfgit.code.chain import Label
from uwfgit.code.rewind import rewind
from uwfgit.code.scene import add_worktree, remove_worktree, set_files, settle_index
from uwfgit.code.worktree import WorkTree
from uwfgit.errors import StateError, UwfError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import Tip
from uwfgit.store.files import folder_below

_FOLDER: Final = "worktrees"


class OwnTrees(Struct, kw_only=True):
    """The work trees of a worker, in its store's own folder.

    Args:
        repo: A work tree of the code; its own files stay as they are.
    """

    context: CommandContext
    ledger: Ledger
    repo: WorkTree
    _told: set[str] = field(default_factory=set)

    def lacks(self, tip: Tip) -> str | None:
        """Bring the code of a thread; return why it is not to be had. No file changes.

        For what is trusted only after it was looked at.
        """
        pull_code(self.context, self.ledger, [tip.thread], tree=self.repo)
        step = self._newest(tip)
        oid = None if step is None else step.after
        if oid is None or self.repo.resolve(f"{oid}^{{tree}}") is not None:
            return None
        return f"its code is not here: {oid[:12]} was not pushed"

    def prepare(self, tip: Tip) -> Path:
        """Give a thread's work tree, as its newest step left the code.

        Raises:
            StateError: The worker's repository has no commit.
            StoreError: git cannot make the work tree.
        """
        folder, step = self.folder_of(tip.thread), self._newest(tip)
        tree = WorkTree.find(folder, self.context.environment)
        if tree is None or tree.root != folder.resolve():
            tree = self._make(step, folder)
        elif step is not None and step.after is not None:
            # Brought to what another machine's step left.
            camera = make_camera(
                self.ledger.store.state_dir / "code",
                settings=self.context.settings,
                home=self.context.user_home,
            )
            label = Label(thread=tip.thread, number=tip.state.steps, run=0, when="now")
            rewind(tree, camera, label, step.after, discard=True, time=now())
        start = open_record(self.ledger.store, tip).start
        place = folder_below(tree.root, start.cwd_in_repo or ".") or tree.root
        self.ledger.local.set_folder(tip.thread, place)
        return place

    def folder_of(self, thread: ThreadId) -> Path:
        """Return where a thread's work tree is, or will be."""
        return self.ledger.store.state_dir / _FOLDER / thread

    def _newest(self, tip: Tip) -> KnownStep | None:
        """Find the newest step whose code was kept."""
        steps = list_known(open_record(self.ledger.store, tip))
        return next((each for each in reversed(steps) if each.after), None)

    def _make(self, step: KnownStep | None, folder: Path) -> WorkTree:
        # It begins at the commit of then, where that is here.
        wanted = None if step is None else step.head_after
        head = None if wanted is None else self.repo.resolve(f"{wanted}^{{commit}}")
        head = head or self.repo.resolve("HEAD^{commit}")
        if head is None:
            raise StateError("the code repository of the worker has no commit yet")
        files = head if step is None or step.after is None else step.after
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Detached: another worker here may have the branch.
        tree = add_worktree(self.repo, folder, head=head, branch=None)
        set_files(tree, files)
        settle_index(tree, head)
        return tree

    def send(self, thread: ThreadId) -> str | None:
        """Send the code of a thread's steps; return why it could not be, once."""
        try:
            push_code(
                self.context,
                self.ledger,
                [thread],
                tree=self.repo,
                remote=None,
                send_all=False,
                with_commits=False,
                dry_run=False,
                allow=(),
            )
        except UwfError as exc:
            if exc.message not in self._told:
                self._told.add(exc.message)
                return exc.message
        return None

    def drop(self, thread: ThreadId) -> None:
        """Remove the work tree of a thread that is done; its snapshots stay."""
        folder = self.folder_of(thread)
        if folder.exists():
            remove_worktree(self.repo, folder, branch=None)
