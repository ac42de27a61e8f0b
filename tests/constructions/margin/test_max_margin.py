"""The core-set loop: certificates on inputs that lead astray, and evidence."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from daskcoreset.estimators import MaxMarginClassifier
from daskcoreset.solvers.hard_margin import hard_margin_bias
from tests.tools.margins import rows


def test_run__float32_with_a_large_offset() -> None:
    X, y = rows(6, 500, 3, 1.0)
    X = (X + 1e4).astype(np.float32)
    model = MaxMarginClassifier(0.01).fit(da.from_array(X, chunks=(100, 3)), y)
    largest = hard_margin_bias(X, y).margin
    reached = (y * model.decision_function(X)).min()
    assert model.margin_ == pytest.approx(reached, rel=1e-9)
    assert model.margin_ >= 0.99 * largest * (1 - 1e-9)
    assert model.core_margin_ >= largest * (1 - 1e-9)
    assert model.coreset_.provenance["radius"] < 100


def test_run__a_class_that_is_rare_within_a_block() -> None:
    X, y = rows(20, 6000)
    plus = np.flatnonzero(y > 0)
    # Two thousand rows are looked at for a guess, at even steps: not this one.
    rare = np.r_[plus[:2], np.flatnonzero(y < 0)[:1], plus[2:]]
    rare = np.r_[rare, plus, plus]
    assert len(rare) > 8000
    data = da.from_array(X[rare], chunks=(len(rare), 4)), y[rare]
    model = MaxMarginClassifier().fit(*data)
    assert model.margin_ >= 0.9 * hard_margin_bias(X[rare], y[rare]).margin
