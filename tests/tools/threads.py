"""One thread of BLAS for the tests of a folder or a module that imports the fixture."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine make small work ten times slower."""
    # A requirement of scikit-learn, without annotations.
    with importlib.import_module("threadpoolctl").threadpool_limits(1):
        yield
