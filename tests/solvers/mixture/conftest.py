"""Settings of tests that fit mixtures."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator

import pytest
from sklearn.exceptions import ConvergenceWarning


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine make small fits ten times slower."""
    # A requirement of scikit-learn, without annotations.
    with importlib.import_module("threadpoolctl").threadpool_limits(1):
        yield


@pytest.fixture
def quiet() -> Iterator[None]:
    """For fits whose number of iterations is fixed: neither library need complain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
