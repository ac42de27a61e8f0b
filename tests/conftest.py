"""Settings of the whole test suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first call of a kernel compiles it, which takes seconds once.
settings.register_profile("default", deadline=None, max_examples=50)
# The same examples on every run, so that a red build can be repeated, and more of them.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=200,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a loaded machine is no fault of the code
)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two worker processes of one thread each, started once; connect with ``Client(cluster)``.

    No client stays connected: it would become the default scheduler of every other test.
    """
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as started:
        yield started
