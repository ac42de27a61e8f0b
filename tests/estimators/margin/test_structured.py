"""The multi-class and structured classifier in scikit-learn's manner."""

from __future__ import annotations

import dask.array as da
from sklearn.datasets import load_digits

from daskcoreset.estimators.margin.structured import StructuredMaxMargin


def test_multiclass__digits_of_real_handwriting() -> None:
    X, y = load_digits(n_class=5, return_X_y=True)
    model = StructuredMaxMargin(epsilon=0.2).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.margin_ >= 0.8 * model.core_margin_
    assert model.decision_function(X).shape == (len(X), 5)
    lazy = da.from_array(X, chunks=(100, 64))
    assert (model.predict(lazy).compute() == model.predict(X)).all()
    assert model.score(lazy, da.from_array(y, chunks=100)) == 1.0
