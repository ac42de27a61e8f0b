"""The core-set loop: certificates, bounds, evidence, every input, the same bits everywhere."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from daskcoreset.constructions.margin.core_set import MarginCoreset
from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset
from daskcoreset.constructions.margin.separators import Kernel, NotSeparableError
from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.hard_margin import hard_margin, hard_margin_bias, hard_margin_gram
from tests.pairs import each
from tests.tools.margins import rows


def check_certificate(found: MarginCoreset, X: Any, y: FloatArray, largest: float) -> None:
    """What is promised, measured here on all rows by the formula."""
    assert found.converged
    signs = np.where(y == found.classes[1], 1.0, -1.0)
    reached = (signs * found.decision_function(X)).min()
    assert found.margin == pytest.approx(reached, rel=1e-9)
    assert found.margin >= (1 - found.epsilon) * largest * (1 - 1e-9)
    assert found.core_margin >= largest * (1 - 1e-9)
    assert found.factor >= 1 - found.epsilon
    assert (found.predict(X) == y).all()
    assert len(set(found.indices.tolist())) == len(found)
    assert np.array_equal(found.core.labels, y[found.indices])  # type: ignore[arg-type]


@each(kernel=["rbf", "poly", "linear"], intercept=[False, True])
def test_run__kernels(kernel: str, intercept: bool) -> None:
    by_kernel: dict[str, dict[str, Any]] = {
        "rbf": {"gamma": 0.5},
        "poly": {"degree": 2, "coef0": 1.0},
        "linear": {},
    }
    options = by_kernel[kernel]
    rng = np.random.default_rng(2)
    X = rng.normal(size=(250, 2))
    X = X[np.abs((X**2).sum(axis=1) - 1.5) > 0.3]
    y = np.where((X**2).sum(axis=1) > 1.5, 1.0, -1.0)
    if kernel == "linear":
        y = np.where(X[:, 0] > 0, 1.0, -1.0)
    gram = Kernel(kernel, **options)(X, X) * np.outer(y, y)
    largest = hard_margin_gram(gram, y if intercept else None).margin
    found = MaxMarginCoreset(
        epsilon=0.05, kernel=kernel, intercept=intercept, chunks=50, **options
    ).run(X, y)
    check_certificate(found, X, y, largest)
    same = MaxMarginCoreset(
        epsilon=0.05, kernel=Kernel(kernel, **options), intercept=intercept, chunks=50
    ).run(X, y)
    check_certificate(same, X, y, largest)
    assert (found.w is None) == (kernel != "linear")
    assert same.w is None


def test_run__float32_with_a_large_offset() -> None:
    X, y = rows(6, 500, 3, 1.0)
    X = (X + 1e4).astype(np.float32)
    found = MaxMarginCoreset(epsilon=0.01, intercept=True, chunks=100).run(X, y)
    check_certificate(found, X, y, hard_margin_bias(X, y).margin)
    assert found.radius < 100


def test_run__one_class_against_all_others() -> None:
    rng = np.random.default_rng(9)
    y = rng.integers(0, 4, 200)
    X = np.eye(4)[y] * 3 + rng.uniform(-0.5, 0.5, size=(200, 4))
    for label in range(4):
        found = MaxMarginCoreset(intercept=True, positive=label, chunks=60).run(X, y)
        signs = np.where(y == label, 1.0, -1.0)
        assert found.margin == pytest.approx((signs * found.decision_function(X)).min())
        assert found.margin >= 0.9 * hard_margin_bias(X, signs).margin
    with pytest.raises(InvalidInputError, match="positive is 9"):
        MaxMarginCoreset(positive=9).run(X, y)


@pytest.mark.nightly
def test_run__many_violators_need_fewer_reads() -> None:
    X, y = rows(11, 20_000, 30, 0.1)
    one, block, auto = (
        MaxMarginCoreset(violators=v, chunks=1000).run(X, y) for v in (1, "block", "auto")
    )
    assert auto.reads < block.reads < one.reads / 3
    assert len(one) < len(auto)


@pytest.mark.parametrize("intercept", [True, False])
def test_run__says_through_the_origin_where_there_is_no_intercept(intercept: bool) -> None:
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), np.array([1, 1, -1, -1])
    with pytest.raises(NotSeparableError) as caught:
        MaxMarginCoreset(intercept=intercept).run(X, y)
    assert ("by a hyperplane through the origin:" in str(caught.value)) is not intercept


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_run__names_equal_rows_with_opposite_labels(kernel: str) -> None:
    X, y = rows(13, 200)
    X = np.r_[X, X[[150]]]
    y = np.r_[y, -y[150]]
    for intercept in (False, True):
        with pytest.raises(NotSeparableError, match="opposite labels, 150 and 200,") as caught:
            MaxMarginCoreset(intercept=intercept, chunks=30, kernel=kernel).run(X, y)
        assert caught.value.duplicates == (150, 200)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.indices == caught.value.indices).all()


def test_run__a_row_of_zeros_lies_on_every_hyperplane_through_the_origin() -> None:
    X, y = rows(14, 50)
    X[17] = 0.0
    with pytest.raises(NotSeparableError, match="zero at row 17"):
        MaxMarginCoreset(chunks=20).run(X, y)
    assert MaxMarginCoreset(chunks=20, intercept=True).run(X, y).converged


def test_run__stops_with_a_warning_at_max_passes() -> None:
    X, y = rows(15, 500, 10, 0.01)
    with pytest.warns(CoresetWarning, match="max_passes=2 is reached"):
        found = MaxMarginCoreset(violators=1, max_passes=2, epsilon=0.01).run(X, y)
    assert not found.converged
    assert len(found.trace) == 2
    largest = hard_margin(X * y[:, None]).margin
    assert found.core_margin >= largest >= found.margin


def test_run__ends_where_double_precision_does() -> None:
    X, y = rows(19, 300, 5, 1e-3)
    with pytest.warns(CoresetWarning, match="too small for double precision"):
        found = MaxMarginCoreset(epsilon=1e-18).run(X, y)
    assert not found.converged
    assert found.factor == pytest.approx(1.0, abs=1e-9)


def test_run__a_class_that_is_rare_within_a_block() -> None:
    X, y = rows(20, 6000)
    plus = np.flatnonzero(y > 0)
    # Two thousand rows are looked at for a guess, at even steps: not this one.
    rare = np.r_[plus[:2], np.flatnonzero(y < 0)[:1], plus[2:]]
    rare = np.r_[rare, plus, plus]
    assert len(rare) > 8000
    found = MaxMarginCoreset(intercept=True).run(X[rare], y[rare])
    assert found.margin >= 0.9 * hard_margin_bias(X[rare], y[rare]).margin
    with pytest.raises(InvalidInputError, match="more labels than the 2"):
        MaxMarginCoreset().run(X, np.arange(6000))


def test_duplicates__are_numbered_as_in_the_data_where_rows_are_dropped() -> None:
    X, y = rows(11, 120)
    X, y = np.concatenate([X, X[[50]]]), np.append(y, -y[50])
    X, y = np.insert(X, [0, 70], np.nan, axis=0), np.insert(y, [0, 70], 1.0)
    search = MaxMarginCoreset(chunks=200, violators=1, on_invalid="drop")
    with pytest.raises(NotSeparableError) as caught:
        search.run(X, y)
    assert caught.value.duplicates == (51, 122)
