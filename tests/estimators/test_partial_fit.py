"""Classes that come one by one, batch by batch."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import (
    CoresetLogisticRegression,
    CoresetSVC,
)


def _three_classes() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 300)
    return rng.normal(size=(900, 3)) + 6.0 * np.eye(3)[y], y


PARTIAL: list[Any] = [CoresetSVC, CoresetLogisticRegression]


@pytest.mark.parametrize("make", PARTIAL)
def test_partial_fit__a_refusal_takes_nothing(make: Any) -> None:
    rows, y = _three_classes()
    model = make(random_state=0).partial_fit(rows[:300], y[:300], classes=[0, 1])
    for data in ((rows, y), (da.from_array(rows, chunks=300), da.from_array(y, chunks=300))):
        with pytest.raises(InvalidInputError, match=r"y has 2, which is not in classes=\[0 1\]"):
            model.partial_fit(*data)
    model.partial_fit(rows[300:600], y[300:600])
    assert model.coreset_.total_weight == pytest.approx(600)
    fresh = make(random_state=0)
    with pytest.raises(InvalidInputError, match="one class only"):
        fresh.partial_fit(rows[:300], y[:300])
    fresh.partial_fit(rows[:600], y[:600])
    assert fresh.coreset_.total_weight == pytest.approx(600)
