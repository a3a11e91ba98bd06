"""A remote may have as many refs as it likes that no thread may be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import git
from tests.sync.people import DONE, Person
from uwfgit.store.genesis import GENESIS_OID


@pytest.mark.parametrize(
    ("count", "summed"),
    [
        pytest.param(20, [], id="few"),
        pytest.param(21, ["and 1 more name that no thread may have"], id="one-more"),
        pytest.param(
            2_000, ["and 1,980 more names that no thread may have"], id="many"
        ),
    ],
)
def test_only_the_first_misnamed_refs_are_told_by_name(
    ada: Person, bob: Person, bare: Path, count: int, summed: list[str]
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    names = [f"refs/heads/thread/not-{number:05d}" for number in range(count)]
    lines = [f"{GENESIS_OID} {name}\n" for name in names]
    git(bare, "pack-refs", "--all")
    packed = bare / "packed-refs"
    header, *known = packed.read_text().splitlines(keepends=True)
    known = [*known, *lines]
    packed.write_text(header + "".join(sorted(known, key=lambda line: line[41:])))

    report = bob.pull()

    refused = [each for each in report.outcomes if each.result == "refused"]
    assert [each.ref for each in refused[:20]] == names[:20]
    assert {each.message for each in refused[:20]} == {"no name of a thread"}
    assert [each.message for each in refused[20:]] == summed
    assert bob.tip(thread) == ada.tip(thread)
