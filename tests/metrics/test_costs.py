"""Costs against brute force and scikit-learn, whatever form the data have."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.metrics.costs import kmeans_cost
from tests.acceptance.tools.counting import CountingArray


def brute_cost(X: Any, centers: Any, u: Any = None) -> float:
    wide = np.asarray(X, dtype=np.longdouble)
    squares = ((wide[:, np.newaxis] - np.asarray(centers)) ** 2).sum(axis=2)
    return float((squares.min(axis=1) * (1.0 if u is None else u)).sum())


@pytest.fixture
def data() -> tuple[Any, Any, Any]:
    """Rows, weights of which some are zero, and four centers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [1.0, 10.0, 0.1]
    u = rng.lognormal(size=500) * (rng.random(500) < 0.8)
    return X, u, X[:4] + 0.1


FORMS = {
    "numpy": lambda X: X,
    "list": lambda X: X.tolist(),
    "fortran": np.asfortranarray,
    "sparse": sp.csr_array,
    "coo": sp.coo_matrix,
    "dask": lambda X: da.from_array(X, chunks=((100, 0, 1, 399), (2, 1))),
    "dask of sparse": lambda X: da.from_array(X, chunks=(100, 3)).map_blocks(sp.csr_array),
    "rows read in slices": CountingArray,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_kmeans_cost__any_input(form: Any, data: tuple[Any, Any, Any]) -> None:
    X, u, centers = data

    assert kmeans_cost(form(X), centers) == pytest.approx(brute_cost(X, centers), rel=1e-12)
    found = kmeans_cost(form(X), centers, u)
    assert found == pytest.approx(brute_cost(X, centers, u), rel=1e-12)
    assert type(found) is float
