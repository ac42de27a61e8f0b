"""Multi-class and structured output: margins against other solvers, oracles against all answers."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.constructions.margin.problems import MultiClassProblem, centering
from daskcoreset.constructions.margin.structured import structured_margin
from daskcoreset.estimators import StructuredMaxMargin
from daskcoreset.inputs.blocks import row_blocks
from tests.tools.structured_problems import classes_of


def multiclass(X: Any, y: Any, chunks: int | None = None, **options: Any) -> StructuredMaxMargin:
    """Several classes, in memory or in Dask blocks of so many rows."""
    if chunks is not None:
        X = da.from_array(X, chunks=(chunks, X.shape[1]))
        y = da.from_array(np.asarray(y), chunks=chunks)
    return StructuredMaxMargin("multiclass", **{"on_inseparable": "raise", **options}).fit(X, y)


def test_inputs__sparse_float32_offset_and_unknown_chunks() -> None:
    X, y = classes_of(400, 3, 4, 7)
    dense = multiclass(X, y, epsilon=0.01).margin_
    assert np.isclose(dense, multiclass(sp.csr_array(X), y, epsilon=0.01).margin_)
    far = X.astype(np.float32) + np.float32(1e4)
    offset = multiclass(far, y, epsilon=0.01)
    near = multiclass(far.astype(np.float64) - 1e4, y, epsilon=0.01)
    assert np.isclose(offset.margin_, near.margin_, rtol=1e-6)
    spoilt, wrong = np.insert(X, 3, -X[7], axis=0), np.insert(y, 3, y[7])
    weights = np.insert(np.ones(400), 3, 0.0)
    blocks = row_blocks(spoilt, wrong, weights, chunks=90)
    known = summarise_classes(blocks)
    problem = MultiClassProblem(4, 3, *centering(known))
    light = structured_margin(blocks, problem, 0.01, classes=known.classes)
    assert np.isclose(light.margin, dense, rtol=0.02)
    assert 3 not in light.examples
    unknown = da.from_array(X, chunks=(90, 4))
    mask = unknown[:, 0] > -np.inf
    lazy = multiclass(unknown[mask], da.from_array(y, chunks=90)[mask], epsilon=0.01)
    assert np.isclose(lazy.margin_, dense, rtol=0.02)
    assert set(lazy.result_.examples.tolist()) <= set(range(400))
