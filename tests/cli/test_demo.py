"""The demonstration finds what a uniform sample misses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.cli.demo import run_demo

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_run_demo__coresets_err_less_than_uniform_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = run_demo(str(tmp_path / "new"), random_state=1, n_rows=60_000)
    means = {key: np.mean(row) for key, row in errors.items()}
    assert means[2000, "kmeans"] < means[500, "kmeans"] < means[500, "uniform"]
    assert min(min(row) for row in errors.values()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert max(map(len, lines)) <= max(80, len(str(tmp_path)) + 60)
    assert (tmp_path / "new" / "rows.zarr").is_dir()
