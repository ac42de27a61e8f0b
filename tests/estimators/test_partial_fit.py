"""Classes that come one by one, batch by batch."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset.core.errors import (
    InvalidInputError,
)
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
        assert model.classes_.tolist() == names.tolist()
        values = np.asarray(model.decision_function(rows))
        assert values.shape == (900, 3)
        assert np.isfinite(values).all()
        found = np.asarray(model.predict(rows))
        np.testing.assert_array_equal(found, names[values.argmax(axis=1)])
        assert (found == names[y])[:stop].mean() > 0.97
        assert not np.isin(found, names[y[stop - 1] + 1 :]).any()
    model.partial_fit(rows[600:], names[y[600:]])
    assert model.score(rows, names[y]) > 0.97
    with pytest.raises(InvalidInputError, match="differ from those of the first call"):
        model.partial_fit(rows, names[y], classes=names[:2])
    assert model.score(rows, names[y]) > 0.97


@pytest.mark.parametrize("make", PARTIAL)
def test_partial_fit__shapes_are_those_of_all_classes(make: Any) -> None:
    rows, y = _three_classes()
    for kinds, shape in (([0, 1], (1, 3)), ([0, 1, 2], (3, 3))):
        for label in kinds:
            model = make(random_state=0).partial_fit(rows[y == label], y[y == label], kinds)
            assert model.coef_.shape == shape
            assert model.intercept_.shape == shape[:1]
            assert (model.predict(rows) == label).all()
            values = model.decision_function(rows)
            assert values.shape == ((900,) if len(kinds) == 2 else (900, 3))
            wanted = np.sign(label - 0.5) if len(kinds) == 2 else label
            assert ((np.sign(values) if len(kinds) == 2 else values.argmax(1)) == wanted).all()
            if make is CoresetLogisticRegression:
                shares = model.predict_proba(rows)
                np.testing.assert_array_equal(shares, np.eye(len(kinds))[[label] * 900])
                assert np.isneginf(model.predict_log_proba(rows)).any()
    model = make(random_state=0).partial_fit(rows[:600], y[:600], classes=[0, 1, 2])
    assert model.coef_.shape == (3, 3)
    linear = rows @ model.coef_.T + model.intercept_
    np.testing.assert_array_equal(linear.argmax(axis=1), model.predict(rows))
    # Four classes, of which three were seen: their hyperplanes are as they were found.
    model = make(random_state=0).partial_fit(rows, y, classes=[0, 1, 2, 3])
    whole = make(random_state=0).partial_fit(rows, y)
    np.testing.assert_array_equal(model.coef_[:3], whole.coef_)
    np.testing.assert_array_equal(model.predict(rows), whole.predict(rows))


@pytest.mark.parametrize("make", PARTIAL)
def test_partial_fit__a_refusal_takes_nothing(make: Any) -> None:
    rows, y = _three_classes()
    model = make(random_state=0).partial_fit(rows[:300], y[:300], classes=[0, 1])
    for data in ((rows, y), (da.from_array(rows, chunks=300), da.from_array(y, chunks=300))):
        with pytest.raises(InvalidInputError, match=r"y holds .*2.* not among classes"):
            model.partial_fit(*data)
    model.partial_fit(rows[300:600], y[300:600])
    assert model.coreset_.total_weight == pytest.approx(600)
    with pytest.raises(InvalidInputError, match="fewer than two"):
        make().partial_fit(rows, y, classes=[0])
    fresh = make(random_state=0)
    with pytest.raises(InvalidInputError, match="one class only"):
        fresh.partial_fit(rows[:300], y[:300])
    fresh.partial_fit(rows[:600], y[:600])
    assert fresh.coreset_.total_weight == pytest.approx(600)
