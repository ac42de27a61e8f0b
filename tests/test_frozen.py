"""The comparison of the frozen table: tolerances, missing rows, and the exit status."""

from __future__ import annotations

import copy
import importlib
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("frozen")


def errors(seed: int, n: int = 6) -> list[float]:
    found: list[float] = np.random.default_rng(seed).lognormal(-3.0, 0.2, n).tolist()
    return found


ROWS: dict[str, dict[str, Any]] = {
    "digests": {"uniform": "a1", "svm": "b2"},
    "margin": {"digits": {"answers": {"coef": [3.0, 4.0], "margin": [0.5]}, "reads": 4.0}},
    "build_many": {"all": {"together": 2.0, "dearest": 2.0}},
    "refresh": {"Zarr array": 0.0096},
    "unbiased": {"uniform": [0.1, -2.9], "svm": [1.0, 2.0]},
    "quality": {"one": errors(0), "other": errors(1)},
    "kmeans": {"one": errors(2), "below zero": [-0.017, -0.015, -0.016]},
    "table1": {"one": errors(3)},
    "svm_offline": {"one": errors(4)},
    "logistic": {"one": errors(5)},
    "never_worse": {
        f"svm, hinge, htru2, {size}": {
            "own": errors(7, 20),
            "uniform": [1.5 * error for error in errors(8, 20)],
        }
        for size in (250, 500)
    },
    "table2": {"one": [0.86, 0.85, 0.87]},
    "mixtures": {"one": {"mixture": [-5.1, -5.2, -5.1], "uniform": [-5.2, -5.1, -5.3]}},
    "audit": {"one": {"held": 96, "asked": 100}, "other": {"held": 94, "asked": 100}},
    "stored": {"one read": [1.02, 1.05, 1.04], "two reads": [2.0, 2.05]},
    "in_memory": {"1,000,000 rows": [1.2], "100,000 rows": [2.0], "10,000 rows": [4.0]},
    "peak": {"build": {"2 million rows": 200 << 20, "8 million rows": 210 << 20}},
}


def recording(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {"kinds": {kind: {"rows": found} for kind, found in rows.items()}}


def worse(frozen: Any, kind: str, change: Any) -> list[str]:
    """Return the rows that exceed their tolerance after a change of a copy of the rows."""
    rows = copy.deepcopy(ROWS)
    rows[kind] = change(rows[kind]) or rows[kind]
    found = frozen.compared(recording(ROWS), recording(rows), [kind])
    return [one.row.removeprefix(f"{kind}: ") for one in found if one.exceeds]


def test_compared__a_recording_agrees_with_itself(frozen: Any) -> None:
    assert set(ROWS) == set(frozen.RULES)
    found = frozen.compared(recording(ROWS), recording(ROWS), list(frozen.RULES))
    assert len(found) >= len(ROWS)
    assert not [str(one) for one in found if one.exceeds]


def test_compared__a_missing_row_or_kind_exceeds(
    frozen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(rows: dict[str, Any]) -> None:
        del rows["one"]

    assert worse(frozen, "quality", drop) == ["one"]
    monkeypatch.setitem(frozen.DROPPED, "quality: one", "it went")
    assert worse(frozen, "quality", drop) == []
    found = frozen.compared(recording(ROWS), recording({}), ["margin", "peak"])
    assert [one.exceeds for one in found] == [True, True]
    assert frozen.compared(recording({}), recording(ROWS), ["margin"])[0].exceeds


@pytest.mark.parametrize(
    ("kind", "row", "factor", "exceeds"),
    [
        ("quality", "one", 1.05, []),
        ("quality", "one", 1.09, ["mean of the rows"]),
        ("quality", "one", 1.12, ["one", "mean of the rows"]),
        ("quality", "other", 0.5, []),
        ("table1", "one", 1.04, ["mean of the rows"]),
        ("svm_offline", "one", 1.14, ["mean of the rows"]),
        ("svm_offline", "one", 1.16, ["one", "mean of the rows"]),
        ("logistic", "one", 1.19, []),
        ("logistic", "one", 1.21, ["one"]),
    ],
)
def test_ratios__limit_growth_of_rows_and_of_their_mean(
    frozen: Any, kind: str, row: str, factor: float, exceeds: list[str]
) -> None:
    def grow(rows: dict[str, Any]) -> None:
        rows[row] = [factor * error for error in rows[row]]

    assert worse(frozen, kind, grow) == exceeds


@pytest.mark.parametrize(("factor", "exceeds"), [(1.0, []), (1.9, ["250"]), (3.0, ["250", "mean"])])
def test_never_worse__limits_cells_and_means_of_sets(
    frozen: Any, factor: float, exceeds: list[str]
) -> None:
    def grow(rows: dict[str, Any]) -> None:
        one = rows["svm, hinge, htru2, 250"]
        one["own"] = [factor * error for error in one["own"]]

    assert worse(frozen, "never_worse", grow) == [f"svm, hinge, htru2, {cell}" for cell in exceeds]


def test_ratios__other_draws_alone_are_chance(frozen: Any) -> None:
    before = {str(row): errors(row) for row in range(30)}
    other = {row: errors(100 + int(row)) for row in before}
    rule = frozen.ratios(1.10, mean=1.03)
    assert not [str(one) for one in rule(before, other) if one.exceeds]
    twice = {row: (2.0 * np.array(found)).tolist() for row, found in other.items()}
    found = [one for one in rule(before, twice) if one.exceeds]
    assert len(found) > 25
    assert found[-1].row == "mean of the rows"


def test_points__limit_what_is_added(frozen: Any) -> None:
    def add(row: str, share: float) -> Any:
        def change(rows: dict[str, Any]) -> None:
            rows[row] = [one + share for one in rows[row]]

        return change

    assert worse(frozen, "kmeans", add("below zero", 0.0049)) == []
    assert worse(frozen, "kmeans", add("below zero", 0.0052)) == ["below zero"]
    assert worse(frozen, "table2", add("one", -0.0029)) == []
    assert worse(frozen, "table2", add("one", -0.0031)) == ["one"]
    assert worse(frozen, "table2", add("one", 0.05)) == []


def test_answers__are_equal_and_read_no_more(frozen: Any) -> None:
    def answers(coef: list[float], reads: float) -> Any:
        return lambda _: {
            "digits": {"answers": {"coef": coef, "margin": [0.5]}, "reads": reads}
        }  # fmt: skip

    assert worse(frozen, "margin", answers([3.0, 4.0 + 1e-9], 3.0)) == []
    assert worse(frozen, "margin", answers([3.0, 4.0 + 1e-8], 4.0)) == ["digits, coef"]
    assert worse(frozen, "margin", answers([3.0], 5.0)) == ["digits, coef", "digits, reads"]
    assert worse(frozen, "margin", answers([3.0, np.nan], 4.0)) == ["digits, coef"]


@pytest.mark.parametrize(
    ("kind", "now", "exceeds"),
    [
        ("unbiased", {"uniform": [0.0, -3.99], "svm": [4.1, 0.0]}, ["svm"]),
        ("build_many", {"all": {"together": 3.0, "dearest": 2.0}}, ["all"]),
        ("refresh", {"Zarr array": 0.0109}, []),
        ("refresh", {"Zarr array": 0.0111}, ["Zarr array"]),
        (
            "audit",
            {"one": {"held": 91, "asked": 100}, "other": {"held": 94, "asked": 100}},
            ["all intervals"],
        ),
        (
            "mixtures",
            {"one": {"mixture": [-5.4, -5.5, -5.6], "uniform": [-5.2, -5.3, -5.4]}},
            ["one"],
        ),
        ("stored", {"one read": [1.3, 1.2, 0.9], "two reads": [2.0]}, ["one read"]),
        (
            "in_memory",
            {"1,000,000 rows": [1.31], "100,000 rows": [2.9], "10,000 rows": [5.1]},
            ["10,000 rows"],
        ),
        ("peak", {"build": {"2 million rows": 200 << 20, "8 million rows": 400 << 20}}, ["build"]),
        ("digests", {"uniform": "a1", "svm": "c3"}, []),
    ],
)
def test_compared__limits_of_each_kind(
    frozen: Any, kind: str, now: dict[str, Any], exceeds: list[str]
) -> None:
    assert worse(frozen, kind, lambda _: now) == exceeds


def test_main__records_once_for_a_package_and_returns_the_status(
    frozen: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def margin() -> dict[str, Any]:
        made.append("margin")
        return copy.deepcopy(ROWS["margin"])

    rows = SimpleNamespace(KINDS={"margin": margin})
    monkeypatch.setitem(sys.modules, "frozen_rows", rows)
    monkeypatch.setattr(frozen, "package", lambda: "one")
    place = tmp_path / "frozen.json"
    words = ["--rows", "margin", "--out", str(place)]
    assert frozen.main(["record", *words]) == 0
    assert frozen.main(["record", *words]) == 0
    assert made == ["margin"]
    assert frozen.main(["compare", *words]) == 0
    assert made == ["margin", "margin"]
    data = json.loads(place.read_text())
    assert data["margin cases"] == ["digits"]
    data["kinds"]["margin"]["rows"]["digits"]["reads"] = 3.0
    place.write_text(json.dumps(data))
    assert frozen.main(["compare", *words]) == 1


def test_calls__are_the_only_module_of_the_table_that_imports_the_library() -> None:
    files = (ROOT / "benchmarks").glob("frozen*.py")
    pattern = re.compile(r"^\s*(from|import) daskcoreset", re.MULTILINE)
    found = {file.name for file in files if pattern.search(file.read_text())}
    assert found == {"frozen_calls.py"}
