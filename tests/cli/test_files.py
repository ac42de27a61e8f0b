"""Files of every kind become stores with the same rows, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from daskcoreset import Coreset
from daskcoreset.cli import files
from daskcoreset.errors import StoreError
from tests.tools.command_line import call_main

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.core.typing import AnyArray


class Watched:
    """Rows that are only made when they are read; some of them cannot be."""

    shape = (1000, 2)
    dtype = np.dtype(np.float64)

    def __init__(self, broken: int = 2000) -> None:
        self.broken = broken
        self.read: list[tuple[int, int]] = []

    def __getitem__(self, rows: slice) -> AnyArray:
        self.read.append((rows.start, rows.stop))
        if rows.stop > self.broken:
            raise OSError("bad sector")
        return np.repeat(np.arange(rows.start, rows.stop, dtype=np.float64)[:, None], 2, axis=1)


def test_write_store__leaves_nothing_of_a_failure(out: Path) -> None:
    with pytest.raises(StoreError, match="bad sector"):
        files.write_store(Watched(broken=700), out, rows_per_chunk=300)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("kind", ["U", "O"])
def test_write_store__keeps_labels_that_are_text(
    tmp_path: Path, out: Path, arrays: Mapping[str, Any], kind: str
) -> None:
    names = np.array(["red", "green", "blue"])[arrays["y"] % 3].astype(kind)
    store = tmp_path / "text.zarr"
    files.write_store(arrays["X"], store, y=names)
    assert call_main("build", store, out, "--size", 50, "--y", "y") == 0
    coreset = Coreset.from_zarr(out)
    assert coreset.labels is not None
    assert coreset.labels.tolist() == names[coreset.indices].tolist()
