"""The README says what the results say."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture
def readme(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return the command, run in this process; its modules are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = importlib.import_module("readme")

    def run(*options: object) -> None:
        monkeypatch.setattr(sys, "argv", ["readme.py", *map(str, options)])
        module.main()

    yield run
    own = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    for name in own & (set(sys.modules) - known):
        del sys.modules[name]


def _stamped() -> list[Path]:
    """Return results that say which run made them."""
    return [path for path in RESULTS.glob("*.json") if '"stamp": {' in path.read_text()[:20]]


def test_tables__are_made_from_the_results(readme: Callable[..., None]) -> None:
    readme("--check")


@pytest.mark.nightly
@pytest.mark.slow
def test_figures__are_drawn_from_the_results(
    readme: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but those that a benchmark draws from a run; and a method looks the same in all."""
    drawn: dict[str, Any] = {}
    common: Any = importlib.import_module("common")

    def keep(data: Any, _out: Path, figures: Callable[[Any], dict[str, Any]]) -> None:
        drawn.update(figures(data))

    monkeypatch.setattr(common, "draw", keep)
    readme("--figures", "--check")
    assert set(drawn) == {path.stem for path in RESULTS.glob("*.png")} - {"max_margin"}
    for figure in drawn.values():
        figure.draw_without_rendering()
        for legend in figure.legends:
            box = legend.get_window_extent()
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1
        for ax in figure.axes:
            own = [line for line in ax.get_lines() if line.get_label()[0] != "_"]
            own += [one[0] for one in ax.containers if getattr(one, "has_yerr", False) and one[0]]
            looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in own]
            marked = [look for look in looks if look[1] != "None"]
            # Told apart without colours: by markers, and by dashes where there are few.
            assert len({look[1:] for look in marked}) == len(marked)
    strong = set()
    for name, label in (("quality", "StrongKMeans"), ("table1", "default")):
        bars = drawn[name].axes[0].containers
        (line,) = [one[0] for one in bars if one.get_label() == label]
        strong.add((line.get_color(), line.get_marker()))
    assert len(strong) == 1


def test_results__say_which_run_made_them() -> None:
    found = _stamped()
    assert len(found) >= 6
    for path in found:
        made = json.loads(path.read_text())["stamp"]
        assert re.fullmatch("[0-9a-f]{9}", made["commit"]), path.name  # no "+": no changed code
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", made["date"]), path.name


def test_results__agree_where_two_benchmarks_measure_the_same() -> None:
    first, second = (json.loads((RESULTS / f"{n}.json").read_text()) for n in ("quality", "table1"))
    names = {"UNIFORM": "uniform", "LWCS": "lightweight, paper"}
    if first["stamp"]["commit"] == second["stamp"]["commit"]:
        names["default"] = "`StrongKMeans`"
    cells = {(r["set"], r["k"]): r["cells"] for r in first["results"]}
    compared = 0
    for result in second["results"]:
        for key, found in result["cells"].items():
            method, size = key.rsplit("|", 1)
            other = cells.get((result["set"], result["k"]), {}).get(f"{names.get(method)}|{size}")
            if other is not None:
                count = min(len(found["errors"]), len(other["errors"]))
                assert found["errors"][:count] == pytest.approx(other["errors"][:count], rel=1e-6)
                compared += 1
    assert compared


@pytest.mark.usefixtures("readme")
def test_by_task__follows_the_results_and_leaves_out_no_loss(tmp_path: Path) -> None:
    by_task: Any = importlib.import_module("by_task")
    shutil.copytree(RESULTS, tmp_path / "results")
    path = tmp_path / "results" / "boosting.json"
    data = json.loads(path.read_text())
    losses = next(one for one in data["results"] if one["set"] == "htru2")["losses"]
    losses["svm"]["hist"] = [400 * loss for loss in losses["uniform"]["hist"]]
    path.write_text(json.dumps(data))
    before, after = (by_task.table(folder) for folder in (RESULTS, tmp_path / "results"))
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(changed) == 1
    assert "htru2" in changed[0].split("|")[6]
    for task in by_task.TASKS:  # a peer that is ahead anywhere is in the table
        found = list(task.lines(json.loads((RESULTS / f"{task.results}.json").read_text())))
        assert len(found) > 1
        worst = max(found, key=task.behind)
        assert task.cell(worst) in before
