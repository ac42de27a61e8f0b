"""What a client gathers from a cluster: coresets, and not the candidates they are drawn from."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset import Draw, build
from tests.pairs import each

pytestmark = pytest.mark.distributed


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of 60,000 rows in six blocks, with labels."""
    path = str(tmp_path_factory.mktemp("rows") / "rows.zarr")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 8))
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=X, chunks=(10_000, 8))
    group.create_array("y", data=(X[:, 0] + rng.normal(size=len(X)) > 0) * 1, chunks=(10_000,))
    return path


@each(method=["svm", "lightweight"], passes=[2, 1])
def test_build__gathers_the_coreset_and_no_candidates(
    cluster: Any, rows: str, method: str, passes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    gathered: list[int] = []
    gather: Any = Client.gather

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        found = gather(self, *args, **options)
        gathered.append(len(pickle.dumps(found)))
        return found

    options: dict[str, Any] = {"method": method, "size": 6000, "chunks": 10_000, "random_state": 0}
    here = build(rows, "y", draw=Draw(passes=passes), **options)
    monkeypatch.setattr(Client, "gather", counted)
    with Client(cluster), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coreset = build(rows, "y", draw=Draw(passes=passes), **options)
    assert coreset.equals(here)
    # The weights of the rows come besides. The candidates are several times as many rows.
    assert 0 < sum(gathered) < 2.6 * len(pickle.dumps(coreset))
