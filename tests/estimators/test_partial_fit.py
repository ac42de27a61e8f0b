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
from tests.pairs import pairs


def _three_classes() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 300)
    return rng.normal(size=(900, 3)) + 6.0 * np.eye(3)[y], y


PARTIAL: list[Any] = [CoresetSVC, CoresetLogisticRegression]


@pairs(make=PARTIAL, names=[np.arange(3), np.array(["a", "b", "c"])], lazy=[False, True])
def test_partial_fit__classes_may_come_one_by_one(make: Any, names: Any, lazy: bool) -> None:
    rows, y = _three_classes()
    model = make(random_state=0)
    for start, stop, classes in [(0, 200, names[::-1]), (200, 300, None), (300, 600, names)]:
        part, labels = rows[start:stop], names[y[start:stop]]
        if lazy:
            part, labels = da.from_array(part, chunks=(100, 3)), da.from_array(labels, chunks=100)
        model.partial_fit(part, labels, classes=classes)
        found = np.asarray(model.predict(rows))
        assert (found == names[y])[:stop].mean() > 0.97
        assert not np.isin(found, names[y[stop - 1] + 1 :]).any()
    model.partial_fit(rows[600:], names[y[600:]])
    assert model.score(rows, names[y]) > 0.97
    assert model.classes_.tolist() == names.tolist()
    with pytest.raises(InvalidInputError, match="differ from those of the first call"):
        model.partial_fit(rows, names[y], classes=names[:2])
    assert model.score(rows, names[y]) > 0.97


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
