"""The multi-class and structured classifier in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Callable

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import load_digits

from daskcoreset.constructions.margin.problems import SequenceProblem
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators.margin.structured import StructuredMaxMargin
from tests.tools.structured_problems import planted


def test_multiclass__digits_of_real_handwriting() -> None:
    X, y = load_digits(n_class=5, return_X_y=True)
    model = StructuredMaxMargin(epsilon=0.2).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.margin_ >= 0.8 * model.core_margin_
    assert model.decision_function(X).shape == (len(X), 5)
    lazy = da.from_array(X, chunks=(100, 64))
    assert (model.predict(lazy).compute() == model.predict(X)).all()
    assert model.score(lazy, da.from_array(y, chunks=100)) == 1.0


def test_sequence__in_memory_and_out_of_core() -> None:
    X, y, groups, _ = planted(300)
    names = np.array(["a", "b", "c"])[y]
    model = StructuredMaxMargin("sequence").fit(X, names, groups=groups.astype(str))
    assert model.score(X, names, groups=groups) == 1.0
    assert isinstance(model.problem_, SequenceProblem)
    lazy = [da.from_array(part, chunks=(101, *part.shape[1:])) for part in (X, names, groups)]
    edge = int(np.flatnonzero(np.diff(groups))[50]) + 1
    whole = [part.rechunk({0: (edge, len(X) - edge)}) for part in lazy]
    far = StructuredMaxMargin("sequence").fit(whole[0], whole[1], groups=whole[2])
    assert far.score(whole[0], whole[1], groups=whole[2]) == 1.0
    calls: list[Callable[[], object]] = [
        lambda: StructuredMaxMargin("sequence").fit(lazy[0], lazy[1], groups=lazy[2]),
        lambda: StructuredMaxMargin(far.problem_).fit(lazy[0], y, groups=lazy[2]),
        lambda: far.score(lazy[0], lazy[1], groups=lazy[2]),
        lambda: far.predict(lazy[0], groups=lazy[2]),
    ]
    edges = np.arange(101, len(X), 101)
    first = edges[groups[edges] == groups[edges - 1]][0]
    for call in calls:
        with pytest.raises(InvalidInputError, match=f"group {groups[first]} at row {first}; rech"):
            call()
    assert (far.predict(whole[0], groups=whole[2]).compute() == names).all()
    with pytest.raises(InvalidInputError, match="call predict instead"):
        far.decision_function(X)
    with pytest.raises(InvalidInputError, match="needs it"):
        StructuredMaxMargin("sequence").fit(X, names)
