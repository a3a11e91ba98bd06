"""Lines about many nodes: putting, getting, reading a long thread, the rebuild."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pygit2

from tests.benchmarks.measuring import CPU, Measure, Sample, alternate, time_call
from tests.benchmarks.stores import Long, World, prose
from uwfgit.ids import Hash, Oid
from uwfgit.model.ledger.keep import put_nodes
from uwfgit.model.ledger.ledger import Ledger, load_node, load_nodes
from uwfgit.model.node import BUILTIN_NAMES, DETAIL_TYPE, Node, make_node
from uwfgit.model.thread.record import open_record
from uwfgit.store.layout import NODES, thread_folder, thread_ref

_OBJECT = BUILTIN_NAMES["object"]


def measure_nodes(world: World) -> Mapping[str, Measure]:
    """Time putting many small nodes and getting them back, beside raw blobs."""
    count = world.size(10_000, 300)
    payloads = [{"number": n, "text": prose(n, 12)} for n in range(count)]
    nodes = [make_node(_OBJECT, payload) for payload in payloads]
    put = _measure_put(world, payloads, nodes)
    return {"put": put, **_measure_get(world, nodes)}


def _measure_put(
    world: World, payloads: list[dict[str, object]], nodes: list[Node]
) -> Measure:
    blobs = [node.data for node in nodes]
    puts, raws = [], []
    for _ in range(world.size(5, 2)):
        path = world.make_store("put")
        with world.opened(path) as ledger:
            puts.append(
                time_call(
                    lambda: put_nodes(ledger, [make_node(_OBJECT, p) for p in payloads])
                )
            )
        plain = pygit2.init_repository(str(world.new_folder("raw")), bare=True)
        raws.append(time_call(lambda: [plain.create_blob(data) for data in blobs]))  # noqa: B023 - called at once
    return Measure(
        measured=Sample(values=tuple(puts)),
        reference=Sample(values=tuple(raws)),
        note="with making, naming and checking the nodes; fsync off for both",
    )


def _measure_get(world: World, nodes: list[Node]) -> Mapping[str, Measure]:
    path = world.make_store("get")
    with world.opened(path) as ledger:
        put_nodes(ledger, nodes)
    world.git(path, "gc", "--quiet")
    wanted = [node.hash for node in nodes]
    with world.opened(path) as ledger:
        oids = _find_oids(ledger, wanted)
        repo = ledger.store.repo
        batch, single, raw = alternate(
            lambda: load_nodes(ledger, wanted),
            lambda: [load_node(ledger, node) for node in wanted],
            lambda: [repo.read(oid) for oid in oids],
            repeats=world.size(15, 3),
            clock=CPU,
        )
    return {
        "get-batch": Measure(measured=batch, reference=raw),
        "get-single": Measure(measured=single, reference=raw),
    }


def _find_oids(ledger: Ledger, wanted: list[Hash]) -> list[Oid]:
    rows = (ledger.lookup.find_nodes(node) for node in wanted)
    return [found[0].oid for found in rows]


def measure_reading(world: World) -> Mapping[str, Measure]:
    """Time reading a long thread beside pygit2 reading the same blobs."""
    long = world.long(world.size(1_000, 40))
    path = world.packed(long)
    with world.opened(path) as ledger:
        store = ledger.store
        plain, verified, raw = alternate(
            lambda: open_record(store, long.thread, checked=False).steps(),
            lambda: open_record(store, long.thread).steps(),
            lambda: _read_raw(path, long),
            repeats=world.size(15, 3),
            clock=CPU,
        )
    return {
        "read": Measure(measured=plain, reference=raw),
        "read-verified": Measure(measured=verified, reference=raw),
    }


def _read_raw(path: Path, long: Long) -> int:
    """Find and read the blobs of steps and outputs as any reader of git must.

    What agents did in their turns is not part of reading a thread.
    """
    repo = pygit2.Repository(str(path))
    tree = repo.references[thread_ref(long.thread)].peel(pygit2.Tree)
    return sum(
        len(blob) for blob in _iter_blobs(tree[f"{thread_folder(long.thread)}/{NODES}"])
    )


def _iter_blobs(tree: pygit2.Object) -> Iterator[bytes]:
    assert isinstance(tree, pygit2.Tree)
    for item in tree:
        if isinstance(item, pygit2.Tree):
            yield from _iter_blobs(item)
        elif isinstance(item, pygit2.Blob) and f".{DETAIL_TYPE}." not in f"{item.name}":
            yield item.data


def measure_rebuild(world: World) -> Mapping[str, Measure]:
    """Time filling the lookup anew from a packed store."""
    path = world.packed(world.long(world.size(1_000, 40)))
    speeds = []
    with world.opened(path) as ledger:
        for _ in range(world.size(5, 3)):
            found = 0

            def rebuild() -> None:
                nonlocal found
                found = ledger.lookup.rebuild().nodes

            took = time_call(rebuild, clock=CPU)
            speeds.append(found / took * 1000)
    return {"rebuild": Measure(measured=Sample(values=tuple(speeds)))}
