"""Graphs hold the measures of a tree, not its tasks, and a few bytes a block."""

from __future__ import annotations

import pickle
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset.build import build
from daskcoreset.execution.fold import FoldLayer
from daskcoreset.execution.lazy import Alone
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingArray

N_BLOCKS = 100_000

# Dask warns of graphs above 10 MB (distributed.admin.large-graph-warning-threshold).
WARNS_AT = 10_000_000


class Wide:
    """Rows that are never read, of any length."""

    def __init__(self, *shape: int) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype("f4")

    def __getitem__(self, rows: Any) -> Any:
        raise AssertionError("a row was read")


def sent_bytes(lazy: Any) -> int:
    """Bytes of what a client sends to a scheduler for it."""
    distributed = pytest.importorskip("distributed")
    from dask._expr import FinalizeCompute
    from dask.base import collections_to_expr

    (value,) = (Alone(lazy.__dask_graph__(), *lazy.__dask_keys__()),)
    expression = FinalizeCompute(collections_to_expr([value], True)).optimize()
    protocol = distributed.protocol
    header, frames = protocol.serialize(protocol.to_serialize(expression), on_error="raise")
    return sum(len(memoryview(frame).cast("B")) for frame in frames) + len(pickle.dumps(header))


BUILDS: dict[str, dict[str, Any]] = {
    "one read": {},
    "two reads": {"passes": 2},
    "tree": {"strategy": "tree"},
    "svm": {"method": "svm"},
}


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("kind", ["stored", "dask"])
def test_build__graph_of_a_hundred_thousand_blocks_is_small(kind: str, name: str) -> None:
    rows = 10 * N_BLOCKS
    parts: list[Any] = [Wide(rows, 4), Wide(rows), Wide(rows)]
    if kind == "dask":
        parts = [da.from_array(part, chunks=(10, *part.shape[1:])) for part in parts]
    X, y, weights = parts
    lazy = build(
        X, y, sample_weight=weights, size=100, chunks=10, random_state=0, compute=False,
        **BUILDS[name],
    )  # fmt: skip
    assert sent_bytes(lazy) < WARNS_AT // 2


@pytest.mark.parametrize("reads", [1, 2])
def test_build__adds_little_to_a_graph_of_plain_tasks(reads: int) -> None:
    n_blocks, made = 2000, da.random.default_rng(0)
    n = 10 * n_blocks
    X = made.normal(size=(n, 4), chunks=(10, 4))
    y, weights = made.integers(0, 2, size=n, chunks=10), made.uniform(0.5, 2, size=n, chunks=10)
    options: dict[str, Any] = {"chunks": 10, "passes": reads, "random_state": 0, "compute": False}
    few = sent_bytes(build(X[:10], y[:10], sample_weight=weights[:10], size=5, **options))
    lazy = build(X, y, sample_weight=weights, size=100, **options)
    own = sum(len(pickle.dumps(part.__dask_graph__())) for part in (X, y, weights))
    # A second read has tasks of its own, so that no block waits in memory for it.
    assert sent_bytes(lazy) - few < reads * own + 100 * n_blocks


def test_layer__is_sent_without_its_tasks() -> None:
    layer = FoldLayer("coreset-fold-a", "coreset-leaf-a", 1, range(10_000), sum, 16)
    before = len(pickle.dumps(layer))
    assert not layer.is_materialized()
    assert len(layer) == 624 + 40 + 3 + 1  # one group of one is not merged
    assert layer.is_materialized()
    assert len(pickle.dumps(layer)) == before < 1000
    again = pickle.loads(pickle.dumps(layer))
    assert set(again) == set(layer)
    assert layer.get_output_keys() == {layer.root} <= set(layer)


def test_specs__of_stored_rows_are_made_when_asked_for() -> None:
    array = CountingArray(np.arange(40.0).reshape(20, 2))
    blocks = row_blocks(array, chunks=6)
    assert [spec.start for spec in blocks.specs] == [0, 6, 12, 18]
    chosen = blocks.select([3, 1])
    assert [(spec.block_index, spec.start) for spec in chosen.specs] == [(3, 18), (1, 6)]
    assert [spec.block_index for spec in blocks.specs[1:3]] == [1, 2]
    np.testing.assert_array_equal(chosen.specs[0].loaders["X"](), array.array[18:])
    with dask.config.set(scheduler="sync"):
        assert not array.reads[:18].any()
