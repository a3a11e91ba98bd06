"""Work that goes on while this thread does something else."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def meanwhile(call: Callable[[], T]) -> Callable[[], T]:
    """Begin a call in a thread; what is returned waits for it.

    It gives the call's result, or raises what the call raised. Not an executor of
    ``concurrent.futures``: importing that costs a command more than what it runs.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as exc:  # noqa: BLE001 - raised again by who waits
            errors.append(exc)

    thread = Thread(target=run, daemon=True)
    thread.start()

    def wait() -> T:
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    return wait
