"""A build of made rows, so that the one after it, which is timed, compiles no loops."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from daskcoreset.build import build
from daskcoreset.core.linalg import csr_rows
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.metrics.advice_tasks import Task

# Columns and clusters at most, and rows of a block: of more the loops are the same. Rows of up to
# 64 columns, and blocks of up to 16,384 rows, have loops of their own.
_COLUMNS, _CLUSTERS, _BLOCK_ROWS = 80, 8, 20_000

# Rows of another block, with which the first one is merged, and of the pilot.
_MORE_ROWS, _SIZE = 256, 64


def compile_loops(blocks: RowBlocks, task: Task, n_clusters: int | None, **options: Any) -> None:
    """Build a pilot of made rows of the kind of `blocks`, in this process.

    Workers of a cluster that have compiled no loops yet do so when they read their first block.

    Parameters
    ----------
    blocks : RowBlocks
        The data, of which nothing is read.
    task : Task
    n_clusters : int or None
    **options
        Of `daskcoreset.build`, without those about rows.
    """
    rng = np.random.default_rng(0)
    d = min(blocks.schema.n_features, _COLUMNS)
    chunks = min(blocks.block_rows, _BLOCK_ROWS)
    X: Any = rng.standard_normal((chunks + _MORE_ROWS, d), dtype=np.float32)
    X = X.astype(blocks.schema.dtype, copy=False)
    if blocks.sparse:
        X = csr_rows(np.where(X > 1.0, X, 0))
    if n_clusters is not None:
        options["n_clusters"] = min(n_clusters, _CLUSTERS)
    labels = np.arange(X.shape[0]) % 2 if task.labels else None
    with warnings.catch_warnings():  # they are about the made rows
        warnings.simplefilter("ignore")
        build(
            X, labels, method={"pilot": task.pilot}, size=_SIZE, chunks=chunks, random_state=0,
            **options,
        )  # fmt: skip
