"""Where a forge shows two branches side by side (pure).

The only place that knows how forges spell their pages and their CI jobs.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import quote

from msgspec import Struct

from uwfgit.errors import UsageError

Forge: TypeAlias = Literal["github", "gitlab", "gitea", "bitbucket"]
Ci: TypeAlias = Literal["github", "gitea", "gitlab"]
FORGES: Final[tuple[Forge, ...]] = get_args(Forge)
CIS: Final[tuple[Ci, ...]] = get_args(Ci)

_WEB: Final = re.compile(r"https?://(?:[^@/]*@)?([^/:]+)(:[0-9]+)?/(.+)", re.IGNORECASE)
_SSH: Final = re.compile(
    r"(?:ssh|git\+ssh|git)://(?:[^@/]*@)?([^/:]+)(?::[0-9]+)?/(.+)", re.IGNORECASE
)
_SCP: Final = re.compile(r"(?:[^@/:]+@)?([^/:]{2,}):(?!//)(.+)")
_NAMES: Final[dict[str, Forge]] = {
    "github": "github",
    "gitlab": "gitlab",
    "gitea": "gitea",
    "forgejo": "gitea",
    "codeberg": "gitea",
    "bitbucket": "bitbucket",
}
_PATHS: Final[dict[Forge, str]] = {
    "github": "compare/{base}...{head}?expand=1",
    "gitlab": (
        "-/merge_requests/new?merge_request%5Bsource_branch%5D={head}"
        "&merge_request%5Btarget_branch%5D={base}"
    ),
    "gitea": "compare/{base}...{head}",
    "bitbucket": "pull-requests/new?source={head}&dest={base}",
}
_ACTIONS: Final = """\
name: uwf verify
on:
  EVENT:
permissions:
  contents: read
jobs:
  verify:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      # In a folder of its own: nothing in it may be taken for a program.
      - uses: actions/checkout@v4
        with:
          path: threads
          fetch-depth: 0
          persist-credentials: false
          ref: ${{ github.event.pull_request.head.sha }}
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install 'INSTALL'
      - run: uwf verify --repo threads "$HEAD"
        env:
          HEAD: ${{ github.event.pull_request.head.sha }}
"""
_GITLAB: Final = """\
uwf-verify:
  image: python:3.12
  timeout: 30 minutes
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0"
  script:
    # Elsewhere: nothing in the threads may be taken for a program.
    - cd /
    - pip install 'INSTALL'
    - HEAD="${CI_MERGE_REQUEST_SOURCE_BRANCH_SHA:-$CI_COMMIT_SHA}"
    - uwf verify --repo "$CI_PROJECT_DIR" "$HEAD"
"""
_SOURCE: Final = re.compile(
    r"(?:uwfgit(?:\[[a-z,]+\])? @ )?"
    r"(?:git\+(?:https|ssh)://[\w.@:/~+%-]+@[0-9a-f]{40}"
    r"|https://[\w.@:/~+%-]+\.whl#sha256=[0-9a-f]{64})",
    re.ASCII,
)
_FILES: Final[dict[Ci, str]] = {
    "github": ".github/workflows/uwf-verify.yml",
    "gitea": ".gitea/workflows/uwf-verify.yml",
    "gitlab": ".gitlab-ci.yml",
}
JOB_PATHS: Final = tuple(_FILES.values())


class CiJob(Struct, frozen=True, kw_only=True):
    """A CI's job: its file and its text."""

    path: str
    text: str


def check_source(source: str) -> str:
    """Return where a job may install uwf from: one thing that cannot change.

    Raises:
        UsageError: It is a name that anyone may take, or a branch that moves.
    """
    if _SOURCE.fullmatch(source) is None:
        raise UsageError(
            f"'{source}' is not pinned: a job of a forge would run whatever is there",
            hint="name a commit: --install 'uwfgit @ git+https://HOST/PATH@COMMIT', or "
            "a wheel: 'uwfgit @ https://HOST/PATH.whl#sha256=HASH'",
        )
    return source


def make_job(ci: Ci, *, beside_code: bool, install: str) -> CiJob:
    """Write the job that verifies what is reviewed.

    Where a CI can take it from the base, what is reviewed cannot bring a job of
    its own instead.

    Args:
        ci: What runs it.
        beside_code: Whether the repository's default branch is of code.
        install: Where uwf is installed from, as :func:`check_source` lets it be.
    """
    if ci == "gitlab":
        return CiJob(path=_FILES[ci], text=_GITLAB.replace("INSTALL", install))
    # "pull_request" takes the job from the head merged into the base at GitHub,
    # from the head alone at Gitea; "pull_request_target" from the default branch
    # at GitHub, from the base at Gitea.
    event = "pull_request" if ci == "github" and beside_code else "pull_request_target"
    text = _ACTIONS.replace("EVENT", event).replace("INSTALL", install)
    return CiJob(path=_FILES[ci], text=text)


class Page(Struct, frozen=True, kw_only=True):
    """A repository's page on the web."""

    url: str
    host: str
    path: str


def find_page(url: str) -> Page | None:
    """Return the web page of a repository by its git address, without secrets."""
    if match := _WEB.fullmatch(url):
        scheme = url.partition(":")[0].lower()
        place = f"{match[1]}{match[2] or ''}"
        return _page(f"{scheme}://{place}", match[1], match[3])
    match = _SSH.fullmatch(url) or (None if "://" in url else _SCP.fullmatch(url))
    return _page(f"https://{match[1]}", match[1], match[2]) if match else None


def _page(root: str, host: str, path: str) -> Page | None:
    path = path.strip("/").removesuffix(".git")
    return (
        Page(url=f"{root}/{quote(path, safe='/~')}", host=host.lower(), path=path)
        if path
        else None
    )


def find_forge(host: str) -> Forge | None:
    """Return the forge that a host's name tells of; ``None`` when it does not say."""
    return next((forge for name, forge in _NAMES.items() if name in host), None)


def compare_link(url: str, *, base: str, head: str, forge: Forge | None) -> str | None:
    """Return the page on which a review of a branch is opened.

    Args:
        url: The remote's address.
        base: The branch to compare with.
        head: The branch to review.
        forge: What runs there, when its name does not say.
    """
    page = find_page(url)
    forge = forge or (find_forge(page.host) if page else None)
    if page is None or forge is None:
        return None
    safe = "" if forge in {"gitlab", "bitbucket"} else "/"
    path = _PATHS[forge].format(
        base=quote(base, safe=safe), head=quote(head, safe=safe)
    )
    return f"{page.url}/{path}"
