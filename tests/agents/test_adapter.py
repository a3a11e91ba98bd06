from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.children import ENVIRONMENT, THREAD, make_request
from uwfgit.agents.adapter import AdapterAgent
from uwfgit.agents.base import Usage

HASH = "0ABCDEFGHJKMN"


def make_agent(script: str) -> AdapterAgent:
    return AdapterAgent(label="my-adapter", argv=("sh", "-c", script, "adapter"))


def test_an_adapter_gets_the_thread_and_the_role_as_last_words(tmp_path: Path) -> None:
    agent = make_agent(f'echo "$#" "$@"; echo {HASH}')

    reply = agent.run(make_request(cwd=tmp_path, role="tester"))

    assert reply.text == f"2 {THREAD} tester\n"
    assert reply.node == HASH


def test_an_adapter_gets_its_label_the_given_variables_and_the_prompt(
    tmp_path: Path,
) -> None:
    agent = make_agent(f'echo "$UWF_AGENT $UWF_START"; cat; echo; echo {HASH}')
    environment = {**ENVIRONMENT, "UWF_START": "START", "UWF_AGENT": "outer"}

    reply = agent.run(
        make_request(cwd=tmp_path, prompt="Go on.", environment=environment)
    )

    assert reply.text == "my-adapter START\nGo on.\n"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(HASH, id="bare"),
        pytest.param(HASH.lower(), id="lower-case"),
        pytest.param(f'{{"stepHash": "{HASH}"}}', id="object"),
        pytest.param(f'{{"isError": false, "stepHash": "{HASH}"}}', id="more-fields"),
        pytest.param(f"  {HASH}\r\n\n  ", id="blanks-around"),
    ],
)
def test_the_last_line_that_is_not_blank_is_the_hash(line: str, tmp_path: Path) -> None:
    agent = make_agent(f"printf 'log line\\n%s' '{line}'")

    reply = agent.run(make_request(cwd=tmp_path))

    assert (reply.node, reply.failure) == (HASH, None)
    assert reply.text == "log line\n"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        pytest.param("", "missing", id="nothing"),
        pytest.param(f"{HASH}\nall done", "'all done'", id="not-the-last"),
        pytest.param("0ABC", "'0ABC'", id="short"),
        pytest.param('{"hash": "' + HASH + '"}', HASH, id="another-key"),
        pytest.param('{"stepHash": 5}', "5", id="no-text"),
        pytest.param('{"stepHash": ', "stepHash", id="broken-json"),
        pytest.param("[" * 50_000, "[[", id="deep"),
        pytest.param('{"a":' * 50_000, "a", id="deep-objects"),
        pytest.param("x\033[31m", "'x'", id="escapes"),
    ],
)
def test_any_other_last_line_is_a_failure_that_shows_it(
    output: str, shown: str, tmp_path: Path
) -> None:
    (tmp_path / "output").write_text(output)

    reply = make_agent("cat output").run(make_request(cwd=tmp_path))

    assert reply.node is None
    assert reply.text == output
    assert reply.failure is not None
    assert reply.failure.phase == "agent"
    assert shown in reply.failure.message
    assert "'stdio:COMMAND'" in reply.failure.message
    assert len(reply.failure.message) < 300


def test_a_hash_counts_only_with_a_good_end(tmp_path: Path) -> None:
    reply = make_agent(f"echo {HASH}; exit 4").run(make_request(cwd=tmp_path))

    assert (reply.node, reply.exit_code, reply.text) == (None, 4, f"{HASH}\n")
    assert reply.failure is not None


OLDER = """
if [ "$1" != --thread ]; then echo 'usage: x --thread T --role R --prompt P' >&2
exit 1; fi
echo starting; echo "$2 $4 $6" >&2
"""


def test_an_older_adapter_is_recognised_and_its_answer_taken(tmp_path: Path) -> None:
    line = (
        '{"stepHash": "0ABCDEFGHJKMN", "detailHash": "0ABCDEFGHJKMP", "role": "r", '
        '"frontmatter": {"$status": "done", "n": 3}, "body": "All done.", '
        '"usage": {"turns": 2, "inputTokens": 10, "outputTokens": 5, "duration": 1.5}, '
        '"isError": false, "errorMessage": null}'
    )
    agent = make_agent(f"{OLDER}cat <<'END'\n{line}\nEND")

    reply = agent.run(make_request(cwd=tmp_path, prompt="Go on."))

    assert reply.failure is None
    assert reply.node is None
    assert reply.text == '---\n$status: done\n"n": 3\n---\n\nAll done.'
    assert reply.usage == Usage(
        turns=2, input_tokens=10, output_tokens=5, duration_ms=1500, cost_usd=None
    )
    assert any("older protocol" in each for each in reply.warnings)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("echo 'no thread' >&2; exit 1", "(the older protocol: --thread"),
        ('echo \'{"isError": true, "errorMessage": "no key"}\'', "no key"),
        ("echo done", "its last line has no frontmatter and body: 'done'"),
    ],
)
def test_an_older_adapter_that_fails_is_refused_with_the_reason(
    tmp_path: Path, end: str, told: str
) -> None:
    reply = make_agent(f"{OLDER}{end}").run(make_request(cwd=tmp_path))

    assert reply.failure is not None
    assert told in reply.failure.message


def test_numbers_that_no_record_holds_are_not_taken_from_an_older_adapter(
    tmp_path: Path,
) -> None:
    usage = '"usage": {"turns": Infinity, "inputTokens": 1e400, "duration": 1e300}'
    line = f'{{"frontmatter": {{"$status": "done"}}, "body": "", {usage}}}'
    agent = make_agent(f"{OLDER}cat <<'END'\n{line}\nEND")

    reply = agent.run(make_request(cwd=tmp_path))

    assert reply.failure is None
    assert reply.usage == Usage(
        turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=None
    )
