"""Hostile text is harmless in every command, on a terminal and in a pipe."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.builders import git
from tests.cli.hostile import NUL, TRICKS, World, fill_folder, make_world
from tests.cli.screens import Seen, in_pipes, list_unsafe, on_terminal
from uwfgit.cli.words.reference import iter_commands, root_context
from uwfgit.store.locks.flock import lock

SHORT: Final = 60_000
"""What a short form may put out of a thread whose task alone is 2 MB."""
LONG: Final = 40_000_000
WAYS: Final = ("text", "json", "yaml")
AGENT: Final = ("--agent", "stdio:cat /dev/null", "--trust", "--cwd", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a command; words name threads as ``{ended}``."""

    words: tuple[str, ...]
    most: int = SHORT
    typed: str = ""
    only_text: bool = False
    threads: tuple[str, ...] = ("ended",)


def call(*words: str, **facts: object) -> Call:
    return Call(words=words, **facts)  # type: ignore[arg-type]  # as the table gives them


EVERY: Final = (
    *("ended", "idle", "asking", "failed", "cancelled", "new", "fork", "forged"),
)
T: Final = "{thread}"
CALLS: Final[dict[str, tuple[Call, ...]]] = {
    "thread exec": (call(T, *AGENT, threads=EVERY),),
    "thread resume": (call(T, "-p", NUL[:-1], *AGENT, threads=("asking", "ended")),),
    "thread poke": (call(T, "-p", NUL[:-1], *AGENT, threads=("asking", "idle")),),
    "thread join": (call(T, threads=EVERY),),
    "thread stop": (call(T, threads=("ended", "forged")),),
    "thread summarize": (call(T, threads=("ended", "forged")),),
    "thread pause": (call(T, threads=("ended", "forged")),),
    "thread log": (
        call(T, threads=EVERY),
        call(T, "-p", "--stat", most=LONG, only_text=True, threads=("ended", "forged")),
        call(T, TRICKS, only_text=True),
    ),
    "thread diff": (
        call(T, "{fork}", most=LONG, threads=("ended",)),
        call(T, "{asking}", most=LONG, threads=("failed", "forged")),
    ),
    "thread show": (call(T, threads=(*EVERY, "nobody" + TRICKS)),),
    "thread list": (
        call("--all"),
        call("--workflow", TRICKS),
        call("--status", TRICKS),
    ),
    "thread running": (call(),),
    "thread check": (call(T, threads=EVERY),),
    "thread live": (call(T, threads=EVERY),),
    "thread read": (
        call(T, most=LONG, threads=EVERY),
        call(T, "--before", TRICKS),
    ),
    "thread fork": (call(T, threads=EVERY), call(T, "--from-role", TRICKS)),
    "thread cancel": (call(T, "--reason", TRICKS, threads=EVERY),),
    "thread rm": (call(T, threads=EVERY),),
    "thread restore": (call(T, threads=EVERY), call(TRICKS)),
    "thread resolve": (
        call(T, threads=EVERY),
        call(T, "--keep-mine", threads=("idle",)),
        call(T, "--keep-theirs", threads=("idle",)),
        call(T, "--keep-both", threads=("idle",)),
    ),
    "thread redact": (call(T, threads=("ended", "forged")),),
    "step list": (call(T, threads=EVERY),),
    "step show": (
        call("{thread}:1", most=LONG, threads=EVERY),
        call("{thread}:" + TRICKS),
    ),
    "step read": (
        call("{thread}:1", most=LONG, threads=EVERY),
        call("{thread}:1", "--prompt", most=LONG),
    ),
    "step turns": (call(T, most=LONG, threads=EVERY), call(T, "--role", TRICKS)),
    "step fork": (call("{thread}:1", threads=("ended", "forged")),),
    "verify": (call(T, threads=EVERY), call("--workflow", TRICKS, T)),
    "workflow show": (call("evil", most=LONG), call(TRICKS)),
    "workflow list": (call(), call("--trash")),
    "workflow restore": (call("evil"), call(TRICKS)),
    "workflow outdated": (call(),),
    "workflow update": (call("evil"), call(TRICKS)),
    "workflow export": (call("evil", most=LONG), call(TRICKS)),
    "workflow graph": (
        call("evil"),
        call("evil", "--as", "dot"),
        call("evil", "--as", "mermaid"),
        call("--thread", T, threads=EVERY),
    ),
    "workflow simulate": (
        call("evil", "--all-paths", most=LONG),
        call("evil", typed="1\n\x1b[2J\n\n"),
        call("evil", "--script", TRICKS),
    ),
    "workflow history": (call("evil"), call(TRICKS)),
    "workflow rollback": (call("evil"), call("evil", TRICKS)),
    "workflow rm": (call("evil"), call(TRICKS)),
    "workflow validate": (call("evil.yaml"), call(TRICKS), call("broken.yaml")),
    "workflow add": (
        call("broken.yaml"),
        call(TRICKS),
        call(f"git+https://evil.example/{TRICKS}"),
        call(f"git+file:///nowhere@{TRICKS}"),
    ),
    "workflow migrate": (call("old.yaml"), call("broken.yaml")),
    "workflow new": (call(TRICKS),),
    "thread start": (call("evil", "-p", TRICKS), call(TRICKS, "-p", "x")),
    "thread run": (call("evil", "-p", TRICKS, "--agent", "stdio:cat /dev/null"),),
    "cas get": (call("{text}"), call("{start}", most=LONG), call(TRICKS)),
    "cas has": (call("{text}"), call(TRICKS)),
    "cas refs": (call("{start}"),),
    "cas walk": (call("{start}"),),
    "cas oid": (call("{start}"),),
    "cas verify": (call("{start}"),),
    "cas hash": (call("text", json.dumps(TRICKS)), call(TRICKS, TRICKS)),
    "cas put": (call("text", json.dumps(TRICKS)), call("start", TRICKS)),
    "cas put-text": (call(TRICKS),),
    "cas drop": (call("{text}"), call(TRICKS)),
    "cas list": (call(),),
    "cas schema list": (call(),),
    "cas schema get": (call("{schema}"), call(TRICKS)),
    "cas schema put": (call(json.dumps({"title": TRICKS})), call(TRICKS)),
    "remote add": (call("evil", f"https://evil.example/{TRICKS}"),),
    "remote list": (call(),),
    "remote rm": (call(TRICKS),),
    "push": (call("--all"), call(TRICKS)),
    "pull": (call(), call("origin", TRICKS)),
    "clone": (call("{remote}", "new"), call(f"/nowhere/{TRICKS}", "new")),
    "bundle create": (call("x.bundle", T, threads=("ended", "forged")),),
    "bundle open": (call(TRICKS), call("evil.bundle")),
    "review open": (call(T, threads=("ended", "forged")),),
    "review update": (call(T),),
    "review close": (call(T),),
    "review approve": (call(T, "-m", TRICKS, threads=("ended", "forged")),),
    "review setup": (call("--ci", TRICKS), call("--ci", "gitlab", typed=TRICKS + "\n")),
    "git": (
        call("log", "--all", only_text=True, most=LONG),
        call("show", "thread/{forged}", only_text=True, most=LONG),
        call("cat-file", "blob", "{blob}", only_text=True),
        call("cat-file", "--batch", only_text=True, typed="{blob}\n\x04"),
        call("ls-tree", "-r", "-z", "thread/{forged}", only_text=True),
        call("rev-parse", "--verify", TRICKS, only_text=True),
        call("fetch", "origin", TRICKS, only_text=True),
    ),
    "doctor": (call(),),
    "gc": (call(),),
    "reindex": (call(),),
    "config list": (call("--show-origin"),),
    "config get": (call(TRICKS), call("agents.evil.env")),
    "config secure": (call(),),
    "config unset": (call(TRICKS),),
    "config set": (call("identity.name", TRICKS), call(TRICKS, TRICKS)),
    "store path": (call(),),
    "store trust": (call(TRICKS),),
    "init": (call("--store", f"made{TRICKS.replace('/', '-')}"),),
    "hooks install": (call("--server", TRICKS), call()),
    "hooks allow": (call(TRICKS),),
    "bisect": (call(T, "--", "true", threads=("ended", "forged")),),
    "blame": (call("evil.yaml"), call(TRICKS)),
    "export html": (call("pages", T, threads=("ended", "forged")),),
    "connect": (call(TRICKS),),
    "fleet clear": (call(TRICKS),),
    "fleet list": (call(), call(TRICKS)),
    "fleet map": (call(TRICKS),),
    "fleet pause": (call(TRICKS),),
    "fleet release": (call(T, threads=("ended", "forged")),),
    "fleet retry": (call(TRICKS),),
    "fleet unpause": (call(TRICKS),),
    "step ask": (call("{thread}:1", "-p", TRICKS, threads=("ended", "forged")),),
    "step diff": (call("{thread}:1", threads=("ended", "forged")),),
    "thread code": (call(T, threads=("ended", "forged")),),
    "thread forget": (call(T, threads=("ended", "forged")),),
    "thread note": (
        call(T, "-p", TRICKS, threads=("ended", "forged")),
        call(T, threads=("ended", "forged")),
    ),
    "thread open": (call(T, threads=("ended", "forged")),),
    "thread queue": (call(T, threads=("idle", "forged")),),
    "thread rewind": (call(T, threads=("ended", "forged")),),
    "thread undo": (call(T, threads=("ended", "forged")),),
    "trust add": (call(TRICKS),),
    "trust list": (call(),),
    "trust rm": (call(TRICKS),),
    "web hub add": (call(TRICKS),),
    "web hub list": (call(),),
    "web hub remove": (call(TRICKS),),
    "web link": (call(),),
    "web token": (call(),),
    "why": (call("evil.yaml"), call(TRICKS)),
    "worker": (call(TRICKS),),
    "prompt": (call(TRICKS),),
    "log list": (call(),),
    "log show": (call(most=LONG), call(TRICKS), call("--event", TRICKS)),
    "log clean": (call("--before", TRICKS),),
    "setup": (call("--agent", TRICKS), call("--provider", TRICKS, "--model", TRICKS)),
    "completion": (call(TRICKS),),
}
WITHOUT: Final = {
    "demo": "makes its own repository of what uwf brings along",
    "workflow schema": "prints what uwf brings along",
}
DATA: Final = ("git", "thread log", "cas get", "store path", "workflow export")
"""What gives data in a pipe: as it is stored, or as git prints it."""


def leaves() -> Iterator[str]:
    for ctx in iter_commands(root_context()):
        if not hasattr(ctx.command, "list_commands"):
            yield ctx.command_path.removeprefix("uwf ")


def test_every_command_meets_hostile_text_here() -> None:
    hidden = {"thread running"}

    assert set(leaves()) | hidden == CALLS.keys() | WITHOUT.keys()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The world as Mallory left it, made once."""
    base = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(base))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        world = make_world(base / "live")
    fill_folder(world)
    shutil.copytree(base / "live", base / "pristine", symlinks=True)
    return world


@pytest.fixture
def world(pristine: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The world anew, and the victim at it."""
    live = pristine.remote.parent
    shutil.rmtree(live)
    shutil.copytree(live.with_name("pristine"), live, symlinks=True)
    monkeypatch.setenv("UWF_HOME", str(pristine.home))
    monkeypatch.setenv("UWF_STORE", str(pristine.store))
    monkeypatch.setenv("GIT_AUTHOR_NAME", TRICKS)
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "v@example.com")
    monkeypatch.chdir(pristine.work)
    return pristine


def expand(world: World, text: str, thread: str = "") -> str:
    facts: dict[str, str] = {**world.threads}
    facts["thread"] = world.threads.get(thread, thread)
    facts |= {"text": world.text, "remote": str(world.remote)}
    if "{blob}" in text or "{start}" in text or "{schema}" in text:
        facts |= _find_nodes(world)
    for name, value in facts.items():
        text = text.replace("{" + name + "}", value)
    return text


def _find_nodes(world: World) -> dict[str, str]:
    thread = world.threads["ended"]
    tree = git(world.store, "ls-tree", "-r", f"thread/{thread}")
    rows = [line.replace("\t", " ").split(" ") for line in tree.splitlines()]
    names = {row[3].rpartition("/")[2]: row[2] for row in rows if "/nodes/" in row[3]}
    state = json.loads(
        git(world.store, "show", f"thread/{thread}:threads/{thread}/thread.json")
    )
    blob = next(oid for name, oid in names.items() if name.startswith(world.text))
    evil = next(
        name
        for name, oid in names.items()
        if name.endswith("CTS5P6RD8HMCS.json")
        and "OWNED" in git(world.store, "cat-file", "blob", oid)
    )
    return {"blob": blob, "start": state["start"], "schema": evil.partition(".")[0]}


def check_harmless(seen: Seen, most: int, *, is_terminal: bool) -> None:
    for stream in (seen.out, seen.err):
        assert list_unsafe(stream, own=is_terminal) == set()
        assert "\x1b[31mOWNED" not in stream
        assert len(stream) < most
    assert seen.code not in {70, -9}, seen.out[-2000:] + seen.err[-2000:]
    assert "Traceback" not in seen.out + seen.err


SLOW = {"bundle create", "export html", "review open", "thread live", "thread redact"}
"""They wait, or look for secrets first, which takes seconds among so many texts."""


def cases(*, leave: tuple[str, ...] = (), has_quick: bool = False) -> Iterator[object]:
    """Give all calls; slow but for the first of a quick command."""
    for command, calls in CALLS.items():
        for number, each in enumerate(calls):
            named = any("{thread}" in word for word in each.words)
            for thread in each.threads if named else ("",):
                if thread not in leave:
                    name = f"{command}-{number}-{thread[:9]}"
                    quick = has_quick and not number and thread in {"", each.threads[0]}
                    marks = () if quick and command not in SLOW else pytest.mark.slow
                    yield pytest.param(command, each, thread, id=name, marks=marks)


@pytest.mark.parametrize(("command", "given", "thread"), [*cases()])
def test_a_terminal_gets_no_escape_and_no_flood(
    world: World, command: str, given: Call, thread: str
) -> None:
    words = [expand(world, word, thread) for word in given.words]
    typed = expand(world, given.typed, thread).encode()

    seen = on_terminal(*command.split(), *words, typed=typed)

    check_harmless(seen, given.most, is_terminal=True)
    assert seen.out or command in {"git", "workflow simulate", "thread log"}


@pytest.mark.parametrize(
    ("command", "given", "thread"),
    [*cases(leave=("failed", "cancelled", "new", "fork", "idle"), has_quick=True)],
)
def test_a_pipe_gets_no_escape_that_is_no_data(
    world: World, command: str, given: Call, thread: str
) -> None:
    words = [expand(world, word, thread) for word in given.words]
    # Both are written in one place, so one call of each command is enough.
    is_first = given is CALLS[command][0] and thread in {"", given.threads[0]}
    for form in WAYS if is_first and not given.only_text else WAYS[:1]:
        if command in DATA and form == "text":
            continue

        seen = in_pipes(*command.split(), *words, "--format", form)

        check_harmless(seen, max(given.most, 12 * SHORT), is_terminal=False)
        if form == "json" and seen.out:
            json.loads(seen.out)
        if form == "yaml" and seen.out:
            assert yaml.load(seen.out, yaml.CSafeLoader) is not None


def test_what_is_data_goes_into_a_pipe_as_it_is_stored(world: World) -> None:
    forged = f"thread/{world.threads['forged']}"
    text = in_pipes("cas", "get", world.text)
    passed = in_pipes("git", "log", "-1", "--format=%an", forged)
    author = TRICKS.replace("\n", " ")

    assert text.out == f"{NUL}\n"
    assert (passed.out, passed.err) == (f"Ev{author}il\n", "")


def test_what_an_agent_says_beside_its_reply_is_shown(world: World) -> None:
    file = world.work / "words"
    file.write_text(TRICKS)
    script = (
        "cat > /dev/null; cat words; cat words >&2; yes x | head -c 9000000 >&2; exit 3"
    )
    agent = f"stdio:sh -c '{script}'"
    made = in_pipes("thread", "start", "evil", "-p", TRICKS, "--json")
    thread = json.loads(made.out)["threadId"]
    words = ("thread", "exec", thread, "--agent", agent, "--cwd", ".")

    failed = on_terminal(*words)
    joined = on_terminal("thread", "join", thread)
    behind = in_pipes(*words[:1], "resume", *words[2:], "--background")
    ended = on_terminal("thread", "join", thread)

    assert (failed.code, behind.code, ended.code) == (5, 0, 5)
    for seen in (failed, joined, ended):
        check_harmless(seen, SHORT, is_terminal=True)
    assert list_unsafe(_log(world, thread).read_text()) == set()


def _log(world: World, thread: str) -> Path:
    return world.store / "uwf" / "logs" / f"{thread}.log"


def test_what_doctor_finds_is_shown(world: World) -> None:
    path = world.store / "uwf" / "locks" / world.threads["new"]
    with lock(path, command=TRICKS):
        shown, told = on_terminal("doctor"), in_pipes("doctor", "--json")
        busy = on_terminal("thread", "exec", world.threads["new"], *AGENT)
        listed = on_terminal("thread", "running")

    for seen in (shown, busy, listed):
        check_harmless(seen, SHORT, is_terminal=True)
    check_harmless(told, SHORT, is_terminal=False)
    versions = [agent["version"] for agent in json.loads(told.out)["agents"]]
    assert "\x1b[2J\x1b8" in versions
    assert "OWNED" in busy.out


@pytest.mark.parametrize("name", ["UWF_STORE", "UWF_HOME", "GIT_COMMITTER_NAME"])
@pytest.mark.parametrize("words", [("doctor",), ("cas", "put-text", "x"), ("init",)])
def test_what_the_environment_holds_is_shown(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(name, str(world.work / TRICKS.replace("/", "-")[:80]))

    check_harmless(on_terminal(*words), SHORT, is_terminal=True)
    check_harmless(in_pipes(*words), SHORT, is_terminal=False)


def test_names_of_folders_files_and_branches_are_shown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = world.work / "\x1b[2J\x1b[31mOWNED\u202e\r\n"
    (folder / ".workflows").mkdir(parents=True)
    (folder / ".workflows" / "\x1b[31mOWNED\u202e.yaml").write_text("name: x\n")
    git(world.store, "update-ref", "refs/heads/thread/\u202e\u009b31m", "main")
    git(world.store, "update-ref", "refs/heads/\u2066x", "main")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("UWF_STORE")

    for words in (
        *(("workflow", "list"), ("workflow", "validate", ".workflows"), ("init",)),
        *(("thread", "list", "--store", str(world.store)), ("store", "path")),
        *(("doctor", "--store", str(world.store)), ("thread", "list")),
        *(("git", "branch", "-a", "--store"), ("git", "for-each-ref")),
        ("workflow", "new", "x-y"),
    ):
        check_harmless(on_terminal(*words), SHORT, is_terminal=True)
