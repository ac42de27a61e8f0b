"""NumPy and HDF5 files: their arrays by name, and damage by file and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.errors import StoreError
from daskcoreset.inputs import sources
from tests.acceptance.tools.servers import FileServer


def test_npy__by_url_that_is_another_one_on_a_worker(
    files: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files.folder / "rows.npy"
    np.save(path, np.arange(400, dtype="f4").reshape(200, 2))

    def defined() -> Any:
        return build(f"{files.url}/rows.npy", size=10, chunks=50, compute=False, random_state=0)

    expected = defined().compute(scheduler="sync")
    lazy = defined()
    monkeypatch.setattr(sources, "_seen", set())  # a process that has not opened it
    files.requests.clear()
    assert np.array_equal(lazy.compute(scheduler="sync").points, expected.points)
    assert sum(request.startswith("GET") for request in files.requests) == 5  # the header once
    np.save(path, np.arange(600, dtype="f4").reshape(300, 2))  # rows were added
    monkeypatch.setattr(sources, "_seen", set())
    assert np.array_equal(lazy.compute(scheduler="sync").points, expected.points)
    for other in (np.arange(400, dtype="u4").reshape(200, 2), np.ones((100, 2), "f4")):
        np.save(path, other)
        monkeypatch.setattr(sources, "_seen", set())
        with pytest.raises(StoreError, match=r"rows\.npy holds another array on host"):
            lazy.compute(scheduler="sync")
