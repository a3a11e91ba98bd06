"""What an agent is told when its reply did not hold; the only wording (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from uwfgit.engine.fence import fence
from uwfgit.engine.output_format import output_format
from uwfgit.errors import Problem
from uwfgit.store.canonical import Json

_REQUEST = """\
Your work is done: do not do it again. Send the whole reply once more, the
corrected block first and your report below it."""


def correction_prompt(
    problems: Iterable[Problem], *, schema: Json, listed: bool
) -> str:
    """Tell an agent in its live session everything wrong with its last reply."""
    return (
        "# Your last reply could not be used\n\n"
        f"{_list(problems)}\n\n{_REQUEST}\n\n"
        f"{output_format(schema, listed=listed)}\n"
    )


def correction_without_session(
    prompt: str, reply: str, problems: Iterable[Problem], *, schema: Json, listed: bool
) -> str:
    """Tell it an agent that remembers nothing: the prompt, its reply, the problems.

    Args:
        prompt: The step's assembled prompt.
        reply: What the agent answered.
        problems: What is wrong with it.
        schema: The role's schema.
        listed: The role's graph node is a list.
    """
    return (
        f"{prompt.rstrip()}\n\n"
        "# Your reply to all this\n\n"
        f"{fence(reply)}\n\n"
        f"{correction_prompt(problems, schema=schema, listed=listed)}"
    )


def _list(problems: Iterable[Problem]) -> str:
    return "\n".join(f"- {_line(problem)}" for problem in problems)


def _line(problem: Problem) -> str:
    place = f"line {problem.line}: " if problem.line else ""
    path = f"`{problem.path}`: " if problem.path else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{place}{path}{problem.message}{hint}"
