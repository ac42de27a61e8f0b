"""Commands: what they print, save and refuse, in a pipe and on a terminal."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import zarr

import daskcoreset
from daskcoreset import Coreset
from daskcoreset.errors import InvalidInputError
from tests.acceptance.tools.object_stores import SECRET, ObjectServer
from tests.tools.command_line import Capture, call_main, error_line, facts_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_build__prints_a_table_on_a_terminal(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    assert call_main("build", npz, out, "--size", 50, "--y", "y", "--chunks", 7) == 0
    text = capsys.readouterr().out
    assert "\t" not in text
    assert "features" in text
    assert str(out) in text
    assert "lightweight" in text


def test_build__ends_when_its_time_has_passed(npz: Path, out: Path, capsys: Capture) -> None:
    assert call_main("build", npz, out, "--size", 20, "--time-limit", 1e-9) == 1
    assert "1e-09 seconds" in error_line(capsys)
    assert not out.exists()
    assert call_main("build", npz, out, "--size", 20, "--time-limit", "nan") == 1
    assert "must lie between 0 and 1e+09" in error_line(capsys)


def test_build__refuses_a_place_that_cannot_be_written(
    npz: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Permissions do not stop the superuser, who may be running this.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert call_main("build", npz.parent / "missing", npz.parent / "out", "--size", 20) == 1
    assert "nothing can be written in" in error_line(capsys)


def test_build__names_the_extra_for_a_cluster(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert call_main("build", npz, out, "--size", 5, "--workers", 2) == 1
    assert 'pip install "daskcoreset[distributed]"' in error_line(capsys)


def test_info__of_a_tree_or_portfolio_says_what_it_is(
    tmp_path: Path, out: Path, capsys: Capture
) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    daskcoreset.CoresetTree.create(out, size=10, random_state=0).append(X)
    for command in (["info", out], ["plot", out, tmp_path / "a.png"]):
        assert call_main(*command) == 1
        assert "holds a 'coreset-tree', not a 'coreset'" in error_line(capsys)
    both = daskcoreset.build_many(X, sizes=10, methods=["uniform", "lightweight"], random_state=0)
    both.to_zarr(tmp_path / "both.zarr")
    assert call_main("info", tmp_path / "both.zarr") == 1
    assert "not a 'coreset'" in error_line(capsys)
    both["uniform"].to_zarr(tmp_path / "one.zarr")
    assert call_main("tree", "list", tmp_path / "one.zarr") == 1
    assert "not a 'coreset-tree'" in error_line(capsys)


def test_info__writes_letters_as_they_are(
    tmp_path: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["größe (m)", "λ"])
    frame.to_parquet(tmp_path / "rows.parquet")
    assert call_main("build", tmp_path / "rows.parquet", out, "--size", 10) == 0
    capsys.readouterr()
    for flags in ([], ["--json"]):
        assert call_main("info", out, *flags) == 0
        assert '"größe (m)"' in capsys.readouterr().out
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", narrow)
    assert call_main("info", out) == 0
    assert rb"gr\u00f6\u00dfe" in narrow.buffer.getvalue()


def test_build__saves_at_a_url(
    npz: Path, objects: ObjectServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = objects.bucket() + "/coreset"
    told = json.dumps(objects.options["client_kwargs"])
    given = [f"--storage-options={name}={objects.options[name]}" for name in ("key", "secret")]
    given.append(f"--storage-options=client_kwargs={told}")
    assert call_main("build", npz, url, "--size", 50, "--random-state", 3, *given) == 0
    expected = daskcoreset.build(npz, size=50, random_state=3)
    assert Coreset.from_zarr(url, storage_options=objects.options).equals(expected)
    assert call_main("info", url, *given) == 0
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err


# --- columns, sizes, audits and pictures ----------------------------------------------------


def test_predict__rows_without_values(
    arrays: Mapping[str, Any], out: Path, tmp_path: Path, capsys: Capture
) -> None:
    holes = arrays["X"].copy()
    holes[[5, 333], [0, 2]] = np.nan, np.inf
    data, target = tmp_path / "holes.npy", tmp_path / "labels.npy"
    np.save(data, holes)
    built = ["build", data, out, "--size", 90, "--method", "kmeans", "--n-clusters", 4]
    assert call_main(*built, "--on-invalid", "drop") == 0
    capsys.readouterr()
    assert call_main("predict", out, data, target) == 0
    facts = facts_of(capsys.readouterr().out)
    assert (facts["without_cluster"], facts["n_clusters"]) == ("2", "4")
    found = np.load(target)
    assert np.flatnonzero(found == -1).tolist() == [5, 333]
    assert sorted(set(found)) == [-1, 0, 1, 2, 3]
    target.unlink()
    assert call_main("predict", out, data, target, "--on-invalid", "raise") == 1
    assert "NaN in column 0 at row 5" in error_line(capsys)
    assert not list(tmp_path.glob("*labels*"))


def test_predict__what_it_refuses(npz: Path, out: Path, tmp_path: Path, capsys: Capture) -> None:
    assert call_main("build", npz, out, "--size", 50, "--random-state", 0) == 0
    target = tmp_path / "labels.zarr"

    def refused(*words: object, code: int = 1) -> str:
        capsys.readouterr()
        assert call_main("predict", *words) == code
        return error_line(capsys)

    assert ".npy, .zarr" in refused(out, npz, tmp_path / "labels.txt", code=2)
    assert "does not hold 'labels'" in refused(out, npz, out, "--overwrite")
    assert "local disk" in refused(out, npz, "s3://bucket/labels.npy")
    narrow = tmp_path / "narrow.npy"
    np.save(narrow, np.ones((30, 2)))
    assert "2 columns and the coreset 3" in refused(out, narrow, target)
    assert "part of IN" in refused(out, narrow, narrow, "--overwrite")
    assert np.load(narrow).shape == (30, 2)
    assert not target.exists()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "zarr"])
def test_predict__and_audit_work_on_the_default_coreset(
    npz: Path, out: Path, tmp_path: Path, capsys: Capture, suffix: str
) -> None:
    assert call_main("build", npz, out, "--size", 50, "--random-state", 0) == 0
    target = tmp_path / f"labels.{suffix}"
    assert call_main("predict", out, npz, target, "--random-state", 0) == 0
    assert "n_clusters\t8" in capsys.readouterr().out
    reads: dict[str, Any] = {
        "parquet": lambda: pd.read_parquet(target)["cluster"],
        "csv": lambda: pd.read_csv(target)["cluster"],
        "zarr": lambda: zarr.open_array(target, mode="r")[:],
    }
    model = daskcoreset.estimators.CoresetKMeans(8, random_state=0).fit(Coreset.from_zarr(out))
    expected = model.predict(np.load(npz)["X"])
    np.testing.assert_array_equal(np.asarray(reads[suffix]()), expected)
    capsys.readouterr()
    assert call_main("audit", out, npz, "--json") == 0
    assert "k-means, k=32" in json.loads(capsys.readouterr().out)


def test_predict__names_the_extra_that_parquet_needs(
    npz: Path, out: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call_main("build", npz, out, "--size", 50) == 0
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert call_main("predict", out, npz, tmp_path / "labels.parquet") != 0
    told = 'error: pyarrow is not installed; run: pip install "daskcoreset[dataframe]"'
    assert told in capsys.readouterr().err
    assert not (tmp_path / "labels.parquet").exists()


def test_build__sets_parameters_merges_and_reduces_and_grows(
    npz: Path, out: Path, capsys: Capture
) -> None:
    X = np.load(npz)["X"]
    words = ["build", npz, out, "--size", 40, "--random-state", 2, "--overwrite"]
    given = ["--n-clusters", 3, "--set", "starts=2", "--method", "kmeans"]
    capsys.readouterr()
    assert call_main(*words, *given) == 1
    assert error_line(capsys).startswith("error: --set: method 'kmeans' has no parameter 'starts';")
    assert call_main(*words, "--set", "starts") == 2
    assert "KEY=VALUE" in error_line(capsys)
    assert call_main(*words, "--tree") == 0
    draw = daskcoreset.MergeReduce()
    expected = daskcoreset.build(X, size=40, random_state=2, draw=draw)
    np.testing.assert_array_equal(Coreset.from_zarr(out).weights, expected.weights)
    assert call_main(*words[:3], *words[5:], "--n-clusters", 2, "--epsilon", 0.3) == 0
    assert Coreset.from_zarr(out).provenance["size_rule"]["epsilon"] == 0.3


def test_errors__name_the_flag_of_their_argument(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argument: str) -> Any:
        def build(*_: Any, **__: Any) -> None:
            raise InvalidInputError("it is wrong", argument=argument, remedy="pass another one")

        return build

    monkeypatch.setattr(daskcoreset, "build", fail("n_clusters"))
    assert call_main("build", npz, out) == 1
    assert error_line(capsys) == "error: --n-clusters: it is wrong; pass another one"
    monkeypatch.setattr(daskcoreset, "build", fail("draw"))
    assert call_main("build", npz, out) == 1
    assert error_line(capsys) == "error: it is wrong; pass another one."


def test_build__makes_no_store_that_is_called_a_file(npz: Path, capsys: Capture) -> None:
    assert call_main("build", npz, npz.with_name("rows.parquet"), "--size", 50) == 2
    assert "would be a Zarr store" in error_line(capsys)
