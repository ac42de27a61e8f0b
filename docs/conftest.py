"""The examples of the pages run in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

# Sphinx runs these, with packages of the extra "docs".
collect_ignore_glob = ["*.py", "figures/*.py"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
