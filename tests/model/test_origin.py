from __future__ import annotations

import pytest

from uwfgit.errors import UsageError
from uwfgit.ids import Oid
from uwfgit.model.workflow.origin import (
    Origin,
    is_kept_origin,
    is_origin,
    parse_origin,
)

OID = Oid("0123456789abcdef0123456789abcdef01234567")


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        pytest.param("https://h/r", Origin(url="https://h/r"), id="bare"),
        pytest.param(
            "https://h:8443/a/b.git@v1.2:flows/x.yaml",
            Origin(url="https://h:8443/a/b.git", rev="v1.2", path="flows/x.yaml"),
            id="port-tag-path",
        ),
        pytest.param(
            "ssh://git@h:22/b.git@feature/x:develop",
            Origin(url="ssh://git@h:22/b.git", rev="feature/x", path="develop"),
            id="ssh-user",
        ),
        pytest.param(
            "file:///srv/r:x.yaml",
            Origin(url="file:///srv/r", path="x.yaml"),
            id="file",
        ),
        pytest.param(
            f"https://h/r@main:x.yaml#{OID}",
            Origin(url="https://h/r", rev="main", path="x.yaml", oid=OID),
            id="pinned",
        ),
        pytest.param(
            f"https://h/r#{OID}",
            Origin(url="https://h/r", rev=OID, oid=OID),
            id="commit-alone",
        ),
        pytest.param(
            "https://h/r@@scope/p@1.0:a%23b.yaml",
            Origin(url="https://h/r", rev="@scope/p@1.0", path="a#b.yaml"),
            id="odd-names",
        ),
        pytest.param(
            "https://h/r:%C3%A9/index.yaml",
            Origin(url="https://h/r", path="é/index.yaml"),
            id="not-ascii",
        ),
    ],
)
def test_an_address_is_read_and_written_again(text: str, origin: Origin) -> None:
    found = parse_origin(f"git+{text}")

    assert found == origin
    assert parse_origin(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "https://h/r",
        "git+git@h:r.git",
        "git+https://h",
        "git+ext::sh -c id/x",
        "git+fd::3/x",
        "git+ftp://h/r",
        "git+../r",
        "git+https://h/r@-x",
        "git+https://h/r@a..b",
        "git+https://h/r@a%20b",
        "git+https://h/r@main~1",
        "git+https://h/r@refs/heads/*",
        "git+https://h/r@x.lock",
        "git+https://h/r:/etc/passwd",
        "git+https://h/r:a/../../b.yaml",
        "git+https://h/r:./b.yaml",
        "git+https://h/r:a//b.yaml",
        "git+https://h/r:",
        "git+https://h/r:a%00b",
        "git+https://h/r:a%0Ab",
        "git+https://h/r#0123",
        f"git+https://h/r#{OID.upper()}",
        "git+https://h/r?token=x",
        "git+https://h/r y",
        "git+https://h/\x1b[31m",
        "git+https://h/é",
        "git+https://h/" + "r" * 3_000,
    ],
)
def test_what_is_no_address_of_a_file_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_origin(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://ada:secret@h/r@v1", "git+https://h/r@v1"),
        ("https://ghp_token@h/r", "git+https://h/r@HEAD"),
        ("HTTPS://ada:secret@h/r", "git+https://h/r@HEAD"),
        ("ssh://git:secret@h/r", "git+ssh://git@h/r@HEAD"),
    ],
)
def test_user_and_password_are_not_kept(text: str, kept: str) -> None:
    origin = parse_origin(f"git+{text}")

    assert str(origin) == kept
    assert text.startswith(origin.url)


def test_what_git_says_of_an_address_is_told_without_a_secret() -> None:
    plain = parse_origin("git+https://ada:s3cret@h/r")
    token = parse_origin("git+https://ghp_token@h/r")

    assert plain.hide("no 's3cret' at https://ada:s3cret@h/r") == (
        "no '***' at https://h/r"
    )
    assert token.hide("password for https://ghp_token@h:") == "password for https://h:"


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        (f"git+https://h/r@main:x.yaml#{OID}", True),
        ("git+https://h/r@main:x.yaml", False),
        (f"git+https://h/r@main#{OID}", False),
        (f"git+https://a:b@h/r@main:x.yaml#{OID}", False),
        (f"git+https://h/r:x.yaml#{OID}", False),
        ("x", False),
    ],
)
def test_only_a_whole_one_without_secrets_is_kept(text: str, *, is_kept: bool) -> None:
    assert is_kept_origin(text) is is_kept


def test_a_file_is_not_taken_for_an_address() -> None:
    assert is_origin("git+x")
    assert not is_origin("./git+x.yaml")
