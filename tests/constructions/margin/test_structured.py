"""Structured output: groups, classes, and inputs of any kind."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.constructions.margin.structured import MultiClassProblem, structured_margin
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import StructuredMaxMargin, StructuredProblem
from daskcoreset.inputs.blocks import row_blocks

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
    problem = MultiClassProblem.of(known, intercept=True)
    light = structured_margin(blocks, problem, 0.01, classes=known.classes)
    assert np.isclose(light.core_margin, dense, rtol=0.02)
    assert 3 not in light.indices
    unknown = da.from_array(X, chunks=(90, 4))
    mask = unknown[:, 0] > -np.inf
    lazy = multiclass(unknown[mask], da.from_array(y, chunks=90)[mask], epsilon=0.01)
    assert np.isclose(lazy.margin_, dense, rtol=0.02)
    assert set(lazy.result_.indices.tolist()) <= set(range(400))


def test_multiclass__digits_of_real_handwriting() -> None:
    X, y = load_digits(n_class=5, return_X_y=True)
    model = StructuredMaxMargin(epsilon=0.2).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.margin_ >= 0.8 * model.core_margin_
    assert model.decision_function(X).shape == (len(X), 5)
    lazy = da.from_array(X, chunks=(100, 64))
    assert (model.predict(lazy).compute() == model.predict(X)).all()
    assert model.score(lazy, da.from_array(y, chunks=100)) == 1.0
