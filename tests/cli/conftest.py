"""Files that the commands read, and a place for what they write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.core.typing import AnyArray


ROWS = 600


@pytest.fixture(scope="module")
def arrays() -> dict[str, AnyArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3)).astype(np.float32)
    return {"X": X, "y": np.arange(ROWS) % 7, "sample_weight": rng.uniform(1, 2, ROWS)}


@pytest.fixture
def npz(tmp_path: Path, arrays: Mapping[str, Any]) -> Path:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.zarr"
