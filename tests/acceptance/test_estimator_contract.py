"""What every estimator does alike: out of core, of sparse rows, as a clone, on schedulers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from tests.acceptance.tools.counting import CountingScheduler
from tests.acceptance.tools.models import MODELS, fitted, methods_of, rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

CHUNKS = (120, 100, 80)


def lazily(X: Any) -> Any:
    return da.from_array(X, chunks=(CHUNKS, X.shape[1:]))


@pytest.mark.parametrize("name", MODELS)
def test_answers__of_lazy_rows_are_defined_without_a_computation(name: str) -> None:
    model, X, _ = fitted(name)
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        answers = {method: getattr(model, method)(lazily(X)) for method in methods_of(model)}
        assert scheduler.calls == 0
    for method, answer in answers.items():
        expected = np.asarray(getattr(model, method)(X))
        assert isinstance(answer, da.Array)
        assert answer.shape == expected.shape
        assert answer.dtype == expected.dtype
        assert answer.chunks[0] == CHUNKS
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(answer.compute(), expected, rtol=1e-7, atol=1e-9)
        else:
            np.testing.assert_array_equal(answer.compute(), expected)


@pytest.mark.parametrize("name", MODELS)
def test_answers__of_sparse_rows_are_those_of_dense_ones(name: str) -> None:
    model, X, _ = fitted(name)
    if not get_tags(model).input_tags.sparse:
        pytest.skip("it takes dense rows alone")
    blocks = lazily(X).map_blocks(sp.csr_array)
    for method in methods_of(model):
        expected = getattr(model, method)(X)
        for given in (sp.csr_array(X), blocks):
            found = getattr(model, method)(given)
            found = found.compute() if hasattr(found, "compute") else found
            found = found.toarray() if sp.issparse(found) else found
            if np.asarray(expected).dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
            else:
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MODELS)
def test_clone__keeps_the_parameters_alone(name: str) -> None:
    model, X, _ = fitted(name)
    fresh = clone(model)
    assert repr(fresh) == repr(model)
    assert sorted(fresh.get_params(deep=False)) == sorted(model.get_params(deep=False))
    with pytest.raises(NotFittedError):
        getattr(fresh, methods_of(model)[0])(X)


@pytest.mark.parametrize("name", MODELS)
def test_fit__has_the_same_bits_on_every_scheduler(name: str) -> None:
    found = []
    for options in (
        {"scheduler": "synchronous"},
        {"scheduler": "threads", "num_workers": 1},
        {"scheduler": "threads", "num_workers": 4},
    ):
        with dask.config.set(**options), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, X, _ = fitted(name, rows(), lazy=True)
        found.append(
            [np.asarray(getattr(model, method)(X)).tobytes() for method in methods_of(model)]
        )
    assert found[0] == found[1] == found[2]
