"""Keys to sign with, and the user's git settings that name them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from uwfgit.store.git.signing import Mode, Signer, Signing, sign_commit

needs_ssh = pytest.mark.skipif(which("ssh-keygen") is None, reason="no ssh-keygen")


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys in a folder, by name."""

    folder: Path

    def make(self, name: str) -> Path:
        """Make a key without a passphrase; gives the private one."""
        key = self.folder / f"key-{name}"
        if not key.exists():
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
            subprocess.run(words, check=True)
        return key

    def use(self, name: str) -> Path:
        """Sign with a key from here on; gives it."""
        key = self.make(name)
        self.set(
            "gpg.format=ssh",
            f"user.signingkey={key}",
            f"gpg.ssh.allowedSignersFile={self.folder / 'allowed'}",
        )
        return key

    def allow(self, **principals: str) -> None:
        """Say whose key is whose, and no other's."""
        lines = [
            f"{who} {self.make(name).with_suffix('.pub').read_text()}"
            for name, who in principals.items()
        ]
        (self.folder / "allowed").write_text("".join(lines))

    def set(self, *settings: str) -> None:
        """Change the user's git settings."""
        for each in settings:
            key, _, value = each.partition("=")
            subprocess.run(["git", "config", "--global", key, value], check=True)


def make_keys(folder: Path, **principals: str) -> Keys:
    """Give keys of these names, whose they are being known; the first is in use."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = Keys(folder)
    keys.use(next(iter(principals)))
    keys.allow(**principals)
    return keys


def signing(mode: Mode, *, key: Path | None = None, **changes: object) -> Signer:
    """Make what signs in a test's own process."""
    options = () if key is None else ("-c", f"user.signingkey={key}")
    made = Signer(
        signing=lambda: Signing(mode=mode, options=options),
        make=sign_commit,
        environment=os.environ,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made
