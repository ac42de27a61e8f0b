"""Structured output: groups, classes, and inputs of any kind."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import MaxMarginClassifier, StructuredMaxMargin, StructuredProblem

Array = np.ndarray[Any, Any]


def classes_of(n: int, K: int, d: int, seed: int, gap: float = 0.3) -> tuple[Array, Array]:
    """Rows that a random linear rule separates with a gap."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(20 * n, d)), rng.normal(size=(K, d))
    scores = np.sort(X @ W.T, axis=1)
    X = X[scores[:, -1] - scores[:, -2] > gap][:n]
    return X, (X @ W.T).argmax(axis=1)


def sequence_of(X: Any, y: Any, groups: Any) -> StructuredMaxMargin:
    return StructuredMaxMargin("sequence").fit(X, y, groups=groups)


def test_groups__are_any_numbers_or_text() -> None:
    """Numbers above 2**53 that float64 would merge, negative ones, text; not what is missing."""
    groups = np.repeat(np.arange(40), 1 + np.arange(40) % 5)
    X, y = classes_of(len(groups), 3, 2, 5)
    one = (len(X),)
    expected = sequence_of(X, y, groups).w_
    for names in (2**53 + groups % 2, -1 - groups, np.char.add("run ", groups.astype(str))):
        rows = da.from_array(X, chunks=(one, 2)), da.from_array(y, chunks=one)
        model = sequence_of(*rows, da.from_array(names, chunks=one))
        assert np.array_equal(model.w_, expected)
    spoilt = da.from_array(np.where(np.arange(len(X)) == 7, np.nan, groups), chunks=one)
    with pytest.raises(
        InvalidInputError, match="groups is missing or not finite at row 7"
    ) as error:
        sequence_of(*rows, spoilt)
    assert error.value.argument == "groups"


class Neighbours(StructuredProblem):
    """Of the labels 0, 1 and 7, the last is never a rival."""

    dimension = 8

    def joint_features(self, x: Any, y: Any) -> Any:
        return np.eye(8)[y[0]] * x[0, 0]

    def separation_oracle(self, w: Any, x: Any, y: Any) -> Any:
        scores = w * x[0, 0]
        known = np.array([0, 1, 7] if y is None else [k for k in (0, 1) if k != y[0]])
        best = known[scores[known].argmax()]
        margin = 0.0 if y is None else float(scores[y[0]] - scores[best])
        return type("Answer", (), {"y": np.array([best]), "margin": margin, "loss": 1.0})


def test_classes__are_those_of_all_rows() -> None:
    X, y = np.array([[1.0], [-1.0], [9.0]] * 4), np.array([1, 0, 7] * 4)
    model = StructuredMaxMargin(Neighbours(), per_block=1).fit(X, y)
    assert model.classes_.tolist() == list(range(8))


def test_inputs__sparse_float32_offset_unknown_chunks_and_rows_without_weight() -> None:
    X, y = classes_of(400, 3, 4, 7)
    best = MaxMarginClassifier().fit(X, y).margin_
    spoilt, wrong = np.insert(X, 3, -X[7], axis=0), np.insert(y, 3, y[7])
    weights = np.insert(np.ones(400), 3, 0.0)
    light = MaxMarginClassifier(0.01).fit(da.from_array(spoilt, chunks=(90, 4)), wrong, weights)
    assert 3 not in light.core_indices_
    lazy = da.from_array(X, chunks=(90, 4))
    mask = lazy[:, 0] > -np.inf
    unknown = MaxMarginClassifier(0.01).fit(lazy[mask], da.from_array(y, chunks=90)[mask])
    sparse = MaxMarginClassifier(0.01).fit(sp.csr_array(X), y)
    for model in (light, unknown, sparse):
        assert 0.99 * best * (1 - 1e-6) <= model.margin_ <= best * (1 + 2e-6)
        assert model.core_margin_ >= best * (1 - 1e-6)
    far = X.astype(np.float32) + np.float32(1e4)
    offset = MaxMarginClassifier().fit(far, y).margin_
    assert np.isclose(offset, MaxMarginClassifier().fit(far - 1e4, y).margin_, rtol=1e-5)
