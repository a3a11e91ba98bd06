"""Secrets to plant: of the right form, made up, and never written in one piece."""

from __future__ import annotations

import textwrap
from base64 import b64encode
from hashlib import sha256
from typing import Final


def noise(seed: str, chars: int) -> str:
    """Give letters and digits that look random and are always the same."""
    text = ""
    while len(text) < chars:
        digest = sha256(f"{seed}{len(text)}".encode()).digest()
        text += b64encode(digest).decode().translate({43: None, 47: None, 61: None})
    return text[:chars]


GITHUB: Final = "ghp" + "_" + noise("github", 36)
ANTHROPIC: Final = "sk-" + "ant-api03-" + noise("anthropic", 80)
AWS: Final = "AK" + "IA" + "Z7QW3ERT5YUI9OPA"
_MARK: Final = "PRI" + "VATE KEY"
_LINES: Final = "\n".join(textwrap.wrap(noise("pem", 600), 64))
PEM: Final = f"-----BEGIN {_MARK}-----\n{_LINES}\n-----END {_MARK}-----\n"
PASSWORD: Final = "Zk4" + "-" + noise("password", 16)
URL: Final = f"https://build:{PASSWORD}@git.example.org/team/code.git"
