"""The command line does what the calls do, and says failures in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr

from tests.acceptance import face

program = face.program
N = 600


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)).astype(np.float32) + 9.0 * (np.arange(N) % 3 == 0)[:, None]
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=np.arange(N) % 3, u=rng.uniform(0.5, 2.0, N))
    return path


def facts(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    lines = capsys.readouterr().out.splitlines()
    return dict(line.split("\t") for line in lines)


def test_build__saves_what_the_call_returns(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "c.zarr"
    words = [
        "build",
        data,
        out,
        "--size",
        40,
        "--random-state",
        3,
        "--method",
        "kmeans",
        "--y",
        "y",
    ]
    words += ["--n-clusters", 3]
    assert program(*words, "--sample-weight", "u", "--chunks", 100, "--on-invalid", "drop") == 0
    c = face.build(
        data, "y", size=40, n_clusters=3, sample_weight="u", chunks=100, on_invalid="drop",
        random_state=3,
    )  # fmt: skip
    assert face.Coreset.from_zarr(out).equals(c)
    told = facts(capsys)
    assert (told["rows"], told["features"], told["n"]) == ("40", "3", "600")
    assert float(told["weight"]) == c.total_weight
    assert program("info", out, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert {key: shown[key] for key in ("rows", "n", "seed")} == {
        "rows": 40, "n": 600, "seed": 3,
    }  # fmt: skip
    before = c.points
    assert program(*words) == 1  # it exists
    assert "exists" in capsys.readouterr().err
    assert np.array_equal(face.Coreset.from_zarr(out).points, before)
    assert program(*words, "--overwrite") == 0


def test_build__plans_methods_and_columns(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "c.zarr"
    assert program("build", data, out, "--size", 40, "--plan") == 0
    assert facts(capsys)["reads"] == "1"
    assert not out.exists()
    words = ["--size", 90, "--method", "svm", "--y", "y", "--random-state", 0]
    assert program("build", data, out, *words) == 0
    assert face.Coreset.from_zarr(out).equals(
        face.build(data, "y", size=90, method="svm", random_state=0)
    )
    table = tmp_path / "t.parquet"
    pd.DataFrame(np.load(data)["X"], columns=["a", "b", "c"]).to_parquet(table)
    assert program("build", table, out, "--columns", "c,a", "--size", 9, "--overwrite") == 0
    assert face.Coreset.from_zarr(out).provenance["columns"] == ("c", "a")
    cover = tmp_path / "cover.zarr"
    assert program("build", data, cover, "--method", "coverage", "--set", "diameter=2.5") == 0
    wanted = face.build(data, method=face.Coverage(diameter=2.5))
    assert face.Coreset.from_zarr(cover).equals(wanted)


def test_store__predict_and_audit(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, out = tmp_path / "rows.zarr", tmp_path / "c.zarr"
    assert program("store", data, store, "--y", "y", "--sample-weight", "u", "--chunks", 250) == 0
    group: Any = zarr.open_group(store, mode="r")
    given = np.load(data)
    for name, member in (("X", "X"), ("y", "y"), ("sample_weight", "u")):
        assert np.array_equal(group[name][:], given[member])
        assert group[name].chunks[0] == 250
    assert program("store", data, store) == 1
    assert program("build", store, out, "--size", 60, "--n-clusters", 3, "--random-state", 0) == 0
    c = face.Coreset.from_zarr(out)
    labels = tmp_path / "labels.npy"
    assert program("predict", out, store, labels, "--n-clusters", 3, "--random-state", 0) == 0
    found = np.load(labels)
    model = face.estimators.CoresetKMeans(3, random_state=0).fit(c)
    assert np.array_equal(found, model.predict(given["X"]))
    capsys.readouterr()
    assert program("audit", out, data, "--n-clusters", 3, "--random-state", 0, "--json") == 0
    audit = json.loads(capsys.readouterr().out)
    wanted = c.audit(given["X"], n_clusters=3, random_state=0)
    assert audit["distortion"] == pytest.approx(wanted.distortion)


def test_build__a_path_from_here_is_kept_as_one_from_the_root(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert program("build", "../data.npz", "c.zarr", "--size", 40, "--random-state", 0) == 0
    c = face.Coreset.from_zarr("c.zarr")
    assert str(data) in str(c.provenance["source"])
    monkeypatch.chdir(tmp_path.parent)
    assert np.array_equal(face.source_rows(c), c.points)


def test_plot__writes_a_picture(data: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "c.zarr", tmp_path / "c.png"
    assert program("build", data, out, "--size", 40, "--random-state", 0) == 0
    assert program("plot", out, picture, data) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert program("plot", out, tmp_path / "c.txt") == 2


def test_tree__is_grown_asked_and_cut(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, out = tmp_path / "tree", tmp_path / "c.zarr"
    assert program("tree", "create", tree, "--size", 20, "--random-state", 0) == 0
    for day in ("2026-03-02", "2026-03-04", "2026-03-03"):
        words = ["tree", "append", tree, data, "--name", day, "--time", day, "--sample-weight", "u"]
        assert program(*words) == 0
    same = face.create_tree(tmp_path / "same", size=20, random_state=0)
    for day in ("2026-03-02", "2026-03-04", "2026-03-03"):
        same.append(data, sample_weight="u", name=day, time=day)
    found, wanted = face.CoresetTree.open(tree).coreset(), same.coreset()
    assert np.array_equal(found.points, wanted.points)
    assert np.array_equal(found.weights, wanted.weights)
    capsys.readouterr()
    window = ["tree", "window", tree, out, "--overwrite"]
    assert program(*window, "--since", "2026-03-02", "--until", "2026-03-03") == 0
    assert json.loads(facts(capsys)["leaves"]) == ["2026-03-02", "2026-03-03"]
    wanted = same.coreset(["2026-03-02", "2026-03-03"])
    assert np.array_equal(face.Coreset.from_zarr(out).points, wanted.points)
    assert program("tree", "delete", tree, "2026-03-02") == 0
    assert program("tree", "verify", tree) == 0
    capsys.readouterr()
    assert program("tree", "list", tree) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:3]] == [
        "2026-03-04", "2026-03-03",
    ]  # fmt: skip


def test_failures__are_one_line_and_leave_nothing(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "c.zarr"
    for words, code, said in (
        (("build", tmp_path / "no.zarr", out, "--size", 5), 1, "no.zarr"),
        (("build", data, out, "--size", 0), 2, "--size"),
        (("build", data, out, "--y", "z", "--size", 5), 1, "z"),
        (("build", data, out, "--nonsense"), 2, "nonsense"),
        (("tree", "append", tmp_path / "no", data), 1, "no"),
        (("build", data, out, "--size", 5, "--scheduler", "[1"), 1, "no scheduler answers"),
        (("info", data), 1, "data.npz"),
    ):
        assert program(*words) == code
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        assert said in told.err
    assert not out.exists()
    assert sys.argv[0] != "daskcoreset"
