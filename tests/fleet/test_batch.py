from __future__ import annotations

import pytest

from tests.sync.people import Person
from uwfgit.errors import InvalidError, StateError
from uwfgit.fleet.batch import Line, open_batch, read_lines
from uwfgit.ids import Hash, thread_time_ms
from uwfgit.model.workflow.inputs import Schemas
from uwfgit.store.layout import task_line

WORKFLOW = Hash("0" * 13)
SCHEMAS: Schemas = {
    "depth": {"type": "integer", "default": 1},
    "url": {"type": "string"},
}


def line(number: int, task: str, **values: str) -> Line:
    return Line(number=number, task=task, values=values)


def test_a_line_is_inputs_or_a_task() -> None:
    lines = read_lines(
        '{"url": "a"}\n\n{"url": "b", "depth": 2}\n', task="Look", schemas=SCHEMAS
    )

    assert [each.number for each in lines] == [1, 3]
    assert [each.task for each in lines] == ["Look", "Look"]
    assert lines[1].values == {"depth": 2, "url": "b"}
    assert read_lines('"Do it"', task=None, schemas={})[0].task == "Do it"


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        pytest.param('{"url": "a"}\n{"url": "b"}', ["a", "b"], id="one"),
        pytest.param('{"url": "a"}', ["a"], id="a-single-line"),
        pytest.param(
            '{"url": "a", "depth": 2}\n{"depth": 2, "url": "b"}',
            ["a", "b"],
            id="what-all-share-tells-nothing",
        ),
        pytest.param(
            '{"url": "a", "depth": 2}\n{"url": "b"}',
            ["depth=2, url=a", "b"],
            id="several",
        ),
        pytest.param('{"url": "a"}\n{"url": "a"}', ["a", "a"], id="equal"),
        pytest.param('{"url": " a\\n\\nb "}', ["a b"], id="lines"),
        pytest.param('{"url": ""}', ['""'], id="empty"),
        pytest.param(f'{{"url": "{"x" * 99}"}}', ["x" * 59 + "…"], id="long"),
        pytest.param('{"url": "a"}\n"Do it"', ["a", "Do it"], id="a-task"),
    ],
)
def test_each_line_of_inputs_is_listed_by_what_is_its_own(
    text: str, titles: list[str]
) -> None:
    schemas = SCHEMAS if "Do it" not in text else {"url": {"default": "c"}}
    lines = read_lines(text, task="Look\nwell", schemas=schemas)

    shown = [task_line(each.prompt.encode()) for each in lines]
    assert shown == titles
    of_inputs = [each for each in lines if each.task != "Do it"]
    assert {each.prompt.partition("\n\n")[2] for each in of_inputs} == {"Look\nwell"}


@pytest.mark.parametrize(
    ("text", "task", "said"),
    [
        pytest.param("", "t", "is empty", id="empty"),
        pytest.param("{", "t", "line 1: it is not JSON", id="json"),
        pytest.param('{"url": "a"}\n[1]', "t", "line 2: it is neither", id="list"),
        pytest.param('{"url": 1}', "t", "line 1: url", id="schema"),
        pytest.param('{"uri": "a"}', "t", "line 1: uri: no such input", id="name"),
        pytest.param('{"url": "a"}', None, "1: it has inputs and no task", id="task"),
        pytest.param('{"url": "a", "url": "b"}', "t", "twice", id="twice"),
        pytest.param('{"url": NaN}', "t", "line 1", id="nan"),
        pytest.param('"  "', "t", "line 1: the task is empty", id="blank"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(
    text: str, task: str | None, said: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        read_lines(text, task=task, schemas=SCHEMAS)

    assert said in str(caught.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidError) as caught:
        read_lines('1\n{"url": "a"}\n2', task="t", schemas=SCHEMAS)

    assert [problem.line for problem in caught.value.problems] == [1, 3]


def test_a_line_has_the_same_thread_again(ada: Person) -> None:
    first = open_batch(ada.ledger, "b", WORKFLOW)
    begun = first.thread_ids((line(1, "x"), line(2, "y"), line(3, "x")))

    again = open_batch(ada.ledger, "b", WORKFLOW)
    later = again.thread_ids((line(1, "new"), line(2, "x"), line(3, "y"), line(4, "x")))

    assert len(set(later)) == 4
    assert later[1:] == begun
    assert {thread_time_ms(each) for each in later} == {first.begun_ms}


def test_two_batches_share_no_thread(ada: Person) -> None:
    lines = (line(1, "x", url="a"),)

    mine = open_batch(ada.ledger, "b", WORKFLOW).thread_ids(lines)
    other = open_batch(ada.ledger, "c", WORKFLOW).thread_ids(lines)

    assert mine != other


def test_a_batch_keeps_its_workflow(ada: Person) -> None:
    open_batch(ada.ledger, "b", WORKFLOW)

    with pytest.raises(StateError, match="was begun with workflow 0000"):
        open_batch(ada.ledger, "b", Hash("1" * 13))
