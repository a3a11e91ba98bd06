"""The environment that git gets: the user's, without any repository's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# What belongs to the user and not to a repository. All other GIT_* variables
# can point git at another repository, or into it (rev-parse --local-env-vars),
# and new ones appear with new versions: hence a list of what stays.
_KEPT: Final = frozenset(
    {
        "GIT_ALLOW_PROTOCOL",
        "GIT_ASKPASS",
        "GIT_ATTR_NOSYSTEM",
        "GIT_AUTHOR_DATE",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_DATE",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_CURL_VERBOSE",
        "GIT_EDITOR",
        "GIT_EXEC_PATH",
        "GIT_PAGER",
        "GIT_PROGRESS_DELAY",
        "GIT_PROTOCOL_FROM_USER",
        "GIT_PROXY_COMMAND",
        "GIT_SEQUENCE_EDITOR",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_TERMINAL_PROMPT",
    }
)
# Settings in variables are the user's own, as those on git's command line are;
# plain GIT_CONFIG is not: it names a repository's file.
_KEPT_PREFIXES: Final = (
    "GIT_CONFIG_",
    "GIT_HTTP_",
    "GIT_PROXY_SSL_",
    "GIT_SSL_",
    "GIT_TRACE",
)
_QUARANTINE: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_OBJECT_DIRECTORY",
        "GIT_QUARANTINE_PATH",
    }
)


def clean_environment(
    environment: Mapping[str, str], *, keep_quarantine: bool = False
) -> dict[str, str]:
    """Return the environment git gets: the user's, without any repository's."""
    cleaned = {
        name: value
        for name, value in environment.items()
        if not name.startswith("GIT_")
        or name in _KEPT
        or name.startswith(_KEPT_PREFIXES)
        or (keep_quarantine and name in _QUARANTINE)
    }
    if "GIT_ALLOW_PROTOCOL" in cleaned:
        # It beats protocol.ext.allow=never.
        protocols = cleaned["GIT_ALLOW_PROTOCOL"].split(":")
        cleaned["GIT_ALLOW_PROTOCOL"] = ":".join(p for p in protocols if p != "ext")
    cleaned["GIT_NO_REPLACE_OBJECTS"] = "1"
    # A missing object must not make git fetch it, by whatever command a
    # repository's config names for that.
    cleaned["GIT_NO_LAZY_FETCH"] = "1"
    return cleaned
