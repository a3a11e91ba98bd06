"""Work that never ends is given up, and leaves the process as it was."""

from __future__ import annotations

import re
import resource
import signal
import threading

import pytest

from uwfgit.constants import WORK_BYTES
from uwfgit.errors import OverrunError
from uwfgit.model.bounded import run_bounded

ENDLESS = "a" * 60 + "!"


def _match() -> object:
    return re.search("^(a+)+$", ENDLESS)


def _match_stubbornly() -> object:
    try:
        return _match()
    except Exception:  # noqa: BLE001 - as a library may do
        return None


def _settings() -> tuple[object, ...]:
    return (
        signal.getsignal(signal.SIGVTALRM),
        signal.getitimer(signal.ITIMER_VIRTUAL),
        resource.getrlimit(resource.RLIMIT_DATA),
    )


def test_bounded_work_gives_its_result_and_changes_nothing() -> None:
    before = _settings()

    assert run_bounded(lambda: 7, "counting") == 7

    assert _settings() == before


@pytest.mark.parametrize("work", [_match, _match_stubbornly])
def test_work_that_takes_too_long_is_given_up(work: object) -> None:
    before = _settings()

    with pytest.raises(OverrunError) as told:
        run_bounded(work, "matching", seconds=0.2)  # type: ignore[arg-type]  # both are calls

    assert str(told.value) == "matching takes more than 0.2 seconds"
    assert _settings() == before


def test_work_that_wants_all_memory_is_given_up() -> None:
    before = _settings()

    with pytest.raises(OverrunError) as told:
        run_bounded(lambda: b"x" * (2 * WORK_BYTES), "filling")

    assert told.value.limit == "512 MiB of memory"
    assert _settings() == before


def test_a_lower_limit_of_memory_stays_in_force() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = 2**40
    resource.setrlimit(resource.RLIMIT_DATA, (least, hard))
    try:
        seen = run_bounded(lambda: resource.getrlimit(resource.RLIMIT_DATA), "x")
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    assert seen[0] < least


def test_inside_other_work_the_outer_limits_hold() -> None:
    def outer() -> object:
        return run_bounded(_match, "inner", seconds=100)

    with pytest.raises(OverrunError) as told:
        run_bounded(outer, "outer", seconds=0.2)

    assert told.value.what == "outer"


def test_an_error_of_the_work_comes_through() -> None:
    before = _settings()

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bounded(fail, "failing")

    assert _settings() == before


def test_outside_the_main_thread_work_is_just_done() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(run_bounded(lambda: 7, "x")))

    thread.start()
    thread.join()

    assert found == [7]
