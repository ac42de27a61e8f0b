"""Values whose squares overflow, dense and sparse rows, labels that are none: one clear error.

Every answer is either right, by an independent computation, or an error before anything is
stored that names the argument, what was found and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance.face import (
    CoresetTree,
    Draw,
    MergeReduce,
    Mixture,
    StrongBregman,
    StrongKMeans,
    build,
    create_tree,
    errors,
    estimators,
    stream as make_stream,
)
from tests.pairs import each

# --- values whose squares overflow --------------------------------------------------------

ROWS = np.random.default_rng(0).normal(size=(600, 3))
SIDES = (ROWS[:, 0] > 0).astype(np.int64)
ROWS[:, 0] += 2 * SIDES
OVERFLOW = r"^X is -?[0-9.]+e\+[0-9]+ in column \d at row \d+, and of values so large squared"


def one_value(value: float, row: int = 477) -> Any:
    rows = ROWS.copy()
    rows[row, 1] = value
    return rows


TOO_LARGE = [
    pytest.param(ROWS * 1e200, id="all"),
    pytest.param(one_value(1e200), id="one 1e200"),
    pytest.param(one_value(-1e300), id="one 1e300"),
    pytest.param(one_value(1.5e154), id="one 1.5e154"),
    pytest.param(sp.csr_array(one_value(1e200)), id="sparse"),
]
METHODS = ["lightweight", "uniform", StrongKMeans(3), StrongBregman(3), Mixture(2)]


@pytest.mark.parametrize("rows", TOO_LARGE[1::3])
def test_tree__a_leaf_that_overflows_is_not_stored(rows: Any, tmp_path: Path) -> None:
    good = sp.csr_array(ROWS) if sp.issparse(rows) else ROWS
    tree = create_tree(tmp_path / "t.zarr", size=50, random_state=0)
    tree.append(good, name="a")
    before = tree.coreset()
    changes: list[Any] = [tree.append, lambda X: tree.replace("a", X)]
    for change in changes:
        with pytest.raises(errors.InvalidInputError, match=OVERFLOW):
            change(rows)
    assert CoresetTree.open(tmp_path / "t.zarr").version == tree.version == 1
    assert CoresetTree.open(tmp_path / "t.zarr").coreset().equals(before)


def test_estimators__overflow_is_found_in_prediction_too() -> None:
    model = estimators.CoresetKMeans(2, random_state=0).fit(ROWS)
    for method in (model.predict, model.transform):
        with pytest.raises(errors.InvalidInputError, match=OVERFLOW):
            method(one_value(1e300))
        with pytest.raises(errors.InvalidInputError, match=OVERFLOW):
            method(da.from_array(one_value(1e300), chunks=200)).compute()


@each(method=METHODS, draw=[Draw(), MergeReduce()])
def test_build__scale_below_the_bound_changes_no_draw(method: Any, draw: Any) -> None:
    """A power of two changes no digit: the largest that float32 holds, and far above it."""
    forms: list[Any] = [(np.float32, 2.0**120), (np.float64, 2.0**400)]
    for dtype, scale in forms:
        rows = ROWS.astype(dtype)
        options: dict[str, Any] = {"size": 50, "method": method, "draw": draw}
        plain = build(rows, random_state=0, **options)
        large = build(rows * dtype(scale), random_state=0, **options)
        assert large.points.dtype == dtype
        np.testing.assert_array_equal(large.indices, plain.indices)
        np.testing.assert_allclose(large.weights, plain.weights, rtol=1e-9)


def test_build__weights_that_make_squares_overflow_are_blamed() -> None:
    rows = ROWS * 1e100
    with pytest.raises(
        errors.InvalidInputError, match=r"sample_weight sums to 6e\+122, and weighted"
    ):
        build(rows, sample_weight=np.full(600, 1e120), size=50)
    stream = make_stream(method="lightweight", size=50, leaf_size=400).partial_fit(rows)
    with pytest.raises(errors.InvalidInputError, match="scale sample_weight down"):
        stream.partial_fit(rows, sample_weight=np.full(600, 1e120))
    assert stream.coreset().provenance["n"] == 600
    # Without a weight a row may hold any number, and is never drawn.
    weight = np.ones(600)
    weight[477] = 0.0
    found = build(one_value(1e300), sample_weight=weight, size=50, random_state=0)
    assert 477 not in found.indices
    assert np.isfinite(found.weights).all()


# --- labels that are none, and more columns or clusters than can be done ------------------


@pytest.mark.parametrize("method", ["svm", "logistic"])
def test_build__a_regression_target_is_no_label(method: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.raises(
        errors.InvalidInputError, match=r"^y is -?0\.\d+ at row 0, a number and no class"
    ):
        build(rows, rows[:, 0], size=20, method=method)
    mixed = np.where(np.arange(200) == 150, 0.5, np.arange(200) % 2)
    with pytest.raises(
        errors.InvalidInputError, match=r"^y is 0\.5 at row 150, a number and no class"
    ):
        build(rows, mixed, size=20, method=method, chunks=60)
    for names in (np.arange(200), np.arange(200).astype(str), np.arange(200.0)):
        with pytest.raises(
            errors.InvalidInputError, match="y holds 200 different labels for 200 rows"
        ):
            build(rows, names, size=20, method=method)
    # Whole numbers are classes, also as floats, and few of a row each are no names.
    for labels in (np.arange(200) % 2.0, np.repeat([0, 1], 100)):
        assert len(build(rows, labels, size=50, method=method)) == 50
