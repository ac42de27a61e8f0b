"""Graphs hold the measures of a tree, not its tasks, and a few bytes a block."""

from __future__ import annotations

import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset.build import build
from daskcoreset.execution.lazy import Alone
from tests.pairs import each

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


@each(kind=["stored", "dask"], name=list(BUILDS))
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
