"""The largest margin without k rows: random subsets, classes that vanish, dropped rows."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.stats

from daskcoreset.constructions.margin.outlier import Subsets
from daskcoreset.errors import CoresetWarning
from daskcoreset.estimators import OutlierMaxMarginClassifier
from tests.tools.margins import planted


def test_subsets__hold_rows_independently() -> None:
    """Inclusion of a row: binomial, tested at a false-alarm rate of 1e-6."""
    keys = np.concatenate([np.arange(400), (1 << 40) + np.arange(400)])
    share, q = 0.3, 300
    held = Subsets(5, share).hold(keys, range(q))
    for counts, n in ((held.sum(), held.size), (held[:, 7].sum(), 800), (held[3].sum(), q)):
        low, high = scipy.stats.binom.interval(1 - 1e-6, n, share)
        assert low <= counts <= high
    # Two rows, or two subsets, have nothing to do with each other.
    for both in (held[:-1] & held[1:], held[:, :-1] & held[:, 1:]):
        low, high = scipy.stats.binom.interval(1 - 1e-6, both.size, share**2)
        assert low <= both.sum() <= high
    assert (Subsets(5, share).hold(keys[::7], [9, 2]) == held[::7][:, [9, 2]]).all()
    assert (Subsets(6, share).hold(keys, range(q)) != held).mean() > 0.3


def test_a_class_that_may_vanish() -> None:
    """With one row of a class and k = 1 nothing may be left of it, which is no separator."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [7.0]]), [0, 0, 0, 0, 1]
    model = OutlierMaxMarginClassifier(1).fit(X, y)
    assert model.margin_ == pytest.approx(2.5)
    assert model.outliers_.tolist() == [3]
    for seed in range(5):
        with pytest.warns(CoresetWarning, match="draws were made"):
            drawn = OutlierMaxMarginClassifier(
                1, method="random", max_problems=2, random_state=seed
            ).fit(X, y)
        assert drawn.margin_ <= 2.5 + 1e-12


@pytest.mark.parametrize("method", ["exact", "random"])
def test_outliers__are_numbered_as_in_the_data_if_rows_are_dropped(method: Any) -> None:
    X, y, bad, _ = planted(3, 60, 2, 2)
    X, y = np.insert(X, [0, 30], np.nan, axis=0), np.insert(y, [0, 30], 1.0)
    options: dict[str, Any] = {"confidence": 0.9, "random_state": 0, "on_invalid": "drop"}
    model = OutlierMaxMarginClassifier(2, method=method, fit_intercept=False, **options)
    model.fit(da.from_array(X, chunks=(20, 2)), y)
    assert model.outliers_.tolist() == [row + 1 + (row >= 30) for row in bad.tolist()]
