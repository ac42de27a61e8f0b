"""Settings of tests that fit mixtures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from sklearn.exceptions import ConvergenceWarning


@pytest.fixture
def quiet() -> Iterator[None]:
    """For fits whose number of iterations is fixed: neither library need complain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
