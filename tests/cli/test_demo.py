"""The demonstration finds what a uniform sample misses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daskcoreset.cli.demo import run_demo

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_run_demo__coresets_err_less_than_uniform_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run_demo(str(tmp_path / "new"), random_state=1, n_rows=60_000)
    errors = {(row.size, row.method): row.error for row in found.rows}
    assert errors[2000, "kmeans"] < errors[500, "kmeans"] < errors[500, "uniform"]
    assert repr(found) in capsys.readouterr().out
    assert (tmp_path / "new" / "rows.zarr").is_dir()
