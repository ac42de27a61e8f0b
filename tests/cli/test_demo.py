"""The demonstration: its table, its picture, and the data that it takes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sklearn.cluster import KMeans

import daskcoreset
from daskcoreset import datasets
from daskcoreset.cli import demo
from daskcoreset.cli.demo_picture import found_of
from daskcoreset.metrics.costs import kmeans_cost
from tests.tools.command_line import Capture, call_main, error_line, run_main


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DASKCORESET_DATA", raising=False)


@pytest.mark.usefixtures("no_data")
@pytest.mark.nightly
def test_demo__prints_a_table_and_saves_a_picture(tmp_path: Path) -> None:
    done = run_main("demo", "--quick", "--data", "digits", "--folder", tmp_path / "new")
    assert (done.returncode, done.stderr) == (0, "")
    assert "k-means with 30 clusters on digits, 1,797 x 64" in done.stdout
    assert all(contender.name in done.stdout for contender in demo.CONTENDERS)
    assert max(map(len, done.stdout.splitlines())) <= max(80, len(str(tmp_path)) + 40)
    picture = Path(done.stdout.splitlines()[-1].removeprefix("picture\t"))
    assert picture == tmp_path / "new" / "digits.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
@pytest.mark.usefixtures("no_data")
def test_run_demo__measures_what_it_says(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path))
    compared = demo.run_demo("digits", quick=True, seed=5)
    X = datasets.load_bundled("digits").X
    stored: Any = zarr.open_array(tmp_path / "digits.zarr" / "X", mode="r")
    np.testing.assert_array_equal(stored[:], X)
    assert stored.nchunks > 1
    # Sizes near the number of rows are left out.
    assert [cell.size for cell in compared.cells] == [250] * 3
    assert compared.full_seconds is not None
    assert compared.full_seconds > 0
    assert compared.full_error is not None
    full = KMeans(30, n_init=1, random_state=5).fit(X).inertia_
    assert compared.full_error == pytest.approx(full / compared.best - 1, abs=1e-4)
    assert min(compared.full_error, *(cell.errors.min() for cell in compared.cells)) == 0
    for cell in compared.cells:
        for seed, error in zip((5, 6, 7), cell.errors, strict=True):
            options: dict[str, Any] = {
                "size": 250,
                "chunks": stored.chunks[0],
                "random_state": seed,
            }
            options |= cell.contender.options
            if options["method"] == "kmeans":
                options["n_clusters"] = 30
            coreset = daskcoreset.build(str(tmp_path / "digits.zarr"), **options)
            model = KMeans(30, n_init=8, random_state=seed)
            centers = model.fit(coreset.points, sample_weight=coreset.weights).cluster_centers_
            assert error == pytest.approx(kmeans_cost(X, centers) / compared.best - 1, abs=1e-4)
        assert (cell.build_seconds > 0).all()
        assert (cell.solve_seconds > 0).all()
    assert "all rows" in capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.usefixtures("no_data")
def test_run_demo__shows_what_the_product_is_for(tmp_path: Path, capsys: Capture) -> None:
    compared = demo.run_demo(quick=True, folder=str(tmp_path), progress=False)
    stored: Any = zarr.open_array(tmp_path / "scales.zarr" / "X", mode="r")
    assert stored.nchunks >= 12
    found = {(cell.size, cell.contender.name): cell.errors for cell in compared.cells}
    for size in demo.QUICK.sizes:
        # No seed of the one comes near any seed of the other.
        for ours in ("lightweight", "kmeans"):
            assert 10 * found[size, ours].max() < found[size, "uniform"].min()
    # The picture: what is missed, and by whom.
    best = compared.best_centers
    assert found_of(best, compared.examples["kmeans"][1]).all()
    assert not found_of(best, compared.examples["uniform"][1]).all()
    assert (compared.full_error, compared.full_seconds) == (None, None)
    out = capsys.readouterr().out
    assert out.index("In four steps") < out.index("1 of 4") < out.index("4 of 4")
    assert "12 MB of rows, and 4 MB may be in memory" in out
    assert "too large" in out


def test_demo__refuses_a_set_that_is_too_small(tmp_path: Path, capsys: Capture) -> None:
    assert call_main("demo", "--data", "iris", "--folder", tmp_path / "new") == 1
    assert "'iris' has 150 rows" in error_line(capsys)
    assert not (tmp_path / "new").exists()
