"""Tables and figures of the README and of the pages of benchmarks are made from the results."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FIGURES = sorted(path.stem for path in (ROOT / "docs" / "figures").glob("bench_*.py"))


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return the command, run in this process; its modules are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = importlib.import_module("pages")

    def run(*options: object) -> None:
        monkeypatch.setattr(sys, "argv", ["pages.py", *map(str, options)])
        module.main()

    yield run
    own = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    for name in own & (set(sys.modules) - known):
        del sys.modules[name]


def test_tables__are_made_from_the_results(pages: Callable[..., None]) -> None:
    pages("--check")


@pytest.mark.usefixtures("pages")
def test_tables__stand_on_a_page_each_and_show_all_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module: Any = importlib.import_module("pages")
    text = "\n".join(page.read_text() for page in module.PAGES)
    placed = re.findall(r"^<!-- results:(\w+) -->$", text, flags=re.MULTILINE)
    assert len(placed) == len(set(placed))
    assert set(module.TABLES) - set(placed) <= {"reliability"}
    shown: set[str] = set()
    read = module.common.read

    def noted(name: str, *out: Path) -> Any:
        shown.add(name)
        return read(name, *out)

    monkeypatch.setattr(module.common, "read", noted)
    for table in module.TABLES.values():
        table(RESULTS)
    kept = {path.stem for path in RESULTS.glob("*.*")}
    assert kept == shown | {"full"}  # costs of all rows, which `quality.py` divides by


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kind", ["light", "dark"])
def test_figures__are_drawn_from_the_results(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "figures"))
    theme = importlib.import_module("theme").THEMES[kind]
    with mpl.rc_context():
        figure = importlib.import_module(name).draw(theme)
        figure.draw_without_rendering()
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1


def test_results__say_which_run_made_them() -> None:
    found = [path for path in RESULTS.glob("*.json") if path.stem != "full"]
    assert len(found) >= 10
    for path in found:
        made = json.loads(path.read_text())["stamp"]
        assert re.fullmatch("[0-9a-f]{9}", made["commit"]), path.name  # no "+": no changed code
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", made["date"]), path.name


@pytest.mark.usefixtures("pages")
def test_by_task__follows_the_results_and_leaves_out_no_loss(tmp_path: Path) -> None:
    by_task: Any = importlib.import_module("by_task")
    shutil.copytree(RESULTS, tmp_path / "results")
    path = tmp_path / "results" / "quality.json"
    data = json.loads(path.read_text())
    cell = next(one for one in data["results"] if one["set"] == "skin")["cells"]
    cell["`CoresetKMeans`|1000"]["errors"] = [400 * one for one in cell["uniform|1000"]["errors"]]
    path.write_text(json.dumps(data))
    before, after = (by_task.by_task(folder) for folder in (RESULTS, tmp_path / "results"))
    changed = [line for line in after if line not in before]
    assert len(changed) == 2  # beside uniform rows, and beside all rows
    assert all("skin, 1,000 rows" in line.split("|")[5] for line in changed)
    for task in by_task.TASKS:  # a peer that is ahead anywhere is in the table
        found = list(task.lines(json.loads((RESULTS / f"{task.results}.json").read_text())))
        assert len(found) > 1
        worst = max(found, key=task.behind)
        assert task.cell(worst) in "\n".join(before)
        lost = sum(task.behind(line) > 0 for line in found)
        assert any(
            f"{lost} of {len(found)} |" in line for line in before if task.cell(worst) in line
        )
