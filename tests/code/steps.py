"""Steps that a script does in a work tree, with the snapshots around each."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.code.repo import THREAD, Repo
from uwfgit.code.chain import Label
from uwfgit.code.rewind import Rewound, rewind
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.ids import Oid, ThreadId

FIVE = (
    # Tracked and untracked, text and binary, odd names.
    (
        "echo more >> a.txt && mkdir -p new && echo x > 'new/with space' && "
        "head -c 2000 /dev/urandom > bin && echo q > 'a\"b'\"'\"'c'"
    ),
    "rm src/b.txt && mv a.txt renamed.txt && echo x > \"$(printf 'n\\377\\nm')\"",
    "chmod +x renamed.txt && ln -s renamed.txt link && head -c 100 /dev/urandom >> bin",
    "rm -r new && echo a-file-now > new && rm link && mkdir link && echo in > link/f",
    (
        "echo last >> renamed.txt && rm bin && ln -s nowhere bin && mkdir -p src && "
        "echo back > src/b.txt"
    ),
)
"""What five steps do."""


@dataclass(slots=True, kw_only=True)
class Thread:
    """The steps of one thread as a test runs them."""

    repo: Repo
    keeper: Keeper
    thread: ThreadId = THREAD
    before: list[Oid] = field(default_factory=list)
    after: list[Oid] = field(default_factory=list)
    files: list[dict[str, tuple[int, bytes]]] = field(default_factory=list)

    def step(self, script: str) -> None:
        """Run a step; its snapshots must hold everything."""
        number = len(self.after) + 1
        self.before.append(self.keep(number, "before"))
        self.repo.sh(script)
        self.after.append(self.keep(number, "after"))
        self.files.append(self.repo.files())

    def keep(self, number: int, when: str) -> Oid:
        label = Label(thread=self.thread, number=number, run=1, when=when)  # type: ignore[arg-type] # a test's
        kept = self.keeper.keep(self.repo.root, label)
        assert kept.tree is not None, kept.warnings
        assert kept.warnings == ()
        return kept.tree

    def label(self) -> Label:
        """Return the label of what a command does after the last step."""
        return Label(thread=self.thread, number=len(self.after), run=1, when="now")

    def back(self, target: Oid, *, discard: bool = False) -> Rewound:
        """Rewind to a snapshot."""
        return rewind(
            self.repo.tree,
            self.keeper.camera,
            self.label(),
            target,
            discard=discard,
            time=1_800_001_000,
        )
