"""Notebooks are stored with their outputs, and every one runs from top to bottom."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
notebooks = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)

MAX_BYTES = 400_000
# Folders of the machine that executed it; links to pages and schemes of addresses are none.
ABSOLUTE = re.compile(r"(?<![\w.:/<])/(?:home|root|tmp|usr|var|work|Users|opt|mnt)/|[A-Z]:\\\\")
WARNING = re.compile(r"\w*Warning\b|Traceback")


def _code(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _text(output: dict[str, Any]) -> str:
    """Return all that an output says, without the bytes of its pictures."""
    parts = [output.get("text", "")]
    parts += [value for kind, value in output.get("data", {}).items() if kind.startswith("text/")]
    return "\n".join("".join(part) for part in parts)


@notebooks
def test_notebook__is_stored_with_its_outputs(path: Path) -> None:
    cells = _code(path)

    assert path.stat().st_size <= MAX_BYTES
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output["text"] for output in outputs if output.get("name") == "stderr"]
    for output in outputs:
        assert not ABSOLUTE.search(_text(output))
        assert not WARNING.search(_text(output))


@notebooks
def test_notebook__begins_with_a_picture(path: Path) -> None:
    first = [output for cell in _code(path)[:2] for output in cell["outputs"]]

    assert any("image/png" in output.get("data", {}) for output in first)


@pytest.mark.nightly
@notebooks
# Jupyter's client leaves sockets to the collector and warns of an event loop; not ours to mend.
@pytest.mark.filterwarnings("ignore")
def test_notebook__runs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)

    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.execution_count for cell in code)
