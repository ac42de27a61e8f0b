"""Every notebook runs from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = Path(__file__).parents[1] / "notebooks"


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
# Jupyter's client leaves sockets to the collector and warns of an event loop; not ours to mend.
@pytest.mark.filterwarnings("ignore")
def test_notebook__runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)

    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.execution_count for cell in code)
