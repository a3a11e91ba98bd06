from __future__ import annotations

from uwfgit.model.workflow.inputs import complete_inputs


def test_what_is_wrong_with_inputs_is_told_in_the_order_they_were_given() -> None:
    given = {f"input{number * 37 % 100}": "x" for number in range(100)}

    _, problems = complete_inputs({"task": {"description": "What to do"}}, given)

    assert [each.path for each in problems] == [*given, "task"]
    assert problems[-1].message == "a value is missing (What to do)"
