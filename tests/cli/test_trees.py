"""Trees by the command line: what is kept, asked for, removed and refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from daskcoreset import CoresetTree
from tests.tools.command_line import Capture, call_main, error_line, facts_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path, npz: Path) -> Path:
    path = tmp_path / "tree.zarr"
    assert call_main("tree", "create", path, "--size", 50, "--random-state", 0) == 0
    for name in ("a", "b", "c"):
        options = ["--name", name, "--time", "2026", "--sample-weight", "sample_weight"]
        assert call_main("tree", "append", path, npz, *options) == 0
    return path


def test_window__by_date_finds_leaves_wherever_they_stand(
    npz: Path, tmp_path: Path, capsys: Capture
) -> None:
    tree, out = tmp_path / "days", tmp_path / "days.zarr"
    assert call_main("tree", "create", tree, "--size", 50, "--random-state", 0) == 0
    for day in ("2026-03-02", "2026-03-04", "2026-03-03"):
        assert call_main("tree", "append", tree, npz, "--time", day) == 0
    capsys.readouterr()
    window = ("tree", "window", tree, out, "--overwrite")
    assert call_main(*window, "--since", "2026-03-03T12:00") == 0
    assert json.loads(facts_of(capsys.readouterr().out)["leaves"]) == ["2026-03-04"]
    assert call_main(*window, "--since", "march") == 2
    assert "--since: invalid date value: 'march'" in error_line(capsys)
    assert call_main(*window, "--since", "2026-03-02", "--from", "2026-03-02") == 2
    assert "exclude each other" in error_line(capsys)
    assert call_main(*window, "--since", "2027-01-01") == 1
    assert "holds none of the 3 leaves" in error_line(capsys)
    assert call_main("tree", "list", tree, "--json") == 0
    table = json.loads(capsys.readouterr().out)
    assert list(table) == ["2026-03-02", "2026-03-04", "2026-03-03"]
    assert table["2026-03-03"]["rows"] == 600


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ("", "is '', which is neither a date"),
        ("2026-03-02", "is '2026-03-02', a date, and that of leaf 'a' is '2026', a number"),
    ],
)
def test_append__times_that_no_window_could_compare(
    tree: Path, npz: Path, capsys: Capture, time: str, said: str
) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert call_main("tree", "append", tree, npz, f"--time={time}") == 1
    assert said in error_line(capsys)
    assert before == {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_append__takes_the_labels_and_weights_of_the_leaves_before(
    tmp_path: Path, capsys: Capture
) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = ["a", "b", "label", "w"]
    frame = pd.DataFrame(rng.integers(1, 5, size=(60, 4)).astype(float), columns=names)
    tree, table, out = tmp_path / "tree", tmp_path / "t.parquet", tmp_path / "out.zarr"
    frame.to_parquet(table)
    assert call_main("tree", "create", tree, "--size", 50, "--random-state", 0) == 0
    named = ("--y", "label", "--sample-weight", "w")
    assert call_main("tree", "append", tree, table, *named, "--name", "one") == 0
    assert call_main("tree", "append", tree, table, "--name", "two") == 0
    one, two = CoresetTree.open(tree).leaves
    assert one.weight == two.weight == frame["w"].sum()
    coreset = CoresetTree.open(tree).coreset(["two"])
    np.testing.assert_array_equal(coreset.labels, frame["label"].to_numpy()[coreset.indices - 60])
    record = coreset.provenance
    assert record["columns"] == ("a", "b")
    assert (record["y"], record["sample_weight"]) == ("label", "w")
    # What is named takes the place of what is known, and is known from then on.
    frame.rename(columns={"label": "truth"}).to_parquet(table)
    capsys.readouterr()
    assert call_main("tree", "append", tree, table, "--name", "three") == 1
    assert "y is missing" in error_line(capsys)
    assert call_main("tree", "append", tree, table, "--y", "truth", "--name", "three") == 0
    assert call_main("tree", "append", tree, table, "--name", "four") == 0
    # By the same names an audit of a window finds its labels and weights.
    assert call_main("tree", "window", tree, out, "--leaf", "four") == 0
    capsys.readouterr()
    assert call_main("audit", out, table, "--json", "--n-clusters", 3) == 0
    assert json.loads(capsys.readouterr().out)["distortion"] < 0.5


def test_append__warns_where_weights_are_forgotten(
    tree: Path, npz: Path, tmp_path: Path, capsys: Capture
) -> None:
    bare = tmp_path / "bare.npy"
    np.save(bare, np.load(npz)["X"])
    capsys.readouterr()
    assert call_main("tree", "append", tree, npz, "--name", "d") == 0  # by their name
    assert not capsys.readouterr().err
    assert call_main("tree", "append", tree, bare, "--name", "e") == 0
    assert "warning: --sample-weight is missing" in capsys.readouterr().err


def test_tree__refusals(tree: Path, npz: Path, out: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert call_main("tree", "append", tree, npz, "--name", "a") == 1
    assert "'a'" in error_line(capsys)
    assert call_main("tree", "window", tree, out, "--leaf", "a", "--to", "b") == 2
    assert "exclude each other" in error_line(capsys)
    assert not out.exists()


def test_append__drops_rows_that_are_not_finite_where_told(tmp_path: Path, capsys: Capture) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[7, 1] = np.nan
    np.save(tmp_path / "nan.npy", X)
    rows, strict, lax = tmp_path / "nan.npy", tmp_path / "strict", tmp_path / "lax"
    assert call_main("tree", "create", strict, "--random-state", 0) == 0
    assert call_main("tree", "create", lax, "--random-state", 0, "--on-invalid", "drop") == 0
    capsys.readouterr()
    assert call_main("tree", "append", strict, rows, "--name", "a") == 1
    assert "NaN in column 1 at row 7" in error_line(capsys)
    assert call_main("tree", "append", strict, rows, "--name", "a", "--on-invalid", "drop") == 0
    assert call_main("tree", "append", lax, rows, "--name", "a") == 0
    first, second = (CoresetTree.open(path).coreset() for path in (strict, lax))
    np.testing.assert_array_equal(first.indices, second.indices)
    assert first.provenance["n_dropped"] == second.provenance["n_dropped"] == 1
