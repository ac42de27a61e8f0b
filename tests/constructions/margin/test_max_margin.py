"""The core-set loop: certificates, bounds, evidence, every input, the same bits everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.constructions.margin.core_set import MarginCoreset
from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset
from daskcoreset.constructions.margin.separators import NotSeparableError
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.hard_margin import hard_margin_bias
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


def test_run__a_row_of_zeros_lies_on_every_hyperplane_through_the_origin() -> None:
    X, y = rows(14, 50)
    X[17] = 0.0
    with pytest.raises(NotSeparableError, match="zero at row 17"):
        MaxMarginCoreset(chunks=20).run(X, y)
    assert MaxMarginCoreset(chunks=20, intercept=True).run(X, y).converged


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
