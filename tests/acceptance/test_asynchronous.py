"""A call that waits for its result says so to an asynchronous client."""

from __future__ import annotations

import asyncio

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from tests.acceptance.face import Coreset, build, errors, estimators, plan


def test_build__an_asynchronous_client_in_its_own_loop() -> None:
    X = da.from_array(np.random.default_rng(0).normal(size=(400, 3)), chunks=100)

    async def ask() -> None:
        options = {"processes": False, "n_workers": 1, "dashboard_address": ":0"}
        async with Client(asynchronous=True, **options) as client:
            with pytest.raises(errors.ClusterError, match=r"asynchronous.*await client\.compute"):
                build(X, size=20)
            with pytest.raises(errors.ClusterError, match="asynchronous"):
                estimators.CoresetKMeans(2, size=50).fit(X)
            assert isinstance(await client.compute(plan(X, size=20)), Coreset)

    asyncio.run(ask())
